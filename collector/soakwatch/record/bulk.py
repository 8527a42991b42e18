"""Writes many polls at once: successive polls of one source straight into blocks, and the small tables of a record that
is made again from a copy elsewhere."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.record._blocks import encode
from soakwatch.record._chain import Chain
from soakwatch.record._files import connect, record_file
from soakwatch.record._rows import storable
from soakwatch.record._sqlite_errors import as_record_error
from soakwatch.record.model import OUTCOME_NUMBERS, Ints, Source, Values
from soakwatch_model.sample import PollOutcome

SeriesRow = tuple[str, str, str, int, str, str]
"""Target, metric, object, the number of the source that brings it, unit and kind."""
FaultRow = tuple[int, str, str, str, int, int, int]
"""Source, metric, object, text, first and last time in UTC ns, and how often."""


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Readings of one series in a stretch: finite, strictly increasing in time and later than all before them.

    ``position``, int64 of shape (n,) and rising, says which poll brought each. ``metric`` need not be in the catalogue:
    ``unit`` and ``kind`` go into the record.
    """

    metric: str
    object: str
    unit: str
    kind: str
    position: Ints
    time_ns: Ints
    value: Values


@dataclass(frozen=True, slots=True, eq=False)
class PollFacts:
    """How each poll ended, for sources that know more than whether it was answered; shape (n,) each.

    ``outcome`` has the numbers of outcomes, ``error`` the sentence of each poll, or None.
    """

    start_ns: Ints
    duration_ns: Ints
    outcome: Ints
    error: Sequence[str | None]


@dataclass(frozen=True, slots=True, eq=False)
class PollStretch:
    """Successive polls: when each was due (and began, without ``facts``), shape (n,), and whether it was answered.

    Polls that were not answered are gaps, with the sentence ``why``. Those of them in ``unanswered`` were made and
    brought nothing, with the sentence ``why_unanswered``. ``facts``, if given, says how each ended instead.
    """

    time_ns: Ints
    answered: NDArray[np.bool_]
    why: str
    readings: Sequence[Readings]
    facts: PollFacts | None = None
    unanswered: NDArray[np.bool_] | None = None
    why_unanswered: str = ""


def write_columns(sql: sqlite3.Connection, source: Source, stretch: PollStretch) -> None:
    """Write a stretch as one chunk, inside the caller's transaction; its polls must be later than all before them."""
    chunk = sql.execute("SELECT coalesce(max(id), 0) + 1 FROM chunk").fetchone()[0]
    first_block = sql.execute("SELECT coalesce(max(id), 0) + 1 FROM block").fetchone()[0]
    first_seq = sql.execute(
        "SELECT coalesce(max(first_seq + polls), 1) FROM chunk WHERE source=?", (source.id,)
    ).fetchone()[0]
    facts = stretch.facts
    start_ns = stretch.time_ns if facts is None else facts.start_ns
    duration = np.zeros_like(stretch.time_ns) if facts is None else facts.duration_ns
    axes: dict[bytes, int] = {}
    for index, readings in enumerate(stretch.readings):
        offsets = readings.time_ns - start_ns[readings.position]
        if facts is None:
            np.maximum.at(duration, readings.position, np.maximum(offsets, 0))
        axis = _axis(sql, chunk, stretch, readings, offsets, axes)
        series = _series(sql, source, readings)
        sql.execute("INSERT INTO block VALUES (?,?,?,?)", (first_block + index, series, axis, encode(readings.value)))
    if facts is None:
        outcome = np.where(stretch.answered, OUTCOME_NUMBERS[PollOutcome.OK], OUTCOME_NUMBERS[PollOutcome.GAP])
        error = np.where(stretch.answered, 0, 0 if bool(stretch.answered.all()) else _error(sql, stretch.why))
        if stretch.unanswered is not None and bool(stretch.unanswered.any()):
            outcome = np.where(stretch.unanswered, OUTCOME_NUMBERS[PollOutcome.FAILED], outcome)
            error = np.where(stretch.unanswered, _error(sql, stretch.why_unanswered), error)
    else:
        outcome = facts.outcome
        numbers = {text: _error(sql, text) for text in dict.fromkeys(facts.error) if text is not None}
        error = np.array([0 if text is None else numbers[text] for text in facts.error], dtype=np.int64)
    sql.execute(
        "INSERT INTO chunk VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            *(chunk, source.id, first_seq, stretch.time_ns.size, sum(r.value.size for r in stretch.readings)),
            *(first_block, first_block + len(stretch.readings) - 1),
            *(int(stretch.time_ns.min()), int(stretch.time_ns.max())),
            int(np.maximum(stretch.time_ns, start_ns + duration).max()),
            *(encode(stretch.time_ns), encode(start_ns), encode(duration)),
            *(encode(outcome.astype(np.int64)), encode(error.astype(np.int64))),
        ),
    )


def _axis(
    sql: sqlite3.Connection, chunk: int, stretch: PollStretch, readings: Readings, offsets: Ints, axes: dict[bytes, int]
) -> int:
    every = np.array_equal(readings.position, np.arange(stretch.time_ns.size))
    moved = bool(offsets.any())
    key = (
        b""
        if every and not moved
        else hashlib.blake2b(readings.position.tobytes() + offsets.tobytes(), digest_size=16).digest()
    )
    if key not in axes:
        axis = sql.execute(
            "INSERT INTO axis (chunk, first_ns, last_ns, positions, offsets) VALUES (?,?,?,?,?)",
            (
                *(chunk, int(readings.time_ns[0]), int(readings.time_ns[-1])),
                None if every else encode(readings.position),
                encode(offsets) if moved else None,
            ),
        ).lastrowid
        assert axis is not None
        axes[key] = axis
    return axes[key]


def _series(sql: sqlite3.Connection, source: Source, readings: Readings) -> int:
    identity = storable(source.target), storable(readings.metric), storable(readings.object)
    last_ns = int(readings.time_ns[-1])
    sql.execute(
        "INSERT INTO series (target, metric, object, source, unit, kind, last_ns) VALUES (?,?,?,?,?,?,?)"
        " ON CONFLICT DO UPDATE SET last_ns=excluded.last_ns",
        (*identity, source.id, storable(readings.unit), readings.kind, last_ns),
    )
    row = sql.execute("SELECT id FROM series WHERE target=? AND metric=? AND object=?", identity).fetchone()
    return int(row[0])


def _error(sql: sqlite3.Connection, text: str) -> int:
    sql.execute("INSERT OR IGNORE INTO error (text) VALUES (?)", (storable(text),))
    return int(sql.execute("SELECT id FROM error WHERE text=?", (storable(text),)).fetchone()[0])


def restore_tables(
    folder: Path, series: Iterable[SeriesRow], faults: Iterable[FaultRow], errors: Iterable[str]
) -> None:
    """Write series, faults and the texts of errors into a record that has none, in their order. Raises RecordError."""
    path = record_file(folder)
    try:
        with closing(connect(path)) as connection, Chain(connection).transaction() as sql:
            sql.executemany(
                "INSERT INTO series (target, metric, object, source, unit, kind, last_ns) VALUES (?,?,?,?,?,?,NULL)",
                ((storable(a), storable(b), storable(c), d, storable(e), f) for a, b, c, d, e, f in series),
            )
            sql.executemany(
                "INSERT INTO fault (source, metric, object, text, first_ns, last_ns, count) VALUES (?,?,?,?,?,?,?)",
                ((a, storable(b), storable(c), storable(d), e, f, g) for a, b, c, d, e, f, g in faults),
            )
            sql.executemany("INSERT INTO error (text) VALUES (?)", ((storable(text),) for text in errors))
    except sqlite3.Error as error:
        raise as_record_error(error, path) from None
