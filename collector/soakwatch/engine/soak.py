"""A run while it goes on: sources with their wrappers, phases, planned events, live judging, and a proper end.

Everything opened is in one exit stack; polls go only to the record and its observers.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack

from soakwatch.core.clock import Clock
from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import STOP, matters
from soakwatch.core.redaction import redaction_of
from soakwatch.engine.backfill import SENTENCE, backfill
from soakwatch.engine.baseline_freeze import Freezing
from soakwatch.engine.context import RunContext
from soakwatch.engine.diagnosing import Diagnosing
from soakwatch.engine.fingerprints import Fingerprinting
from soakwatch.engine.hooks.setup import base_environment, hooks_of
from soakwatch.engine.live_judging import LiveJudging
from soakwatch.engine.machine import HERE, Machine
from soakwatch.engine.notify.setup import notifying_of
from soakwatch.engine.observer_probe import ObserverProbe
from soakwatch.engine.phase_driver import PhaseDriver
from soakwatch.engine.promises import POLLED, Promises
from soakwatch.engine.read_labels import LabelReader, LabelSite
from soakwatch.engine.run_record import EventFeed, Heartbeat, RecordWatch, run_record
from soakwatch.engine.scheduler import PlannedTimers, Timers
from soakwatch.engine.scripts import Scripts
from soakwatch.engine.self_monitor import STANDSTILL_S, STOOD_STILL
from soakwatch.engine.source_sink import GeneratorLoad, PollObservers
from soakwatch.engine.sources import Sources
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.plan.planned_phases import PlannedPhase
from soakwatch.record import Record, RecordFullError
from soakwatch.record.model import USER_ORIGIN
from soakwatch.runs.run_status import SourceStatus, Status
from soakwatch_model.event import Event


class Soak:
    """One run from its first poll to its last: await ``watch``; ``status`` may be called at any time."""

    def __init__(
        self,
        context: RunContext,
        record: Record,
        clock: Clock,
        *,
        machine: Machine = HERE,
        promises: Promises | None = None,
    ) -> None:
        plan, folder = context.plan, context.folder
        # A record without marks does not say whether the start's hooks ran: they did.
        self._starts_hooks = not context.resumed or (promises is not None and promises.known)
        self.context, self._clock, self._beat_s = context, clock, machine.beat_s
        self._out = run_record(record, clock.now_ns, threaded=machine.threaded)
        self._place = RecordWatch(self._out, clock.now_ns)
        notes = self._out.notes
        environment, redaction = base_environment(plan, folder), redaction_of(plan.text)
        scripts = Scripts(notes, clock.now_ns, environment, redaction, machine.command)
        self._driver = PhaseDriver(context, self._out, clock.now_ns, scripts)
        self._probe = ObserverProbe(plan.observer, context.start_ns, self._driver.phases, self._out, clock.now_ns)
        self.hooks = hooks_of(plan, folder, notes, clock.now_ns, context.live_findings, promises, machine.command)
        self._diagnosing = Diagnosing(plan, folder, notes, redaction, clock.now_ns)
        self._labels = LabelReader(LabelSite(plan, folder, environment, redaction), self._out, clock.now_ns)
        self.notifying = notifying_of(
            plan, folder, context.start_ns, clock.now_ns, resumed=context.resumed, promises=promises
        )
        self._live, self._load = LiveJudging(context, self._out, clock.now_ns, machine), GeneratorLoad()
        observers = PollObservers(self._driver.phases, self._live, self._load, self._driver.capacity.counts)
        self._sources = Sources(context, self._out, clock, observers, machine)
        self._events, self._heartbeat = EventFeed(self._out, context.newest_event), Heartbeat(self._out, clock.now_ns)
        self._fingerprints = Fingerprinting(self._out, redaction)
        self._freezing = Freezing(folder, self._keep_baseline, machine.baseline)
        self._planned = PlannedTimers(clock, self._begin_due)
        self._announced = False  # True once hooks and recipients were told of the start
        self._doing = ""
        self._second_ns = 0  # when the job of every second ran last
        self._commit_lock = asyncio.Lock()
        self._stop, self._end_moved = asyncio.Event(), asyncio.Event()

    @property
    def trouble(self) -> str | None:
        """Why the record cannot be written at the moment; None if it can."""
        return self._out.queue.trouble

    @property
    def rescue(self) -> str:
        """A sentence that the record was taken away and saved; "" if it was not."""
        return self._place.rescue

    @property
    def relocated(self) -> bool:
        """True if the record had to move out of the run's folder; see RecordWatch."""
        return self._place.relocated

    async def wait_relocated(self) -> None:
        """Returns once the record is ``relocated``."""
        await self._place.wait_relocated()

    @property
    def end_ns(self) -> int:
        """End of the run as planned now, UTC ns."""
        return self._driver.phases.end_ns

    @property
    def stretches(self) -> tuple[PlannedPhase, ...]:
        """The phases with their times, past ones as they were, others as planned now."""
        return self._driver.phases.stretches

    def stop(self) -> None:
        """Ends the run now, properly: what was polled is kept and judged."""
        self._stop.set()

    async def watch(self) -> int:
        """Polls until the planned end or ``stop``; afterwards all samples are in the record.

        Returns the end, UTC ns. Raises PlanRefusedError if the first polls of a new run show that the plan is wrong.
        """
        async with AsyncExitStack() as stack:
            await self._out.queue.enter(stack)
            stack.push_async_callback(self._live.close)
            stack.push(self._close_notifying)
            stack.push_async_callback(self.hooks.finish, 0.0)  # in case of an exception
            stack.push_async_callback(self._diagnosing.close)
            stack.push_async_callback(self._driver.scripts.end)
            stack.push_async_callback(self._driver.capacity.close)
            stack.push_async_callback(self._labels.close)
            stack.push_async_callback(self._freezing.close)
            await self._fingerprints.start(self.context.folder, resumed=self.context.resumed)
            await self._heartbeat.start(self.end_ns)
            await self._sources.open(stack, self._driver.loads, self.end_ns)
            stack.push_async_callback(self._fingerprints.close)
            await self._begin_due()
            if self._clock.now_ns() < self.end_ns:
                async with Timers(self._clock) as timers:
                    self._set_timers(timers)
                    await self._until_the_end()
                    self._planned.stop()
            end_ns = min(self._clock.now_ns(), self.end_ns)
            for source in self._sources.polled:
                source.close_account(end_ns)
            await self._commit()
            self._sources.first_polls.check()
            await self._note_polled(end_ns)
            await self._finish_diagnosing()
            await self._backfill(end_ns)
            await self._finish_fingerprints(end_ns)
            await self._finish_hooks()
            await self._finish_labels()
            if self.trouble is None:
                await self._finish_record(end_ns)
            return end_ns

    async def note(self, event: Event) -> None:
        """Records an event of the monitor itself, if possible."""
        await self._out.notes.event(event)

    async def note_notifications(self) -> None:
        """Records the outcomes of notifications."""
        for event in self.notifying.account():
            await self.note(event)

    def status(self) -> Status:
        """The status now."""
        now_ns, start_ns = self._clock.now_ns(), self.context.start_ns
        phase, judged_ns = self._driver.phases.now, self._live.judged_ns
        return Status(
            run=self.context.plan.name,
            phase="waiting" if phase is None else phase.name,
            elapsed_s=max(0, now_ns - start_ns) * 1e-9,
            left_s=max(0, self.end_ns - max(now_ns, start_ns)) * 1e-9,
            sources=tuple(SourceStatus(source.spec.label, source.outcomes) for source in self._sources.polled),
            load=self._load.current(now_ns),
            findings=self._live.findings,
            judged_at_s=None if judged_ns is None else (judged_ns - start_ns) * 1e-9,
            rates=self._live.rates,
            events=self._events.shown,
            clock_steps=self._events.clock_steps,
            trouble=self.trouble or self._place.trouble,
            doing=self._doing,
        )

    def _close_notifying(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an exception no more notifications are sent from here."""
        if kind is not None:
            self.notifying.close()

    def _set_timers(self, timers: Timers) -> None:
        for source in self._sources.polled:
            source.planned_end = lambda: self.end_ns
            timers.poll(source)
        self._planned.start(timers, self._due_ns())
        timers.every(self._beat_s, self._on_second)
        timers.every(self._beat_s, self._judge, abandonable=True)

    async def _until_the_end(self) -> None:
        causes = {asyncio.create_task(_set(self._stop)), asyncio.create_task(self._sources.first_polls.refused())}
        moved = asyncio.create_task(_set(self._end_moved))
        try:
            while (left_ns := self.end_ns - self._clock.now_ns()) > 0:
                await asyncio.wait({*causes, moved}, timeout=left_ns * 1e-9, return_when=asyncio.FIRST_COMPLETED)
                if any(cause.done() for cause in causes):
                    return
                if moved.done():  # a phase ended early, so the run does
                    self._end_moved.clear()
                    moved = asyncio.create_task(_set(self._end_moved))
        finally:
            for cause in (*causes, moved):
                cause.cancel()
            await asyncio.wait({*causes, moved})

    async def _on_second(self) -> None:
        """The job of every second: writes polls, begins what is due, and reads the record's events."""
        await self._notice_late_end()
        if not await self._commit():
            return
        await self._begin_due()
        await self.note_notifications()
        self._freezing.check(self._driver.phases, self._clock.now_ns())
        if self._heartbeat.due:
            with contextlib.suppress(RecordFullError):  # the next batch reports the full disk
                await self._heartbeat.beat(self._clock.now_ns())
        await self._fingerprints.tick(self._sources.reporters)
        self._diagnosing.tick()
        self._live.wake(only_for_polls=True)
        await self._read_events()

    async def _notice_late_end(self) -> None:
        """Ends a run that stood still beyond its end, which its sources do not poll any more.

        The timers of the loop do not count the time for which the machine was suspended.
        """
        now_ns, end_ns, before_ns = self._clock.now_ns(), self.end_ns, self._second_ns
        self._second_ns = now_ns
        if now_ns >= end_ns:
            self._end_moved.set()
        if before_ns and before_ns < end_ns <= now_ns - round(STANDSTILL_S * 1e9):
            with contextlib.suppress(RecordError):
                await self.note(Event("gap", "", "", before_ns, end_ns, {"cause": STOOD_STILL}))

    async def _commit(self) -> bool:
        """Writes queued polls; True if the record could be written."""
        async with self._commit_lock:
            fetch = self._events.fetch
            why = await self._out.queue.commit(self._out.record.displaced, fetch)
            await self._place.heed(why)
            if why:
                await self._out.queue.commit(then=fetch)
        return self.trouble is None

    async def _begin_due(self) -> None:
        end_ns = self.end_ns
        await self._driver.begin_due()
        if self.end_ns != end_ns:
            self._end_moved.set()
        if not self._announced and self._driver.phases.now is not None:
            self._announced = True
            self._labels.start()
            if self._starts_hooks:
                self.hooks.start()
            self.notifying.start(self.end_ns)
        await self._probe.begin_due(self._sources.polled)
        self._planned.arm(self._due_ns())

    def _due_ns(self) -> tuple[int, ...]:
        return (*self._driver.due_ns(), *self._probe.due_ns())

    async def _read_events(self, *, fresh: bool = False) -> None:
        for stored in await self._events.read(fresh=fresh):
            new = self._events.is_new(stored)
            if new and stored.event.kind == STOP and stored.origin == USER_ORIGIN:
                self.stop()
            self._sources.triggers.on_event(stored)
            self._driver.phases.observe_event(stored.event)
            if new and matters(stored.event.kind):
                self._live.wake()

    async def _judge(self) -> None:
        judged_ns = None if self.trouble is not None or self.relocated else await self._live.judge_when_due()
        if judged_ns is None:
            return
        findings = self._live.findings
        self._sources.triggers.on_findings(findings, judged_ns)
        self.hooks.on_findings(findings)
        self._diagnosing.on_findings(findings, self.end_ns)
        self.notifying.on_findings(findings)
        await self._live.record(judged_ns)
        if self._live.decided is not None and not self._stop.is_set():
            await self.note(self._live.decided)
            self.stop()
        if self._live.ends_the_run:
            self.stop()

    async def _note_polled(self, end_ns: int) -> None:
        """Records that polling is over: a monitor that resumes the run from here on does not poll again."""
        with contextlib.suppress(RecordError):  # the disk is full; the polls report it
            await self._out.queue.call(self._out.record.set_meta, POLLED, str(end_ns))

    async def _backfill(self, end_ns: int) -> None:
        resumed = self.context.resumed
        behind = [source for source in self._sources.polled if source.may_be_behind(resumed=resumed)]
        if behind and self.trouble is None:
            self._doing = SENTENCE
            await backfill(behind, end_ns, self._commit, self._stop, resumed=resumed)
            self._doing = ""

    async def _finish_fingerprints(self, end_ns: int) -> None:
        self._doing = "asking the targets what they are"
        await self._fingerprints.finish(self._sources.reporters, end_ns)
        self._doing = ""

    async def _finish_diagnosing(self) -> None:
        if self._diagnosing.busy:
            self._doing = "taking the last looks at processes under suspicion"
            await self._diagnosing.finish()
            self._doing = ""

    async def _finish_hooks(self) -> None:
        self._doing = "waiting for the hooks"
        await self.hooks.finish()
        self._doing = ""

    async def _finish_labels(self) -> None:
        """After a short run labels may still be read: the verdict needs them."""
        if self._labels.busy:
            self._doing = "reading the labels"
            await self._labels.finish()
            self._doing = ""

    async def _finish_record(self, end_ns: int) -> None:
        """Writes the last events, captures, and the end of phases and of the monitor to the record."""
        await self.note_notifications()
        await self._read_events(fresh=True)
        await self._sources.triggers.finish(end_ns)
        await self._commit()
        await self._begin_due()
        await self._driver.end(end_ns)
        await self._heartbeat.beat(end_ns)
        await self._out.queue.call(self._out.record.end_phase, end_ns)

    async def _keep_baseline(self, text: str) -> None:
        with contextlib.suppress(RecordFullError):  # the end of the run freezes it
            await self._out.queue.call(self._out.record.set_meta, BASELINE, text)


async def _set(event: asyncio.Event) -> None:
    await event.wait()
