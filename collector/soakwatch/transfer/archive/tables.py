"""The tables of an archive: their columns, types and meaning. The same for every archive of this version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["text", "int", "float", "time", "yes or no"]
Value = str | int | float | bool | None
Row = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column; ``words`` say what it holds, with its unit. Null is not known, never zero."""

    name: str
    kind: Kind
    words: str


@dataclass(frozen=True, slots=True)
class Table:
    """One table; ``row`` says what a row is, ``order`` is how the rows of a file are sorted, for what is asked most."""

    name: str
    row: str
    columns: tuple[Column, ...]
    order: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)


_OF_RUN = (
    Column("key", "text", "the run, as one word that no other run has"),
    Column("run", "text", "the run's name, with the time at which it began"),
    Column("device", "text", "the label device of the run if it has one device, else the target's name"),
    Column("target", "text", "the target's name in the plan"),
    Column("role", "text", "dut, generator or monitor"),
    Column("release", "text", "the release under test: the label, else what the devices reported"),
)
_OF_SERIES = (
    Column("metric", "text", "the metric"),
    Column("object", "text", "the labels of the object, such as interface=eth0,direction=receive"),
    Column("process", "text", "the process, where it is one"),
)
RUNS = Table(
    "runs",
    "a target of a run",
    (
        *_OF_RUN,
        Column("plan", "text", "the name in the plan"),
        Column("labels", "text", "the labels of the run, as JSON"),
        Column("phases", "text", "the phases in order"),
        Column("began", "time", "first poll (UTC)"),
        Column("ended", "time", "end of the record (UTC)"),
        Column("hours", "float", "from began to ended, in hours"),
        Column("verdict", "text", "pass, fail or inconclusive; null: never judged"),
        Column("reason", "text", "the verdict in one sentence"),
        Column("fails", "int", "findings of the target that fail"),
        Column("warns", "int", "findings of the target that warn"),
        Column("undecided", "int", "findings of the target that are inconclusive"),
        Column("passes", "int", "findings of the target that pass"),
        Column("coverage", "float", "the lowest share of answered polls of a required source of the target, 0 to 1"),
        Column("seal", "text", "signed, sealed, unsealed or changed, when it was added"),
        Column("changed", "text", "what was changed in the record"),
        Column("digest", "text", "the digest of the seal"),
        Column("content", "text", "the SHA-256 of the record when it was added"),
        Column("record", "text", "where the record was when it was added"),
        Column("made_by", "text", "the version of soakwatch that added it"),
        Column("plan_text", "text", "the plan as it was recorded"),
        Column("readings", "text", "the file of its readings, relative to the archive; null: added without"),
        Column("readings_rows", "int", "the readings in that file"),
        Column("readings_bytes", "int", "its size in bytes"),
        Column("readings_sha256", "text", "its SHA-256"),
    ),
    ("release", "device"),
)
SERIES = Table(
    "series",
    "a series of a run, in the whole run and in each of its phases",
    (
        *_OF_RUN,
        *_OF_SERIES,
        Column("unit", "text", "the unit (UCUM) of the values"),
        Column("kind", "text", "gauge, counter or state"),
        Column("phase", "text", "the phase, a row for each time that it came; empty: the whole run"),
        Column("began", "time", "first reading (UTC)"),
        Column("ended", "time", "last reading (UTC)"),
        Column("readings", "int", "how many finite readings"),
        Column("coverage", "float", "the share of the planned readings that exist, 0 to 1"),
        Column("first", "float", "the first value, in unit"),
        Column("last", "float", "the last value, in unit"),
        Column("lowest", "float", "the lowest value, in unit"),
        Column("highest", "float", "the highest value, in unit"),
        Column("mean", "float", "the mean of a gauge, in unit"),
        Column("deviation", "float", "the standard deviation of a gauge, in unit"),
        Column("increase", "float", "what a counter counted between its readings, in unit; of a gauge null"),
        Column("restarts", "int", "how often a counter began anew; what it had counted before is not in increase"),
        Column("per_hour", "float", "the slope of a gauge (Theil-Sen), or what a counter counted, in unit an hour"),
    ),
    ("metric", "phase", "device", "object"),
)
FINDINGS = Table(
    "findings",
    "a finding of a run's verdict",
    (
        *_OF_RUN,
        Column("rule", "text", "the rule"),
        Column("outcome", "text", "fail, inconclusive, warn, pass or not applicable"),
        Column("own_outcome", "text", "the outcome before it was decided beside other findings"),
        Column("grew", "yes or no", "of rules of growth: whether it grew; null: another rule, or not decided"),
        *_OF_SERIES,
        Column("began", "time", "begin of what was judged (UTC)"),
        Column("ended", "time", "its end (UTC)"),
        Column("samples", "int", "how many readings were judged"),
        Column("coverage", "float", "the share of the expected readings that exist, 0 to 1"),
        Column("measured", "float", "what was measured, in unit"),
        Column("limit_value", "float", "the limit, in unit"),
        Column("unit", "text", "the unit (UCUM) of measured and limit_value"),
        Column("per_hour", "float", "the slope of its series in the whole run, in series_unit an hour"),
        Column("series_unit", "text", "the unit (UCUM) of its series"),
        Column("smallest_detectable", "float", "the smallest effect that would have been seen, in detectable_unit"),
        Column("detectable_unit", "text", "its unit (UCUM)"),
        Column("reason", "text", "the finding in one sentence"),
    ),
    ("rule", "outcome", "device", "metric", "object"),
)
READINGS = Table(
    "readings",
    "a reading",
    (
        Column("key", "text", "the run"),
        Column("device", "text", "the device"),
        Column("target", "text", "the target's name in the plan"),
        Column("metric", "text", "the metric"),
        Column("object", "text", "the labels of the object"),
        Column("time", "time", "when it was read (UTC)"),
        Column("value", "float", "the value, in unit; counters as they were read"),
        Column("exact", "text", "the integer, where value had to round it"),
        Column("unit", "text", "the unit (UCUM)"),
        Column("phase", "text", "the phase; empty: none"),
    ),
)
NIGHT = Column("night", "time", "the day on which the run began (UTC), also where it went on for days")
INDEX: Mapping[str, Table] = {table.name: table for table in (RUNS, SERIES, FINDINGS)}
"""The tables that are asked; readings are read only where they are named."""
TABLES: Sequence[Table] = (*INDEX.values(), READINGS)


def arrow(table: Table, rows: Sequence[Row]) -> pa.Table:
    """Rows as a table of Arrow."""
    import pyarrow as pa

    types = {
        "text": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "time": pa.timestamp("ns"),
        "yes or no": pa.bool_(),
    }
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(table.columns)
    arrays = [pa.array(column, types[about.kind]) for column, about in zip(columns, table.columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(table.names))
