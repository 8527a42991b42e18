"""A Prometheus as a source: what it scraped since the last poll, each value once, with the time it was scraped.

Values are taken when they come, late ones too, and put under the poll that they belong to. What Prometheus scraped
while it could not be asked is fetched later, oldest first. An exporter without a new value for longer than a step is
silent: no value is repeated, and if none of them has any the poll fails.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from soakwatch.core.units import show_seconds
from soakwatch.sources.abc import BackfilledPoll, Facts, SourceError
from soakwatch.sources.pollers.prometheus.query_api import (
    ApiSeries,
    Group,
    Query,
    QueryApi,
    Scrape,
    TooMuchError,
    by_exporter,
    evaluated,
    scrapes,
)
from soakwatch.sources.pollers.prometheus.sample_mapping import Mapped, Mapper
from soakwatch.sources.transport.http import shown
from soakwatch_model.sample import Answer, Fault, Sample

LATEST_S = 10.0
"""How long a scrape may take: a value is looked for until it is this old, though newer ones came."""
_SILENT_STEPS = 1.5
_MOST_STEPS, _MOST_S = 20, 300.0  # of one poll: what was missed longer ago follows in the next polls
_SHOWN_NAMES = 8
_MAX_FAULTS = 20

_SeriesKey = tuple[str, frozenset[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds between values in Prometheus, between polls, and after a step until an expression is evaluated."""

    step_s: float
    interval_s: float
    delay_s: float


@dataclass(slots=True)
class _Exporter:
    """One exporter: its mapper, when it was last scraped (s of the server), and the series that it showed then."""

    mapper: Mapper
    newest_s: float
    series: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Clocks:
    """Steady time minus server time, in s; changed only by what the time of a request proves."""

    offset_s: float | None = None

    def learn(self, server_s: float, at_most_s: float, before_s: float, after_s: float) -> None:
        """A time of the server, between the first two, was between two steady times."""
        low, high = before_s - at_most_s, after_s - server_s
        middle = (low + high) / 2
        self.offset_s = middle if self.offset_s is None else min(max(self.offset_s, low), high)

    def steady_ns(self, server_s: float) -> int:
        """A time of the server on the steady clock."""
        return round((server_s + (self.offset_s or 0.0)) * 1e9)

    def server_s(self, time_ns: int) -> float:
        """A time of the steady clock on that of the server."""
        return time_ns * 1e-9 - (self.offset_s or 0.0)


@dataclass(slots=True)
class _Lost:
    """Due times without an answer: after ``from_ns`` and before ``until_ns``, the steady time of the poll that came."""

    from_ns: int
    until_ns: int

    def due_ns(self, time_ns: int, interval_ns: int) -> int | None:
        """The lost poll to which a sample belongs; None if to none."""
        number = (self.until_ns - time_ns) // interval_ns
        due_ns = self.until_ns - number * interval_ns
        return due_ns if number >= 1 and due_ns > self.from_ns + interval_ns // 2 else None


@dataclass(slots=True)
class _Known:
    """What was read so far."""

    exporters: dict[Group, _Exporter] = field(default_factory=dict)
    owner: dict[tuple[str, str], Group] = field(default_factory=dict)
    newest: dict[_SeriesKey, float] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    unused: set[str] = field(default_factory=set)
    until_s: float | None = None
    answered_ns: int | None = None


class SeriesPoller:
    """Some queries, asked at each poll over a connection that is kept."""

    def __init__(
        self,
        url: str,
        queries: Sequence[Query],
        api: QueryApi,
        mapper: Callable[[], Mapper],
        cadence: Cadence,
        now_ns: Callable[[], int],
        unpolled_ns: int | None = None,
    ) -> None:
        self._url, self._queries, self._api, self._mapper = url, tuple(queries), api, mapper
        self._cadence, self._now_ns, self._unpolled_ns = cadence, now_ns, unpolled_ns
        self._clocks, self._known = _Clocks(), _Known()
        self._lost: _Lost | None = None
        self._behind = False
        self._recovered: list[BackfilledPoll] = []
        self._kept: list[Sample] = []  # that came with a poll which failed: the next answer has them
        self._version, self._kinds = "", dict[str, str]()

    async def prepare(self) -> None:
        """Asks for what is asked once: the server's version and the kinds of names. Raises SourceError."""
        await self._api.now_s()
        self._version, self._kinds = await self._api.version(), dict(await self._api.kinds())

    async def poll(self, now_ns: int) -> Answer:
        """What is new. Raises SourceError where nothing is although it is due, and where a query cannot be used."""
        before_ns = self._now_ns()
        server_s, at_most_s = await self._api.now_s()
        self._clocks.learn(server_s, at_most_s, before_ns * 1e-9, self._now_ns() * 1e-9)
        if self._known.until_s is None and self._unpolled_ns is not None:  # the monitor was away
            self._known.answered_ns = self._unpolled_ns - self._interval_ns
            self._known.until_s = self._clocks.server_s(self._known.answered_ns)
        begin_s, end_s, behind = self._window(server_s)
        series = await self._read(begin_s, end_s)
        if not self._behind and (answered_ns := self._known.answered_ns) is not None:
            lost = now_ns - answered_ns > 1.5 * self._interval_ns
            self._lost = _Lost(answered_ns, now_ns) if lost else None
        # Reading megabytes takes a second, for which the other sources must not wait.
        answer = await asyncio.to_thread(self._take, series, server_s, end_s, behind=behind)
        self._behind, self._known.answered_ns = behind, now_ns
        return answer

    def recovered(self) -> Iterable[BackfilledPoll]:
        """What Prometheus scraped while it could not be asked, by the polls that were lost."""
        made, self._recovered = self._recovered, []
        return made

    def facts(self) -> Facts:
        """Which server and queries, and how much of their names is mapped."""
        notes = []
        known = self._known
        if unused := known.unused - known.used:
            names = sorted(unused)
            some = ", ".join(names[:_SHOWN_NAMES]) + (" …" if len(names) > _SHOWN_NAMES else "")
            notes.append(f"{len(names)} names of the answer are not sampled ({some}): add them, or globs, to keep")
        server = f"{shown(self._url)} (version {self._version})" if self._version else shown(self._url)
        identity = {"server": server, "query": "; ".join(query.text for query in self._queries)}
        cadences = {}
        if self._cadence.step_s > self._cadence.interval_s:
            metrics = {metric for exporter in known.exporters.values() for metric, _ in exporter.series}
            cadences = dict.fromkeys(metrics, self._cadence.step_s)
        return Facts({**identity, "mapped names": str(len(known.used))}, (), tuple(notes), cadences)

    # --- inside ------------------------------------------------------------------------------------------------

    @property
    def _interval_ns(self) -> int:
        return round(self._cadence.interval_s * 1e9)

    @property
    def _silent_s(self) -> float:
        """An exporter whose newest value is older than this is silent."""
        return _SILENT_STEPS * self._cadence.step_s

    def _window(self, server_s: float) -> tuple[float, float, bool]:
        """From when and until when values are asked for, and whether that is before the present."""
        step_s, known = self._cadence.step_s, self._known
        most_s = max(_MOST_STEPS * step_s, _MOST_S)
        if known.until_s is None or known.until_s > server_s:  # the first poll, or the server's clock was set back
            return server_s - self._silent_s, server_s, False
        if server_s - known.until_s > most_s:
            end_s = known.until_s + most_s
            return known.until_s - step_s, end_s, True
        newest_s = min((exporter.newest_s for exporter in known.exporters.values()), default=known.until_s)
        return max(min(known.until_s - LATEST_S, newest_s) - step_s, server_s - most_s), server_s, False

    async def _read(self, begin_s: float, end_s: float) -> list[tuple[Query, ApiSeries]]:
        found: list[tuple[Query, ApiSeries]] = []
        for query in self._queries:
            delay_s = 0.0 if query.raw else self._cadence.delay_s
            try:
                series = await self._api.series(query, begin_s - delay_s, end_s - delay_s, self._cadence.step_s)
            except TooMuchError as error:
                raise SourceError(f"{error}: select less with {query.text}") from None
            found += [(query, one) for one in series]
        return found

    def _take(
        self, series: Sequence[tuple[Query, ApiSeries]], server_s: float, end_s: float, *, behind: bool
    ) -> Answer:
        """Maps what is new; values of lost polls go to ``recovered``."""
        known = self._known
        until_s = end_s if not behind else self._whole_polls_s(end_s)
        fresh = [(query, new) for query, one in series if (new := self._new(query, one, until_s)) is not None]
        pages = scrapes(by_exporter(fresh, self._kinds))
        samples: list[Sample] = []
        faults: list[Fault] = []
        late: dict[int, list[Sample]] = defaultdict(list)
        for scrape in pages:
            time_ns = self._clocks.steady_ns(scrape.time_s)
            mapped = self._map(scrape, time_ns)
            self._check(scrape, mapped)
            due_ns = None if self._lost is None else self._lost.due_ns(time_ns, self._interval_ns)
            (samples if due_ns is None else late[due_ns]).extend(mapped.samples)
            faults += mapped.faults
        known.until_s = until_s
        for _, one in fresh:
            known.newest[_key(one)] = one.time_s[-1]
        self._recovered += [
            BackfilledPoll(due_ns, 0, Answer(tuple(some), (), ())) for due_ns, some in sorted(late.items())
        ]
        samples, self._kept = [*self._kept, *samples], []
        if not behind:
            try:
                faults += self._silent(server_s)
            except SourceError:
                self._kept = samples
                raise
            asked_from_s = server_s - 2 * max(_MOST_S, _MOST_STEPS * self._cadence.step_s)
            known.newest = {key: time_s for key, time_s in known.newest.items() if time_s > asked_from_s}
        return Answer(tuple(samples), (), tuple(faults[:_MAX_FAULTS]))

    def _new(self, query: Query, one: ApiSeries, until_s: float) -> ApiSeries | None:
        """The values of a series that were not read yet."""
        known_s = self._known.newest.get(_key(one), -math.inf)
        rows = [(at, value) for at, value in zip(one.time_s, one.value, strict=True) if known_s < at <= until_s]
        if self._known.until_s is None and query.raw:  # at the first poll the newest value is enough
            rows = rows[-1:]
        return ApiSeries(one.name, one.labels, *zip(*rows, strict=True)) if rows else None

    def _map(self, scrape: Scrape, time_ns: int) -> Mapped:
        exporter = self._known.exporters.get(scrape.group)
        if exporter is None:
            exporter = self._known.exporters[scrape.group] = _Exporter(self._mapper(), -math.inf)
        mapped = exporter.mapper.map(scrape.page, time_ns)
        if scrape.answered:
            exporter.newest_s = max(exporter.newest_s, scrape.time_s)
        if scrape.answered:
            exporter.series = tuple((sample.metric, sample.object) for sample in mapped.samples)
        self._known.used |= mapped.used
        self._known.unused |= mapped.unused
        return mapped

    def _check(self, scrape: Scrape, mapped: Mapped) -> None:
        """Raises SourceError where two exporters that go on are one object: their values would be mixed."""
        known = self._known
        for sample in mapped.samples:
            other = known.owner.get((sample.metric, sample.object), scrape.group)
            known.owner[sample.metric, sample.object] = scrape.group
            if other != scrape.group and scrape.time_s - known.exporters[other].newest_s < self._silent_s:
                names = " and ".join(sorted({_named(other), _named(scrape.group)}))
                raise SourceError(
                    f"{sample.metric} comes from {names}: select one, such as "
                    f'{{instance="{other[1] or scrape.group[1]}"}}, and give the other a target of its own'
                )

    def _silent(self, server_s: float) -> list[Fault]:
        """Faults for the series of exporters that are silent while others go on. Raises SourceError if all are."""
        exporters = self._known.exporters
        silent = {
            group: exporter
            for group, exporter in exporters.items()
            if server_s - exporter.newest_s > self._silent_s + (self._cadence.delay_s if evaluated(group) else 0.0)
        }
        if len(silent) == len(exporters):
            raise SourceError(self._nothing(server_s))
        return [
            Fault(metric, name, f"{_named(group)} has no new value since {_clock(exporter.newest_s)}")
            for group, exporter in silent.items()
            for metric, name in exporter.series
        ]

    def _nothing(self, server_s: float) -> str:
        asked = "; ".join(query.text for query in self._queries)
        newest_s = max((exporter.newest_s for exporter in self._known.exporters.values()), default=-math.inf)
        if not math.isfinite(newest_s):
            return (
                f"{shown(self._url)} has no value of {asked} in the last "
                f"{show_seconds(self._silent_s)}: is it scraped, and at most every "
                f"{show_seconds(self._cadence.step_s)} (step)?"
            )
        return (
            f"{shown(self._url)} has no new value of {asked} since {_clock(newest_s)}, "
            f"{show_seconds(round(server_s - newest_s, 1))} ago: does it still scrape, "
            f"and every {show_seconds(self._cadence.step_s)} (step)?"
        )

    def _whole_polls_s(self, end_s: float) -> float:
        """The end of the last poll that is whole in a window that ends at ``end_s``, so that no poll comes twice."""
        if self._lost is None:
            return end_s
        past_ns = self._lost.until_ns - self._clocks.steady_ns(end_s)
        number = -(-past_ns // self._interval_ns)
        return self._clocks.server_s(self._lost.until_ns - number * self._interval_ns)


def _key(one: ApiSeries) -> _SeriesKey:
    return one.name, frozenset(one.labels.items())


def _named(group: Group) -> str:
    job, instance = group
    return f"{job} {instance}".strip() or "an exporter without instance"


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%H:%M:%S UTC")
