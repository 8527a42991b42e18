"""Series for a page that zooms and reads the same records again and again: blocks are decoded once and kept.

A block never changes, so its decoded array stays valid as long as the file is the same. A query reads only the blocks
that touch its range of time. What is not compacted yet is read each time.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from soakwatch.record._block_cache import BlockCache, Counted, File
from soakwatch.record._blocks import decode, decode_ints
from soakwatch.record._columns import Columns
from soakwatch.record._files import record_file
from soakwatch.record._owners import Owner, silence_ns
from soakwatch.record._recent import Recent
from soakwatch.record._rows import last_time, sources_of
from soakwatch.record._snapshot import open_snapshot
from soakwatch.record._sqlite_errors import as_record_error, damaged
from soakwatch.record.merge import between, in_time, unified
from soakwatch.record.meta import IMPORTED_KEY
from soakwatch.record.minutes import MINUTE_NS, coarser
from soakwatch.record.model import Ints, SeriesKey, Source, Values
from soakwatch_model.metric import GAUGE
from soakwatch_model.series import Series, trait_of

__all__ = ["BlockCache", "CachedView", "Known", "cached_view"]

_MAX_BLOCKS_AT_ONCE = 500  # blocks that are fetched by one statement
_PAGES_KIB = 32 * 1024
_MAX_ROWS_AT_ONCE = 20_000  # of blocks that are counted at a time
_MOST_ROWS = 1 << 28  # of a table: an array has a place for each number

_Part = tuple[int, tuple[Ints, Values]]  # who brought it


@dataclass(frozen=True, slots=True)
class Known:
    """What the record says of a series: its number and unit, and the planned interval of its readings in seconds."""

    number: int
    source: Source | None
    unit: str
    kind: str
    cadence_s: float | None


class CachedView:
    """One snapshot of a record that reuses the blocks that were decoded before; ``cached_view`` gives it.

    Every method raises RecordError for a file that is damaged.
    """

    def __init__(self, path: Path, sql: sqlite3.Connection, blocks: BlockCache) -> None:
        self.path = path
        self._sql, self._blocks = sql, blocks
        with self._reading():
            sql.execute(f"PRAGMA cache_size={-_PAGES_KIB:d}")  # each page of blocks is read twice
            self._sources = {source.id: source for source in sources_of(sql)}
            metas = dict(sql.execute("SELECT key, value FROM meta WHERE key IN (?, 'start_ns')", (IMPORTED_KEY,)))
            status = path.stat()
        self._imported = IMPORTED_KEY in metas
        self._file: File = str(path), status.st_dev, status.st_ino, metas.get("start_ns", "")
        self._columns = Columns(sql, blocks.unpacked(self._file))

    def keep_unpacked(self) -> None:
        """Let later views of the record reuse the polls that this one has unpacked."""
        self._blocks.keep_unpacked(self._file, self._columns.unpacked)

    @property
    def last_ns(self) -> int | None:
        """The latest time that the record knows of; None if it is empty."""
        with self._reading():
            return last_time(self._sql, None)

    def known(self, key: SeriesKey) -> Known | None:
        """What the record says of a series; None if there is no such series."""
        if not all(_is_text(part) for part in (key.target, key.metric, key.object)):
            return None
        with self._reading():
            row = self._sql.execute(
                "SELECT id, source, unit, kind FROM series WHERE target=? AND metric=? AND object=?",
                (key.target, key.metric, key.object),
            ).fetchone()
        return None if row is None else self._known(key.metric, *row)

    def every(self) -> Mapping[SeriesKey, Known]:
        """All series, sorted."""
        with self._reading():
            rows = self._sql.execute("SELECT target, metric, object, id, source, unit, kind FROM series").fetchall()
        return {SeriesKey(*row[:3]): self._known(row[1], *row[3:]) for row in sorted(rows)}

    def series(self, key: SeriesKey, known: Known, begin_ns: int | None, end_ns: int | None) -> Series:
        """The readings with begin <= time < end, as ``RecordView.series`` gives them but for the direction of growth.

        The arrays may be shared: do not write.
        """
        sources = [source.id for source in self._sources.values() if source.target == key.target]
        owner = None
        if known.source is not None and not self._imported and len(sources) > 1:
            owner = Owner(known.source.id, silence_ns(known.source, key.metric))
            begin_ns = None if begin_ns is None else max(begin_ns, owner.silence_ns)
        from_ns = begin_ns if owner is None or begin_ns is None else begin_ns - owner.silence_ns
        with self._reading():
            parts = self._compacted(known.number, from_ns, end_ns)
            parts += [(source, part) for source in sources for part in self._columns.recent_of(source, known.number)]
            time_ns, value = _joined(parts) if owner is None else owner.merged(parts)
        trait = trait_of(key.metric, known.unit, known.kind)
        cut = between(time_ns, value, begin_ns, end_ns)
        return Series(key.target, key.metric, key.object, trait, *cut, known.cadence_s)

    def minutes(self, key: SeriesKey, known: Known, begin_ns: int, end_ns: int, bin_ns: int = MINUTE_NS) -> Series:
        """The series by the minute, or by another number of whole minutes: those wholly inside begin <= time < end that
        have readings, each at its middle, float64.

        Of a gauge the mean, of a counter or a state the last reading.
        """
        trait = trait_of(key.metric, known.unit, known.kind)
        sources, adds = [s.id for s in self._sources.values() if s.target == key.target], trait.kind == GAUGE
        with self._reading():
            every = self._columns.minutes(known.number, sources, begin_ns, end_ns, adds=adds)
        of = coarser(every, bin_ns // MINUTE_NS, adds=adds)
        inside = slice(*np.searchsorted(of.number, [-(-begin_ns // bin_ns), end_ns // bin_ns]))
        with np.errstate(over="ignore", invalid="ignore"):
            value = of.figure[inside] / of.count[inside] if adds else of.figure[inside]
        cadence_s = max(bin_ns * 1e-9, known.cadence_s or 0.0)
        time_ns = of.number[inside] * bin_ns + bin_ns // 2
        return Series(key.target, key.metric, key.object, trait, time_ns, value, cadence_s)

    def readings(self) -> Mapping[int, int]:
        """How many readings of each series, by its number, are in the record; those that two sources brought count
        twice.

        The first call for a large record takes a second; later ones count what is new.
        """
        with self._reading():
            counted = self._counted(self._blocks.counted(self._file))
            self._blocks.keep_counted(self._file, counted)
            counts = {int(number): int(counted.readings[number]) for number in np.flatnonzero(counted.readings)}
            for source in self._sources:
                recent = self._columns.recent(source)
                for number, pieces in recent.pieces.items():
                    fresh = sum(recent.groups[layout].positions.size for layout, _, _ in pieces)
                    counts[number] = counts.get(number, 0) + fresh
        return counts

    def newest(
        self, fresh_from_ns: Callable[[Known], int], limit: int
    ) -> tuple[tuple[tuple[SeriesKey, Known, float], ...], int]:
        """The newest reading of every series that has one from ``fresh_from_ns`` on, ``limit`` of them in order of the
        keys; and how many more there are."""
        every = self.every()
        oldest_ns = min(map(fresh_from_ns, every.values()), default=0)
        sources_of = Counter(source.target for source in self._sources.values())
        newest: list[tuple[SeriesKey, Known, float]] = []
        left = 0
        with self._reading():
            recent = {source: self._columns.recent(source) for source in self._sources}
            alive = {number for fresh in recent.values() for number in fresh.pieces} | self._compacted_since(oldest_ns)
        for key, known in every.items():
            if known.number not in alive:
                continue
            value = None
            if known.source is not None and sources_of[key.target] == 1:
                value = _last(recent[known.source.id], known.number, fresh_from_ns(known))
            if value is None:
                series = self.series(key, known, fresh_from_ns(known), None).finite()
                value = float(series.value[-1]) if len(series) else None
            if value is not None and len(newest) < limit:
                newest.append((key, known, value))
            elif value is not None:
                left += 1
        return tuple(newest), left

    def _compacted_since(self, begin_ns: int) -> set[int]:
        rows = self._sql.execute(
            "SELECT DISTINCT series FROM chunk JOIN block ON block.id BETWEEN first_block AND last_block"
            " WHERE last_ns>=?",
            (begin_ns,),
        )
        return {number for (number,) in rows}

    def _known(self, metric: str, number: int, source: int, unit: str, kind: str) -> Known:
        owner = self._sources.get(source)
        return Known(number, owner, unit, kind, None if owner is None else owner.cadence_s(metric))

    def _compacted(self, series: int, begin_ns: int | None, end_ns: int | None) -> list[_Part]:
        chunks = self._blocks.chunks(self._file, self._sql)
        touching = chunks.touching(begin_ns, end_ns)
        if not touching.any():
            return []
        if 2 * int(touching.sum()) < touching.size:
            few = self._sql.execute(
                "SELECT id, axis FROM block WHERE series=? AND id BETWEEN ? AND ? ORDER BY id",
                (series, *chunks.blocks(touching)),
            ).fetchall()
            index = np.array(few, dtype=np.int64).reshape(-1, 2).T
        else:
            index = self._blocks.index(self._file, series, self._sql)
            index = index[:, index[0] <= self._max_id("block")]  # a later snapshot may have seen more
        of = chunks.of(index[0])
        chosen = touching[of]
        numbers, axis_numbers = index[:, chosen].tolist()
        values = self._blocks.get(self._file, "block", numbers, self._decoded)
        times = self._blocks.get(self._file, "axis", axis_numbers, self._axes)
        return [
            (chunks.source(chunk), (time_ns.astype(np.int64, copy=False), value))
            for chunk, time_ns, value in zip(of[chosen].tolist(), times, values, strict=True)
        ]

    def _decoded(self, numbers: list[int]) -> Iterator[tuple[int, Values]]:
        for first in range(0, len(numbers), _MAX_BLOCKS_AT_ONCE):
            some = numbers[first : first + _MAX_BLOCKS_AT_ONCE]
            placeholders = ",".join("?" * len(some))
            for number, data in self._sql.execute(f"SELECT id, data FROM block WHERE id IN ({placeholders})", some):  # noqa: S608
                yield number, decode(data)

    def _axes(self, numbers: list[int]) -> Iterator[tuple[int, Values]]:
        return ((number, self._columns.axis_times(number)) for number in numbers)

    def _counted(self, before: Counted) -> Counted:
        axes = np.zeros(1 + self._max_id("axis"), dtype=np.int64)
        rows_of_axes = self._sql.execute(
            "SELECT axis.id, polls, positions FROM axis JOIN chunk ON chunk.id = axis.chunk WHERE last_block>?",
            (before.until,),
        )
        for axis, polls, positions in rows_of_axes:
            axes[axis] = polls if positions is None else decode_ints(positions).size
        readings = np.zeros(1 + self._max_id("series"), dtype=np.int64)
        readings[: before.readings.size] = before.readings
        until = before.until
        rows = self._sql.execute("SELECT id, series, axis FROM block WHERE id>? ORDER BY id", (until,))
        while some := rows.fetchmany(_MAX_ROWS_AT_ONCE):
            columns = np.array(some, dtype=np.int64).T
            readings += np.bincount(columns[1], axes[columns[2]], readings.size).astype(np.int64)
            until = int(columns[0, -1])
        return Counted(until, readings)

    def _max_id(self, table: str) -> int:
        number = int(self._sql.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])  # noqa: S608
        if number > _MOST_ROWS:
            raise ValueError(f"a row of the table {table} has the number {number}")
        return number

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise as_record_error(error, self.path) from None
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(self.path, str(error)) from None


def _is_text(part: str) -> bool:
    """Whether SQLite can look it up: half of a surrogate pair is no text."""
    return not any("\ud800" <= letter <= "\udfff" for letter in part)


def _last(recent: Recent, number: int, from_ns: int) -> float | None:
    """The newest of the readings that are not compacted, if it is not older than ``from_ns``."""
    best: tuple[int, float] | None = None
    for layout, column, kind in recent.pieces.get(number, ()):
        group = recent.groups[layout]
        time_ns = recent.start_ns[group.positions]
        if group.offsets is not None:
            time_ns = time_ns + group.offsets[:, column]
        last = int(time_ns.argmax())
        if time_ns[last] >= from_ns and (best is None or time_ns[last] > best[0]):
            word = group.words[last, column]
            value = float(word.view(np.float64 if kind == "d" else np.int64 if kind == "q" else np.uint64))
            best = int(time_ns[last]), value
    return best[1] if best is not None and np.isfinite(best[1]) else None


def _joined(parts: Sequence[_Part]) -> tuple[Ints, Values]:
    if not parts:
        return np.empty(0, dtype=np.int64), np.empty(0)
    return in_time(np.concatenate([times for _, (times, _) in parts]), unified([values for _, (_, values) in parts]))


@contextmanager
def cached_view(folder_or_file: Path, blocks: BlockCache) -> Iterator[CachedView]:
    """A record as it is now, for one query. Raises RecordError."""
    path = record_file(folder_or_file)
    with ExitStack() as stack:
        view = CachedView(path, open_snapshot(path, stack), blocks)
        yield view
        view.keep_unpacked()
