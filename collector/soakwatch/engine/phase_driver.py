"""Begins phases and planned events when their time or condition has come, and sets the loads accordingly."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from soakwatch.engine.capacity.driver import CapacityDriver
from soakwatch.engine.context import RunContext
from soakwatch.engine.event_schedule import EventSchedule
from soakwatch.engine.load_driver import LoadController
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.run_record import RunRecord
from soakwatch.engine.scripts import Scripts
from soakwatch.judge.planned import PLANNED_KEY, planned_text
from soakwatch.plan.capacity_plan import CapacityShare
from soakwatch.plan.phase import Load
from soakwatch.record import RecordFullError
from soakwatch.record.model import MONITOR_ORIGIN
from soakwatch_model.event import Event

ORIGIN = "plan"
"""Origin of the plan's events."""
_FOLLOW_S = 5.0  # time for a load to reach a level before the run goes on


class PhaseDriver:
    """Takes one run through its plan. Call ``begin_due`` at every due time, and regularly in between."""

    def __init__(self, context: RunContext, out: RunRecord, now_ns: Callable[[], int], scripts: Scripts) -> None:
        self._plan, self._start_ns = context.plan, context.start_ns
        self._out, self._now_ns = out, now_ns
        self.phases = PhaseTimeline(context.plan.phases, context.start_ns, context.begun_ns)
        self.loads, self.scripts = LoadController(), scripts
        self.capacity = CapacityDriver(context, out, now_ns, self.loads)
        self._schedule = EventSchedule(context.plan.events, self.phases, context.planned_events)
        self._unrecorded: list[Event] = []
        self._lock = asyncio.Lock()
        self._end_ns = self.phases.end_ns
        self._level: Load | None = None

    def due_ns(self) -> tuple[int, ...]:
        """When phases and events are planned to begin."""
        return (*self.phases.due_ns(), *self._schedule.due_ns())

    async def begin_due(self) -> None:
        """Records due phases and planned events, and sets the loads.

        If the disk is full they stay due; the write queue warns of it.
        """
        async with self._lock:
            with contextlib.suppress(RecordFullError):
                await self._begin_phases()
                if await self.capacity.begin_due(self.phases.now):
                    self.phases.search_ended(self._now_ns())
                    await self._begin_phases()
                    await self.capacity.begin_due(self.phases.now)
                await self._begin_events()
            await self._drive()

    async def end(self, end_ns: int) -> None:
        """Ends the scripts. Records why the last phase ended, if the run ended as planned but not by time alone, and
        which planned events never happened."""
        await self.scripts.end()
        await self.capacity.close()
        event = self.phases.ended() if end_ns >= self.phases.end_ns else None
        with contextlib.suppress(RecordFullError):
            if event is not None:
                await self._record_event(event, MONITOR_ORIGIN)
            for occurrence in self._schedule.never():
                if occurrence.begin_ns <= end_ns:
                    reason = "its time never came: its phase or the run was over before"
                    await self._record_event(occurrence.skipped(reason), ORIGIN)

    async def _begin_phases(self) -> None:
        call, record = self._out.queue.call, self._out.record
        while (change := self.phases.next_change(self._now_ns())) is not None:
            await call(record.begin_phase, change.stretch.name, change.stretch.window.begin_ns)
            self.phases.begun()
            self._unrecorded += [] if change.event is None else [change.event]
        while self._unrecorded:
            await self._record_event(self._unrecorded[0], MONITOR_ORIGIN)
            del self._unrecorded[0]
        if self.phases.end_ns != self._end_ns:
            length_s = (self.phases.end_ns - self._start_ns) * 1e-9
            planned = planned_text(length_s, [phase.name for phase in self._plan.phases])
            await call(record.set_meta, PLANNED_KEY, planned)
            self._end_ns = self.phases.end_ns

    async def _begin_events(self) -> None:
        while (due := self._schedule.due(self._now_ns())) is not None:
            event, begins = due.event(), not due.lapsed
            if begins and due.planned.run and self.scripts.runs(due.index):
                event, begins = due.skipped("its previous command is still running"), False
            number = await self._record_event(event, ORIGIN)
            self._schedule.begun(due)
            if begins and due.planned.run:
                self.scripts.start(due.index, due.planned, event, number)

    async def _record_event(self, event: Event, origin: str) -> int:
        return await self._out.queue.call(self._out.record.add_event, event.target, event, origin)

    async def _drive(self) -> None:
        """Sets the level of the phase; a phase without load changes nothing, a capacity search drives the loads
        itself."""
        if self.capacity.searching:
            self._level = None
            return
        wanted = self.phases.load
        if wanted is not None and wanted != self._level:
            self._level = wanted
            await self.loads.set_level(await self._level_of(wanted), _FOLLOW_S)

    async def _level_of(self, wanted: Load) -> float:
        """The level of a load; 0 for a share of an unknown capacity."""
        if not isinstance(wanted, CapacityShare):
            return wanted
        level, words = self.capacity.level_of(wanted)
        now = self.phases.now
        if now is not None:
            with contextlib.suppress(RecordFullError):
                await self.capacity.note_load(now, words)
        return 0.0 if level is None else level
