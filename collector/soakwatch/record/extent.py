"""How much a record holds, series by series and source by source: the account by which a copy of it is checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from soakwatch.record.columns import Columns
from soakwatch.record.files import record_file
from soakwatch.record.model import SeriesKey
from soakwatch.record.recent import Ints
from soakwatch.record.snapshot import open_snapshot
from soakwatch.record.trouble import as_record_error, damaged

_SHARED = (
    "SELECT block.series FROM block JOIN axis ON axis.id = block.axis JOIN chunk ON chunk.id = axis.chunk"
    " GROUP BY block.series HAVING count(DISTINCT chunk.source) > 1"
)
_INTEGERS = {b"q", b"Q"}  # the first byte of a block that holds integers


@dataclass(frozen=True, slots=True)
class SeriesExtent:
    """One series: who brings it, what the record says of it, whether all its readings are integers, and how many
    times it has readings of (of all sources, each time once). ``shared_ns`` has these times where several sources
    brought some; else it is None."""

    key: SeriesKey
    source: int
    unit: str
    kind: str
    whole: bool
    readings: int
    shared_ns: Ints | None = None


@dataclass(frozen=True, slots=True)
class Extent:
    """All series by their numbers, the due times by source, and the texts why polls were lost."""

    series: tuple[SeriesExtent, ...]
    polls: dict[int, int]
    errors: tuple[str, ...]


def extent_of(folder_or_file: Path) -> Extent:
    """Count what a record holds; no reading is decoded of what is sealed. Raises RecordError."""
    path = record_file(folder_or_file)
    with ExitStack() as stack:
        sql = open_snapshot(path, stack)
        try:
            return _counted(sql)
        except sqlite3.Error as error:
            raise as_record_error(error, path) from None
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(path, str(error)) from None


def _counted(sql: sqlite3.Connection) -> Extent:
    columns = Columns(sql)
    sources = sql.execute("SELECT id, target FROM source ORDER BY id").fetchall()
    axes: dict[int, list[int]] = {}
    floats: set[int] = set()
    for series, axis, kind in sql.execute("SELECT series, axis, substr(data, 1, 1) FROM block ORDER BY series, id"):
        axes.setdefault(series, []).append(axis)
        if kind not in _INTEGERS:
            floats.add(series)
    known: dict[tuple[int, ...], int] = {}
    shared = {series for (series,) in sql.execute(_SHARED)}
    found = []
    rows = sql.execute("SELECT id, target, metric, object, source, unit, kind FROM series ORDER BY id")
    for number, target, metric, name, source, unit, kind in rows.fetchall():
        here = [one for one, owner in sources if owner == target]
        whole, shared_ns = number not in floats, None
        if number in shared or any(number in columns.recent(one).places for one in here):
            time_ns, value = columns.series(number, here, None, None)
            readings, whole = time_ns.size, value.dtype.kind != "f"
            shared_ns = time_ns if len(here) > 1 else None
        else:
            readings = _times(columns, tuple(axes.get(number, ())), known)
        found.append(SeriesExtent(SeriesKey(target, metric, name), source, unit, kind, whole, readings, shared_ns))
    errors = tuple(text for (text,) in sql.execute("SELECT text FROM error ORDER BY id"))
    return Extent(tuple(found), {one: columns.due_times(one) for one, _ in sources}, errors)


def _times(columns: Columns, axes: Sequence[int], known: dict[tuple[int, ...], int]) -> int:
    """How many times some axes hold together; the same axes are counted once."""
    key = tuple(axes)
    if key not in known:
        parts: list[Ints] = [columns.axis_times(axis) for axis in axes]
        joined = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        rising = joined.size < 2 or bool((joined[1:] > joined[:-1]).all())
        known[key] = joined.size if rising else int(np.unique(joined).size)
    return known[key]
