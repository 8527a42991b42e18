"""A profile, read and checked: what the other packages use. OIDs are dotted text without a leading dot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.core.regex import Pattern
from soakwatch.sources.profiles.expression import Expression
from soakwatch.sources.profiles.label_template import Template


@dataclass(frozen=True, slots=True)
class Clause:
    """One way to recognise a device: every part that is given must hold."""

    object_ids: tuple[str, ...] = ()
    description: Pattern | None = None
    not_description: Pattern | None = None
    present: str | None = None
    text: Pattern | None = None

    @property
    def parts(self) -> int:
        """How many things it asks for: the more, the surer."""
        given = (self.object_ids, self.description, self.not_description, self.present, self.text)
        return sum(bool(part) for part in given)


@dataclass(frozen=True, slots=True)
class ProfileHead:
    """What is needed to choose a profile."""

    name: str
    title: str
    extends: tuple[str, ...]
    select: tuple[Clause, ...]
    rank: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A text about the device, read at connect: ``whole`` OIDs are asked one by one, ``columns`` walked."""

    name: str
    oids: tuple[str, ...]
    column: bool
    joined: bool  # all rows of a column, else the first that is not empty
    match: Pattern | None
    values: Mapping[str, str]
    form: str | None


@dataclass(frozen=True, slots=True)
class Ticker:
    """An OID that counts time since something began; ``unit_s`` is one tick in seconds, ``bits`` where it wraps."""

    oid: str
    unit_s: float
    bits: int


@dataclass(frozen=True, slots=True)
class Clocks:
    """What tells a restart of the agent from one of the host, best first; empty where a profile has none."""

    host: tuple[Ticker, ...] = ()
    agent: tuple[Ticker, ...] = ()
    boots: tuple[str, ...] = ()
    engine: tuple[Ticker, ...] = ()


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A value of each row (or, as a scalar, one for all): OIDs, the first that the device has is used.

    ``bits`` is the width of a counter where it is known; ``invalid`` are readings, as text, that mean "not available";
    ``per_row`` chooses among the OIDs anew for each row (RFC 2863 has 64 bits only on fast interfaces), and does not
    believe one that stands at 0 while a later one of the row is above 0.
    """

    name: str
    oids: tuple[str, ...]
    bits: int | None = None
    invalid: frozenset[str] = frozenset()
    form: str | None = None
    per_row: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """A column of another table, looked up by an index that is made of this row's values."""

    column: TableColumn
    index: Template


@dataclass(frozen=True, slots=True)
class Condition:
    """A row counts (or, in ``where_not``, does not) if the text of ``name`` matches; None: if it is a number."""

    name: str
    pattern: Pattern | None


@dataclass(frozen=True, slots=True)
class MetricLine:
    """How one metric comes from a row. ``over`` folds the rows of the group into one sample (mean, sum, max); only rows
    that hold ``where`` have it, and are numbered among themselves where they have the same labels. ``lost`` is what
    a series is that was read and whose device then answers that there is no reading (light that is gone)."""

    metric: str
    value: Expression
    scale: float | None
    labels: tuple[tuple[str, Template], ...]
    over: str | None
    change: bool
    values: Mapping[str, float] | None
    default: float | None
    match: Pattern | None
    optional: bool
    location: str
    where: tuple[Condition, ...] = ()
    lost: float | None = None


@dataclass(frozen=True, slots=True)
class MetricGroup:
    """A table, or a few scalars, and the metrics that come from it."""

    name: str
    columns: tuple[TableColumn, ...]
    scalars: tuple[TableColumn, ...]
    joins: tuple[Join, ...]
    where: tuple[Condition, ...]
    where_not: tuple[Condition, ...]
    unless: tuple[str, ...]
    watch: str | None
    every_s: float | None
    refresh_s: float | None
    changed: str | None
    optional: bool
    lines: tuple[MetricLine, ...]
    location: str
    returning: bool = False  # rows that go are asked on: they come back under the same index

    @property
    def promised(self) -> tuple[str, ...]:
        """Metrics that every such device should have."""
        return () if self.optional else tuple(dict.fromkeys(line.metric for line in self.lines if not line.optional))


@dataclass(frozen=True, slots=True)
class LogPattern:
    """A line of a log or console that means an event; named groups of ``match`` become its detail."""

    kind: str
    match: Pattern
    severity: str | None


@dataclass(frozen=True, slots=True)
class TrapPattern:
    """A notification by its snmpTrapOID; ``detail`` names OIDs whose values, at any instance, are kept."""

    oid: str
    kind: str
    detail: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class GnmiWhen:
    """A leaf beside that of a path, and the words for which the path is sampled, or is not."""

    leaf: str
    words: tuple[str, ...]
    excluded: bool


@dataclass(frozen=True, slots=True)
class GnmiPath:
    """A path to subscribe to; keys of the path are names for the labels (``name=*`` gives ``{name}``; where a step
    before has a key of that name, ``{step.name}``). ``ago``: the value is a time, and the sample how long ago it was.
    """

    path: str
    metric: str
    scale: float | None
    labels: Mapping[str, str]
    mode: str
    values: Mapping[str, float]
    when: GnmiWhen | None = None
    ago: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """One kind of device. Groups stand child first, then parents: the first that brings a sample of an object wins."""

    name: str
    title: str
    extends: tuple[str, ...]
    select: tuple[Clause, ...]
    rank: int
    facts: tuple[Fact, ...]
    clocks: Clocks
    groups: tuple[MetricGroup, ...]
    logs: tuple[LogPattern, ...]
    traps: tuple[TrapPattern, ...]
    gnmi: tuple[GnmiPath, ...]
    cli: str | None  # the profile whose file has its command line

    @property
    def promised(self) -> tuple[str, ...]:
        """Metrics that every such device should have by SNMP."""
        return tuple(dict.fromkeys(metric for group in self.groups for metric in group.promised))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every metric that it maps."""
        return tuple(dict.fromkeys(line.metric for group in self.groups for line in group.lines))
