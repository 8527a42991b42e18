"""The writing side of the chain: each transaction stores digests of what it wrote, and a link over all digests.

Each row of a small table has a digest; 64 of them share one row of ``link``. Temporary triggers of the connection
report every row before and after its change, so that no write escapes. If a row does not match its digest before a
change, it is marked for good (``CHANGED``). A chunk with its axes and blocks has one digest. Polls that are still rows
of their own have a running digest for each source, from its oldest row on: ``poll.link`` is its value after each row,
and compaction checks it, since it reads the rows anyway.

The one row of ``chain`` has the number of links and the last link: the SHA-256 over the link before it and over the
digests of all parts.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from soakwatch.record._digests import (
    CHUNKS,
    PARTS,
    POLL_HEAD,
    POLL_ROWS,
    Part,
    PollBytes,
    Value,
    bucket_of,
    chunk_digest,
    row_digest,
    stretch_seed,
    update_with_polls,
)
from soakwatch.record._schema import packs_texts
from soakwatch.record._texts import Stored, stored, text_of

if TYPE_CHECKING:
    from hashlib import _Hash

CHANGED = "changed"
"""Replaces the digest of a row that somebody else changed before its writer did."""
NewPoll = tuple[int, int, int, int, int, int, int, int, bytes | None, bytes]
"""A row of ``poll``: source, and the columns of ``PollBytes``; ``LinkedPoll`` adds its link."""
LinkedPoll = tuple[int, int, int, int, int, int, int, int, bytes | None, bytes, bytes]

_SMALL = 1000  # bytes
Rows = dict[str, str]


def digest_text(digest: bytes) -> str:
    """A digest as ``link.rows`` has it."""
    return b64encode(digest).decode().rstrip("=")


def rows_text(rows: Mapping[str, str]) -> str:
    """The rows of a bucket as ``link.rows`` has them."""
    return json.dumps(rows, sort_keys=True, separators=(",", ":"))


def root_of(leaves: Mapping[str, Mapping[int, bytes]]) -> bytes:
    """One digest over the digests of all buckets, by part and bucket."""
    return _root({part: _part_root(buckets) for part, buckets in leaves.items() if buckets})


def link_of(before: bytes, number: int, root: bytes) -> bytes:
    """A link: over the one before it, its number, and the digests of all parts."""
    return hashlib.sha256(b"soakwatch chain 1;%b%d;%b" % (before, number, root)).digest()


def bucket_digest(rows: Stored) -> bytes:
    """The digest of a bucket, as it is kept."""
    return hashlib.sha256(rows if isinstance(rows, bytes) else rows.encode("utf-8", "surrogateescape")).digest()


class Chain:
    """The chain of a record on one connection, whose owner calls ``begin`` and ``commit`` in each transaction."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self._packs = packs_texts(sql)
        self._number, self._before = -1, b""
        self._leaves: dict[str, dict[int, bytes]] = {}
        self._roots: dict[str, bytes] = {}
        self._buckets: dict[tuple[str, int], Rows] = {}  # those of this transaction
        self._dirty: set[tuple[str, int]] = set()
        self._seen: set[tuple[str, Value]] = set()  # rows that were reported before their change
        self._chunks: list[int] = []
        self._known = False  # whether this transaction compared the remembered links with the file
        self._running: dict[int, _Hash] = {}
        self._touched: dict[int, _Hash | None] = {}  # by source, the digest before this transaction changed it
        self._blocks: _Hash | None = None  # of the chunk that is being made, so that its blocks are not read again
        self._spoiled: set[int] = set()  # sources whose polls do not match their digest
        sql.create_function("soakwatch_was", -1, self._was)
        sql.create_function("soakwatch_is", -1, self._is)
        sql.create_function("soakwatch_chunk", 1, self._chunks.append)
        for statement in _triggers():
            sql.execute(statement)

    # --- a transaction -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin a transaction: nobody else writes until its end."""
        self._known = False

    def commit(self) -> None:
        """Write the link of this transaction, as its last statement. Raises sqlite3.Error."""
        if self._chunks or self._dirty:
            for number in self._chunks:
                self._set(CHUNKS, number, digest_text(chunk_digest(self._sql, number, self._blocks)))
                self._blocks = None
            self._write()
            self._chunks.clear()
            self._seen.clear()

    def rolled_back(self) -> None:
        """Forget what the transaction did."""
        self._buckets.clear()
        self._dirty.clear()
        self._seen.clear()
        self._chunks.clear()
        self._blocks = None
        for source, before in self._touched.items():  # their digests include rows that were rolled back
            if before is None:
                self._running.pop(source, None)
            else:  # on a full disk this happens every second: do not read all polls again
                self._running[source] = before
        self._touched.clear()
        self._number = -1  # the links of the file are read again

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one linked transaction, which is committed if the block raises nothing."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            self.begin()
            yield self._sql
            self.commit()
            self._sql.execute("COMMIT")
            self._touched.clear()  # not before: on a full disk it is COMMIT that fails
        except BaseException:
            self.rolled_back()
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise

    def drop_late_links(self) -> None:
        """Forget the digests of the parts that change with every poll, before a new seal covers them: schema 5 has some
        from its last seal."""
        for part in PARTS:
            if not part.live:
                for bucket in [bucket for name, bucket in self._all_buckets() if name == part.name]:
                    self._rows(part.name, bucket).clear()
                    self._dirty.add((part.name, bucket))

    # --- polls -------------------------------------------------------------------------------------------------

    def linked(self, rows: Sequence[NewPoll]) -> Sequence[LinkedPoll]:
        """New rows of polls, each with the digest over all rows of its source up to this one."""
        pack, known = POLL_HEAD.pack, self._running
        done: list[LinkedPoll] = []
        for source, seq, due, start, duration, outcome, error, layout, offsets, data in rows:
            running = known.get(source) or self._of_file(source)
            if source not in self._touched:
                self._touched[source] = None if running is None else running.copy()
            if running is None:
                running = hashlib.sha256(stretch_seed(source, seq))
            known[source] = running
            size = len(data)
            if offsets is not None:
                running.update(pack(seq, due, start, duration, outcome, error, layout, len(offsets), size))
                running.update(offsets)
                running.update(data)
            elif size < _SMALL:  # one call less costs less than the copy
                running.update(pack(seq, due, start, duration, outcome, error, layout, -1, size) + data)
            else:
                running.update(pack(seq, due, start, duration, outcome, error, layout, -1, size))
                running.update(data)
            link = running.digest()
            done.append((source, seq, due, start, duration, outcome, error, layout, offsets, data, link))
        return done

    def compacts(self, source: int, rows: Sequence[PollBytes]) -> _Hash:
        """Check the oldest rows of a source before they become a chunk. Returns the digest that the caller updates with
        each block (``update_with_block``)."""
        self._blocks = hashlib.sha256()
        running = self._running.get(source) or self._of_file(source)
        found = hashlib.sha256(stretch_seed(source, rows[0][0]))
        update_with_polls(found, rows)
        rest = self._sql.execute(f"{POLL_ROWS} WHERE source=? AND seq>? ORDER BY seq", (source, rows[-1][0]))
        further = [row[:9] for row in rest.fetchall()]
        update_with_polls(found, further)
        if running is None or found.digest() != running.digest() or source in self._spoiled:
            self._set(POLL_CHANGES, f"source {source}, polls {rows[0][0]} to {rows[-1][0]}", CHANGED)
            self._spoiled.discard(source)
        self._touched[source] = None
        self._running.pop(source, None)
        if further:
            again = self._running[source] = hashlib.sha256(stretch_seed(source, further[0][0]))
            update_with_polls(again, further)
            self._sql.execute("UPDATE poll SET link=NULL WHERE source=? AND seq>?", (source, rows[-1][0]))
            self._sql.execute(
                "UPDATE poll SET link=? WHERE source=? AND seq=?", (again.digest(), source, further[-1][0])
            )
        return self._blocks

    def _of_file(self, source: int) -> _Hash | None:
        """Compute the running digest over the rows of a source from the file, when a run is resumed."""
        running: _Hash | None = None
        rows = self._sql.execute(f"{POLL_ROWS} WHERE source=? ORDER BY seq", (source,))
        for row in rows:
            if running is None:
                running = hashlib.sha256(stretch_seed(source, row[0]))
            update_with_polls(running, (row[:9],))
            if row[9] is not None and row[9] != running.digest():
                self._spoiled.add(source)
        return running

    # --- rows of small tables ----------------------------------------------------------------------------------

    def _was(self, part: str, key: Value, *columns: Value) -> None:
        """A row is about to be changed or removed."""
        name = _key_text(key)
        rows = self._rows(part, bucket_of(key))
        if rows.get(name) == digest_text(row_digest(part, (key, *columns))):
            del rows[name]
        else:
            rows[name] = CHANGED
        self._dirty.add((part, bucket_of(key)))
        self._seen.add((part, key))

    def _is(self, part: str, key: Value, *columns: Value) -> None:
        """A row was written."""
        text = digest_text(row_digest(part, (key, *columns)))
        if _key_text(key) in self._rows(part, bucket_of(key)) and (part, key) not in self._seen:
            text = CHANGED  # somebody removed it
        self._seen.discard((part, key))
        self._set(part, key, text)

    def _set(self, part: str, key: Value, text: str) -> None:
        rows = self._rows(part, bucket_of(key))
        name = _key_text(key)
        if rows.get(name) != CHANGED:
            rows[name] = text
        self._dirty.add((part, bucket_of(key)))

    def _rows(self, part: str, bucket: int) -> Rows:
        self._compare()
        rows = self._buckets.get((part, bucket))
        if rows is None:
            found = self._sql.execute("SELECT rows FROM link WHERE part=? AND bucket=?", (part, bucket)).fetchone()
            rows = self._buckets[part, bucket] = rows_in(found[0]) if found else {}
            known = self._leaves.get(part, {}).get(bucket)
            if (bucket_digest(found[0]) if found else None) != known:
                self._spoilt_links()
        return rows

    def _all_buckets(self) -> list[tuple[str, int]]:
        self._compare()
        return [(part, bucket) for part, buckets in self._leaves.items() for bucket in buckets]

    def _compare(self) -> None:
        """Read the links again if another connection wrote some since the last transaction."""
        if self._known:
            return
        self._known = True
        row = self._sql.execute("SELECT n, before, digest FROM chain WHERE id=0").fetchone()
        number, before, digest = (0, b"", b"") if row is None else row
        if number == self._number and digest == self._before:
            return
        self._leaves, self._roots = {}, {}
        for part, bucket, rows in self._sql.execute("SELECT part, bucket, rows FROM link").fetchall():
            self._leaves.setdefault(part, {})[bucket] = bucket_digest(rows)
        self._roots = {part: _part_root(buckets) for part, buckets in self._leaves.items()}
        self._number, self._before = number, digest
        if number and digest != link_of(before, number, _root(self._roots)):
            self._spoilt_links()

    def _spoilt_links(self) -> None:
        rows = self._buckets.setdefault((LINK_CHANGES, 0), {})
        rows["links"] = CHANGED
        self._dirty.add((LINK_CHANGES, 0))

    def _write(self) -> None:
        self._compare()
        changed: list[tuple[str, int, Stored]] = []
        gone: list[tuple[str, int]] = []
        for part, bucket in sorted(self._dirty):
            rows = self._buckets[part, bucket]
            leaves = self._leaves.setdefault(part, {})
            if rows:
                text = rows_text(rows)
                kept = stored(text) if self._packs else text
                leaves[bucket] = bucket_digest(kept)
                changed.append((part, bucket, kept))
            else:
                leaves.pop(bucket, None)
                gone.append((part, bucket))
        for part in {part for part, _ in self._dirty}:
            self._roots.pop(part, None)
            if self._leaves[part]:
                self._roots[part] = _part_root(self._leaves[part])
        self._sql.executemany("INSERT INTO link VALUES (?,?,?) ON CONFLICT DO UPDATE SET rows=excluded.rows", changed)
        if gone:
            self._sql.executemany("DELETE FROM link WHERE part=? AND bucket=?", gone)
        number = self._number + 1
        digest = link_of(self._before, number, _root(self._roots))
        self._sql.execute("UPDATE chain SET n=?, before=?, digest=? WHERE id=0", (number, self._before, digest))
        self._number, self._before = number, digest
        self._dirty.clear()
        self._buckets.clear()


POLL_CHANGES = "polls changed"
"""The part of ``link`` that lists the polls that did not match their digest when they became blocks."""
LINK_CHANGES = "links changed"


def _key_text(key: Value) -> str:
    return key if isinstance(key, str) else str(key)


def rows_in(kept: Stored) -> Rows:
    """The digests of a bucket by the keys of their rows; none where they cannot be read."""
    with suppress(ValueError, TypeError):
        rows = json.loads(text_of(kept))
        if isinstance(rows, dict):
            return {str(key): str(value) for key, value in rows.items()}
    return {}


def _part_root(buckets: Mapping[int, bytes]) -> bytes:
    return hashlib.sha256(b"".join(b"%d:%b" % item for item in sorted(buckets.items()))).digest()


def _root(roots: Mapping[str, bytes]) -> bytes:
    return hashlib.sha256(b"".join(b"%b:%b" % (part.encode(), root) for part, root in sorted(roots.items()))).digest()


def _triggers() -> Iterable[str]:
    """The triggers that report every row that is written, except in the parts that change with every poll."""
    yield ("CREATE TEMP TRIGGER soakwatch_chunk AFTER INSERT ON main.chunk BEGIN SELECT soakwatch_chunk(NEW.id); END")
    for part in PARTS:
        if part.live:
            yield from _triggers_of(part)


def _triggers_of(part: Part) -> Iterable[str]:
    columns = (part.key, *part.columns)
    name, table = f"soakwatch_{part.table}", f"main.{part.table}"
    old, new = (f"'{part.name}', " + ", ".join(f"{row}.{column}" for column in columns) for row in ("OLD", "NEW"))
    of = ", ".join(columns)
    was, now = f"SELECT soakwatch_was({old})", f"SELECT soakwatch_is({new})"
    yield f"CREATE TEMP TRIGGER {name}_is AFTER INSERT ON {table} BEGIN {now}; END"
    yield f"CREATE TEMP TRIGGER {name}_was_changed BEFORE UPDATE OF {of} ON {table} BEGIN {was}; END"
    yield f"CREATE TEMP TRIGGER {name}_is_changed AFTER UPDATE OF {of} ON {table} BEGIN {now}; END"
    yield f"CREATE TEMP TRIGGER {name}_gone BEFORE DELETE ON {table} BEGIN {was}; END"
    if part.key == "id":
        return
    # INSERT OR REPLACE fires no trigger of deletion for the row that it replaces.
    was = f"SELECT soakwatch_was('{part.name}', {of}) FROM {part.table} WHERE {part.key}=NEW.{part.key}"  # noqa: S608
    yield f"CREATE TEMP TRIGGER {name}_replaced BEFORE INSERT ON {table} BEGIN {was}; END"
