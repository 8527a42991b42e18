"""The account of a source during a run: polls by outcome and the silences, added up batch by batch.

Two accounts of successive stretches add up to that of both, so one is kept for each phase, and a window that starts
and ends with phases is the sum of theirs. The result is that of ``record.follow.ledger_of``, from every poll.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from soakwatch.record.follow import EffectivePolls, PollColumns, effective_polls, in_order
from soakwatch.record.model import OUTCOME_NUMBERS, OUTCOMES, Source
from soakwatch_model.case import Ledger, Silence
from soakwatch_model.sample import PollOutcome
from soakwatch_model.window import Window

_OK = OUTCOME_NUMBERS[PollOutcome.OK]
_LOSSY = OUTCOME_NUMBERS[PollOutcome.LOSSY]
_SILENT_INTERVALS = 3
_MAX_SILENCES = 1000
_SHOWN_ERRORS = 3

_Silence = tuple[int, int, Counter[int]]  # begin, end, polls lost in it by how they ended


@dataclass(slots=True)
class Account:
    """Polls of one source in one stretch of time; times are those of answers, also of those in part, UTC ns.

    ``head`` and ``tail`` count what was lost before the first answer and after the last; without an answer ``head``
    holds it all.
    """

    due: int = 0
    got: int = 0
    lost: Counter[int] = field(default_factory=Counter)
    errors: Counter[int] = field(default_factory=Counter)
    first_ns: int | None = None
    last_ns: int | None = None
    head: Counter[int] = field(default_factory=Counter)
    tail: Counter[int] = field(default_factory=Counter)
    longest: tuple[int, int] | None = None
    silences: list[_Silence] = field(default_factory=list)
    recovered: int = 0

    def add(self, later: Account, interval_ns: int) -> None:
        """Go on with what came after."""
        self.due += later.due
        self.got += later.got
        self.recovered += later.recovered
        self.lost.update(later.lost)
        self.errors.update(later.errors)
        if later.first_ns is None or later.last_ns is None:
            (self.head if self.last_ns is None else self.tail).update(later.head)
            return
        if self.last_ns is None:
            self.head.update(later.head)
            self.first_ns, self.longest = later.first_ns, later.longest
        else:
            between = Counter(self.tail)
            between.update(later.head)
            self.silent(self.last_ns, later.first_ns, between, interval_ns)
            if later.longest is not None:
                self._longest(*later.longest)
        self.silences.extend(later.silences)
        self.last_ns = max(self.last_ns or later.last_ns, later.last_ns)
        self.tail = Counter(later.tail)
        self._bound()

    def ledger(self, source: Source, shown: str, errors: Mapping[int, str], window: Window) -> Ledger:
        """The account as rules see it."""
        whole = Account()
        whole.add(self, source.interval_ns)
        if self.first_ns is None or self.last_ns is None:
            whole.silent(window.begin_ns, window.end_ns, self.head, source.interval_ns)
            whole.longest = None
        else:
            whole.silent(window.begin_ns, self.first_ns, self.head, source.interval_ns)
            whole.silent(self.last_ns, window.end_ns, self.tail, source.interval_ns)
        silences = sorted(whole.silences, key=lambda silence: silence[:2])
        most = self.errors.most_common()
        shown_errors = sorted(most, key=lambda pair: (-pair[1], pair[0]))[:_SHOWN_ERRORS]
        return Ledger(
            target=source.target,
            source=shown,
            interval_s=source.interval_ns * 1e-9,
            due=self.due,
            got=self.got,
            lost=_words(self.lost),
            longest_gap=None if whole.longest is None else Window(*whole.longest),
            errors=tuple(errors[number] for number, _ in shown_errors),
            required=source.required,
            silences=tuple(Silence(Window(begin, end), _words(lost)) for begin, end, lost in silences),
            recovered=self.recovered,
            poller=source.name,
        )

    def silent(self, begin_ns: int, end_ns: int, lost: Counter[int], interval_ns: int) -> None:
        """There was no answer between two times."""
        self._longest(begin_ns, end_ns)
        if end_ns - begin_ns >= _SILENT_INTERVALS * interval_ns:
            self.silences.append((begin_ns, end_ns, Counter(lost)))

    def _longest(self, begin_ns: int, end_ns: int) -> None:
        before = self.longest
        longer = before is None or end_ns - begin_ns > before[1] - before[0]
        same = before is not None and end_ns - begin_ns == before[1] - before[0] and begin_ns < before[0]
        if longer or same:
            self.longest = begin_ns, end_ns

    def _bound(self) -> None:
        if len(self.silences) > 2 * _MAX_SILENCES:
            self.silences.sort(key=lambda silence: silence[0] - silence[1])
            del self.silences[_MAX_SILENCES:]
            self.silences.sort(key=lambda silence: silence[:2])


def account_of(polls: PollColumns, interval_ns: int) -> Account:
    """The account of some successive polls."""
    account = Account(due=int(polls.due_ns.size))
    answered = polls.outcome == _OK
    account.got = int(answered.sum())
    account.lost = Counter(polls.outcome[~answered].tolist())
    account.errors = Counter(polls.error[~answered & (polls.error > 0)].tolist())
    heard = answered | (polls.outcome == _LOSSY)
    lost_due, lost_how = polls.due_ns[~heard], polls.outcome[~heard]
    if not heard.any():
        account.head = Counter(account.lost)
        return account
    starts = np.sort(polls.start_ns[heard])
    account.first_ns, account.last_ns = int(starts[0]), int(starts[-1])
    account.head = Counter(lost_how[lost_due <= account.first_ns].tolist())
    account.tail = Counter(lost_how[lost_due > account.last_ns].tolist())
    steps = np.diff(starts)
    if steps.size:
        index = int(np.argmax(steps))
        account.longest = int(starts[index]), int(starts[index + 1])
    for index in np.flatnonzero(steps >= _SILENT_INTERVALS * interval_ns).tolist():
        begin, end = int(starts[index]), int(starts[index + 1])
        inside = (lost_due > begin) & (lost_due < end)
        account.silences.append((begin, end, Counter(lost_how[inside].tolist())))
    return account


def _words(counted: Counter[int]) -> dict[str, int]:
    return {OUTCOMES[number].value: counted[number] for number in sorted(counted) if counted[number]}


class Accounts:
    """The accounts of all sources, one for each stretch between two edges of phases."""

    def __init__(self) -> None:
        self._edges: list[int] = []
        self._accounts: dict[int, defaultdict[int, Account]] = {}
        self._last_ns: dict[int, int] = {}  # the last due time of each source

    def begin(self, edges: Sequence[int]) -> None:
        """Take note of the edges of phases, sorted. A new edge should lie after every poll that was taken."""
        for edge in edges:
            if edge not in self._edges:
                self._edges = sorted([*self._edges, edge])

    def fits(self, source: Source, polls: PollColumns) -> bool:
        """Whether every poll was due later than all before it. If not, the account needs ``retake``."""
        return in_order(polls.due_ns, self._last_ns.get(source.id))

    def take(self, source: Source, polls: PollColumns) -> None:
        """Add polls that fit to the stretches in which they were due."""
        self._take(source, effective_polls(polls))

    def retake(self, source: Source, whole: EffectivePolls) -> None:
        """Count all polls of a source anew: some arrived late and take the place of polls that had been lost."""
        self._accounts.pop(source.id, None)
        self._take(source, whole)

    def _take(self, source: Source, taken: EffectivePolls) -> None:
        polls = taken.polls
        if not polls.due_ns.size:
            return
        self._last_ns[source.id] = int(polls.due_ns[-1])
        mine = self._accounts.setdefault(source.id, defaultdict(Account))
        stretch = np.searchsorted(np.array(self._edges, dtype=np.int64), polls.due_ns, side="right")
        for number in np.unique(stretch).tolist():
            inside = stretch == number
            begin_ns = self._edges[number - 1] if number else -(2**62)
            some = account_of(polls.of(inside), source.interval_ns)
            some.recovered = int(taken.late[inside].sum())
            mine[begin_ns].add(some, source.interval_ns)

    def ledger(self, source: Source, shown: str, errors: Mapping[int, str], window: Window) -> Ledger:
        """The account of a source in a window that starts and ends with phases, or with the run."""
        sum_ = Account()
        edges = [edge for edge in self._edges if edge <= window.begin_ns]
        first_ns = edges[-1] if edges else -(2**62)
        for begin_ns, account in sorted(self._accounts.get(source.id, {}).items()):
            if first_ns <= begin_ns < window.end_ns:
                sum_.add(account, source.interval_ns)
        return sum_.ledger(source, shown, errors, window)
