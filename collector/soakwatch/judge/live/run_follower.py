"""What is kept of a run that goes on, and the views of it that rules judge: recent, minutes, whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from soakwatch.core.errors import RecordError
from soakwatch.core.event_kinds import matters
from soakwatch.judge.live.changes import Changes, joined
from soakwatch.judge.live.coverage import Accounts
from soakwatch.judge.live.extremes import Extremes
from soakwatch.judge.live.kept_events import KeptEvents
from soakwatch.record import SeriesKey, Source, StoredEvent, StoredFault
from soakwatch.record.follow import (
    Batch,
    News,
    NewSeries,
    PollColumns,
    Table,
    Tail,
    effective_polls,
    ledger_of,
)
from soakwatch.record.minutes import MINUTE_NS
from soakwatch.record.model import OUTCOME_NUMBERS, Ints, source_label
from soakwatch.record.series_cache import BlockCache, CachedView, Known, cached_view
from soakwatch_model.case import Ledger
from soakwatch_model.metric import BY_NAME, STATE
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.sample import PollOutcome
from soakwatch_model.series import Series, trait_of
from soakwatch_model.window import Phase, Window
from soakwatch_rules.rule import Rule

Manner = Literal["recent", "minutes", "whole"]

HOUR_NS = 3_600_000_000_000
_FOREVER = 2**62
_CACHE_BYTES = 2 * 2**20  # of decoded blocks; 4 and 8 MB save no CPU (tests/bench/live.py)
_MAX_MINUTES = 4320  # of a series that rules are shown: 72 h; of a longer run they are minutes of two, of four
_MAX_CUTS = 256  # sets of series that came together; more mean that polls never look alike
_TAIL = 64  # newest readings that the whole view shows of a series beside its changes
_STATES = frozenset(
    {metric.name for metric in BY_NAME.values() if metric.kind == STATE}
    | {metric.ceiling for metric in BY_NAME.values() if metric.ceiling is not None}
)


@dataclass(slots=True)
class Fresh:
    """What one look at the record brought: series that moved, and targets to which something happened."""

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
        self.extremes, self.changes, self.accounts = Extremes(), Changes(), Accounts()
        self._blocks, self._opened = BlockCache(_CACHE_BYTES), ExitStack()
        self._record: CachedView | None = None
        self._known: dict[SeriesKey, Known] = {}
        self._latest, self._baseline = dict[SeriesKey, Series](), dict[SeriesKey, Series]()
        self.polls: dict[int, list[PollColumns]] = {}  # of the last hour
        self.events = KeptEvents()
        self.faults: list[StoredFault] = []
        self._numbers: dict[int, SeriesKey] = {}
        self._spans: tuple[tuple[str, int, int | None], ...] = ()
        self._columns: dict[tuple[tuple[int, ...], str], tuple[Ints, ...]] = {}
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
    def record(self) -> CachedView:
        """The record, opened when it is first asked for after a ``read``. Raises RecordError."""
        if self._record is None:
            self._record = self._opened.enter_context(cached_view(self.path, self._blocks))
        return self._record

    def rest(self) -> None:
        """Let the record go until it is asked for again: while it is open its write-ahead log cannot shrink."""
        self._opened.close()
        self._record = None
        self._latest.clear()
        self._baseline.clear()

    def readings(self, key: SeriesKey, begin_ns: int, end_ns: int) -> Series:
        """The readings of a series, begin <= time < end, as the record has them. Raises RecordError."""
        return self.record.series(key, self._known_as(key), begin_ns, end_ns)

    def minutes(self, key: SeriesKey, begin_ns: int, end_ns: int) -> Series:
        """Its minutes; each is so long that no series has more than 4320 of them. Raises RecordError."""
        return self.record.minutes(key, self._known_as(key), begin_ns, end_ns, self.bin_ns)

    @property
    def baseline_end_ns(self) -> int:
        """When the last baseline ended, or ends so far; 0 where the run has none."""
        return max((phase.window.end_ns for phase in self.phases if phase.name == "baseline"), default=0)

    def latest(self, key: SeriesKey) -> Series:
        """The last hour of readings of a series that was read within the last hour; cached until the next ``rest``."""
        if key not in self._latest:
            end_ns = self.window.end_ns
            hour = self._last_of(key, end_ns, HOUR_NS, _FOREVER)
            self._latest[key] = hour if len(hour) else self._last_of(key, end_ns - HOUR_NS, HOUR_NS, _FOREVER)
        return self._latest[key]

    def newest(self, key: SeriesKey, most: int) -> Series:
        """At least the ``most`` newest readings, or all of the last hour; mostly no block has to be decoded for it."""
        if key not in self._latest:
            length_ns = round(1.5e9 * most * (self._known_as(key).cadence_s or 0.0))
            if length_ns < HOUR_NS:
                some = self.readings(key, self.window.end_ns - length_ns, _FOREVER)
                if len(some) >= most:
                    return some
        return self.latest(key)

    def baseline(self, key: SeriesKey) -> Series:
        """The last two hours of readings of a series in the baseline; cached until the next ``rest``."""
        if key not in self._baseline:
            self._baseline[key] = self._last_of(key, self.baseline_end_ns, 2 * HOUR_NS, self.baseline_end_ns)
        return self._baseline[key]

    def _last_of(self, key: SeriesKey, end_ns: int, length_ns: int, until_ns: int) -> Series:
        """The readings of the last ``length_ns`` before the newest one, which is due at about ``end_ns``."""
        more_ns = round(2e9 * (self._known_as(key).cadence_s or 0.0))
        some = self.readings(key, end_ns - length_ns - more_ns, until_ns)
        return some.between(int(some.time_ns[-1]) - length_ns, until_ns) if len(some) else some

    def _known_as(self, key: SeriesKey) -> Known:
        known = self._known.get(key)
        if known is None:
            self._known = dict(self.record.every())
            known = self._known[key]
        return known

    @property
    def bin_ns(self) -> int:
        """The length of the minutes that rules see: one, in runs above 72 h two, then four, so at most 4320 of them."""
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
        return self._blocks.size + self.changes.nbytes + polls

    @property
    def forgot(self) -> str:
        """What was forgotten so that the memory stays bounded, in a sentence; "" if nothing was."""
        counts = (self.events.forgotten, "of the oldest events"), (self.changes.forgotten, "readings")
        what = " and ".join(f"{number:,} {words}" for number, words in counts if number)
        if not what:
            return ""
        return (
            f"judging while the run goes on has forgotten {what} of what changes most often, such as processes that"
            " come and go: findings so far count only what came later. The verdict at the end reads all of the record"
        )

    def through(self, manner: Manner) -> View:
        """The record as rules of one manner see it."""
        return View(self, manner)

    def in_minutes(self, target: str, metrics: Sequence[str], window: Window) -> tuple[Series, ...]:
        """All series of these metrics of a target, in means of minutes. Raises RecordError."""
        view = self.through("minutes")
        keys = [key for key in view.keys(metrics) if key.target == target]
        return tuple(view.series(key, window.begin_ns, window.end_ns) for key in keys)

    # --- taking in -----------------------------------------------------------------------------------------------

    def _take(self, news: News, fresh: Fresh) -> None:
        fresh.layout |= bool(news.series) or news.roles != self.roles or news.phases != self._spans
        if news.sources != self.sources:
            self._known.clear()  # how often a source brings a metric may have changed
        self.roles, self.sources, self._spans = news.roles, news.sources, news.phases
        for series in news.series:
            self.known[series.key] = series
            self._numbers[series.number] = series.key
        self.errors.update(news.errors)
        for stored in news.events:
            self.events.add(stored)
            of = [stored.event.target] if stored.event.target else list(self.roles)
            fresh.targets.update(of)
            if matters(stored.event.kind):
                fresh.struck.update(of)
        for fault in news.faults:
            self.faults.append(fault)
            fresh.targets.add(fault.target)
        edges = sorted({time for _, begin, end in self._spans for time in (begin, end) if time is not None})
        self.accounts.begin(edges)
        by_number = {source.id: source for source in news.sources}
        late: set[int] = set()
        for batch in news.batches:
            source = by_number[batch.source]
            if batch.source in late or not self.accounts.fits(source, batch.polls):
                late.add(batch.source)
            else:
                self.accounts.take(source, batch.polls)
            self._take_batch(source, batch, fresh)
        for number in late:
            self.accounts.retake(by_number[number], self._tail.polls(number))
            fresh.targets.add(by_number[number].target)
        times = [*edges, *([] if news.span_ns is None else [news.span_ns]), *(batch.last_ns for batch in news.batches)]
        self._last_ns = max([*times, *([] if self._last_ns is None else [self._last_ns])], default=None)

    def _take_batch(self, source: Source, batch: Batch, fresh: Fresh) -> None:
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
            beyond = self.extremes.add(source.id, _only(table, in_hour)) if in_hour.size else set()
            changed = self.changes.add(source.id, _only(table, in_changes)) if in_changes.size else set()
            fresh.series.update(self._numbers[number] for number in beyond | changed)

    def _cut(self, table: Table) -> tuple[Ints, ...]:
        """Which columns of a table go where."""
        key = table.series, table.kinds
        known = self._columns.get(key)
        if known is None:
            names = [self._numbers[number].metric for number in table.series]
            wanted = self._in_hour, self._in_changes
            if len(self._columns) > _MAX_CUTS:
                self._columns.clear()
            known = self._columns[key] = tuple(np.flatnonzero([name in some for name in names]) for some in wanted)
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
        begin, end = 0 if begin_ns is None else begin_ns, _FOREVER if end_ns is None else end_ns
        begin = max(begin, self._of.events.begin_ns(key))
        known = self._of.known.get(key)
        if known is None:
            trait = trait_of(key.metric, "1", "gauge")
            return Series(key.target, key.metric, key.object, trait, np.empty(0, np.int64), np.empty(0))
        if self._manner == "minutes":
            return self._of.minutes(key, begin, end)
        if self._manner == "whole":  # its changes, and as many of the newest readings, at least 64
            kept = self._of.changes.read(known.number)
            most = max(_TAIL, kept[0].size)
            latest = self._of.newest(key, most)
            parts = [kept, (latest.time_ns[-most:], latest.value[-most:])]
        else:  # the last hour, and what rules compare it with
            latest = self._of.latest(key)
            hour_ns = int(latest.time_ns[0]) if len(latest) else _FOREVER
            if begin >= min(hour_ns, self._of.baseline_end_ns):
                return latest.between(begin, end)
            baseline = self._of.baseline(key).between(begin, hour_ns)
            parts = [(baseline.time_ns, baseline.value), (latest.time_ns, latest.value)]
        time_ns, value = joined([part for part in parts if part[0].size])
        low, high = np.searchsorted(time_ns, [begin, end])
        return replace(latest, time_ns=time_ns[low:high], value=value[low:high])

    def events(self) -> tuple[StoredEvent, ...]:
        """What happened."""
        return self._of.events.in_order()

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


def _only(table: Table, columns: Ints) -> Table:
    if columns.size == len(table.series):
        return table
    places = columns.tolist()
    return Table(
        tuple([table.series[place] for place in places]),
        "".join([table.kinds[place] for place in places]),
        table.time_ns,
        table.words[:, columns],
    )
