"""The phases of a run: their planned times, and the conditions that end one early.

A phase lasts at most as long as planned; if its condition is met early, the run is that much shorter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.plan.phase import UNTIL_FOUND, UNTIL_LOAD, UNTIL_SETTLED, Load, PhasePlan
from soakwatch.plan.planned_phases import PlannedPhase, shifted, stretches
from soakwatch_model.event import Event
from soakwatch_model.flow import BACK, REQUESTS, SENT
from soakwatch_model.metric import BY_NAME, COUNTER, GAUGE, flows
from soakwatch_model.metric_queries import usual_in
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.sample import Sample
from soakwatch_model.shown import CPU, MEMORY
from soakwatch_model.window import Window
from soakwatch_rules.stats.settled import MIN_SAMPLES, settled

TURN = "phase.turn"
"""Kind of the event that says why a phase ended when it did."""
_SENDING = "load.sending"
_RATES = frozenset((*flows(SENT, kind=GAUGE), *flows(BACK, REQUESTS, kind=GAUGE)))
_COUNTED = frozenset((*flows(SENT, kind=COUNTER), *flows(BACK, REQUESTS, kind=COUNTER)))
_SETTLED_NS = 60_000_000_000
_SETTLED_DRIFT = 0.02
_CPU_FLOOR = 0.02  # two points
_FLOORS = {
    name: _CPU_FLOOR if topic == CPU else BY_NAME[name].quantum or 0.0
    for topic in (CPU, MEMORY)
    for name in usual_in(topic)
    if not BY_NAME[name].labels
}
"""The watched levels, and the drift of each, in its unit, that is always allowed."""
_MAX_READINGS = 600  # per level


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase to begin, and the event that says why it begins now; None if it begins as planned."""

    stretch: PlannedPhase
    event: Event | None = None


class PhaseTimeline:
    """Which phase a run is in: ``observe`` takes samples, ``observe_event`` events; ``next_change`` is what begins."""

    def __init__(self, phases: Iterable[PhasePlan], start_ns: int, begun_ns: Sequence[int] = ()) -> None:
        self.stretches = shifted(stretches(phases, start_ns), begun_ns)
        self._begun = len(begun_ns)
        self._came_ns: int | None = None  # when the condition of the current phase was met
        self._counted: dict[tuple[int, str, str], float] = {}
        self._settling = SteadyStateDetector()

    @property
    def end_ns(self) -> int:
        """End of the run as planned now, UTC ns."""
        return self.stretches[-1].window.end_ns

    @property
    def now(self) -> PlannedPhase | None:
        """The current phase; None before the first."""
        return self.stretches[self._begun - 1] if self._begun else None

    @property
    def load(self) -> Load | None:
        """The current load: that of the last begun phase that names one; 1.0 (full) if no phase ever does.

        A capacity search sets the loads itself: 0.
        """
        if self._begun and all(stretch.load is None and stretch.search is None for stretch in self.stretches):
            return 1.0
        begun = reversed(self.stretches[: self._begun])
        last = next((s for s in begun if s.load is not None or s.search is not None), None)
        return None if last is None else 0.0 if last.search is not None else last.load

    def due_ns(self) -> tuple[int, ...]:
        """When the phases not yet begun will begin by their time."""
        return tuple(stretch.window.begin_ns for stretch in self.stretches[self._begun :])

    def observe(self, role: str, source: int, samples: Sequence[Sample]) -> None:
        """Takes the samples of one poll; ``role`` is that of the target."""
        now = self.now
        if now is None:
            return
        if now.until == UNTIL_LOAD and role == GENERATOR and self._came_ns is None:
            sent_ns = self._sent_ns(source, samples)
            self._came_ns = None if sent_ns is None else max(sent_ns, now.window.begin_ns)
        elif now.until == UNTIL_SETTLED and role == DUT:
            self._settling.take(source, samples)

    def observe_event(self, event: Event) -> None:
        """Takes an event of the record."""
        now = self.now
        if (
            now is not None
            and self._came_ns is None
            and now.until == f"event {event.kind}"
            and now.window.begin_ns <= event.begin_ns < now.window.end_ns
        ):
            self._came_ns = event.begin_ns

    def search_ended(self, now_ns: int) -> None:
        """The search of the current phase is over: the phase ends now."""
        if self.now is not None and self.now.until == UNTIL_FOUND and self._came_ns is None:
            self._came_ns = now_ns

    def next_change(self, now_ns: int) -> PhaseChange | None:
        """The next phase, if its time or the condition of the current one has come; call it until it returns None.

        It returns the same phase until ``begun`` is called. If the last phase ends early, the end of the run moves and
        None is returned.
        """
        now = self.now
        if now is not None and now.until:
            self._see_settled(now, now_ns)
            if self._came_ns is not None and self._came_ns < now.window.end_ns:
                # A following phase begins when the condition was met; the run ends now, since polls went on until now.
                self._came_ns = now_ns if self._begun == len(self.stretches) else self._came_ns
                self._cut(self._came_ns)
                now = self.stretches[self._begun - 1]
        if self._begun == len(self.stretches):
            return None
        following = self.stretches[self._begun]
        if following.window.begin_ns > now_ns:
            return None
        return PhaseChange(following, None if now is None or not now.until else self._change_event(now, following.name))

    def ended(self) -> Event | None:
        """Why the last phase ended when it did; None if it has no condition or was not reached."""
        now = self.now
        return (
            None
            if now is None or not now.until or now is not self.stretches[-1]
            else self._change_event(now, "the end")
        )

    def begun(self) -> None:
        """The phase that ``next_change`` returned is recorded."""
        self._begun += 1
        self._came_ns = None
        self._settling = SteadyStateDetector()

    def _see_settled(self, now: PlannedPhase, now_ns: int) -> None:
        if now.until == UNTIL_SETTLED and self._came_ns is None and self._settling.since(now.window.begin_ns):
            self._came_ns = now_ns

    def _cut(self, end_ns: int) -> None:
        index = self._begun - 1
        window = self.stretches[index].window
        saved_ns = window.end_ns - end_ns
        cut = replace(self.stretches[index], window=Window(window.begin_ns, end_ns))
        rest = tuple(
            replace(s, window=Window(s.window.begin_ns - saved_ns, s.window.end_ns - saved_ns))
            for s in self.stretches[index + 1 :]
        )
        self.stretches = (*self.stretches[:index], cut, *rest)

    def _change_event(self, now: PlannedPhase, to: str) -> Event:
        if self._came_ns is None:
            reason = f"{_AWAITED.get(now.until, f'no {now.until}')} within the longest time of {now.name}"
        else:
            reason = _CAME.get(now.until, f"the {now.until} was reported")
        detail = {"from": now.name, "to": to, "until": now.until, "reason": reason}
        return Event(TURN, "", "", now.window.end_ns, now.window.end_ns, detail)

    def _sent_ns(self, source: int, samples: Sequence[Sample]) -> int | None:
        times_ns = [sample.time_ns for sample in samples if self._tells_load(source, sample)]
        return min(times_ns, default=None)

    def _tells_load(self, source: int, sample: Sample) -> bool:
        if sample.metric == _SENDING or sample.metric in _RATES:
            return sample.value > 0
        if sample.metric not in _COUNTED:
            return False
        key = source, sample.metric, sample.object
        before = self._counted.get(key)
        self._counted[key] = float(sample.value)
        return before is not None and sample.value > before


_CAME = {
    UNTIL_LOAD: "the generator started sending",
    UNTIL_SETTLED: "the levels of the device had settled",
    UNTIL_FOUND: "the search for the capacity was over",
}
_AWAITED = {
    UNTIL_LOAD: "no generator was seen sending",
    UNTIL_SETTLED: "the levels of the device had not settled",
    UNTIL_FOUND: "the capacity was not found",
}


class SteadyStateDetector:
    """The newest readings of the devices' CPU and memory, for ``until: settled``.

    They have settled when each drifts by less than 2 % of itself (CPU: or 2 points) across the last minute, or across
    the last 12 readings if these take longer.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str, str], deque[tuple[int, float]]] = {}

    def take(self, source: int, samples: Iterable[Sample]) -> None:
        """Takes the readings of one poll."""
        for sample in samples:
            if sample.metric in _FLOORS:
                kept = self._kept.setdefault((source, sample.metric, sample.object), deque(maxlen=_MAX_READINGS))
                kept.append((sample.time_ns, float(sample.value)))

    def since(self, begin_ns: int) -> bool:
        """True if all have settled by readings from ``begin_ns`` on; False while there are too few or none."""
        return bool(self._kept) and all(
            _settled(_FLOORS[metric], kept, begin_ns) for (_, metric, _), kept in self._kept.items()
        )


def _settled(floor: float, kept: Iterable[tuple[int, float]], begin_ns: int) -> bool:
    readings = [reading for reading in kept if reading[0] >= begin_ns]
    if len(readings) < MIN_SAMPLES or readings[-1][0] - readings[0][0] < _SETTLED_NS:
        return False
    from_ns = readings[-1][0] - _SETTLED_NS
    first = min(len(readings) - MIN_SAMPLES, next(i for i, (when_ns, _) in enumerate(readings) if when_ns >= from_ns))
    time_ns, values = np.array(readings[first:]).T
    return settled((time_ns - time_ns[0]) * 1e-9, values, _SETTLED_DRIFT, floor)
