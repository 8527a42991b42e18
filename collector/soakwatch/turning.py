"""Phases and planned events, begun when their time or their condition has come; driven loads are told with them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from soakwatch.committing import Committer
from soakwatch.driving import Throttle
from soakwatch.judge import PLANNED_KEY, planned_text
from soakwatch.phasing import Phasing
from soakwatch.plan import EventPlan, Plan
from soakwatch.record import Record, RecordFull
from soakwatch_rules.rule import Event

ORIGIN, OWN_ORIGIN = "plan", "monitor"
"""Who told the events that the plan brings, and those that tell how the run went through it."""
_FOLLOW_S = 5.0  # how long a load may take to follow before the run goes on


class Turning:
    """The course of one run through its plan. ``turn`` is called at every due time, and now and then in between."""

    def __init__(
        self, plan: Plan, start_ns: int, record: Record, committer: Committer, now_ns: Callable[[], int],
        phasing: Phasing, events_begun: int,
    ) -> None:  # fmt: skip
        self._plan, self._start_ns = plan, start_ns
        self._record, self._committer, self._now_ns = record, committer, now_ns
        self.phasing, self.throttle = phasing, Throttle()
        self._untold: list[Event] = []
        self._events_begun = events_begun
        self._one_at_a_time = asyncio.Lock()
        self._end_ns = phasing.end_ns
        self._level: float | None = None

    def due_ns(self) -> tuple[int, ...]:
        """The times at which something is planned to begin."""
        return (*self.phasing.due_ns(), *(self._begin_ns(event) for event in self._plan.events[self._events_begun :]))

    async def turn(self) -> None:
        """Record the phases and planned events whose time has come, and tell the loads.

        On a full disk they stay due: the outbox complains of it, and the next batch that is written brings them.
        """
        async with self._one_at_a_time:
            with contextlib.suppress(RecordFull):
                await self._turn_phases()
                await self._begin_events()
            await self._drive()

    async def end(self, end_ns: int) -> None:
        """Tell why the last phase ended, if the run went to its end and that was not its time alone."""
        event = self.phasing.ended() if end_ns >= self.phasing.end_ns else None
        if event is not None:
            with contextlib.suppress(RecordFull):
                await self._committer.call(self._record.add_event, "", event, OWN_ORIGIN)

    async def _turn_phases(self) -> None:
        while (turn := self.phasing.turn(self._now_ns())) is not None:
            await self._committer.call(self._record.begin_phase, turn.stretch.name, turn.stretch.begin_ns)
            self.phasing.begun()
            self._untold += [] if turn.event is None else [turn.event]
        while self._untold:
            await self._committer.call(self._record.add_event, "", self._untold[0], OWN_ORIGIN)
            del self._untold[0]
        if self.phasing.end_ns != self._end_ns:
            length_s = (self.phasing.end_ns - self._start_ns) * 1e-9
            planned = planned_text(length_s, [phase.name for phase in self._plan.phases])
            await self._committer.call(self._record.set_meta, PLANNED_KEY, planned)
            self._end_ns = self.phasing.end_ns

    async def _begin_events(self) -> None:
        while self._events_begun < len(self._plan.events):
            planned = self._plan.events[self._events_begun]
            begin_ns = self._begin_ns(planned)
            if begin_ns > self._now_ns():
                return
            event = Event(
                kind=planned.kind,
                target=planned.target or "",
                object="",
                begin_ns=begin_ns,
                end_ns=None if planned.lasts_s is None else begin_ns + round(planned.lasts_s * 1e9),
                expect=planned.expect,
                deadline_ns=None if planned.within_s is None else begin_ns + round(planned.within_s * 1e9),
            )
            await self._committer.call(self._record.add_event, event.target, event, ORIGIN)
            self._events_begun += 1

    def _begin_ns(self, event: EventPlan) -> int:
        return self._start_ns + round(event.at_s * 1e9)

    async def _drive(self) -> None:
        """A phase that names no load leaves it as it is."""
        wanted = self.phasing.load
        if wanted is not None and wanted != self._level:
            self._level = wanted
            await self.throttle.turn(wanted, _FOLLOW_S)
