"""When planned events occur: once or repeatedly, at a time of the run or of a phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from soakwatch.core.units import show_seconds
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.plan import EventPlan
from soakwatch.plan.planned_phases import PlannedPhase
from soakwatch_model.event import Event
from soakwatch_model.window import Window

SKIPPED = "event.skipped"
"""Kind of the event that says that a planned event was skipped, and why."""
LATE_NS = 3 * 10**9
"""A command later than this (the monitor was dead, the disk full) is skipped: it would hit another moment of the run
than planned."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One planned event that is due; ``lapsed``: how many of its times were missed, in which case it is skipped."""

    index: int
    base_ns: int
    planned: EventPlan
    begin_ns: int
    lapsed: int = 0

    def event(self) -> Event:
        """The event to record: the planned one, or that it was skipped."""
        planned = self.planned
        if self.lapsed:
            return self.skipped("its time had passed by more than " + show_seconds(LATE_NS * 1e-9))
        return Event(
            kind=planned.kind,
            target=planned.target or "",
            object="",
            begin_ns=self.begin_ns,
            end_ns=None if planned.lasts_s is None else self.begin_ns + round(planned.lasts_s * 1e9),
            expect=planned.expect,
            deadline_ns=None if planned.within_s is None else self.begin_ns + round(planned.within_s * 1e9),
        )

    def skipped(self, reason: str) -> Event:
        """The event that says that it was skipped."""
        detail = {"event": self.planned.kind, "reason": reason}
        if self.lapsed > 1:
            detail["times"] = str(self.lapsed)
        return Event(SKIPPED, self.planned.target or "", "", self.begin_ns, self.begin_ns, detail)


class EventSchedule:
    """Which planned events are due. Those ``recorded`` by an earlier monitor do not start again."""

    def __init__(self, events: Sequence[EventPlan], phasing: PhaseTimeline, recorded: Iterable[Event] = ()) -> None:
        self._events, self._phasing = tuple(events), phasing
        self._start_ns = phasing.stretches[0].window.begin_ns
        self._done: dict[tuple[int, int], int] = {}  # (event index, base) -> how many of its times are over
        for event in sorted(recorded, key=lambda recalled: recalled.begin_ns):
            self._recall(event)

    def due_ns(self) -> tuple[int, ...]:
        """The next times of all planned events, as far as known now."""
        due = []
        for index, planned in enumerate(self._events):
            times = [begin_ns for _, begin_ns in self._next(index, planned)]
            if planned.phase is not None:  # phases still to come
                ahead = self._phasing.stretches[len(self._begun()) :]
                times += [
                    stretch.window.begin_ns + round(planned.at_s * 1e9)
                    for stretch in ahead
                    if stretch.name == planned.phase
                ]
            due += times
        return tuple(sorted(due))

    def due(self, now_ns: int) -> Occurrence | None:
        """The first event that is due; the same one until ``begun`` is called."""
        waiting = [
            (begin_ns, index, base_ns)
            for index, planned in enumerate(self._events)
            for base_ns, begin_ns in self._next(index, planned)
            if begin_ns <= now_ns
        ]
        if not waiting:
            return None
        begin_ns, index, base_ns = min(waiting)
        planned = self._events[index]
        late_ns = now_ns - begin_ns - LATE_NS
        lapsed = 0
        if late_ns > 0 and planned.every_s is not None:
            lapsed = late_ns // round(planned.every_s * 1e9) + 1
        elif late_ns > 0 and planned.run:
            lapsed = 1
        return Occurrence(index, base_ns, planned, begin_ns, lapsed)

    def begun(self, occurrence: Occurrence) -> None:
        """The occurrence is recorded, begun or skipped."""
        key = occurrence.index, occurrence.base_ns
        self._done[key] = self._done.get(key, 0) + max(1, occurrence.lapsed)

    def never(self) -> tuple[Occurrence, ...]:
        """Occurrences that did not happen before the run, or their phase, was over."""
        return tuple(
            Occurrence(index, base.window.begin_ns, planned, base.window.end_ns)
            for index, planned in enumerate(self._events)
            for base in self._bases(planned)
            if not self._done.get((index, base.window.begin_ns))
        )

    def _bases(self, planned: EventPlan) -> Iterator[PlannedPhase]:
        if planned.phase is None:
            yield PlannedPhase("run", Window(self._start_ns, self._phasing.end_ns))
        else:
            yield from (stretch for stretch in self._begun() if stretch.name == planned.phase)

    def _begun(self) -> Sequence[PlannedPhase]:
        return self._phasing.stretches[: len(self._phasing.stretches) - len(self._phasing.due_ns())]

    def _next(self, index: int, planned: EventPlan) -> Iterator[tuple[int, int]]:
        """Base and time of the next occurrence from each base (the run or a phase)."""
        for base in self._bases(planned):
            count = self._done.get((index, base.window.begin_ns), 0)
            begin_ns = base.window.begin_ns + round(planned.at_s * 1e9)
            if count:
                if planned.every_s is None:
                    continue
                begin_ns += count * round(planned.every_s * 1e9)
                if begin_ns + round(planned.takes_s * 1e9) > base.window.end_ns:
                    continue  # it would not end within its phase
            if begin_ns < base.window.end_ns:
                yield base.window.begin_ns, begin_ns

    def _recall(self, event: Event) -> None:
        kind = event.detail.get("event", "") if event.kind == SKIPPED else event.kind
        times = event.detail.get("times", "1") if event.kind == SKIPPED else "1"
        for index, planned in enumerate(self._events):
            if planned.kind != kind or (planned.target or "") != event.target:
                continue
            for base_ns, begin_ns in self._next(index, planned):
                if begin_ns == event.begin_ns:
                    key = index, base_ns
                    self._done[key] = self._done.get(key, 0) + (int(times) if times.isdecimal() else 1)
                    return
