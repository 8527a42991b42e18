"""Reads measurements that others wrote, by field and set of tags, and checks them against a count."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from soakwatch.record.model import Ints, Values
from soakwatch.sources.tables.errors import DataError
from soakwatch.transfer.importing.gather import MAX_SERIES
from soakwatch.transfer.sinks.influxdb.read.address import Database
from soakwatch.transfer.sinks.influxdb.read.asking import Cell, Influx, quoted, text

DEVICE_TAGS = ("agent_host", "source")
MAX_READINGS = 40_000_000
NUMBERS = frozenset({"float", "integer", "unsigned", "boolean"})
_MAX_FIELDS = 40  # fields


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement and the types of its fields."""

    name: str
    types: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class FieldReadings:
    """The readings of one field for one set of tags, as they arrive."""

    time_ns: list[Ints] = field(default_factory=list)
    value: list[Values] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """A measurement's readings for one set of tags, by field, in order of time."""

    measurement: str
    tags: Mapping[str, str]
    fields: Mapping[str, tuple[Ints, Values]]


def measurements_of(influx: Influx) -> dict[str, Measurement]:
    """All measurements of the bucket with their fields. Raises DataError."""
    types_of: dict[str, dict[str, set[str]]] = {}
    for chunk in influx.chunks("SHOW FIELD KEYS"):
        types = types_of.setdefault(chunk.name, {})
        for name, kind in chunk.rows:
            types.setdefault(str(name), set()).add(str(kind))
    return {
        name: Measurement(name, {field_name: frozenset(kinds) for field_name, kinds in types.items()})
        for name, types in types_of.items()
    }


def read(
    influx: Influx,
    wanted: Mapping[str, Sequence[str]],
    known: Mapping[str, Measurement],
    ones: Mapping[str, frozenset[str]],
    progress: Callable[[str], None],
) -> Iterator[Tagged]:
    """Read the ``wanted`` fields of each measurement; ``ones`` are the texts that count as 1, by field.

    Raises DataError, also if fewer samples arrive than the database counts, or more than fit into memory.
    """
    where = condition(influx.database)
    total = 0
    for measurement, fields in wanted.items():
        progress(measurement)
        types = known[measurement].types
        counts = _counts(influx, measurement, fields, where)
        total += sum(counts.values())
        if total > MAX_READINGS:
            raise DataError(
                f"{influx.database.shown} holds more than {MAX_READINGS // 10**6} million samples of the query: "
                "ask for less with from=, to= and host="
            )
        tagged: dict[tuple[tuple[str, str], ...], dict[str, FieldReadings]] = {}
        for low in range(0, len(fields), _MAX_FIELDS):
            _ask(influx, measurement, fields[low : low + _MAX_FIELDS], types, where, tagged, ones)
        sets = [
            Tagged(measurement, dict(tags), {name: _joined(column) for name, column in columns.items()})
            for tags, columns in tagged.items()
        ]
        for name, counted in counts.items():
            came = sum(tagged_set.fields[name][0].size for tagged_set in sets if name in tagged_set.fields)
            if came < counted:
                raise DataError(
                    f"{influx.database.shown}: got {came} of {counted} samples of {measurement} {name}: try again"
                )
        yield from sets


def condition(database: Database) -> str:
    """The WHERE clause of every query of foreign series."""
    parts = []
    if database.host is not None:
        # A collector that polls devices puts its own name into host, and theirs into agent_host or source.
        own = " AND ".join(["", *(f"{quoted(tag)} = ''" for tag in DEVICE_TAGS)])
        devices = [f"{quoted(tag)} = {text(database.host)}" for tag in DEVICE_TAGS]
        parts.append(f"({' OR '.join(devices)} OR ({quoted('host')} = {text(database.host)}{own}))")
    if database.from_ns is not None:
        parts.append(f"time >= {database.from_ns}")
    if database.to_ns is not None:
        parts.append(f"time < {database.to_ns}")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _counts(influx: Influx, measurement: str, fields: Sequence[str], where: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for low in range(0, len(fields), _MAX_FIELDS):
        some = fields[low : low + _MAX_FIELDS]
        listed = ", ".join(f"count({quoted(name)})" for name in some)
        for chunk in influx.chunks(f"SELECT {listed} FROM {quoted(measurement)}{where}"):  # noqa: S608
            for row in chunk.rows:
                counts |= {name: cell for name, cell in zip(some, row[1:], strict=True) if isinstance(cell, int)}
    return counts


def _ask(
    influx: Influx,
    measurement: str,
    fields: Sequence[str],
    types: Mapping[str, frozenset[str]],
    where: str,
    tagged: dict[tuple[tuple[str, str], ...], dict[str, FieldReadings]],
    ones: Mapping[str, frozenset[str]],
) -> None:
    # Read a field as float if it is an integer in some shards and a float in others.
    listed = ", ".join(quoted(name) + ("::float" if _mixed(types[name]) else "") for name in fields)
    for chunk in influx.chunks(f"SELECT {listed} FROM {quoted(measurement)}{where} GROUP BY *"):  # noqa: S608
        columns = tagged.setdefault(tuple(sorted(chunk.tags.items())), {})
        if len(tagged) > MAX_SERIES:
            raise DataError(
                f"{influx.database.shown}: {measurement} has more than {MAX_SERIES} sets of tags: ask for "
                "less with host=, from= and to="
            )
        times, *cells = zip(*chunk.rows, strict=True)
        time_ns = np.array(times, dtype=np.int64)
        for name, column in zip(fields, cells, strict=True):
            value, there = _numbers(column, ones.get(name, frozenset()))
            if there.any():
                readings = columns.setdefault(name, FieldReadings())
                readings.time_ns.append(time_ns[there])
                readings.value.append(value[there])


def _mixed(types: frozenset[str]) -> bool:
    return "float" in types and bool(types & {"integer", "unsigned"})


def _numbers(cells: Sequence[Cell], ones: frozenset[str]) -> tuple[Values, NDArray[np.bool_]]:
    """Numbers, and where there are any: integers stay integers, true is 1; texts count only if ``ones`` names some as
    1."""
    if ones:
        numbers = [None if cell is None else float(_word(cell) in ones) for cell in cells]
        return _floats(numbers)
    plain = [None if isinstance(cell, str) else cell for cell in cells]
    if all(isinstance(cell, int) for cell in plain):
        try:
            return np.array(plain, dtype=np.int64), np.ones(len(plain), dtype=np.bool_)
        except OverflowError:
            return np.array(plain, dtype=np.uint64), np.ones(len(plain), dtype=np.bool_)
    there = np.array([cell is not None for cell in plain])
    if any(isinstance(cell, float) for cell in plain):
        return _floats(plain)
    whole = np.array([0 if cell is None else cell for cell in plain])
    return (whole if whole.dtype.kind in "iu" else whole.astype(np.int64)), there


def _floats(cells: Sequence[float | None]) -> tuple[Values, NDArray[np.bool_]]:
    value = np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)
    return value, np.isfinite(value)


def _word(cell: Cell) -> str:
    return str(cell).lower() if isinstance(cell, bool) else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _joined(column: FieldReadings) -> tuple[Ints, Values]:
    from soakwatch.record.merge import in_time, unified

    return in_time(np.concatenate(column.time_ns), unified(column.value))
