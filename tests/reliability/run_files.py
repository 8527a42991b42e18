"""Records and bundles as inputs that are spoilt: not their bytes, of which a checksum or SQLite refuses most, but what
they hold, so that what reads it is reached."""

from __future__ import annotations

import gzip
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path

from tests.reliability.changed_records import sealed_run

from soakwatch.core.errors import SoakwatchError
from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import RecordView
from soakwatch.report.json import render_json
from soakwatch.runs.verification import verify
from soakwatch.transfer.export.bundle import unpack, write_bundle

_HEAD = struct.Struct(">BBBBH")
"""An edit of a record: table, row, column, the type of the value, and how many bytes of it follow."""
_SECONDS = 20
_TYPES = 5
_MOST_EDITS = 16


@cache
def _run() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return (sealed_run(Path(folder) / "run", seconds=_SECONDS) / "record.sqlite").read_bytes()


@cache
def _tables() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The tables of the record that have rows, with their columns."""
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.deserialize(_run())
        names = [row[0] for row in sql.execute("SELECT name FROM sqlite_schema WHERE type='table' ORDER BY name")]
        filled = [name for name in names if sql.execute(f"SELECT count(*) FROM {name}").fetchone()[0]]
        return tuple((name, tuple(row[1] for row in sql.execute(f"PRAGMA table_info({name})"))) for name in filled)


def record_edits() -> Sequence[bytes]:
    """For each cell of the first rows of each table, an edit that writes what is there: some in each input."""
    edits = list(_edits())
    return [b"".join(edits[index : index + _MOST_EDITS]) for index in range(0, len(edits), _MOST_EDITS)]


def _edits() -> Iterator[bytes]:
    with closing(sqlite3.connect(":memory:")) as sql:
        sql.deserialize(_run())
        for number, (table, columns) in enumerate(_tables()):
            rows = sql.execute(f"SELECT * FROM {table} LIMIT 2").fetchall()
            for place, row in enumerate(rows):
                for column, _ in enumerate(columns):
                    kind, data = _packed(row[column])
                    if len(data) < 4000:
                        yield _HEAD.pack(number, place, column, kind, len(data)) + data


def _packed(value: object) -> tuple[int, bytes]:
    if isinstance(value, int):
        return 0, struct.pack(">q", value)
    if isinstance(value, float):
        return 1, struct.pack(">d", value)
    if isinstance(value, str):
        return 2, value.encode()
    return (3, value) if isinstance(value, bytes) else (4, b"")


def _value(kind: int, data: bytes) -> object:
    if kind == 0:
        return int.from_bytes(data[:8], "big", signed=True)
    if kind == 1:
        return struct.unpack(">d", data[:8].ljust(8, b"\0"))[0]
    if kind == 2:
        return data.decode("utf-8", "replace")
    return data if kind == 3 else None


def edited(data: bytes) -> bytes:
    """The record with the edits that an input names; what SQLite refuses is left out."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sql:
        sql.deserialize(_run())
        tables = _tables()
        for _ in range(_MOST_EDITS):
            if len(data) < _HEAD.size:
                break
            number, place, column, kind, size = _HEAD.unpack_from(data)
            value, data = _value(kind % _TYPES, data[_HEAD.size : _HEAD.size + size]), data[_HEAD.size + size :]
            table, columns = tables[number % len(tables)]
            name = columns[column % len(columns)]
            try:
                rows = sql.execute(f"SELECT * FROM {table} LIMIT 256").fetchall()
                if rows:
                    where = " AND ".join(f"{each} IS ?" for each in columns)
                    sql.execute(f"UPDATE {table} SET {name}=? WHERE {where}", (value, *rows[place % len(rows)]))
            except (sqlite3.Error, OverflowError):
                continue
        return sql.serialize()


def read_record(data: bytes, folder: Path) -> object:
    """All that a record says of itself, and whether it was changed, each by a view of its own: what one refuses, the
    next one may read."""
    with _written(data, folder) as file:
        return [_refusable(file, read) for read in _READS]


def judge_record_of(data: bytes, folder: Path) -> object:
    """The verdict of a record as JSON."""
    with _written(data, folder) as file, RecordView.open(file) as view:
        return json.loads(render_json(judge_record(view)))


@contextmanager
def _written(data: bytes, folder: Path) -> Iterator[Path]:
    file = folder / "record.sqlite"
    file.write_bytes(edited(data))
    try:
        yield file
    finally:
        for left in folder.glob("record.sqlite*"):
            left.unlink()


_READS: tuple[Callable[[RecordView], object], ...] = (
    lambda view: verify(view).document(),
    lambda view: (view.metas(), view.labels, view.roles(), view.sources(), view.phases(), view.spans(), view.counts()),
    lambda view: (view.events(), view.faults(), view.withdrawn(), view.artifacts(), view.findings(live=False)),
    lambda view: (list(map(view.series, view.keys())), view.first_polls(), view.polls_after("", 1000), view.window()),
)


def _refusable(file: Path, read: Callable[[RecordView], object]) -> object:
    try:
        with RecordView.open(file) as view:
            return read(view)
    except SoakwatchError as error:
        if not str(error).strip():
            raise ValueError("refused without a word") from None
        return None


def bundles() -> Sequence[bytes]:
    """A bundle, not compressed: headers of a tape archive and files."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        run.mkdir()
        (run / "record.sqlite").write_bytes(_run())
        bundle = write_bundle(run, Path(folder) / "run.tar.gz").path
        return [gzip.decompress(bundle.read_bytes())]


def read_bundle(data: bytes, folder: Path) -> object:
    """Unpacked, with its digests checked; nothing is written beside the folder that it is for."""
    file = folder / "run.tar.gz"
    file.write_bytes(gzip.compress(data, 1, mtime=0))
    place = folder / "inside" / "unpacked"
    with tempfile.TemporaryDirectory(dir=folder) as outside:
        place = Path(outside) / "inside"
        place.mkdir()
        try:
            return unpack(file, place).name
        finally:
            beside = [path.name for path in Path(outside).iterdir() if path != place]
            assert not beside, f"written outside: {beside}"
