"""What the digests of a record cover: its tables in parts, and the bytes that represent a row.

The bytes of a row are its part, its key and its columns, each with its type and its length, so that no two rows have
the same bytes. All digests are SHA-256.
"""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

Value = None | int | float | str | bytes

BUCKET_BITS = 6
CHUNKS = "chunk"
"""The part of the blocks: a row of ``chunk`` stands for itself, its axes and its blocks."""
POLLS = "poll"
SEALS = "seal"
"""The part of the seals: linked like all others, and not covered by a seal itself."""
POLL_HEAD = struct.Struct("<9q")
POLL_ROWS = "SELECT seq, due_ns, start_ns, duration_ns, outcome, error, layout, offsets, data, link FROM poll"
PollBytes = tuple[int, int, int, int, int, int, int, bytes | None, bytes]
"""``seq`` to ``data`` of a row of ``poll``."""


@dataclass(frozen=True, slots=True)
class Part:
    """Columns of a table that are digested together. ``live`` parts have digests as soon as they are written; the
    others change with every poll, and only seals cover them. A seal leaves out the keys in ``but``."""

    name: str
    table: str
    key: str
    columns: tuple[str, ...]
    live: bool = True
    but: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        """Key and columns of all rows, in the order of their keys."""
        return f"SELECT {self.key}, {', '.join(self.columns)} FROM {self.table} ORDER BY {self.key}"  # noqa: S608


AFTERWARDS = ("promises",)
"""Keys of ``meta`` that are written after the seal: which actions at the end were done (hooks, mails, reports)."""

PARTS: tuple[Part, ...] = (
    Part("meta", "meta", "key", ("value",), but=AFTERWARDS),
    Part("target", "target", "name", ("role",)),
    Part("source", "source", "id", ("target", "name", "label", "interval_ns", "required")),
    Part("series", "series", "id", ("target", "metric", "object", "source", "unit", "kind")),
    Part("series.last_ns", "series", "id", ("last_ns",), live=False),
    Part("layout", "layout", "id", ("series", "kinds", "digest")),
    Part("error", "error", "id", ("text",)),
    Part(
        "event",
        "event",
        "id",
        ("origin", "target", "kind", "object", "begin_ns", "end_ns", "detail", "expect", "deadline_ns"),
    ),
    Part("fault", "fault", "id", ("source", "metric", "object", "text")),
    Part("fault.count", "fault", "id", ("first_ns", "last_ns", "count"), live=False),
    Part("phase", "phase", "id", ("name", "begin_ns", "end_ns")),
    Part("span", "span", "id", ("begin_ns", "end_ns")),
    Part("finding", "finding", "id", ("live", "judged_ns", "withdrawn_ns", "identity", "outcome", "body")),
    Part("artifact", "artifact", "name", ("media", "data", "time_ns", "kind", "about", "size")),
    Part(SEALS, "seal", "n", ("document",)),
)

_CHUNK = (
    "SELECT id, source, first_seq, polls, samples, first_block, last_block, first_due_ns, last_due_ns, last_ns,"
    " due, start, duration, outcome, error FROM chunk WHERE id=?"
)


def encoded(values: Iterable[Value]) -> bytes:
    """Bytes that only these values have.

    >>> encoded((1, "a", None))
    b'i1;s1:an'
    """
    parts: list[bytes] = []
    for value in values:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, int):
            parts.append(b"i%d;" % value)
        elif isinstance(value, str):
            text = value.encode("utf-8", "surrogateescape")
            parts.append(b"s%d:%b" % (len(text), text))
        elif isinstance(value, float):
            parts.append(b"f" + struct.pack("<d", value))
        else:
            parts.append(b"b%d:%b" % (len(value), value))
    return b"".join(parts)


def row_digest(part: str, values: Sequence[Value]) -> bytes:
    """The digest of a row: of its key and the columns of the part."""
    return hashlib.sha256(encoded((part, *values))).digest()


def bucket_of(key: Value) -> int:
    """The bucket of a key: 64 successive numbers share one, and so do texts with the same first byte of their
    digest."""
    if isinstance(key, int):
        return key >> BUCKET_BITS
    return hashlib.sha256(encoded((key,))).digest()[0]


def chunk_digest(sql: sqlite3.Connection, number: int, blocks: _Hash | None = None) -> bytes:
    """The digest of a chunk: of its blocks, its axes and its own row. ``blocks`` is a digest that has been updated with
    the blocks.

    Raises LookupError if there is no such chunk.
    """
    row = sql.execute(_CHUNK, (number,)).fetchone()
    if row is None:
        raise LookupError(f"there is no chunk {number}")
    digest = hashlib.sha256() if blocks is None else blocks
    first, last = row[5], row[6]
    if blocks is None:
        query = "SELECT id, series, axis, data FROM block WHERE id BETWEEN ? AND ? ORDER BY id"
        for block in sql.execute(query, (first, last)):
            update_with_block(digest, *block)
    axes = "SELECT DISTINCT axis FROM block WHERE id BETWEEN ? AND ?"
    for axis in sql.execute(
        f"SELECT id, chunk, first_ns, last_ns, positions, offsets FROM axis WHERE id IN ({axes}) ORDER BY id",  # noqa: S608
        (first, last),
    ):
        digest.update(encoded(axis))
    digest.update(encoded((CHUNKS, *row)))
    return digest.digest()


def update_with_block(digest: _Hash, number: int, series: int, axis: int, data: bytes) -> None:
    """Add a block to the digest of its chunk."""
    digest.update(b"%d %d %d %d:%b" % (number, series, axis, len(data), data))


def update_with_polls(digest: _Hash, rows: Iterable[PollBytes]) -> None:
    """Add polls that are not compacted to a running digest."""
    pack, update = POLL_HEAD.pack, digest.update
    for seq, due, start, duration, outcome, error, layout, offsets, data in rows:
        if offsets is None:
            update(pack(seq, due, start, duration, outcome, error, layout, -1, len(data)))
        else:
            update(pack(seq, due, start, duration, outcome, error, layout, len(offsets), len(data)))
            update(offsets)
        update(data)


def stretch_seed(source: int, first_seq: int) -> bytes:
    """The first bytes of the digest over the polls of a source that are not compacted."""
    return b"soakwatch polls %d %d;" % (source, first_seq)


def content_digests(sql: sqlite3.Connection) -> Iterator[tuple[str, list[tuple[Value, bytes]]]]:
    """Every part of a record by name, with key and digest of each of its rows; blocks are with their chunk."""
    for part in PARTS:
        yield part.name, [(row[0], row_digest(part.name, row)) for row in sql.execute(part.query)]
    numbers = [row[0] for row in sql.execute("SELECT id FROM chunk ORDER BY id")]
    yield CHUNKS, [(number, chunk_digest(sql, number)) for number in numbers]
    yield POLLS, [(source, polls.digest()) for source, polls in _poll_digests(sql)]


def _poll_digests(sql: sqlite3.Connection) -> Iterator[tuple[int, _Hash]]:
    for (source,) in sql.execute("SELECT DISTINCT source FROM poll ORDER BY source").fetchall():
        digest = hashlib.sha256(b"%d" % source)
        rows = sql.execute(f"{POLL_ROWS} WHERE source=? ORDER BY seq", (source,))
        update_with_polls(digest, (row[:9] for row in rows))
        yield source, digest


def schema_digest(sql: sqlite3.Connection) -> bytes:
    """The digest of what tables, indexes and triggers the file declares."""
    rows = sql.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
    return hashlib.sha256(b"".join(encoded(row) for row in rows)).digest()


def together(digests: Iterable[bytes]) -> bytes:
    """One digest of several, in their order."""
    return hashlib.sha256(b"".join(digests)).digest()
