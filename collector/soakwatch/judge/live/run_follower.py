"""What is kept of a run that goes on, and the views of it that rules judge: recent, minutes, whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import matters
from soakwatch.judge.live.changes import Changes
from soakwatch.judge.live.coverage import Accounts
from soakwatch.judge.live.recent import HOUR_NS, Hour, joined
from soakwatch.record import RecordView, SeriesKey, Source, StoredEvent, StoredFault
from soakwatch.record.follow import (
    Batch,
    News,
    NewSeries,
    Owner,
    PollColumns,
    Table,
    Tail,
    effective_polls,
    ledger_of,
    silence_ns,
)
from soakwatch.record.minutes import MINUTE_NS
from soakwatch.record.model import OUTCOME_NUMBERS, source_label
from soakwatch_model.case import Ledger
from soakwatch_model.metric import BY_NAME, STATE
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.sample import PollOutcome
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Phase, Window
from soakwatch_rules.rule import Rule

Manner = Literal["recent", "minutes", "whole"]

_FOREVER = 2**62
_MAX_MINUTES = 4320  # of a series that rules are shown: 72 h; of a longer run they are minutes of two, of four
_TAIL = 64  # newest readings that the whole view shows of a series beside its changes
_STATES = frozenset(
    {metric.name for metric in BY_NAME.values() if metric.kind == STATE}
    | {metric.ceiling for metric in BY_NAME.values() if metric.ceiling is not None}
)


@dataclass(slots=True)
class Fresh:
    """What one read of the record brought: series that changed or got samples, and targets with other news."""

    series: set[SeriesKey] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    struck: set[str] = field(default_factory=set)  # of these, to which something happened
    layout: bool = False  # there are new series, targets or phases

    def touches(self, target: str, keys: Iterable[SeriesKey]) -> bool:
        """Whether it concerns a target, or one of its series."""
        return target in self.targets or not self.series.isdisjoint(keys)


class RunFollower:
    """The state of one run. ``read`` takes in what is new; ``through`` gives the view of a manner of looking."""

    def __init__(self, path: Path, rules: Sequence[Rule], metas: Mapping[str, str]) -> None:
        self.metas = metas
        named = {
            manner: frozenset(metric for rule in rules if rule.spec.live == manner for metric in rule.metrics)
            for manner in ("recent", "whole")
        }
        needed = frozenset[str]() if not any(rule.spec.live != "end" for rule in rules) else _STATES | WHOLE_LOAD
        self._in_changes = named["whole"] | needed
        self._in_hour = named["recent"] | self._in_changes
        self._tail = Tail(path, lambda key: key.metric in self._in_hour)
        self.roles: Mapping[str, str] = {}
        self.sources: tuple[Source, ...] = ()
        self.known: dict[SeriesKey, NewSeries] = {}
        self.errors: dict[int, str] = {}
        self.hour, self.changes, self.accounts = Hour(), Changes(), Accounts()
        self._record: RecordView | None = None
        self.polls: dict[int, list[PollColumns]] = {}  # of the last hour
        self.events: dict[int, StoredEvent] = {}
        self.faults: list[StoredFault] = []
        self._numbers: dict[int, SeriesKey] = {}
        self._spans: tuple[tuple[str, int, int | None], ...] = ()
        self._columns: dict[tuple[tuple[int, ...], str], tuple[list[int], ...]] = {}
        self.first_ns: int | None = None  # when the first poll was due
        self._last_ns: int | None = None

    def read(self) -> Fresh:
        """Take in everything that was written since. Raises RecordError."""
        self.rest()
        fresh = Fresh()
        while True:
            news = self._tail.news()
            self._take(news, fresh)
            if not news.more:
                return fresh

    @property
    def record(self) -> RecordView:
        """The record, opened when it is first asked for after a ``read``. Raises RecordError."""
        if self._record is None:
            self._record = RecordView.open(self.path)
        return self._record

    def rest(self) -> None:
        """Let the record go until it is asked for again: while it is open its write-ahead log cannot shrink."""
        if self._record is not None:
            self._record.close()
            self._record = None

    @property
    def bin_ns(self) -> int:
        """How long the minutes are that rules see: so long that a series has at most 4320 of them."""
        window, bin_ns = self.window, MINUTE_NS
        while window.end_ns // bin_ns - window.begin_ns // bin_ns >= _MAX_MINUTES:
            bin_ns *= 2
        return bin_ns

    @property
    def path(self) -> Path:
        """Where the record is."""
        return self._tail.path

    @property
    def window(self) -> Window:
        """From the first due poll to the end of the record. Raises RecordError before the first poll."""
        if self.first_ns is None or self._last_ns is None:
            raise RecordError(f"{self._tail.path} holds no poll yet: nothing can be judged")
        return Window(self.first_ns, max(self.first_ns, self._last_ns + 1))

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases so far; one that is open ends with the record."""
        now_ns = 0 if self._last_ns is None else self._last_ns + 1
        return tuple(
            Phase(name, Window(begin, max(begin, now_ns) if end is None else end)) for name, begin, end in self._spans
        )

    @property
    def nbytes(self) -> int:
        """Bytes of readings that are held in memory."""
        polls = sum(part.due_ns.nbytes * 4 for parts in self.polls.values() for part in parts)
        return self.hour.nbytes + self.changes.nbytes + polls

    def through(self, manner: Manner) -> View:
        """The record as rules of one manner see it."""
        return View(self, manner)

    def numbered(self, number: int) -> SeriesKey:
        """The series of a number."""
        return self._numbers[number]

    # --- taking in -----------------------------------------------------------------------------------------------

    def _take(self, news: News, fresh: Fresh) -> None:
        fresh.layout |= bool(news.series) or news.roles != self.roles or news.phases != self._spans
        self.roles, self.sources, self._spans = news.roles, news.sources, news.phases
        for series in news.series:
            self.known[series.key] = series
            self._numbers[series.number] = series.key
        self.errors.update(news.errors)
        for stored in news.events:
            self.events[stored.id] = stored
            of = [stored.event.target] if stored.event.target else list(self.roles)
            fresh.targets.update(of)
            if matters(stored.event.kind):
                fresh.struck.update(of)
        for fault in news.faults:
            self.faults.append(fault)
            fresh.targets.add(fault.target)
        edges = sorted({time for _, begin, end in self._spans for time in (begin, end) if time is not None})
        self.accounts.begin(edges)
        baseline: list[Window] = [
            Window(begin, _FOREVER if end is None else end) for name, begin, end in self._spans if name == "baseline"
        ]
        by_number = {source.id: source for source in news.sources}
        late: set[int] = set()
        for batch in news.batches:
            source = by_number[batch.source]
            if batch.source in late or not self.accounts.fits(source, batch.polls):
                late.add(batch.source)
            else:
                self.accounts.take(source, batch.polls)
            self._take_batch(source, batch, baseline, fresh)
        for number in late:
            self.accounts.retake(by_number[number], self._tail.polls(number))
            fresh.targets.add(by_number[number].target)
        times = [*edges, *([] if news.span_ns is None else [news.span_ns]), *(batch.last_ns for batch in news.batches)]
        self._last_ns = max([*times, *([] if self._last_ns is None else [self._last_ns])], default=None)
        if self._last_ns is not None:
            self.hour.forget(self._last_ns - 2 * HOUR_NS)

    def _take_batch(self, source: Source, batch: Batch, baseline: Sequence[Window], fresh: Fresh) -> None:
        first_ns = int(batch.polls.due_ns.min())
        self.first_ns = first_ns if self.first_ns is None else min(first_ns, self.first_ns)
        hour = self.polls.setdefault(source.id, [])
        hour.append(batch.polls)
        while int(hour[0].due_ns.max()) < int(batch.polls.due_ns.max()) - HOUR_NS:
            del hour[0]
        if bool((batch.polls.outcome != OUTCOME_NUMBERS[PollOutcome.OK]).any()):
            fresh.targets.add(source.target)
        for table in batch.tables:
            in_hour, in_changes = self._cut(table)
            beyond = self.hour.add(source.id, _only(table, in_hour), baseline) if in_hour else set()
            changed = self.changes.add(source.id, _only(table, in_changes)) if in_changes else set()
            fresh.series.update(self._numbers[number] for number in beyond | changed)

    def _cut(self, table: Table) -> tuple[list[int], ...]:
        """Which columns of a table go where."""
        key = table.series, table.kinds
        known = self._columns.get(key)
        if known is None:
            names = [self._numbers[number].metric for number in table.series]
            cuts = [
                [column for column, name in enumerate(names) if name in wanted]
                for wanted in (self._in_hour, self._in_changes)
            ]
            if len(self._columns) > 256:  # polls that never look alike
                self._columns.clear()
            known = self._columns[key] = tuple(cuts)
        return known


class View:
    """A run as rules of one manner see it: what ``soakwatch.judge.cases`` asks of a record."""

    def __init__(self, of: RunFollower, manner: Manner) -> None:
        self._of, self._manner = of, manner

    def meta(self, key: str) -> str | None:
        """A text that the run left."""
        return self._of.metas.get(key)

    def roles(self) -> Mapping[str, str]:
        """Targets and their roles."""
        return self._of.roles

    def window(self) -> Window:
        """First due time to last sample."""
        return self._of.window

    def phases(self) -> tuple[Phase, ...]:
        """The phases so far."""
        return self._of.phases

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The series."""
        wanted = None if metrics is None else frozenset(metrics)
        return tuple(sorted(key for key in self._of.known if wanted is None or key.metric in wanted))

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One of them, as this manner keeps it: as it was read, in means of minutes, or its changes."""
        begin, end = -_FOREVER if begin_ns is None else begin_ns, _FOREVER if end_ns is None else end_ns
        known = self._of.known.get(key)
        if known is None:
            return Series(
                key.target,
                key.metric,
                key.object,
                trait_of(key.metric, "1", "gauge"),
                np.empty(0, np.int64),
                np.empty(0),
            )
        if self._manner == "minutes":
            return self._of.record.minutes(key, begin, end, self._of.bin_ns)
        trait = trait_of(key.metric, known.unit, known.kind)
        source = next((s for s in self._of.sources if s.id == known.source), None)
        cadence_s = None if source is None else source.cadence_s(key.metric)
        owner = None if source is None else Owner(source.id, silence_ns(source, key.metric))
        if self._manner == "recent":
            time_ns, some = self._of.hour.read(known.number, begin, end, owner=owner)
            return Series(key.target, key.metric, key.object, trait, time_ns, some, cadence_s)
        kept = self._of.changes.read(known.number)
        newest = self._of.hour.read(known.number, -_FOREVER, _FOREVER, max(_TAIL, kept[0].size), owner)
        time_ns, some = joined([part for part in (kept, newest) if part[0].size])
        low, high = np.searchsorted(time_ns, [begin, end])
        return Series(key.target, key.metric, key.object, trait, time_ns[low:high], some[low:high], cadence_s)

    def events(self) -> tuple[StoredEvent, ...]:
        """What happened."""
        return tuple(sorted(self._of.events.values(), key=lambda stored: (stored.event.begin_ns, stored.id)))

    def faults(self) -> tuple[StoredFault, ...]:
        """What could not be read."""
        return tuple(self._of.faults)

    def ledgers(self, window: Window) -> tuple[Ledger, ...]:
        """The account of each source: from every poll in the last hour, else from the accounts of the phases."""
        return tuple(
            self._ledger(source, source_label(source, self._of.sources), window) for source in self._of.sources
        )

    def _ledger(self, source: Source, shown: str, window: Window) -> Ledger:
        if self._manner != "recent":
            return self._of.accounts.ledger(source, shown, self._of.errors, window)
        hour = self._of.polls.get(source.id, [])
        columns = [
            np.concatenate([np.empty(0, np.int64), *(getattr(polls, name) for polls in hour)])
            for name in ("due_ns", "start_ns", "outcome", "error")
        ]
        account = effective_polls(PollColumns(*columns)).between(window.begin_ns, window.end_ns)
        return ledger_of(source, shown, account, self._of.errors, window)


def _only(table: Table, columns: Sequence[int]) -> Table:
    if len(columns) == len(table.series):
        return table
    return Table(
        tuple([table.series[column] for column in columns]),
        "".join([table.kinds[column] for column in columns]),
        table.time_ns,
        table.words[:, columns],
    )
