"""Whole nights in virtual time: the real plan, timers, wrapper, record, live judge, hooks, verdict and reports.

One seed is one night (``draw``): targets that are models (``models``), what befalls them and their monitor
(``faults``), and every life of the monitor in one process (``lives``). What must hold in every night is
in ``checks``, and
``python -m soakwatch_testing.night`` (``tests/night`` in a checkout) runs nights, many of them, or the smallest part of
one that still fails.
"""
