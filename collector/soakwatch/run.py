"""A run while it goes on: sources under their wrapper, phases, planned events, live judging, and a proper end.

Everything that is opened is entered into one exit stack; polls go to the record and nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.catching_up import SENTENCE, catch_up
from soakwatch.clock import Clock, aligned
from soakwatch.closer import CloserLooks
from soakwatch.committing import Committer
from soakwatch.errors import RecordError
from soakwatch.known_looks import KnownLooks
from soakwatch.live import LiveJudge
from soakwatch.noteworthy import REACH_NS
from soakwatch.opening import Opening
from soakwatch.plan import Plan, SourcePlan
from soakwatch.poller import Poller, Site
from soakwatch.polling import Connect, Looked, PolledSource, Timing, timing
from soakwatch.record import Record, RecordFull, RecordView, Source
from soakwatch.registry import poller_module
from soakwatch.selfwatch import INTERVAL_S, ROLE, TARGET, LoopLag, SelfWatch
from soakwatch.source_labels import labelled
from soakwatch.status import SourceStatus, Status
from soakwatch.timers import Timers
from soakwatch_agent.sample import NOTHING, Poll, PollOutcome
from soakwatch_rules.rule import Event

COMMIT_EVERY_S = 1.0
SHOWN_EVENTS = 5
BEAT_EVERY_NS = 10_000_000_000  # a sign of life costs a commit
FRESH_INTERVALS = 4.0  # a generator that has said nothing for so long is not shown with its last figures
LONGEST_ALIGNMENT_NS = 1_000_000_000  # an hourly poll does not wait for the full hour to begin


@dataclass(frozen=True, slots=True)
class Stretch:
    """One phase on the run's clock."""

    name: str
    begin_ns: int
    end_ns: int


def stretches(plan: Plan, start_ns: int) -> tuple[Stretch, ...]:
    """The phases of a plan with their times."""
    begin_ns, found = start_ns, []
    for phase in plan.phases:
        end_ns = begin_ns + round(phase.seconds * 1e9)
        found.append(Stretch(phase.name, begin_ns, end_ns))
        begin_ns = end_ns
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Course:
    """What a run sets out with: its plan, where it is kept, when it began, and what of it is already recorded.

    ``phases_begun`` and ``events_begun`` are above zero, and ``last_due_ns`` is not empty, only where a run
    goes on after its monitor died.
    """

    plan: Plan
    folder: Path
    start_ns: int
    stop_on_fail: bool = False
    phases_begun: int = 0
    events_begun: int = 0
    last_due_ns: dict[int, int] | None = None

    @property
    def end_ns(self) -> int:
        """The planned end."""
        return self.start_ns + round(self.plan.duration_s * 1e9)

    @property
    def unwatched_ns(self) -> int | None:
        """Of a resumed run, the time behind everything that its earlier life may have looked at closer."""
        return None if self.last_due_ns is None else max(self.last_due_ns.values(), default=0) + REACH_NS

    @property
    def resumed(self) -> bool:
        """Whether an earlier life of the monitor began this run."""
        return self.last_due_ns is not None


class Soak:
    """One run from its first poll to its last: ``watch`` is awaited, ``status`` may be asked at any time."""

    def __init__(self, course: Course, record: Record, clock: Clock, *, threaded: bool = True) -> None:
        self.course = course
        self._record, self._clock = record, clock
        self._committer = Committer(record, clock.now_ns, threaded=threaded)
        self._sources: list[PolledSource] = []
        self._opening = Opening()
        self._doing = ""
        self._fresh_ns: dict[int, int] = {}  # how long a figure of each generator counts as its newest
        self._load: dict[tuple[str, str], tuple[float, int]] = {}
        self._live = LiveJudge(course.folder, clock.now_ns, confirm=course.stop_on_fail)
        self._stretches = stretches(course.plan, course.start_ns)
        self._phases_begun, self._events_begun = course.phases_begun, course.events_begun
        self._last_event = 0
        self._closer = CloserLooks(course.unwatched_ns)
        self._events: deque[str] = deque(maxlen=SHOWN_EVENTS)  # of a storm of days only the newest are shown
        self._turning, self._keeping = asyncio.Lock(), asyncio.Lock()
        self._beat_ns = 0
        self._stop = asyncio.Event()

    @property
    def trouble(self) -> str | None:
        """Why the record cannot be written at the moment; None when all is well."""
        return self._committer.trouble

    def stop(self) -> None:
        """End the run now, properly: what was sampled is kept and judged."""
        self._stop.set()

    async def watch(self) -> int:
        """Poll until the planned end or until ``stop``; afterwards all that was sampled is in the record.

        Returns the time of the end, in nanoseconds. Raises PlanRefused if the first looks of a new run found the plan
        to be wrong.
        """
        async with AsyncExitStack() as stack:
            await self._committer.enter(stack)
            stack.push_async_callback(self._live.close)
            self._beat_ns = self._clock.now_ns()
            await self._committer.call(self._record.begin_span, self._beat_ns)
            lag = LoopLag()
            await self._add_sources(stack, lag)
            beat = asyncio.create_task(lag.beat())
            stack.callback(beat.cancel)
            await self._turn()
            if self._clock.now_ns() < self.course.end_ns:
                async with Timers(self._clock) as timers:
                    self._set(timers)
                    await self._until_the_end()
            end_ns = min(self._clock.now_ns(), self.course.end_ns)
            for source in self._sources:
                source.close_account(end_ns)
            await self._keep()
            self._opening.check()
            await self._catch_up(end_ns)
            if self.trouble is None:
                await self._hear()
                await self._closer.finish(end_ns)
                await self._keep()
                await self._turn()
                await self._show_life(end_ns)
                await self._committer.call(self._record.end_phase, end_ns)
            return end_ns

    def status(self) -> Status:
        """What is known now."""
        now_ns = self._clock.now_ns()
        begun = [stretch.name for stretch in self._stretches if stretch.begin_ns <= now_ns]
        return Status(
            run=self.course.plan.name,
            phase=begun[-1] if begun else "waiting",
            elapsed_s=max(0, now_ns - self.course.start_ns) * 1e-9,
            left_s=max(0, self.course.end_ns - max(now_ns, self.course.start_ns)) * 1e-9,
            sources=tuple(SourceStatus(source.label, source.outcomes) for source in self._sources),
            load={thing: value for thing, (value, until_ns) in self._load.items() if now_ns < until_ns},
            findings=self._live.findings,
            judged_at_s=None if self._live.judged_ns is None else (self._live.judged_ns - self.course.start_ns) * 1e-9,
            events=tuple(self._events),
            trouble=self.trouble,
            doing=self._doing,
        )

    async def _until_the_end(self) -> None:
        left_s = max(0.0, (self.course.end_ns - self._clock.now_ns()) * 1e-9)
        causes = {asyncio.create_task(_set(self._stop)), asyncio.create_task(self._opening.refused())}
        try:
            await asyncio.wait(causes, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for cause in causes:
                cause.cancel()
            await asyncio.wait(causes)

    async def _catch_up(self, end_ns: int) -> None:
        resumed = self.course.resumed
        behind = [source for source in self._sources if source.may_be_behind(resumed=resumed)]
        if behind and self.trouble is None:
            self._doing = SENTENCE
            await catch_up(behind, end_ns, self._keep, self._stop, resumed=resumed)
            self._doing = ""

    async def _keep(self) -> bool:
        async with self._keeping:
            await self._committer.commit()
        return self.trouble is None

    async def _add_sources(self, stack: AsyncExitStack, lag: LoopLag) -> None:
        plan, begin_ns = self.course.plan, max(self._clock.now_ns(), self.course.start_ns)
        for target in plan.targets:
            await self._committer.call(self._record.target, target.name, target.role)
            for label, planned in labelled(target.sources):
                config = planned.config
                source = await self._committer.call(
                    self._record.source, target.name, planned.poller, label, round(config.interval * 1e9),
                    config.required,
                )  # fmt: skip
                site = Site(target.name, target.role, target.processes, target.interfaces, self.course.folder,
                            self._clock.now_ns, config.interval)  # fmt: skip
                when = timing(_anchor(begin_ns, config.interval), config.interval, config.timeout)
                looked = None if self.course.resumed else self._opening.expect(target.name, label, planned)
                await self._add(stack, source, when, _connector(planned, site), looked)
                if target.role == "generator":
                    self._fresh_ns[source.id] = round(FRESH_INTERVALS * config.interval * 1e9)
        await self._committer.call(self._record.target, TARGET, ROLE)
        own = await self._committer.call(
            self._record.source, TARGET, "monitor", "monitor", round(INTERVAL_S * 1e9), required=False
        )
        watch = SelfWatch(self._clock, self.course.folder, lag, lambda: [source.outcomes for source in self._sources])

        async def connect(_: AsyncExitStack) -> Poller:
            return watch

        await self._add(stack, own, timing(_anchor(begin_ns, INTERVAL_S), INTERVAL_S), connect)

    async def _add(
        self, stack: AsyncExitStack, source: Source, when: Timing, connect: Connect, looked: Looked | None = None
    ) -> None:
        for lost in self._gap(source, when.anchor_ns):
            self._committer.take(lost)
        label = f"{source.target}/{source.label}"

        async def tell(cadences: Mapping[str, float]) -> bool:
            try:
                await self._committer.call(self._record.cadences, source.id, cadences)
            except RecordError:
                return False  # the disk is full for the moment
            return True

        async def read() -> NDArray[np.int64]:
            return await self._committer.call(_answered_ns, self.course.folder, source.id)

        known = KnownLooks(read, when.anchor_ns, when.interval_ns) if self.course.resumed else None
        polled = PolledSource(source.id, label, when, connect, self._clock, self._take, tell, looked, known)
        self._sources.append(await stack.enter_async_context(polled))
        self._closer.add(source.target, polled)

    def _gap(self, source: Source, until_ns: int) -> Sequence[Poll]:
        """The polls that were due while no monitor ran: each is a hole in the account, with its reason."""
        if self.course.last_due_ns is None:
            return ()
        last_ns = self.course.last_due_ns.get(source.id)
        first_ns = (
            _anchor(self.course.start_ns, source.interval_ns * 1e-9)
            if last_ns is None
            else last_ns + source.interval_ns
        )
        return [
            Poll(source.id, due_ns, due_ns, 0, PollOutcome.GAP, "the monitor was not running", NOTHING)
            for due_ns in range(first_ns, min(until_ns, self.course.end_ns), source.interval_ns)
        ]

    def _take(self, poll: Poll) -> None:
        self._committer.take(poll)
        fresh_ns = self._fresh_ns.get(poll.source)
        if fresh_ns is not None:
            for sample in poll.answer.samples:
                self._load[sample.metric, sample.object] = sample.value, sample.time_ns + fresh_ns

    def _set(self, timers: Timers) -> None:
        for source in self._sources:
            timers.poll(source)
        for stretch in self._stretches[self._phases_begun :]:
            timers.once(stretch.begin_ns, self._turn)
        for planned in self.course.plan.events[self._events_begun :]:
            timers.once(self.course.start_ns + round(planned.at_s * 1e9), self._turn)
        timers.every(COMMIT_EVERY_S, self._commit)
        timers.every(COMMIT_EVERY_S, self._judge, look=True)

    async def _turn(self) -> None:
        """Record the phases and planned events whose time has come.

        On a full disk they stay due: the outbox complains of it, and the next batch that is written brings them.
        """
        async with self._turning:
            with contextlib.suppress(RecordFull):
                await self._turn_phase()
                await self._begin_events()

    async def _turn_phase(self) -> None:
        while self._phases_begun < len(self._stretches):
            stretch = self._stretches[self._phases_begun]
            if stretch.begin_ns > self._clock.now_ns():
                return
            await self._committer.call(self._record.begin_phase, stretch.name, stretch.begin_ns)
            self._phases_begun += 1

    async def _begin_events(self) -> None:
        while self._events_begun < len(self.course.plan.events):
            planned = self.course.plan.events[self._events_begun]
            begin_ns = self.course.start_ns + round(planned.at_s * 1e9)
            if begin_ns > self._clock.now_ns():
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
            await self._committer.call(self._record.add_event, event.target, event, "plan")
            self._events_begun += 1

    async def _commit(self) -> None:
        if not await self._keep():
            return
        await self._turn()
        if self._clock.now_ns() - self._beat_ns >= BEAT_EVERY_NS:
            with contextlib.suppress(RecordFull):  # the next batch meets the same disk and says so
                await self._show_life(self._clock.now_ns())
        await self._hear()

    async def _hear(self) -> None:
        """Learn what happened, from whoever told it."""
        for stored in await self._committer.call(self._record.events_after, self._last_event):
            self._last_event = stored.id
            self._closer.hear_event(stored)
            where = " ".join(part for part in (stored.event.target, stored.event.object) if part)
            self._events.append(f"{stored.event.kind} {where}".strip())

    async def _show_life(self, now_ns: int) -> None:
        """Keep how long this life of the monitor has lasted; a life that began after the planned end has no length."""
        if now_ns > self._beat_ns:
            self._beat_ns = now_ns
            await self._committer.call(self._record.heartbeat, now_ns)

    async def _judge(self) -> None:
        if self.trouble is None and await self._live.judge_when_due():
            judged_ns = self._live.judged_ns
            assert judged_ns is not None
            self._closer.hear_findings(self._live.findings, judged_ns)
            if self._live.unrecorded:
                with contextlib.suppress(RecordFull):  # the outbox complains of it; the next judgement replaces these
                    await self._committer.call(
                        self._record.put_findings, self._live.findings, live=True, judged_ns=judged_ns
                    )
                    self._live.recorded()
            if self.course.stop_on_fail and self._live.confirmed:
                self.stop()


def _anchor(begin_ns: int, interval_s: float) -> int:
    return aligned(begin_ns, min(round(interval_s * 1e9), LONGEST_ALIGNMENT_NS))


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def _answered_ns(folder: Path, source: int) -> NDArray[np.int64]:
    try:
        with RecordView.open(folder) as view:
            return view.answered_ns(source)
    except RecordError:
        return np.zeros(0, dtype=np.int64)  # a look that is kept twice does less harm than one that is lost


def _connector(planned: SourcePlan, site: Site) -> Connect:
    module = poller_module(planned.poller)

    async def connect(stack: AsyncExitStack) -> Poller:
        return await module.start(planned.config, site, stack)

    return connect
