"""A run while it goes on: sources under their wrapper, phases, planned events, live judging, and a proper end.

Everything that is opened is entered into one exit stack; polls go to the record and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from contextlib import AsyncExitStack

from soakwatch.core.clock import Clock
from soakwatch.core.event_kinds import STOP, matters
from soakwatch.core.redaction import redaction_of
from soakwatch.core.roles import GENERATOR
from soakwatch.engine.backfill import SENTENCE, backfill
from soakwatch.engine.baseline_freeze import Freezing
from soakwatch.engine.context import RunContext
from soakwatch.engine.event_schedule import EventSchedule
from soakwatch.engine.hooks.opening import hooks_of, surroundings
from soakwatch.engine.notify.opening import notifying_of
from soakwatch.engine.phase_driver import PhaseDriver
from soakwatch.engine.phases import PhaseTimeline
from soakwatch.engine.scheduler import Timers
from soakwatch.engine.scripts import Scripts
from soakwatch.engine.self_monitor import LoopLag
from soakwatch.engine.sources import Sources
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.live.client import LiveJudge
from soakwatch.judge.live.waking import Waking
from soakwatch.judge.rates import META as SO_FAR
from soakwatch.judge.rates import look_text
from soakwatch.plan.timeline import PhaseInterval
from soakwatch.record import Record, RecordFullError
from soakwatch.record.model import USER_ORIGIN as TOLD
from soakwatch.record.queue import Committer, Notes
from soakwatch.runs.status import SourceStatus, Status
from soakwatch.runs.watching import event_words, worth_showing
from soakwatch_agent.sample import Poll

COMMIT_EVERY_S = 1.0
SHOWN_EVENTS = 5
BEAT_EVERY_NS = 10_000_000_000  # a sign of life costs a commit
FRESH_INTERVALS = 4.0  # a generator that has said nothing for so long is not shown with its last figures


class Soak:
    """One run from its first poll to its last: ``watch`` is awaited, ``status`` may be asked at any time."""

    def __init__(self, course: RunContext, record: Record, clock: Clock, *, threaded: bool = True) -> None:
        self.course = course
        self._record, self._clock = record, clock
        self._committer = Committer(record, clock.now_ns, threaded=threaded)
        self._phasing = PhaseTimeline(course.plan.phases, course.start_ns, course.begun_ns)
        notes = Notes(record, self._committer)
        self._scripts = Scripts(
            notes, clock.now_ns, surroundings(course.plan, course.folder), redaction_of(course.plan.text)
        )
        self._turning = PhaseDriver(
            course.plan,
            course.start_ns,
            record,
            self._committer,
            clock.now_ns,
            self._phasing,
            EventSchedule(course.plan.events, self._phasing, course.told),
            self._scripts,
        )
        self.hooks = hooks_of(course.plan, course.folder, notes, clock.now_ns, course.said)
        self.notifying = notifying_of(course.plan, course.folder, course.start_ns, clock.now_ns, resumed=course.resumed)
        self._notes = notes
        self._greeted, self._announced = course.resumed, False
        self._armed: set[int] = set()  # times at which something is planned, and a timer set
        self._timers: Timers | None = None
        self._sources = Sources(course, record, self._committer, clock, self._on_poll)
        self._doing = ""
        self._load: dict[tuple[str, str], tuple[float, int]] = {}
        self._stops = course.stop_on_fail or bool(course.stop_rules)
        rules = None if course.stop_on_fail else course.stop_rules
        self._live = LiveJudge(course.folder, clock.now_ns, confirm=self._stops, rules=rules)
        self._waking = Waking()
        self._freezing = Freezing(course.folder, self._keep_baseline)
        self._last_event = self._known_event = 0  # that was heard; that there was before this life of the monitor
        self._events: deque[str] = deque(maxlen=SHOWN_EVENTS)  # of a storm of days only the newest are shown
        self._keeping = asyncio.Lock()
        self._beat_ns = 0
        self._stop, self._moved = asyncio.Event(), asyncio.Event()

    @property
    def trouble(self) -> str | None:
        """Why the record cannot be written at the moment; None when all is well."""
        return self._committer.trouble

    @property
    def end_ns(self) -> int:
        """The end of the run as it is planned now."""
        return self._phasing.end_ns

    @property
    def stretches(self) -> tuple[PhaseInterval, ...]:
        """The phases with their times, as they were and as they are planned now."""
        return self._phasing.stretches

    def stop(self) -> None:
        """End the run now, properly: what was sampled is kept and judged."""
        self._stop.set()

    async def watch(self) -> int:
        """Poll until the planned end or until ``stop``; afterwards all that was sampled is in the record.

        Returns the time of the end, in nanoseconds. Raises PlanRefusedError if the first looks of a new run found the
        plan to be wrong.
        """
        async with AsyncExitStack() as stack:
            await self._committer.enter(stack)
            known = await self._committer.call(self._record.events_after, 0)
            self._known_event = max((stored.id for stored in known), default=0)
            stack.push_async_callback(self._live.close)
            stack.push(self._silent)
            stack.push_async_callback(self.hooks.finish, 0.0)  # where the way out is none of those below
            stack.push_async_callback(self._scripts.end)
            stack.push_async_callback(self._freezing.close)
            self._beat_ns = self._clock.now_ns()
            await self._committer.call(self._record.begin_span, self._beat_ns)
            lag = LoopLag()
            await self._sources.open(stack, lag, self._turning.throttle, self.end_ns)
            beat = asyncio.create_task(lag.beat())
            stack.callback(beat.cancel)
            await self._turn()
            if self._clock.now_ns() < self.end_ns:
                async with Timers(self._clock) as timers:
                    self._set(timers)
                    await self._until_the_end()
                    self._timers = None
            end_ns = min(self._clock.now_ns(), self.end_ns)
            for source in self._sources.polled:
                source.close_account(end_ns)
            await self._keep()
            self._sources.opening.check()
            await self._catch_up(end_ns)
            await self._finish_hooks()
            if self.trouble is None:
                await self.note_notifications()
                await self._hear()
                await self._sources.closer.finish(end_ns)
                await self._keep()
                await self._turn()
                await self._turning.end(end_ns)
                await self._show_life(end_ns)
                await self._committer.call(self._record.end_phase, end_ns)
            return end_ns

    async def note_notifications(self) -> None:
        """Write down what became of the notifications that were sent."""
        for event in self.notifying.account():
            await self._notes.event(event)

    def status(self) -> Status:
        """What is known now."""
        now_ns, start_ns = self._clock.now_ns(), self.course.start_ns
        phase = self._phasing.now
        return Status(
            run=self.course.plan.name,
            phase="waiting" if phase is None else phase.name,
            elapsed_s=max(0, now_ns - start_ns) * 1e-9,
            left_s=max(0, self.end_ns - max(now_ns, start_ns)) * 1e-9,
            sources=tuple(SourceStatus(source.label, source.outcomes) for source in self._sources.polled),
            load={thing: value for thing, (value, until_ns) in self._load.items() if now_ns < until_ns},
            findings=self._live.findings,
            judged_at_s=None if self._live.judged_ns is None else (self._live.judged_ns - start_ns) * 1e-9,
            rates=self._live.rates,
            events=tuple(self._events),
            trouble=self.trouble,
            doing=self._doing,
        )

    def _silent(self, kind: type[BaseException] | None, *_: object) -> None:
        """A run that did not come to its end tells nobody of it from here."""
        if kind is not None:
            self.notifying.close()

    async def _until_the_end(self) -> None:
        causes = {asyncio.create_task(_set(self._stop)), asyncio.create_task(self._sources.opening.refused())}
        moved = asyncio.create_task(_set(self._moved))
        try:
            while (left_ns := self.end_ns - self._clock.now_ns()) > 0:
                await asyncio.wait({*causes, moved}, timeout=left_ns * 1e-9, return_when=asyncio.FIRST_COMPLETED)
                if any(cause.done() for cause in causes):
                    return
                if moved.done():  # a phase ended before its time, and the run ends earlier
                    self._moved.clear()
                    moved = asyncio.create_task(_set(self._moved))
        finally:
            for cause in (*causes, moved):
                cause.cancel()
            await asyncio.wait({*causes, moved})

    async def _catch_up(self, end_ns: int) -> None:
        resumed = self.course.resumed
        behind = [source for source in self._sources.polled if source.may_be_behind(resumed=resumed)]
        if behind and self.trouble is None:
            self._doing = SENTENCE
            await backfill(behind, end_ns, self._keep, self._stop, resumed=resumed)
            self._doing = ""

    async def _finish_hooks(self) -> None:
        self._doing = "waiting for the hooks"
        await self.hooks.finish()
        self._doing = ""

    async def _keep(self) -> bool:
        async with self._keeping:
            await self._committer.commit()
        return self.trouble is None

    async def _keep_baseline(self, text: str) -> None:
        with contextlib.suppress(RecordFullError):  # it is frozen at the end at the latest
            await self._committer.call(self._record.set_meta, BASELINE, text)

    def _on_poll(self, poll: Poll) -> None:
        self._committer.take(poll)
        self._waking.saw(poll)
        role = self._sources.roles.get(poll.source, "")
        self._phasing.saw(role, poll.source, poll.answer.samples)
        if role == GENERATOR:
            fresh_ns = round(FRESH_INTERVALS * self._sources.interval_ns[poll.source])
            for sample in poll.answer.samples:
                self._load[sample.metric, sample.object] = sample.value, sample.time_ns + fresh_ns

    def _set(self, timers: Timers) -> None:
        for source in self._sources.polled:
            timers.poll(source)
        self._timers = timers
        self._arm()
        timers.every(COMMIT_EVERY_S, self._commit)
        timers.every(COMMIT_EVERY_S, self._judge, look=True)

    async def _turn(self) -> None:
        end_ns = self.end_ns
        await self._turning.turn()
        if self.end_ns != end_ns:
            self._moved.set()
        if not self._greeted and self._phasing.now is not None:
            self._greeted = True
            self.hooks.start()
        if not self._announced and self._phasing.now is not None:
            self._announced = True
            self.notifying.start(self.end_ns)
        self._arm()

    def _arm(self) -> None:
        """Set timers for what is planned next, where there is none yet."""
        if self._timers is None:
            return
        now_ns = self._clock.now_ns()
        self._armed = {due_ns for due_ns in self._armed if due_ns > now_ns}
        for due_ns in self._turning.due_ns():
            if due_ns > now_ns and due_ns not in self._armed:
                self._armed.add(due_ns)
                self._timers.once(due_ns, self._turn)

    async def _commit(self) -> None:
        if not await self._keep():
            return
        await self._turn()
        await self.note_notifications()
        self._freezing.look(self._phasing, self._clock.now_ns())
        if self._clock.now_ns() - self._beat_ns >= BEAT_EVERY_NS:
            with contextlib.suppress(RecordFullError):  # the next batch meets the same disk and says so
                await self._show_life(self._clock.now_ns())
        if self._waking.taken():
            self._live.wake()
        await self._hear()

    async def _hear(self) -> None:
        """Learn what happened, from whoever told it."""
        for stored in await self._committer.call(self._record.events_after, self._last_event):
            self._last_event = stored.id
            if stored.event.kind == STOP and stored.origin == TOLD and stored.id > self._known_event:
                self.stop()
            self._sources.closer.hear_event(stored)
            self._phasing.heard(stored.event)
            if matters(stored.event.kind) and stored.id > self._known_event:
                self._live.wake()
            if worth_showing(stored):
                self._events.appendleft(event_words(stored))

    async def _show_life(self, now_ns: int) -> None:
        """Keep how long this life of the monitor has lasted; a life that began after the planned end has no length."""
        if now_ns > self._beat_ns:
            self._beat_ns = now_ns
            await self._committer.call(self._record.heartbeat, now_ns)

    async def _judge(self) -> None:
        if self.trouble is None and await self._live.judge_when_due():
            judged_ns = self._live.judged_ns
            assert judged_ns is not None
            self._sources.closer.hear_findings(self._live.findings, judged_ns)
            self.hooks.hear_findings(self._live.findings)
            self.notifying.hear_findings(self._live.findings)
            if self._live.unrecorded:
                with contextlib.suppress(
                    RecordFullError
                ):  # the outbox complains of it; the next judgement replaces these
                    await self._committer.call(
                        self._record.put_findings, self._live.findings, live=True, judged_ns=judged_ns
                    )
                    self._live.recorded()
            look = self._live.look
            if look is not None:
                with contextlib.suppress(RecordFullError):
                    await self._committer.call(self._record.set_meta, SO_FAR, look_text(look))
            if self._stops and self._live.confirmed:
                self.stop()


async def _set(event: asyncio.Event) -> None:
    await event.wait()
