"""The wrapper around every poller: fixed grid, timeout, overrun, back-off and error capture; no poll is lost silently.

Every due time of a source becomes exactly one Poll: answered, failed, timed out, overrun by the previous poll, missed
because the monitor was late, or held back because the source keeps failing.

A source that polls by itself may deliver polls later: each is one Poll more, under its own due time, and replaces the
lost one wherever polls are counted (``soakwatch.record.follow``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Protocol, Self

from soakwatch.core.clock import Clock
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.event_kinds import IDENTITY, FindingKey
from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.core.text import without_target
from soakwatch.core.units import show_seconds
from soakwatch.engine.poll_grid import BackOff, PollGrid
from soakwatch.engine.recorded_polls import RecordedPolls
from soakwatch.engine.self_monitor import STOOD_STILL
from soakwatch.sources.abc import (
    CPU_METRICS,
    BackfilledPoll,
    Backfills,
    CapturesDetail,
    Facts,
    Fingerprints,
    Identifies,
    LoginRefusedError,
    Poller,
    ReadsCpuAlone,
    RequestsLostError,
    SourceError,
    SourceUnreadyError,
    Timing,
)
from soakwatch_model.event import Event
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample, object_text

MAX_BACKFILLED = 10_000
"""Maximum of backfilled polls taken at one due time; the rest follows later."""

FINAL_CAPTURE_S = 5.0
"""Time limit for a flight recorder's last captures at the end of a run: their data exists already."""

STALLED_S = 2.0
"""A poll that took so much longer than its limit was not waited for: the monitor itself stood still meanwhile."""

DURATION = "source.poll.duration"

Connect = Callable[[AsyncExitStack], Awaitable[Poller]]


class PollSink(Protocol):
    """Receives the polls of one source."""

    def take(self, poll: Poll) -> None:
        """Takes one poll: exactly one for each due time, and also those that the source made by itself."""
        ...

    async def cadences(self, cadences: Mapping[str, float]) -> bool:
        """Takes the seconds between values of slow metrics, when they change; if False, report them again."""
        ...

    def first_poll(self, failure: Exception | None) -> bool:
        """Takes why the first poll failed, or None. If True, the run ends because of it, and it is not logged here."""
        ...


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """What the wrapper must know of a source: its number in the record, its label and its grid.

    If ``timed``, the duration of each answered poll is a sample: it measures how fast the device's management answers.
    The poll that opens the source may take ``opens_s``, whatever the interval (a command has to start). If ``silent``,
    it is not polled at all while its device rests.
    """

    id: int
    label: str
    when: Timing
    timed: bool = False
    opens_s: float = 0.0
    silent: bool = False


@dataclass(slots=True)
class _Rest:
    """A pause in which a device is left alone, except that its CPU is read every ``every_ns``."""

    until_ns: int = 0
    every_ns: int = 0
    cpu_ns: int = 0  # the next CPU reading is not before this


@dataclass(frozen=True, slots=True)
class _Result:
    """How one poll ended; ``failure`` is why it failed, with a message that may be shown."""

    outcome: PollOutcome
    error: str | None = None
    answer: Answer = NOTHING
    backfilled: Sequence[BackfilledPoll] = ()
    failure: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Opened:
    """A poller and its optional abilities, looked up once: checking a protocol costs as much as a poll of the model."""

    poller: Poller
    backfills: Backfills | None
    identifies: Identifies | None
    fingerprints: Fingerprints | None
    reads_cpu: ReadsCpuAlone | None
    captures: CapturesDetail | None

    @classmethod
    def of(cls, poller: Poller) -> _Opened:
        """Looks up the abilities of a poller."""
        some: object = poller
        return cls(
            poller,
            some if isinstance(some, Backfills) else None,
            some if isinstance(some, Identifies) else None,
            some if isinstance(some, Fingerprints) else None,
            some if isinstance(some, ReadsCpuAlone) else None,
            some if isinstance(some, CapturesDetail) else None,
        )


class _SourceFacts:
    """The latest facts of one source: its identity, and the seconds between values of metrics slower than its polls.

    ``unreported`` is True if ``cadences`` changed.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._identity: dict[str, str] | None = None
        self.cadences: dict[str, float] = {}
        self.unreported = False

    def update(self, facts: Facts, now_ns: int) -> tuple[Event, ...]:
        """Takes the facts of a poll; returns an event if the identity is new or changed."""
        if dict(facts.cadences) != self.cadences:
            self.cadences, self.unreported = dict(facts.cadences), True
        identity, before = dict(facts.identity), self._identity
        if identity == before:
            return ()
        self._identity = identity
        detail = dict(identity)
        if facts.notes:
            detail["notes"] = "; ".join(facts.notes)
        if before is not None:
            keys = [key for key in sorted({*before, *identity}) if before.get(key) != identity.get(key)]
            detail["changed"] = "; ".join(
                f"{key} was {before.get(key, 'unknown')}, is {identity.get(key, 'unknown')}" for key in keys
            )
        return (Event(IDENTITY, "", self._label, now_ns, None, detail),)


class PolledSource:
    """One source with the wrapper's guarantees; ``tick`` is its timer job.

    ``connect`` creates the poller and enters what it opens into the stack; it is retried at each due poll until it
    works: a device that is off when the run starts is a failing source, not a failed run. ``recorded`` are polls
    recorded before the monitor was restarted, which are not stored again.
    """

    def __init__(
        self, spec: SourceSpec, connect: Connect, clock: Clock, sink: PollSink, recorded: RecordedPolls | None = None
    ) -> None:
        self.spec = spec
        self.outcomes: Counter[PollOutcome] = Counter()
        self.recovered = 0  # backfilled polls; their due times stay in ``outcomes`` as lost
        self._connect, self._clock, self._sink, self._recorded = connect, clock, sink, recorded
        self._opened: _Opened | None = None
        self._stack = AsyncExitStack()
        self._log = ThrottledLog(spec.label)
        self._grid = PollGrid(spec.id, spec.when)
        self._back_off = BackOff(spec.when.interval_ns)
        self._facts = _SourceFacts(spec.label)
        self._first = True  # the outcome of the first poll has not been reported
        self._answered_ns: int | None = None  # due time of the last answered poll
        self._answering = False
        self._behind = False  # a source that polls by itself may hold polls to fetch
        self._rest = _Rest()
        self._limit_s = 0.0  # how long the last poll might take
        self.planned_end: Callable[[], int] = lambda: 2**63  # UTC ns

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def due(self) -> int:
        """Number of polls due so far."""
        return self.outcomes.total()

    @property
    def answering(self) -> bool:
        """True if its last poll was answered."""
        return self._answering

    @property
    def fingerprints(self) -> Fingerprints | None:
        """The source if it is connected and can report a fingerprint; None while its device rests."""
        if self._opened is None or self._rests(self._clock.now_ns()):
            return None
        return self._opened.fingerprints

    @property
    def reads_cpu(self) -> bool:
        """True if it answers and can read its device's CPU alone."""
        return self._answering and self._opened is not None and self._opened.reads_cpu is not None

    @property
    def cpu_renewal_s(self) -> float:
        """Seconds between the device's updates of its CPU, if that is slower than the polls; else 0."""
        identifies = None if self._opened is None else self._opened.identifies
        renewals = {} if identifies is None else identifies.facts().renewals
        return max((renewals.get(metric, 0.0) for metric in CPU_METRICS), default=0.0)

    def rest(self, until_ns: int, every_ns: int) -> None:
        """Leaves the device alone until ``until_ns``, except for its CPU, if this source can do that.

        Due times without a request count as answered polls without samples: nothing was lost.
        """
        if self.reads_cpu or (self.spec.silent and self._answering):
            self._rest = _Rest(until_ns, every_ns)

    async def tick(self) -> None:
        """Runs the poll that is due now, and accounts for due times that were missed.

        Does nothing long after the ``planned_end`` of the run, where a monitor is that stood still until then.
        """
        start_ns = self._clock.now_ns()
        if start_ns > self.planned_end() + round(STALLED_S * 1e9):
            return
        due_ns, lost = self._grid.advance(start_ns)
        for poll in lost:
            self._emit(poll)
        if due_ns is None:
            return
        if self._back_off.holds(start_ns):
            self._emit(Poll(self.spec.id, due_ns, start_ns, 0, PollOutcome.HELD_BACK, None, NOTHING))
            return
        resting = self._rests(start_ns)
        if resting and (self.spec.silent or start_ns < self._rest.cpu_ns):
            self._emit(Poll(self.spec.id, due_ns, start_ns, 0, PollOutcome.OK, None, NOTHING))
            return
        self._behind = True  # until the poll succeeds: the end of the run may cancel it
        result = await self._poll_once(start_ns, resting=resting)
        if result.backfilled and self._recorded is not None:
            await self._recorded.learn(min(late.start_ns for late in result.backfilled))
        end_ns = self._clock.now_ns()
        latest_ns = start_ns + round((self._limit_s + STALLED_S) * 1e9)
        stalled = end_ns > latest_ns
        self._grid.busy_until_ns = min(end_ns, latest_ns)
        if stalled and result.outcome is PollOutcome.TIMEOUT:
            result = _Result(PollOutcome.MISSED, STOOD_STILL, backfilled=result.backfilled)
        self._emit_backfilled(result.backfilled, self._grid.next_ns(end_ns))  # the source's clock may be slightly ahead
        ok = result.outcome is PollOutcome.OK
        timed = ok and self.spec.timed and not resting and not stalled
        answer = self._with_duration(result.answer, start_ns, end_ns) if timed else result.answer
        self._emit(Poll(self.spec.id, due_ns, start_ns, end_ns - start_ns, result.outcome, result.error, answer))
        self._behind = not ok or bool(result.backfilled)
        if resting and ok:  # after a failure the next due time tries again
            self._rest.cpu_ns = start_ns + self._rest.every_ns - self.spec.when.interval_ns // 2
        self._answered_ns, self._answering = due_ns if ok else self._answered_ns, ok
        first, self._first = self._first, False
        if not (first and self._sink.first_poll(result.failure)) and result.outcome is not PollOutcome.MISSED:
            self._account(result, due_ns, end_ns)
        if self._facts.unreported:
            self._facts.unreported = not await self._sink.cadences(self._facts.cadences)

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Something happened to this source's target at ``when_ns``: captures detail, if the source can."""
        if self._opened is not None and self._opened.captures is not None:
            self._opened.captures.capture_moment(when_ns, why, finding)

    async def final_captures(self, end_ns: int) -> None:
        """At the end: stores captures still running, as far as they got, under the last answered poll, so that they do
        not replace a lost one."""
        captures, due_ns = None if self._opened is None else self._opened.captures, self._answered_ns
        if captures is not None and due_ns is not None:
            with suppress(Exception):  # as in _poll_once
                async with asyncio.timeout(min(self.spec.when.timeout_s, FINAL_CAPTURE_S)):
                    for answer in await captures.final_captures(end_ns):
                        self._sink.take(Poll(self.spec.id, due_ns, due_ns, 0, PollOutcome.OK, None, answer))

    def close_account(self, end_ns: int) -> None:
        """At the end of a run: accounts for due times before ``end_ns`` that never ran."""
        for poll in self._grid.close(end_ns):
            self._emit(poll)

    def may_be_behind(self, *, resumed: bool) -> bool:
        """True if this source may hold polls that nobody fetched; in a ``resumed`` run also if it never opened."""
        opened = self._opened
        return self._behind and (resumed if opened is None else opened.backfills is not None)

    async def catch_up(self, end_ns: int, *, resumed: bool) -> int | None:
        """Polls once more after the end for polls made before it; returns how many came, None if it failed without any.

        No due time is accounted for, and data from ``end_ns`` on is dropped. A failure is not reported: the lost polls
        have their reasons.
        """
        answer, failed, fetched = NOTHING, True, 0
        if self._recorded is not None:
            await self._recorded.learn(0)
        # The last moment of the run, not now: then the source does not wait for a new poll.
        asked_ns = end_ns - 1
        try:
            with suppress(Exception):  # as in _poll_once: the run ends properly whatever a poller raises
                async with asyncio.timeout(self.spec.when.timeout_s):
                    if self._opened is None and resumed:
                        self._opened = await self._open()
                    if self._opened is not None and self._opened.backfills is not None:
                        answer = await self._opened.poller.poll(asked_ns)
                failed = False
        finally:  # keep what came before a timeout or cancellation
            if self._opened is not None and self._opened.backfills is not None:
                with suppress(Exception):
                    fetched = self._keep_late(self._opened.backfills.recovered(), answer, asked_ns)
        return None if failed and not fetched else fetched

    def _emit(self, poll: Poll) -> None:
        self.outcomes[poll.outcome] += 1
        self._sink.take(poll)

    def _emit_backfilled(self, backfilled: Iterable[BackfilledPoll], before_ns: int) -> int:
        """Emits polls the source made by itself under their due times; returns how many. Those from ``before_ns`` on
        are dropped.

        Called before the poll that brought them is emitted, to keep samples in order where possible.
        """
        before = self.recovered
        for late in backfilled:
            if late.start_ns < before_ns and not (self._recorded is not None and self._recorded.holds(late.start_ns)):
                self.recovered += 1
                due_ns, took_ns = self._grid.due_ns(late.start_ns), max(0, late.duration_ns)
                self._sink.take(Poll(self.spec.id, due_ns, late.start_ns, took_ns, PollOutcome.OK, None, late.answer))
        return self.recovered - before

    def _keep_late(self, backfilled: Iterable[BackfilledPoll], answer: Answer, asked_ns: int) -> int:
        """Emits backfilled polls, and the answer as one of the last due time if its samples are of that time."""
        fetched = self._emit_backfilled(islice(backfilled, MAX_BACKFILLED), asked_ns + 1)
        due_ns = self._grid.due_ns(asked_ns)
        seen_ns = [sample.time_ns for sample in answer.samples if due_ns <= sample.time_ns < asked_ns]
        if not seen_ns:
            return fetched
        samples = tuple(sample for sample in answer.samples if sample.time_ns <= asked_ns)
        events = tuple(event for event in answer.events if event.begin_ns <= asked_ns)
        return fetched + self._emit_backfilled(
            [BackfilledPoll(min(seen_ns), 0, Answer(samples, events, answer.faults))], asked_ns
        )

    def _rests(self, now_ns: int) -> bool:
        return now_ns < self._rest.until_ns

    async def _poll_once(self, start_ns: int, *, resting: bool = False) -> _Result:
        limit_s = self._limit_s = self._longest_s()
        try:
            async with asyncio.timeout(limit_s):
                if self._opened is None:
                    self._opened = await self._open()
                source = self._opened
                if resting and source.reads_cpu is not None:
                    answer = await source.reads_cpu.poll_cpu(start_ns)
                else:
                    answer = await source.poller.poll(start_ns)
            backfilled: Sequence[BackfilledPoll] = ()
            if source.backfills is not None:
                backfilled = tuple(islice(source.backfills.recovered(), MAX_BACKFILLED))
            if source.identifies is not None:
                new = self._facts.update(source.identifies.facts(), start_ns)
                answer = Answer(answer.samples, (*answer.events, *new), answer.faults) if new else answer
        except TimeoutError:
            sentence = f"no answer within {limit_s:g} s"
            return _Result(PollOutcome.TIMEOUT, sentence, failure=SourceError(sentence))
        except Exception as failure:  # noqa: BLE001 - whatever a poller raises is a failed poll, never a dead run
            sentence = self._sentence(failure)
            shown = failure if isinstance(failure, PlanError | SourceUnreadyError) else SourceError(sentence)
            if isinstance(failure, LoginRefusedError):
                hold_s = self._back_off.login_refused()
                sentence += f"; tried again in {show_seconds(hold_s)}, so that the account is not locked"
            outcome = PollOutcome.LOSSY if isinstance(failure, RequestsLostError) else PollOutcome.FAILED
            return _Result(outcome, sentence, failure=shown)
        return _Result(PollOutcome.OK, None, answer, backfilled)

    def _longest_s(self) -> float:
        """How long the next poll may take, seconds."""
        timeout_s = self.spec.when.timeout_s
        return max(self.spec.opens_s, timeout_s) if self._opened is None else timeout_s

    def _sentence(self, failure: Exception) -> str:
        if isinstance(failure, TimeoutError):
            return f"no answer within {self.spec.when.timeout_s:g} s"
        if isinstance(failure, SourceError | SoakwatchError):
            return without_target(self.spec.label.partition("/")[0], str(failure))
        # Its type only: an unforeseen exception may quote a secret.
        return f"the {self.spec.label} poller raised {type(failure).__name__}"

    def _with_duration(self, answer: Answer, start_ns: int, end_ns: int) -> Answer:
        name = object_text(source=self.spec.label.partition("/")[2])
        took = Sample(DURATION, name, (end_ns - start_ns) * 1e-9, start_ns)
        return Answer((*answer.samples, took), answer.events, answer.faults)

    async def _open(self) -> _Opened:
        async with AsyncExitStack() as stack:
            poller = await self._connect(stack)
            self._stack = stack.pop_all()
        return _Opened.of(poller)

    def _account(self, result: _Result, due_ns: int, now_ns: int) -> None:
        """Logs a failure or recovery, and backs off from a failing source unless it answers in part or is not ready
        yet."""
        if result.outcome is PollOutcome.OK:
            self._back_off.answered()
            self._log.well()
        else:
            self._log.failed(now_ns, result.error or result.outcome.value)
            if result.outcome is PollOutcome.LOSSY or isinstance(result.failure, SourceUnreadyError):
                self._back_off.responded()
            else:
                self._back_off.failed(due_ns)
