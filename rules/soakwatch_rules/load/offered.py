"""Phases of a load, those that overload on purpose among them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window

OVERLOADS = frozenset({"spike", "stress"})
"""Names of the phases that offer more than a device can carry."""


def overloads(case: Case) -> tuple[Phase, ...]:
    """The overload phases that touch the case's window, in time order; adjacent ones of one name are joined."""
    window = case.window
    inside = [
        p for p in phases_joined(case.phases) if p.window.begin_ns < window.end_ns and p.window.end_ns > window.begin_ns
    ]
    return tuple(p for p in inside if p.name in OVERLOADS)


def phases_joined(phases: Iterable[Phase]) -> tuple[Phase, ...]:
    """The phases in time order, adjacent ones of one name joined.

    One phase of a plan may have several levels of load: a spike, and a rest that is still called spike.

    >>> phases = [Phase("spike", Window(0, 10)), Phase("spike", Window(10, 13)), Phase("soak", Window(13, 20))]
    >>> [(p.name, p.window.begin_ns, p.window.end_ns) for p in phases_joined(phases)]
    [('spike', 0, 13), ('soak', 13, 20)]
    """
    result: list[Phase] = []
    for phase in sorted(phases, key=lambda p: (p.window.begin_ns, p.window.end_ns)):
        if result and phase.name == result[-1].name and phase.window.begin_ns <= result[-1].window.end_ns:
            end_ns = max(phase.window.end_ns, result[-1].window.end_ns)
            result[-1] = Phase(phase.name, Window(result[-1].window.begin_ns, end_ns))
        else:
            result.append(phase)
    return tuple(result)


def first_reported(load: Iterable[Series], *metrics: str) -> tuple[Series, ...]:
    """The series of the first of these metrics that has two readings."""
    kept = [series for series in load if len(series.finite()) > 1]
    for metric in metrics:
        if matches := tuple(series for series in kept if series.metric == metric):
            return matches
    return ()


def windows_by_phase(case: Case) -> tuple[Phase, ...]:
    """The window cut at all phase edges; each piece has the name of the phase begun last, or "" outside of phases."""
    window = case.window
    phases = [p for p in case.phases if p.window.begin_ns < p.window.end_ns]
    edges = {window.begin_ns, window.end_ns}
    edges |= {t for p in phases for t in (p.window.begin_ns, p.window.end_ns) if window.begin_ns < t < window.end_ns}
    result = []
    for begin_ns, end_ns in pairwise(sorted(edges)):
        over = [p for p in phases if p.window.begin_ns <= begin_ns and p.window.end_ns >= end_ns]
        name = max(over, key=lambda p: p.window.begin_ns).name if over else ""
        result.append(Phase(name, Window(begin_ns, end_ns)))
    return tuple(result)


def own_loss(load: Iterable[Series]) -> float | None:
    """The share that the worst generator loses by itself, looped back at its ceiling (``load.ceiling.loss``).

    None if none was calibrated. It is an upper bound, since they lose less at lower rates.
    """
    reported = [s.finite().values for s in load if s.metric == "load.ceiling.loss"]
    known = [float(v[-1]) for v in reported if v.size and 0 <= v[-1] <= 1]
    return max(known, default=None)
