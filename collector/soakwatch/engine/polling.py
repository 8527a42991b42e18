"""The one wrapper around every poller: fixed grid, timeout, overrun, slow-down, error capture, and no silence.

Every due time of a source becomes exactly one Poll: answered, failed, timed out, skipped because the look before was
still under way, missed because the monitor was late, or held back because a failing source is asked less often.

A source that looks by itself may hand in later what nobody could fetch: such a look is one Poll more, under the due
time that it belongs to, and whoever counts polls lets it stand for the lost one (``soakwatch.record.follow``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from itertools import islice
from typing import Self

from soakwatch.core.clock import Clock
from soakwatch.core.errors import PlanError, SoakwatchError
from soakwatch.core.event_kinds import IDENTITY
from soakwatch.core.log_throttle import ThrottledLog
from soakwatch.core.prefix import without
from soakwatch.core.units import show_seconds
from soakwatch.engine.recorded_polls import RecordedPolls
from soakwatch.sources.abc import (
    BackfilledPoll,
    Backfills,
    CapturesDetail,
    Facts,
    Identifies,
    LoginRefusedError,
    Poller,
    SourceError,
    SourceUnreadyError,
    Timing,
)
from soakwatch_agent.sample import NOTHING, Answer, Event, Poll, PollOutcome, Sample, object_text

FAILURES_BEFORE_SLOWING = 3
LONGEST_HOLD_S = 15.0  # what a device that is back again loses on top of its outage
REFUSED_HOLDS_S = (60.0, 300.0, 900.0, 1800.0)
"""How long a refused login is left alone: many systems lock an account after three to five tries in some minutes."""
MOST_RECOVERED = 10_000
"""Looks that are taken at one due time of those that a source made by itself; a source is asked for the rest later."""

LAST_LOOK_S = 5.0
"""What closer looks may take at the end of a run; what they bring is there already."""

DURATION = "source.poll.duration"

Connect = Callable[[AsyncExitStack], Awaitable[Poller]]
Tell = Callable[[Mapping[str, float]], Awaitable[bool]]  # False: say it again
Looked = Callable[[Exception | None], bool]  # whether the run ends for it


class PolledSource:
    """One source under the wrapper's discipline; ``tick`` is its timer job.

    ``connect`` makes the poller and enters what it opens into the stack; it is tried again at each due poll until it
    works: a device that is off when the run begins is a failing source, not a failed run. ``put`` takes every Poll;
    ``tell`` hears of metrics that come less often than the polls, whenever that changes. ``looked`` is told once how
    the first look ended: with why it failed, or None; if it is to end the run, whoever takes it says why, and no log
    line does.
    ``known`` are looks that an earlier life of the monitor recorded: those are not kept again. ``timed`` puts the time
    that each look took beside its samples: how quick the management of a device answers is told by its polls.
    ``opens_s``: the look that opens it may take so long, however short its interval is (a command has to start).
    """

    def __init__(
        self,
        source: int,
        label: str,
        when: Timing,
        connect: Connect,
        clock: Clock,
        put: Callable[[Poll], None],
        tell: Tell | None = None,
        looked: Looked | None = None,
        known: RecordedPolls | None = None,
        *,
        timed: bool = False,
        opens_s: float = 0.0,
    ) -> None:
        self.source, self.label, self.when = source, label, when
        self.outcomes: Counter[PollOutcome] = Counter()
        self.recovered = 0  # looks that came late; ``outcomes`` has their due times as they ended then
        self._connect, self._clock, self._put = connect, clock, put
        self._opens_s = max(opens_s, when.timeout_s)
        self._poller: Poller | None = None
        self._stack = AsyncExitStack()
        self._complaint = ThrottledLog(label)
        self._slot = -1  # the last due time that is accounted for
        self._busy_until_ns = when.anchor_ns
        self._failures = 0
        self._refusals, self._hold_s = 0, 0.0  # logins refused since one worked; how long the last bids to wait
        self._hold_until_ns = 0
        self._tell, self._looked, self._known, self._timed = tell, looked, known, timed
        self._failure: Exception | None = None  # why the look before failed, in a sentence that may be shown
        self._answered_ns: int | None = None  # the due time of the look that was answered last
        self._behind = False  # a source that looks by itself may have what nobody fetched
        self._cadences: dict[str, float] = {}
        self._untold = False
        self._identity: dict[str, str] | None = None  # what the source told of itself last

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def due(self) -> int:
        """Polls that were due so far."""
        return self.outcomes.total()

    async def tick(self) -> None:
        """The look that is due now, and the account of the due times that nobody could keep."""
        start_ns = self._clock.now_ns()
        slot = self._slot_at(start_ns)
        if slot <= self._slot:
            return
        self._account_for(slot)
        self._slot = slot
        due_ns = self._due_ns(slot)
        if start_ns < self._hold_until_ns:
            self._emit(Poll(self.source, due_ns, start_ns, 0, PollOutcome.HELD_BACK, None, NOTHING))
            return
        self._behind = True  # until the look has ended well: it may be given up at the end of the run
        outcome, error, answer, made_up = await self._poll_once(start_ns)
        if made_up and self._known is not None:
            await self._known.learn(min(look.start_ns for look in made_up))
        end_ns = self._clock.now_ns()
        self._busy_until_ns = end_ns
        self._emit_backfilled(made_up, self._due_ns(self._slot_at(end_ns) + 1))  # two clocks are never quite one
        if self._timed and outcome is PollOutcome.OK:
            took = Sample(
                DURATION, object_text(source=self.label.partition("/")[2]), (end_ns - start_ns) * 1e-9, start_ns
            )
            answer = Answer((*answer.samples, took), answer.events, answer.faults)
        self._emit(Poll(self.source, due_ns, start_ns, end_ns - start_ns, outcome, error, answer))
        self._behind = outcome is not PollOutcome.OK or bool(made_up)
        self._answered_ns = due_ns if outcome is PollOutcome.OK else self._answered_ns
        if not self._refuse():
            self._learn(due_ns, end_ns, outcome, error)
        if self._untold and self._tell is not None:
            self._untold = not await self._tell(self._cadences)

    def look_closer(self, when_ns: int, why: str) -> None:
        """Something happened to this source's target at that time; a source that can looks closer."""
        if isinstance(self._poller, CapturesDetail):
            self._poller.look_closer(when_ns, why)

    async def last_look(self, end_ns: int) -> None:
        """At the end: the closer looks that are still under way, as far as they go. They come with the last answered
        look, so that they stand for none that was lost."""
        poller, due_ns = self._poller, self._answered_ns
        if isinstance(poller, CapturesDetail) and due_ns is not None:
            with suppress(Exception):  # as in _look
                async with asyncio.timeout(min(self.when.timeout_s, LAST_LOOK_S)):
                    for answer in await poller.last_look(end_ns):
                        self._put(Poll(self.source, due_ns, due_ns, 0, PollOutcome.OK, None, answer))

    def close_account(self, end_ns: int) -> None:
        """Account for the due times before ``end_ns`` that never ran, at the end of a run."""
        last = self._slot_at(end_ns - 1)
        self._account_for(last + 1)
        self._slot = max(self._slot, last)

    def may_be_behind(self, *, resumed: bool) -> bool:
        """Whether this source may have looks that nobody fetched; in a ``resumed`` run also one that never opened."""
        never_opened = self._poller is None
        return self._behind and (resumed if never_opened else isinstance(self._poller, Backfills))

    async def catch_up(self, end_ns: int, *, resumed: bool) -> int | None:
        """Ask once more after the end, for looks that were made before it; how many came, None if it failed as well.

        No due time is accounted for. What was seen from ``end_ns`` on is dropped. Why it failed is not told: the polls
        that it would have made up for have their reasons.
        """
        answer, failed, brought = NOTHING, True, 0
        if self._known is not None:
            await self._known.learn(0)
        # The last moment of the run, not now: it asks for what is there already, and nobody waits for a new look.
        asked_ns = end_ns - 1
        try:
            with suppress(Exception):  # as in _look: whatever a poller lets out, the run ends properly
                async with asyncio.timeout(self.when.timeout_s):
                    if self._poller is None and resumed:
                        self._poller = await self._open()
                    if isinstance(self._poller, Backfills):
                        answer = await self._poller.poll(asked_ns)
                failed = False
        finally:  # what came before a timeout, or before somebody gave up, is here all the same
            if isinstance(self._poller, Backfills):
                with suppress(Exception):
                    brought = self._keep_late(self._poller.recovered(), answer, asked_ns)
        return None if failed and not brought else brought

    def _slot_at(self, time_ns: int) -> int:
        return (time_ns - self.when.anchor_ns) // self.when.interval_ns

    def _due_ns(self, slot: int) -> int:
        return self.when.anchor_ns + slot * self.when.interval_ns

    def _account_for(self, slot: int) -> None:
        for lost in range(self._slot + 1, slot):
            due_ns = self._due_ns(lost)
            overrun = due_ns < self._busy_until_ns
            outcome = PollOutcome.OVERRUN if overrun else PollOutcome.MISSED
            error = "previous poll still running" if overrun else "the monitor was late"
            self._emit(Poll(self.source, due_ns, due_ns, 0, outcome, error, NOTHING))

    def _emit(self, poll: Poll) -> None:
        self.outcomes[poll.outcome] += 1
        self._put(poll)

    def _emit_backfilled(self, made_up: Iterable[BackfilledPoll], before_ns: int) -> int:
        """Put looks that the source made by itself under their due times, and count them; one from later is none.

        They come before the look that brought them, so that readings arrive in order where that can be.
        """
        before = self.recovered
        for look in made_up:
            if look.start_ns < before_ns and not (self._known is not None and self._known.holds(look.start_ns)):
                self.recovered += 1
                due_ns, took_ns = self._due_ns(self._slot_at(look.start_ns)), max(0, look.duration_ns)
                self._put(Poll(self.source, due_ns, look.start_ns, took_ns, PollOutcome.OK, None, look.answer))
        return self.recovered - before

    def _keep_late(self, made_up: Iterable[BackfilledPoll], answer: Answer, asked_ns: int) -> int:
        """The looks, and the answer if it is the look of the last due time: what was seen then has its own time."""
        brought = self._emit_backfilled(islice(made_up, MOST_RECOVERED), asked_ns + 1)
        due_ns = self._due_ns(self._slot_at(asked_ns))
        seen_ns = [sample.time_ns for sample in answer.samples if due_ns <= sample.time_ns < asked_ns]
        if not seen_ns:
            return brought
        samples = tuple(sample for sample in answer.samples if sample.time_ns <= asked_ns)
        events = tuple(event for event in answer.events if event.begin_ns <= asked_ns)
        return brought + self._emit_backfilled(
            [BackfilledPoll(min(seen_ns), 0, Answer(samples, events, answer.faults))], asked_ns
        )

    async def _poll_once(self, start_ns: int) -> tuple[PollOutcome, str | None, Answer, Sequence[BackfilledPoll]]:
        limit_s = self._opens_s if self._poller is None else self.when.timeout_s
        try:
            async with asyncio.timeout(limit_s):
                if self._poller is None:
                    self._poller = await self._open()
                answer = await self._poller.poll(start_ns)
            made_up: Sequence[BackfilledPoll] = ()
            if isinstance(self._poller, Backfills):
                made_up = tuple(islice(self._poller.recovered(), MOST_RECOVERED))
            if isinstance(self._poller, Identifies):
                answer = self._with_identity_event(self._poller.facts(), start_ns, answer)
        except TimeoutError:
            sentence = f"no answer within {limit_s:g} s"
            self._failure = SourceError(sentence)
            return PollOutcome.TIMEOUT, sentence, NOTHING, ()
        except Exception as failure:  # noqa: BLE001 - whatever a poller lets out is a failed poll, never a dead run
            sentence = self._sentence(failure)
            self._failure = failure if isinstance(failure, PlanError | SourceUnreadyError) else SourceError(sentence)
            if isinstance(failure, LoginRefusedError):
                self._hold_s = REFUSED_HOLDS_S[min(self._refusals, len(REFUSED_HOLDS_S) - 1)]
                self._refusals += 1
                sentence += f"; tried again in {show_seconds(self._hold_s)}, so that the account is not locked"
            return PollOutcome.FAILED, sentence, NOTHING, ()
        self._failure = None
        return PollOutcome.OK, None, answer, made_up

    def _sentence(self, failure: Exception) -> str:
        if isinstance(failure, TimeoutError):
            return f"no answer within {self.when.timeout_s:g} s"
        if isinstance(failure, SourceError | SoakwatchError):
            return without(self.label.partition("/")[0], str(failure))
        # The type and no text: an unforeseen exception may quote a secret.
        return f"the {self.label} poller raised {type(failure).__name__}"

    def _with_identity_event(self, facts: Facts, now_ns: int, answer: Answer) -> Answer:
        """The answer, and with it what the source says of itself, where that is new."""
        if dict(facts.cadences) != self._cadences:
            self._cadences, self._untold = dict(facts.cadences), True
        identity, before = dict(facts.identity), self._identity
        if identity == before:
            return answer
        self._identity = identity
        detail = dict(identity)
        if facts.notes:
            detail["notes"] = "; ".join(facts.notes)
        if before is not None:
            keys = [key for key in sorted({*before, *identity}) if before.get(key) != identity.get(key)]
            detail["changed"] = "; ".join(
                f"{key} was {before.get(key, 'unknown')}, is {identity.get(key, 'unknown')}" for key in keys
            )
        event = Event(IDENTITY, self.label, now_ns, None, detail)
        return Answer(answer.samples, (*answer.events, event), answer.faults)

    async def _open(self) -> Poller:
        async with AsyncExitStack() as stack:
            poller = await self._connect(stack)
            self._stack = stack.pop_all()
        return poller

    def _refuse(self) -> bool:
        """Tell how the first look ended; whether the run ends for it."""
        looked, self._looked = self._looked, None
        return looked is not None and looked(self._failure)

    def _learn(self, due_ns: int, now_ns: int, outcome: PollOutcome, error: str | None) -> None:
        if outcome is PollOutcome.OK:
            self._failures = self._refusals = 0
            self._complaint.well()
            return
        self._failures += 1
        self._complaint.failed(now_ns, error or outcome.value)
        held_s, self._hold_s = self._hold_s, 0.0
        if held_s:
            self._hold_until_ns = due_ns + round(held_s * 1e9)
        elif self._failures >= FAILURES_BEFORE_SLOWING:
            doubled = self.when.interval_ns * 2 ** min(self._failures - FAILURES_BEFORE_SLOWING, 20)
            longest = max(1, int(LONGEST_HOLD_S * 1e9) // self.when.interval_ns) * self.when.interval_ns
            self._hold_until_ns = due_ns + min(doubled, longest)  # from the grid, or the due time then is held back too
