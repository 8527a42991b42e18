"""The seal of a record: a statement about everything in it. The SHA-256 of the statement is the digest that is shown.

The statement is text of a few lines: the run, when it was sealed, the last link of the chain, the seal before it, and
for each part of the record its number of rows and a digest over them. ``sha256sum`` of that text is the digest, and the
text is what is signed. A seal covers the events up to a number: those that are added later are counted and do not break
it. It does not cover the cursors of databases, nor the marks of what was done after the end (``promises``).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from soakwatch.core.ssh_signature import key_of
from soakwatch.record._chain import (
    CHANGED,
    LINK_CHANGES,
    POLL_CHANGES,
    bucket_digest,
    digest_text,
    link_of,
    root_of,
    rows_in,
)
from soakwatch.record._digests import (
    CHUNKS,
    PARTS,
    POLL_ROWS,
    POLLS,
    SEALS,
    Value,
    content_digests,
    schema_digest,
    stretch_seed,
    together,
    update_with_polls,
)
from soakwatch.record._texts import text_of

_TITLE = "soakwatch seal 1"
_EVENT = "event"
_SCHEMA = "schema"
_MOST_SHOWN = 20
_FROM_THE_END_ON = frozenset(part.name for part in PARTS if not part.live)
_LEFT_OUT = {part.name: frozenset(part.but) for part in PARTS}
_DAMAGE = (sqlite3.Error, ValueError, LookupError, TypeError, OverflowError, AttributeError)
"""What reading a damaged table may raise: numbers may be texts then, and texts undecodable."""
Digests = dict[str, list[tuple[Value, bytes]]]


@dataclass(frozen=True, slots=True)
class Seal:
    """One seal. ``document`` is the statement; ``links`` the number of links in the chain.

    ``signature`` is that of ``ssh-keygen -Y sign`` over the document, ``stamp`` the answer of a time-stamp authority
    (RFC 3161) about it; each is empty where there is none.
    """

    number: int
    document: str
    signature: str = ""
    stamp: bytes = b""

    @property
    def digest(self) -> str:
        """The SHA-256 of the statement: 64 hexadecimal digits."""
        return hashlib.sha256(self.document.encode("utf-8", "surrogateescape")).hexdigest()

    @property
    def facts(self) -> dict[str, str]:
        """The lines of the statement by their first words."""
        pairs = (line.split(": ", 1) for line in self.document.splitlines()[1:])
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}

    @property
    def sealed(self) -> str:
        """When it was sealed, by the clock of the monitor, in UTC."""
        return self.facts.get("sealed", "")

    @property
    def links(self) -> int:
        """How many links the chain had."""
        text = self.facts.get("links", "")
        return int(text) if text.isdecimal() else 0

    @property
    def last_event(self) -> int:
        """The highest number of an event that it covers."""
        text = self.facts.get("events up to", "")
        return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True)
class Change:
    """What is not as it was written: a table, the key of a row ("" for the table as a whole), and what is wrong."""

    table: str
    row: str
    what: str

    def __str__(self) -> str:
        where = f"table {self.table}" + (f", row {self.row}" if self.row else "")
        return f"{where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a record against its digests.

    ``seal`` is the last seal, None if it was never sealed. ``events_since`` counts events that were added after the
    seal.
    """

    links: int
    seal: Seal | None
    changes: tuple[Change, ...] = ()
    events_since: int = 0
    earlier: tuple[str, ...] = field(default=())
    """The digests of the seals before the last one, oldest first."""

    @property
    def changed(self) -> bool:
        """Whether something is not as it was written or sealed."""
        return bool(self.changes)

    @property
    def words(self) -> str:
        """What was changed, in one line; "" where nothing was."""
        if not self.changes:
            return ""
        more = len(self.changes) - 3
        told = "; ".join(str(change) for change in self.changes[:3]) + (f"; and {more} more" if more > 0 else "")
        return f"changed since it was {'sealed' if self.seal is not None else 'written'}: {told}"


def seals_in(sql: sqlite3.Connection) -> tuple[Seal, ...]:
    """The seals of a record, oldest first."""
    rows = sql.execute("SELECT n, document, signature, stamp FROM seal ORDER BY n").fetchall()
    return tuple(
        Seal(int(n), str(document), "" if sign is None else str(sign), stamp if isinstance(stamp, bytes) else b"")
        for n, document, sign, stamp in rows
    )


def write_seal(sql: sqlite3.Connection, time_ns: int) -> Seal:
    """Seal the record inside the caller's transaction, whose rows are linked. Nothing is written if the last seal says
    the same."""
    digests = dict(content_digests(sql))
    seals = seals_in(sql)
    last_event = max((key for key, _ in digests[_EVENT] if isinstance(key, int)), default=0)
    chain = sql.execute("SELECT n, digest FROM chain WHERE id=0").fetchone()
    run = sql.execute("SELECT value FROM meta WHERE key='run'").fetchone()
    before = seals[-1].digest if seals else "none"
    parts = [f"table {name}: {text}" for name, text in _part_lines(digests, last_event, schema_digest(sql))]
    head = [
        _TITLE,
        f"run: {_one_line(text_of(run[0])) if run else ''}",
        f"sealed: {datetime.fromtimestamp(time_ns // 10**9, UTC).strftime('%Y-%m-%dT%H:%M:%SZ')}",
        f"links: {0 if chain is None else chain[0]}",
        f"chain: {'none' if chain is None else chain[1].hex()}",
        f"before: {before}",
        f"events up to: {last_event}",
    ]
    if seals and seals[-1].document.splitlines()[6:] == [head[6], *parts]:
        return seals[-1]
    document = "\n".join([*head, *parts]) + "\n"
    number = seals[-1].number + 1 if seals else 1
    sql.execute("INSERT INTO seal (n, document) VALUES (?,?)", (number, document))
    return Seal(number, document)


def check(sql: sqlite3.Connection) -> Checked:
    """Check a record against its links and its last seal; reads all of it. Damage never raises: what cannot be read is
    a change."""
    before = sql.text_factory
    sql.text_factory = _any_text  # damaged texts are reported and must not stop the check
    try:
        return _check(sql)
    except _DAMAGE as error:
        return Checked(links=0, seal=None, changes=(Change("seal", "", f"cannot be read ({error})"),))
    finally:
        sql.text_factory = before


def _check(sql: sqlite3.Connection) -> Checked:
    row = sql.execute("SELECT n, before, digest FROM chain WHERE id=0").fetchone()
    seals = seals_in(sql)
    seal = seals[-1] if seals else None
    changes: list[Change] = list(_structure(sql))
    digests: Digests = {}
    try:
        digests = dict(content_digests(sql))
    except _DAMAGE as error:
        changes.append(Change("(any)", "", f"cannot be read ({error})"))
    links = 0 if row is None else row[0]
    changes += _link_changes(sql, row)
    if digests:
        changes += _row_changes(sql, digests, seal)
    changes += _poll_changes(sql)
    since = 0
    if seal is not None:
        changes += _seal_changes(sql, seals, row)
        since = sum(isinstance(key, int) and key > seal.last_event for key, _ in digests.get(_EVENT, []))
        if digests:
            told = {change.table for change in changes}
            changes += [c for c in _part_changes(sql, digests, seal) if c.table not in told]
    return Checked(links, seal, tuple(dict.fromkeys(changes)), since, tuple(s.digest for s in seals[:-1]))


def _structure(sql: sqlite3.Connection) -> Iterator[Change]:
    """Whether the file is sound, its indexes agree with its tables, and every block belongs to a chunk."""
    try:
        problems = [str(row[0]) for row in sql.execute(f"PRAGMA integrity_check({_MOST_SHOWN})").fetchall()]
        for problem in problems:
            if problem != "ok":
                yield Change("(file)", "", problem.splitlines()[-1])
        blocks, spans = (
            sql.execute(query).fetchone()[0]
            for query in (
                "SELECT count(*) FROM block",
                "SELECT coalesce(sum(last_block - first_block + 1), 0) FROM chunk",
            )
        )
        if blocks != spans:
            yield Change("block", "", f"has {blocks} rows, and the chunks name {spans}")
        strays = sql.execute(
            "SELECT count(*) FROM axis WHERE id NOT IN (SELECT axis FROM block) OR chunk NOT IN (SELECT id FROM chunk)"
        ).fetchone()[0]
        if strays:
            yield Change("axis", "", f"has {strays} rows that belong to no block")
        numbers = [row for row in sql.execute("SELECT name, seq FROM sqlite_sequence").fetchall() if row[1]]
        last = sql.execute("SELECT max(id) FROM event").fetchone()[0]
        if numbers != ([("event", last)] if last else []):
            yield Change("sqlite_sequence", "", "does not fit the events")
    except sqlite3.Error as error:
        yield Change("(file)", "", str(error))


def _link_changes(sql: sqlite3.Connection, row: tuple[int, bytes, bytes] | None) -> Iterator[Change]:
    if row is None:
        yield Change("chain", "", "its row is gone")
        return
    if sql.execute("SELECT count(*) FROM chain").fetchone()[0] != 1:
        yield Change("chain", "", "has more than its one row")
    leaves: dict[str, dict[int, bytes]] = {}
    for part, bucket, rows in sql.execute("SELECT part, bucket, rows FROM link"):
        leaves.setdefault(part, {})[bucket] = bucket_digest(rows)
    number, before, digest = row
    if number < 0 or (digest != link_of(before, number, root_of(leaves)) if number else bool(leaves)):
        yield Change("link", "", "the digests are not those of the last link of the chain")


def _row_changes(sql: sqlite3.Connection, digests: Digests, seal: Seal | None) -> Iterator[Change]:
    """Rows that do not match their digest."""
    linked: dict[str, dict[str, str]] = {}
    for part, rows in sql.execute("SELECT part, rows FROM link"):
        linked.setdefault(part, {}).update(rows_in(rows))
    for name in linked.pop(POLL_CHANGES, {}):
        yield Change(POLLS, name, "changed before they were compacted")
    if linked.pop(LINK_CHANGES, {}):
        yield Change("link", "", "changed while the record was written")
    names = [*digests, *(name for name in linked if name not in digests)]
    for name in names:
        if name == POLLS or (name in _FROM_THE_END_ON and (seal is None or name not in linked)):
            continue
        table = name.partition(".")[0]
        known = linked.get(name, {})
        found = {str(key): digest_text(digest) for key, digest in digests.get(name, [])}
        for key in [*known, *(key for key in found if key not in known)]:
            if known.get(key) == CHANGED:
                yield Change(table, key, "was changed while the record was written")
            elif key not in found:
                yield Change(table, key, "is gone")
            elif key not in known:
                yield Change(table, key, "was not there")
            elif known[key] != found[key]:
                what = "its polls or readings are not those that were written" if name == CHUNKS else "changed"
                yield Change(table, key, what)


def _poll_changes(sql: sqlite3.Connection) -> Iterator[Change]:
    """Polls that are not compacted and do not match their links."""
    try:
        for (source,) in sql.execute("SELECT DISTINCT source FROM poll ORDER BY source").fetchall():
            digest, row = None, None
            for row in sql.execute(f"{POLL_ROWS} WHERE source=? ORDER BY seq", (source,)):
                if digest is None:
                    digest = hashlib.sha256(stretch_seed(source, row[0]))
                update_with_polls(digest, (row[:9],))
                if row[9] is not None and row[9] != digest.digest():
                    break
            else:
                if row is None or row[9] is not None:
                    continue
            yield Change(POLLS, f"source {source}, up to poll {row[0]}", "not those that were written")
    except _DAMAGE as error:
        yield Change(POLLS, "", f"cannot be read ({error})")


def _seal_changes(
    sql: sqlite3.Connection, seals: Sequence[Seal], chain: tuple[int, bytes, bytes] | None
) -> Iterator[Change]:
    """Seals that do not follow each other or hold values of another type, and a chain that is not the sealed one."""
    before = "none"
    for number, seal in enumerate(seals, 1):
        if seal.number != number or seal.document.splitlines()[:1] != [_TITLE] or seal.facts.get("before") != before:
            yield Change("seal", str(seal.number), "does not follow the seal before it")
        if seal.signature and not key_of(seal.signature):
            yield Change("seal", str(seal.number), "its signature is none")
        before = seal.digest
    for (wrong,) in sql.execute(
        "SELECT n FROM seal WHERE typeof(document) <> 'text' OR typeof(signature) NOT IN ('text', 'null')"
        " OR typeof(stamp) NOT IN ('blob', 'null')"
    ):
        yield Change("seal", str(wrong), "holds something else")
    if chain is not None:
        number, link_before, _ = chain
        last = seals[-1]  # the seal itself has the next link
        if number <= last.links or (number == last.links + 1 and link_before.hex() != last.facts.get("chain")):
            yield Change("chain", "", "is not the one that was sealed")


def _part_changes(sql: sqlite3.Connection, digests: Digests, seal: Seal) -> Iterator[Change]:
    """Parts that do not match the seal."""
    said = {name.removeprefix("table "): text for name, text in seal.facts.items() if name.startswith("table ")}
    now = dict(_part_lines(digests, seal.last_event, schema_digest(sql)))
    for name in dict.fromkeys((*said, *now)):
        if said.get(name) != now.get(name):
            what = f"{_rows_of(said.get(name))} when it was sealed, {_rows_of(now.get(name))} now, with other content"
            yield Change(name.partition(".")[0], "", what)


def _rows_of(text: str | None) -> str:
    return "nothing" if text is None else text.rpartition(" ")[0]


def _part_lines(digests: Digests, last_event: int, schema: bytes) -> Iterable[tuple[str, str]]:
    for name, rows in digests.items():
        if name == SEALS:
            continue
        left_out = _LEFT_OUT.get(name, frozenset())
        kept = [
            digest
            for key, digest in rows
            if key not in left_out and not (name == _EVENT and isinstance(key, int) and key > last_event)
        ]
        yield name, f"{len(kept)} row{'' if len(kept) == 1 else 's'} {together(kept).hex()}"
    yield _SCHEMA, f"of the file {schema.hex()}"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _any_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
