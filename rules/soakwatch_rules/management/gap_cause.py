"""The cause of a silence of a source, with the evidence: the monitor, the path or the device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.events.boots import BOOT_METRICS, reboots_in
from soakwatch_rules.load.forwarding import Forwarding, lost_share
from soakwatch_rules.sampling import cadence
from soakwatch_rules.silences import answered_during, monitor_did_not_poll, not_heard_times, silent_all
from soakwatch_rules.wording.quantities import quantity

TOTAL: Final = "system.cpu.utilization"
UP: Final = "reach.up"
_BEFORE_S = 60.0  # the CPU reading before a silence is at most this old, or three of its cadences

MONITOR, PLANNED, REBOOT, DEVICE, PATH, UNKNOWN = "monitor", "planned", "reboot", "device", "path", "unknown"
BLAMED: Final = frozenset({REBOOT, DEVICE, UNKNOWN})
"""Causes for which the device may be to blame."""


@dataclass(frozen=True, slots=True)
class ExplainedSilence:
    """One silence with its cause and evidence; ``alone``: another source answered meanwhile."""

    silence: Silence
    cause: str
    why: str
    alone: bool = False

    @property
    def window(self) -> Window:
        return self.silence.window

    @property
    def words(self) -> str:
        """The cause and its certainty, as the end of a sentence.

        >>> ExplainedSilence(Silence(Window(0, 9), {}), DEVICE, "its CPU was at 100 % just before").words
        ', probably because of the device (its CPU was at 100 % just before)'
        """
        if self.cause in {DEVICE, PATH}:
            return f", probably because of the {self.cause} ({self.why})"
        return f", for an unknown cause ({self.why})" if self.cause == UNKNOWN else f": {self.why}"


def silence_causes(case: Case, busy: float, hit: float) -> Callable[[Ledger, Silence], ExplainedSilence]:
    """A function from a silence to its cause, by the definition of the rule ``gap``; shared work is done once."""
    cut = [s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series]
    best = {m: max((s for s in cut if s.metric == m and len(s)), key=len, default=None) for m in (TOTAL, *BOOT_METRICS)}
    with np.errstate(over="ignore", invalid="ignore"):  # absurd boot times may overflow
        witnesses = reboots_in(best)
    reported = [(e.begin_ns, e.end_ns or e.begin_ns) for e in case.events if e.kind == "reboot" and not e.expect]
    booted = [*((w.begin_ns, w.end_ns) for w in witnesses), *reported]
    apart = None if (cpu_series := best[TOTAL]) is None else cadence(cpu_series)
    flow = Forwarding.of(case)
    sides = None if flow is None else flow.tallies()
    planned = [e for e in case.events if e.expect]
    up = [s for s in cut if s.metric == UP]
    silent = [(x, not_heard_times(x, up)) for x in case.ledgers]

    def cause(ledger: Ledger, silence: Silence) -> ExplainedSilence:
        window = silence.window
        if monitor_did_not_poll(silence.lost):
            return ExplainedSilence(silence, MONITOR, "the monitor did not send its polls")
        if (kind := _announced(planned, window)) is not None:
            return ExplainedSilence(silence, PLANNED, f"a planned {kind} was in progress")
        if any(begin <= window.end_ns and end >= window.begin_ns for begin, end in booted):
            return ExplainedSilence(silence, REBOOT, "the device rebooted")
        cpu = _cpu_before(best[TOTAL], apart, window)
        if cpu is not None and cpu >= busy:
            return ExplainedSilence(silence, DEVICE, f"its CPU was at {quantity(cpu, '1')} just before")
        now, before = (None, None) if sides is None else (lost_share(sides, w) for w in (window, _as_long(window)))
        if now is not None and now > (before or 0.0) + hit:
            return ExplainedSilence(silence, DEVICE, f"{quantity(now, '1')} of the load was lost meanwhile")
        others = (x for x, spans in silent if x.source != ledger.source and answered_during(x, spans, window))
        if (other := next(others, None)) is not None:
            return ExplainedSilence(silence, PATH, f"{other.source} answered meanwhile", alone=True)
        if now is not None:
            return ExplainedSilence(silence, PATH, "no management answered, but traffic was forwarded")
        return ExplainedSilence(silence, UNKNOWN, "no other source and no traffic figures to tell the cause")

    return cause


def path_cuts(case: Case, cause: Callable[[Ledger, Silence], ExplainedSilence]) -> tuple[Window, ...]:
    """When a target's sources and probes were all silent because of the path, by ``silence_causes``."""
    up = [s for s in case.series if s.metric == UP]
    nobody = Ledger(case.target, "", 0.0, 0, 0, {}, None)
    matches = []
    for span in silent_all(case.ledgers, up):
        explained = cause(nobody, Silence(span, {"timeout": 1}))
        if explained.cause == PATH:
            matches.append(span)
    return tuple(matches)


def _as_long(window: Window) -> Window:
    """The stretch of the same length before it."""
    return Window(2 * window.begin_ns - window.end_ns, window.begin_ns)


def _announced(planned: list[Event], window: Window) -> str | None:
    for event in planned:
        end = event.deadline_ns if event.deadline_ns is not None else event.end_ns
        if event.begin_ns <= window.end_ns and (end is None or end >= window.begin_ns):
            return event.kind
    return None


def _cpu_before(series: Series | None, apart: float | None, window: Window) -> float | None:
    """The last CPU reading before a silence; None if it is too old."""
    if series is None or apart is None:
        return None
    index = int(np.searchsorted(series.time_ns, window.begin_ns, side="right"))
    if not index:
        return None
    old_s = (window.begin_ns - int(series.time_ns[index - 1])) * 1e-9
    return float(series.value[index - 1]) if old_s <= max(_BEFORE_S, 3 * apart) else None
