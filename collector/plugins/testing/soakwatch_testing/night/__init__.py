"""Whole nights in virtual time with the real plan, timers, wrapper, record, live judge, hooks, verdict and reports.

One seed is one night (``draw``): simulated targets (``models``), faults of them and of the monitor (``faults``), and
all lives of the monitor in one process (``lives``). ``checks`` has what must hold in every night. ``python -m
soakwatch_testing.night`` (``tests/night`` in a checkout) runs one or many nights, or reduces a failing one.
"""
