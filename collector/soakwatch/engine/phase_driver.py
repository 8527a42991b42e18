"""Phases and planned events, begun when their time or their condition has come; driven loads are told with them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from soakwatch.engine.event_schedule import EventSchedule
from soakwatch.engine.load_driver import LoadController
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.scripts import Scripts
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.plan import Plan
from soakwatch.record import Record, RecordFullError
from soakwatch.record.queue import Committer
from soakwatch_rules.rule import Event

ORIGIN, OWN_ORIGIN = "plan", "monitor"
"""Who told the events that the plan brings, and those that tell how the run went through it."""
_FOLLOW_S = 5.0  # how long a load may take to follow before the run goes on


class PhaseDriver:
    """The course of one run through its plan. ``turn`` is called at every due time, and now and then in between."""

    def __init__(
        self,
        plan: Plan,
        start_ns: int,
        record: Record,
        committer: Committer,
        now_ns: Callable[[], int],
        phasing: PhaseTimeline,
        occurring: EventSchedule,
        scripts: Scripts,
    ) -> None:
        self._plan, self._start_ns = plan, start_ns
        self._record, self._committer, self._now_ns = record, committer, now_ns
        self.phasing, self.throttle = phasing, LoadController()
        self._untold: list[Event] = []
        self._occurring, self._scripts = occurring, scripts
        self._one_at_a_time = asyncio.Lock()
        self._end_ns = phasing.end_ns
        self._level: float | None = None

    def due_ns(self) -> tuple[int, ...]:
        """The times at which something is planned to begin."""
        return (*self.phasing.due_ns(), *self._occurring.due_ns())

    async def turn(self) -> None:
        """Record the phases and planned events whose time has come, and tell the loads.

        On a full disk they stay due: the outbox complains of it, and the next batch that is written brings them.
        """
        async with self._one_at_a_time:
            with contextlib.suppress(RecordFullError):
                await self._turn_phases()
                await self._begin_events()
            await self._drive()

    async def end(self, end_ns: int) -> None:
        """End the scripts; tell why the last phase ended, if the run went to its end and that was not its time alone,
        and which planned events never happened."""
        await self._scripts.end()
        event = self.phasing.ended() if end_ns >= self.phasing.end_ns else None
        with contextlib.suppress(RecordFullError):
            if event is not None:
                await self._committer.call(self._record.add_event, "", event, OWN_ORIGIN)
            for one in self._occurring.never():
                if one.begin_ns <= end_ns:
                    left = one.skipped("its time never came: what it was planned for was over before")
                    await self._committer.call(self._record.add_event, left.target, left, ORIGIN)

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
        while (due := self._occurring.due(self._now_ns())) is not None:
            event, begins = due.event(), not due.lapsed
            if begins and due.planned.run and self._scripts.runs(due.index):
                event, begins = due.skipped("its command, begun before, still runs"), False
            number = await self._committer.call(self._record.add_event, event.target, event, ORIGIN)
            self._occurring.begun(due)
            if begins and due.planned.run:
                self._scripts.start(due.index, due.planned, event, number)

    async def _drive(self) -> None:
        """A phase that names no load leaves it as it is."""
        wanted = self.phasing.load
        if wanted is not None and wanted != self._level:
            self._level = wanted
            await self.throttle.turn(wanted, _FOLLOW_S)
