"""Live judging of a run: when to judge, what to record of it, and whether a failure ends the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from soakwatch.core.c_allocator import give_free_memory_back
from soakwatch.core.event_kinds import LIVE_FORGOT
from soakwatch.engine.context import RunContext
from soakwatch.engine.machine import Machine
from soakwatch.engine.run_record import RunRecord
from soakwatch.judge.live.client import LiveJudge
from soakwatch.judge.live.early_triggers import EarlyTriggers
from soakwatch.judge.rates import META, Rate, snapshot_text
from soakwatch.record import RecordFullError
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding
from soakwatch_model.sample import Poll


class LiveJudging:
    """The live judge of one run, woken by polls and events that matter, else once a minute."""

    def __init__(self, context: RunContext, out: RunRecord, now_ns: Callable[[], int], machine: Machine) -> None:
        self._out = out
        self._stops = context.stop_on_fail or bool(context.stop_rules)
        rules = None if context.stop_on_fail else context.stop_rules
        self._judge = LiveJudge(
            machine.judge(context.folder), now_ns, confirm=self._stops, rules=rules, stopwatch=machine.stopwatch
        )
        self._triggers = EarlyTriggers()
        self._told_forgot = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings so far, worst first."""
        return self._judge.findings

    @property
    def rates(self) -> tuple[Rate, ...]:
        """How fast things grow so far."""
        return self._judge.rates

    @property
    def judged_ns(self) -> int | None:
        """When the run was last judged, UTC ns; None before the first time."""
        return self._judge.judged_ns

    @property
    def ends_the_run(self) -> bool:
        """True if a failure that is to stop the run is confirmed."""
        return self._stops and self._judge.confirmed

    @property
    def decided(self) -> Event | None:
        """The event that every required rule has its final answer, where the plan ends the run by that."""
        return self._judge.decided

    def observe(self, poll: Poll) -> None:
        """Takes a poll of any source; if it shows something that matters, call ``wake``."""
        self._triggers.add(poll)

    def wake(self, *, only_for_polls: bool = False) -> None:
        """Judges soon; with ``only_for_polls`` only if a poll since the last call showed something that matters."""
        if not only_for_polls or self._triggers.take():
            self._judge.wake()

    async def judge_when_due(self) -> int | None:
        """Judges if it is time; returns when, UTC ns, if there are new findings."""
        return self._judge.judged_ns if await self._judge.judge_when_due() else None

    async def record(self, judged_ns: int) -> None:
        """Writes changed findings, the rates, and once what the judge has forgotten; if the disk is full, the next
        judging does."""
        call, record = self._out.queue.call, self._out.record
        if self._judge.unrecorded:
            with contextlib.suppress(RecordFullError):  # the write queue warns of it
                await call(record.put_findings, self._judge.findings, live=True, judged_ns=judged_ns)
                self._judge.recorded()
        if self._judge.forgot and not self._told_forgot:
            self._told_forgot = True
            detail = {"text": self._judge.forgot}
            await self._out.notes.event(Event(LIVE_FORGOT, "", "", judged_ns, judged_ns, detail))
        newest = self._judge.snapshot
        if newest is not None:
            with contextlib.suppress(RecordFullError):
                await call(record.set_meta, META, snapshot_text(newest))
        await call(give_free_memory_back)  # the texts of all findings, twice

    async def close(self) -> None:
        """Ends the judge's process."""
        await self._judge.close()
