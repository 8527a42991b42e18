"""How much a record holds, series by series and source by source: the account by which a copy of it is checked."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from soakwatch.record._columns import Columns
from soakwatch.record._snapshot import snapshot
from soakwatch.record.model import Ints, SeriesKey

_SHARED = (
    "SELECT block.series FROM block JOIN axis ON axis.id = block.axis JOIN chunk ON chunk.id = axis.chunk"
    " GROUP BY block.series HAVING count(DISTINCT chunk.source) > 1"
)
_INTEGERS = {b"q", b"Q"}  # the first byte of a block that holds integers


@dataclass(frozen=True, slots=True)
class SeriesInventory:
    """One series: its source, what the record says of it, whether all its readings are integers, and the number of
    different times with readings, of all sources. ``shared_ns`` has these times if several sources brought readings;
    else it is None."""

    key: SeriesKey
    source: int
    unit: str
    kind: str
    whole: bool
    readings: int
    shared_ns: Ints | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """All series by their numbers, the number of due times by source, the texts why polls were lost, and the phases as
    they were written: name, begin and end in UTC ns, None for one that is open."""

    series: tuple[SeriesInventory, ...]
    polls: dict[int, int]
    errors: tuple[str, ...]
    phases: tuple[tuple[str, int, int | None], ...]


def inventory_of(folder_or_file: Path) -> Inventory:
    """Count what a record holds, without decoding readings that are compacted. Raises RecordError."""
    with snapshot(folder_or_file) as sql:
        return _counted(sql)


def _counted(sql: sqlite3.Connection) -> Inventory:
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
    counted = []
    rows = sql.execute("SELECT id, target, metric, object, source, unit, kind FROM series ORDER BY id")
    for number, target, metric, name, source, unit, kind in rows.fetchall():
        here = [source_id for source_id, owner in sources if owner == target]
        whole, shared_ns = number not in floats, None
        if number in shared or any(number in columns.recent(source_id).pieces for source_id in here):
            time_ns, value = columns.series(number, here, None, None)
            readings, whole = time_ns.size, value.dtype.kind != "f"
            shared_ns = time_ns if len(here) > 1 else None
        else:
            readings = _times(columns, tuple(axes.get(number, ())), known)
        counted.append(SeriesInventory(SeriesKey(target, metric, name), source, unit, kind, whole, readings, shared_ns))
    errors = tuple(text for (text,) in sql.execute("SELECT text FROM error ORDER BY id"))
    phases = sql.execute("SELECT name, begin_ns, end_ns FROM phase ORDER BY begin_ns, id").fetchall()
    return Inventory(
        tuple(counted), {source_id: columns.due_times(source_id) for source_id, _ in sources}, errors, tuple(phases)
    )


def _times(columns: Columns, axes: Sequence[int], known: dict[tuple[int, ...], int]) -> int:
    """How many times some axes hold together; the same axes are counted once."""
    key = tuple(axes)
    if key not in known:
        parts: list[Ints] = [columns.axis_times(axis) for axis in axes]
        joined = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
        rising = joined.size < 2 or bool((joined[1:] > joined[:-1]).all())
        known[key] = joined.size if rising else int(np.unique(joined).size)
    return known[key]
