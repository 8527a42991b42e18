"""What a device has of its profile, as found out at discovery: rows with their labels and the OIDs of every poll."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from soakwatch.sources.profiles.expression import Expression
from soakwatch.sources.profiles.profile_model import MetricGroup, MetricLine, Profile, TableColumn
from soakwatch.sources.profiles.value import Value
from soakwatch_model.event import Event
from soakwatch_model.sample import Fault, Sample


@dataclass(frozen=True, slots=True)
class NameSource:
    """Where a name of an expression is read in one row.

    ``twin`` is the 32-bit counter of the same thing, where both stood at 0 and no row of this device's 64-bit column
    counts: it may be one that never will. The twin is read in its place for as long as it stands at 0; both count from
    0, so that there is no jump whichever of them it is that counts.
    """

    name: str
    oid: str
    column: TableColumn
    twin: str | None = None


@dataclass(frozen=True, slots=True)
class WantedSeries:
    """One series: a line of the profile in one row of the device.

    ``value`` is the line's with the alternatives chosen that the device has; ``picks`` are these choices.
    """

    line: MetricLine
    object: str
    cells: tuple[NameSource, ...]
    value: Expression
    picks: tuple[int, ...] = ()
    lone: str | None = field(init=False, compare=False)
    """The OID whose value, where it is an integer, is that of the series as it is; None where it takes more."""

    def __post_init__(self) -> None:
        line, cells = self.line, self.cells
        as_read = self.value.plain and not line.change and line.lost is None and line.scale is None
        unread = line.match is None and line.values is None
        one = len(cells) == 1 and cells[0].twin is None and not cells[0].column.invalid
        object.__setattr__(self, "lone", cells[0].oid if as_read and unread and one else None)

    @property
    def oids(self) -> tuple[str, ...]:
        """The OIDs that it is read from."""
        return tuple(cell.oid for cell in self.cells)


@dataclass(frozen=True, slots=True)
class FoldedSeries:
    """One series made of all rows of a group."""

    line: MetricLine
    object: str
    rows: tuple[WantedSeries, ...]

    @property
    def oids(self) -> tuple[str, ...]:
        """The OIDs that it is read from."""
        return tuple(oid for want in self.rows for oid in want.oids)


@dataclass(frozen=True, slots=True)
class SurveyedTable:
    """One group as the device has it: ``walks`` are asked as whole columns, ``gets`` one by one.

    ``rows`` counts the rows that are wanted, ``changed`` is what the group's scalar of that name said; ``away`` are
    OIDs of rows that went and may come back.
    """

    group: MetricGroup
    wants: tuple[WantedSeries, ...]
    folds: tuple[FoldedSeries, ...]
    gets: tuple[str, ...]
    walks: tuple[str, ...]
    rows: int
    changed: Value | None
    away: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[WantedSeries | FoldedSeries, ...]:
        """Its series."""
        return (*self.wants, *self.folds)

    def only(self, metrics: Collection[str]) -> SurveyedTable:
        """The same with the series of some metrics alone, whose values are asked one by one."""
        wants = tuple(want for want in self.wants if want.line.metric in metrics)
        folds = tuple(fold for fold in self.folds if fold.line.metric in metrics)
        gets = dict.fromkeys(
            oid for want in (*wants, *(row for fold in folds for row in fold.rows)) for oid in want.oids
        )
        return replace(self, wants=wants, folds=folds, gets=tuple(gets), walks=(), changed=None)


@dataclass(frozen=True, slots=True)
class HeldSeries:
    """A series that an earlier survey found, and a later one does not find, or could only compute from something else.

    ``fewer`` is how many rows of a fold were found instead, since ``since_ns`` of the steady clock; 0 if none were.
    """

    part: WantedSeries | FoldedSeries
    group: MetricGroup
    fewer: int = 0
    since_ns: int = 0


@dataclass(frozen=True, slots=True)
class Survey:
    """What discovery found.

    ``totals`` counts the rows of each column, ``choices`` are the OIDs that were chosen among several, by group and
    column, and ``wished`` those that the first survey chose; ``lacking`` are the promised metrics that the device does
    not bring, with the reason; ``held`` are series, by metric and object, that nothing else may take the place of.
    """

    profile: Profile
    tables: tuple[SurveyedTable, ...]
    processes: tuple[MetricGroup, ...]
    totals: Mapping[str, int]
    choices: Mapping[tuple[str, str], str]
    faults: tuple[Fault, ...]
    lacking: tuple[tuple[str, str], ...]
    wished: Mapping[tuple[str, str], str] = field(default_factory=dict)
    held: Mapping[tuple[str, str], HeldSeries] = field(default_factory=dict)

    def settled(self) -> Survey:
        """This survey for a device that restarted a while ago: series that it still does not have are given up."""
        return replace(self, wished=self.choices, held={})

    @property
    def metrics(self) -> tuple[str, ...]:
        """Metrics that the device brings, without those of processes."""
        return tuple(dict.fromkeys(part.line.metric for table in self.tables for part in table.parts))

    @property
    def oids(self) -> int:
        """How many values one poll brings if everything is due."""
        return len({oid for table in self.tables for oid in table.gets}) + self.expected(self.tables)

    def cadences(self, interval_s: float) -> Mapping[str, float]:
        """Seconds between readings of the metrics that come less often than every ``interval_s``.

        These come from groups that are asked less often, or are increases of counters that the device renews less
        often. A gauge that the device renews less often is read at every poll all the same.
        """
        cadences: dict[str, float] = {}
        for table in self.tables:
            for part in table.parts:
                every_s = table.group.every_s or 0.0
                renewed_s = (table.group.refresh_s or 0.0) if part.line.change else 0.0
                seconds = max(every_s, renewed_s)
                if seconds > interval_s:
                    cadences[part.line.metric] = max(seconds, cadences.get(part.line.metric, 0.0))
        return cadences

    def renewals(self, interval_s: float) -> Mapping[str, float]:
        """Seconds between values of metrics that the device renews less often than every ``interval_s``: the readings
        between repeat the last one. Of a metric that comes in several ways the fastest counts."""
        renewals: dict[str, float] = {}
        for table in self.tables:
            for metric in {part.line.metric for part in table.parts}:
                seconds = max(interval_s, table.group.refresh_s or 0.0)
                renewals[metric] = min(seconds, renewals.get(metric, seconds))
        return {metric: seconds for metric, seconds in renewals.items() if seconds > interval_s}

    def expected(self, tables: Iterable[SurveyedTable]) -> int:
        """How many values the walks of some tables bring while no row comes or goes."""
        return sum(self.totals.get(base, 0) for base in {base for table in tables for base in table.walks})


@dataclass(frozen=True, slots=True)
class PollReading:
    """What one poll brought: samples, each with the series in ``parts`` that it was read for (None for the number of
    processes and the like). ``stale`` says why the survey does not fit the device any more, empty if it does."""

    samples: tuple[Sample, ...]
    parts: tuple[WantedSeries | FoldedSeries | None, ...]
    faults: tuple[Fault, ...]
    events: tuple[Event, ...] = ()
    stale: str = ""
