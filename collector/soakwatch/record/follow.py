"""Follows a record while it is written: what is new since the last call, as columns.

A call costs as much as is new, however large the record is. It opens the record, copies what is new and closes it
again, so that the write-ahead log can shrink between two calls, however long the follower works.

Here is also what a follower needs to get the same result as a reader of the whole record: which poll counts for each
due time (``effective_polls``), the ledger of a source (``ledger_of``), and whose readings count (``Owner``); and the
codec of blocks (``encode``, ``decode``), for a follower that keeps readings itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from soakwatch.record._blocks import decode, decode_ints, encode
from soakwatch.record._columns import Columns
from soakwatch.record._compaction import StoredLayouts
from soakwatch.record._effective_polls import EffectivePolls, PollColumns, effective_polls, in_order
from soakwatch.record._files import record_file
from soakwatch.record._ledger import ledger_of
from soakwatch.record._owners import Owner, silence_ns
from soakwatch.record._recent import POLL_COLUMNS, PollRow, unpack
from soakwatch.record._rows import EVENT_COLUMNS, event_of, sources_of
from soakwatch.record._snapshot import snapshot
from soakwatch.record.model import Ints, SeriesKey, Source, StoredEvent, StoredFault, Values

__all__ = [
    "Batch",
    "EffectivePolls",
    "NewSeries",
    "News",
    "Owner",
    "PollColumns",
    "Table",
    "Tail",
    "Words",
    "decode",
    "effective_polls",
    "encode",
    "in_order",
    "ledger_of",
    "polls_due",
    "silence_ns",
]

Words = NDArray[np.uint64]

_MAX_SAMPLES = 1_000_000  # samples: one call returns at most so many (8 MB of words), and one chunk more
_MAX_OPEN_EVENTS = 500  # events without an end are read again, the newest of them
_WORD = {"f": "d", "i": "q", "u": "Q"}


@dataclass(frozen=True, slots=True)
class NewSeries:
    """A new series: its number in the record, its identity, source, unit and kind."""

    number: int
    key: SeriesKey
    source: int
    unit: str
    kind: str


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Readings that share their times: ``time_ns`` (n,), ``words`` (n, k), one column for each of ``series``.

    A word is a float64 (``kinds`` has a d there), an int64 (q) or a uint64 (Q).
    """

    series: tuple[int, ...]
    kinds: str
    time_ns: Ints
    words: Words


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Successive polls of one source as they came, and the readings in them, each table in order of time.

    ``last_ns`` is the latest time of the polls, ``duration_ns`` (n,) how long each took; ``first_seq`` is the number of
    the first one among the polls of its source.
    """

    source: int
    polls: PollColumns
    last_ns: int
    tables: tuple[Table, ...]
    duration_ns: Ints
    first_seq: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class News:
    """What is new. ``phases``, ``roles`` and ``sources`` are complete each time; a phase that is open has no end.

    ``events`` are new ones, and old ones that had no end before; ``more`` says that another call would bring more.
    """

    roles: Mapping[str, str]
    sources: tuple[Source, ...]
    phases: tuple[tuple[str, int, int | None], ...]
    span_ns: int | None
    series: tuple[NewSeries, ...]
    events: tuple[StoredEvent, ...]
    faults: tuple[StoredFault, ...]
    errors: Mapping[int, str]
    batches: tuple[Batch, ...]
    more: bool


class Tail:
    """Reads a record forward. ``wanted`` selects the series whose readings are returned; ``begin`` gives, for each
    source, the last poll that was read already (as ``read`` does).

    ``news`` raises RecordError for a record that is damaged or gone.
    """

    def __init__(
        self, folder_or_file: Path, wanted: Callable[[SeriesKey], bool], begin: Mapping[int, int] | None = None
    ) -> None:
        self.path = record_file(folder_or_file)
        self._wanted = wanted
        self._read: dict[int, int] = dict(begin or {})  # source -> the last poll that was returned
        self._numbers: dict[int, int] = {}  # those that are wanted; each number is one object, however often it comes
        self._last = {"series": 0, "event": 0, "fault": 0, "error": 0}
        self._open: list[int] = []

    @property
    def read(self) -> Mapping[int, int]:
        """The number of the last poll of each source that was returned."""
        return dict(self._read)

    def news(self) -> News:
        """What was written since the last call."""
        with snapshot(self.path) as sql:
            return self._news(sql)

    def polls(self, source: int) -> EffectivePolls:
        """All polls of a source that were returned so far, one for each due time: for when polls came late."""
        whole = polls_due(self.path, source, 0, 2**63 - 1)
        return effective_polls(whole.of(slice(self._read.get(source, 0))))  # they are numbered from 1 without a gap

    def _news(self, sql: sqlite3.Connection) -> News:
        series = tuple(
            NewSeries(number, SeriesKey(target, metric, name), source, unit, kind)
            for number, target, metric, name, source, unit, kind in self._rows(
                sql, "series", "id, target, metric, object, source, unit, kind"
            )
        )
        self._numbers |= {new.number: new.number for new in series if self._wanted(new.key)}
        sources = sources_of(sql)
        batches, more = self._batches(sql, sources)
        span = sql.execute("SELECT max(end_ns) FROM span").fetchone()[0]
        targets = {source.id: source.target for source in sources}
        return News(
            roles=dict(sql.execute("SELECT name, role FROM target ORDER BY name").fetchall()),
            sources=sources,
            phases=tuple(sql.execute("SELECT name, begin_ns, end_ns FROM phase ORDER BY begin_ns, id").fetchall()),
            span_ns=span,
            series=series,
            events=self._events(sql),
            faults=tuple(
                StoredFault(source, targets.get(source, ""), *rest)
                for _, source, *rest in self._rows(
                    sql, "fault", "id, source, metric, object, text, first_ns, last_ns, count"
                )
            ),
            errors=dict(self._rows(sql, "error", "id, text")),
            batches=tuple(batches),
            more=more,
        )

    def _rows(self, sql: sqlite3.Connection, table: str, columns: str) -> list[tuple]:  # type: ignore[type-arg]  # as sqlite3 gives them
        """The rows that a table has gained; their first column is their number."""
        rows = sql.execute(
            f"SELECT {columns} FROM {table} WHERE id>? ORDER BY id",  # noqa: S608
            (self._last[table],),
        ).fetchall()
        if rows:
            self._last[table] = rows[-1][0]
        return rows

    def _events(self, sql: sqlite3.Connection) -> tuple[StoredEvent, ...]:
        again = [
            row
            for number in self._open
            for row in sql.execute(
                f"SELECT {EVENT_COLUMNS} FROM event WHERE id=? AND end_ns IS NOT NULL",  # noqa: S608
                (number,),
            )
        ]
        ended = {row[0] for row in again}
        new = self._rows(sql, "event", EVENT_COLUMNS)
        still = [number for number in self._open if number not in ended]
        self._open = [*still, *(row[0] for row in new if row[6] is None)][-_MAX_OPEN_EVENTS:]
        return tuple(event_of(row) for row in (*again, *new))

    # --- polls ---------------------------------------------------------------------------------------------------

    def _batches(self, sql: sqlite3.Connection, sources: Sequence[Source]) -> tuple[list[Batch], bool]:
        batches: list[Batch] = []
        samples = 0
        for source in sources:
            for batch in self._of(sql, source.id):
                batches.append(batch)
                samples += batch.polls.due_ns.size + sum(table.words.size for table in batch.tables)
                if samples >= _MAX_SAMPLES:
                    return batches, True
        return batches, False

    def _of(self, sql: sqlite3.Connection, source: int) -> Iterator[Batch]:
        while (chunk := self._chunk(sql, source)) is not None:
            yield chunk
        rows: list[PollRow] = sql.execute(
            f"SELECT {POLL_COLUMNS} FROM poll WHERE source=? AND seq>? ORDER BY seq",  # noqa: S608
            (source, self._read.get(source, 0)),
        ).fetchall()
        if rows:
            self._read[source] = rows[-1][0]
            yield self._recent(sql, source, rows)

    def _recent(self, sql: sqlite3.Connection, source: int, rows: Sequence[PollRow]) -> Batch:
        layouts = StoredLayouts(sql)
        recent = unpack(rows, layouts)
        tables: list[Table] = []
        for number, group in recent.groups.items():
            series, kinds = layouts[number]
            numbers = series.tolist()
            columns = [index for index, number in enumerate(numbers) if number in self._numbers]
            start_ns = recent.start_ns[group.positions]
            if group.offsets is None or not columns:
                parts = [(columns, start_ns)] if columns else []
            elif group.alike:
                parts = [(columns, start_ns + group.offsets[:, 0])]
            else:
                parts = _alike(columns, start_ns, group.offsets)
            for some, time_ns in parts:
                names = tuple([self._numbers[numbers[index]] for index in some])
                tables.append(Table(names, "".join([kinds[index] for index in some]), time_ns, group.words[:, some]))
        polls = PollColumns(recent.due_ns, recent.start_ns, recent.outcome, recent.error)
        last_ns = int(np.maximum(recent.due_ns, recent.start_ns + recent.duration_ns).max())
        return Batch(source, polls, last_ns, _merged(tables), recent.duration_ns, int(recent.seq[0]))

    def _chunk(self, sql: sqlite3.Connection, source: int) -> Batch | None:
        """The chunk in which the next poll of a source lies, from that poll on."""
        due_seq = self._read.get(source, 0) + 1
        row = sql.execute(
            "SELECT id, first_seq, polls, first_block, last_block, last_ns, due, outcome, error, duration FROM chunk"
            " WHERE source=? AND first_seq<=? ORDER BY first_seq DESC LIMIT 1",
            (source, due_seq),
        ).fetchone()
        if row is None or row[1] + row[2] <= due_seq:
            return None
        chunk, first_seq, polls, first_block, last_block, last_ns, *ended = row
        low = due_seq - first_seq
        columns = Columns(sql)
        by_axis: dict[int, tuple[list[int], list[Values]]] = {}
        for series, axis, data in sql.execute(
            "SELECT series, axis, data FROM block WHERE id BETWEEN ? AND ? ORDER BY id", (first_block, last_block)
        ):
            if series in self._numbers:
                names, values = by_axis.setdefault(axis, ([], []))
                names.append(series)
                values.append(decode(data))
        tables = []
        for axis, (names, values) in by_axis.items():
            cut = low
            if low:
                positions = sql.execute("SELECT positions FROM axis WHERE id=?", (axis,)).fetchone()[0]
                cut = low if positions is None else int(np.searchsorted(decode_ints(positions), low))
            kinds = "".join([_WORD[array.dtype.kind] for array in values])
            words = np.stack([np.ascontiguousarray(array).view(np.uint64)[cut:] for array in values], axis=1)
            tables.append(_in_time(Table(tuple(names), kinds, columns.axis_times(axis)[cut:], words)))
        due, outcome, error, duration = (decode_ints(column)[low:] for column in ended)
        self._read[source] = first_seq + polls - 1
        polls_of = PollColumns(due, columns.starts(chunk)[low:], outcome, error)
        return Batch(source, polls_of, last_ns, tuple(tables), duration, due_seq)


def polls_due(folder_or_file: Path, source: int, begin_ns: int, end_ns: int) -> PollColumns:
    """The polls of a source that were due in begin <= time < end (UTC ns), in the order in which they came.

    Raises RecordError.
    """
    with snapshot(folder_or_file) as sql:
        return Columns(sql).polls_as_they_came(source, begin_ns, end_ns)


def _alike(columns: Sequence[int], start_ns: Ints, offsets: Ints) -> list[tuple[list[int], Ints]]:
    """Columns of a poll grouped by the times of their readings."""
    by_offsets: dict[bytes, list[int]] = {}
    for column in columns:
        by_offsets.setdefault(np.ascontiguousarray(offsets[:, column]).tobytes(), []).append(column)
    return [(some, start_ns + offsets[:, some[0]]) for some in by_offsets.values()]


def _merged(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Join tables of the same series, in order of time: polls that differ elsewhere may agree in these series."""
    by_columns: dict[tuple[tuple[int, ...], str], list[Table]] = {}
    for table in tables:
        by_columns.setdefault((table.series, table.kinds), []).append(table)
    merged = []
    for (series, kinds), parts in by_columns.items():
        if len(parts) == 1:
            merged.append(_in_time(parts[0]))
            continue
        time_ns = np.concatenate([part.time_ns for part in parts])
        merged.append(_in_time(Table(series, kinds, time_ns, np.concatenate([part.words for part in parts]))))
    return tuple(merged)


def _in_time(table: Table) -> Table:
    """The table sorted by time: polls may have come late."""
    time_ns = table.time_ns
    if bool((time_ns[1:] >= time_ns[:-1]).all()):
        return table
    order = np.argsort(time_ns, kind="stable")
    return Table(table.series, table.kinds, time_ns[order], table.words[order])
