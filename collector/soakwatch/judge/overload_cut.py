"""Cuts capacity searches out of what most rules see, since a search overloads the device on purpose.

Loss, drops, latency, CPU and queues of its trials are the measurement, not findings. Such rules judge each stretch
between the searches by itself; one that only prepares (baseline, ramp) is left out if there is another. Rules on
deaths, standstills, polls and the set-up see the whole run, since a search asks for none of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from soakwatch.plan.capacity_plan import NAME
from soakwatch_model.window import Phase, Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.traits import Judges, traits_of

_PREPARE = frozenset({"baseline", "ramp", NAME})


def sees_overload(rule: Rule) -> bool:
    """Whether a rule judges capacity searches too."""
    traits = traits_of(rule.name)
    return traits.leads is not None or traits.judges in {Judges.SETUP, Judges.ANSWERS}


def around_searches(window: Window, phases: Sequence[Phase]) -> tuple[Window, ...]:
    """The stretches of a window between the searches, in order; the whole window if there is none.

    >>> edges = {"baseline": (0, 10), "capacity": (10, 30), "soak": (30, 90)}
    >>> run = [Phase(name, Window(*edge)) for name, edge in edges.items()]
    >>> around_searches(Window(0, 90), run), around_searches(Window(0, 30), run[:2]), around_searches(Window(9, 90), [])
    ((Window(begin_ns=30, end_ns=90),), (Window(begin_ns=0, end_ns=10),), (Window(begin_ns=9, end_ns=90),))
    """
    searches = sorted((p.window for p in phases if p.name == NAME), key=lambda cut: cut.begin_ns)
    if not searches:
        return (window,)
    stretches, begin_ns = [], window.begin_ns
    for cut in searches:
        if begin_ns < min(cut.begin_ns, window.end_ns):
            stretches.append(Window(begin_ns, min(cut.begin_ns, window.end_ns)))
        begin_ns = max(begin_ns, cut.end_ns)
    if begin_ns < window.end_ns:
        stretches.append(Window(begin_ns, window.end_ns))
    judged = [stretch for stretch in stretches if not _prepares(stretch, phases)]
    return tuple(judged or stretches)


def _prepares(stretch: Window, phases: Iterable[Phase]) -> bool:
    """Whether a stretch lies in baseline and ramp only."""
    within = [p for p in phases if p.window.begin_ns < stretch.end_ns and p.window.end_ns > stretch.begin_ns]
    return all(phase.name in _PREPARE for phase in within)
