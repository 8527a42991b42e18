"""The tables of a record and their version: a file of another version is refused.

Polls arrive in ``poll``, one row each, with the readings packed in the order of their ``layout``. Compaction moves them
into ``chunk`` (the columns of the polls of one source), ``axis`` (which polls a series has readings of, and how far
their times are from the polls' starts; shared by all series that have the same) and ``block`` (the readings of one
series). ``seq`` numbers the polls of a source from 1 and survives compaction. The ``source`` of a series is its owner,
the first that brought it; blocks of other sources hold what they brought instead while it was silent (``_owners``).
``link``, ``chain`` and ``seal`` reveal changes (``_chain``, ``seal``); ``rollup`` has the minutes of the series, a
cache (``_rollups``). The bytes of an artifact are compressed, ``size`` is their number when unpacked. A row of
``finding`` has all findings that one judging left, in ``body``; long texts are compressed there, in ``meta`` and in
``link`` (``_texts``).

Schema 5 is read and gone on with as it is: it has a row for each finding, no text is compressed, and the indexes of
series and faults belong to their tables.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from soakwatch.core.errors import RecordError

RECORD_NAME = "record.sqlite"
APPLICATION_ID = 0x536F616B  # "Soak"

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE target (name TEXT PRIMARY KEY, role TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE source (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, name TEXT NOT NULL, label TEXT NOT NULL,
  interval_ns INTEGER NOT NULL, required INTEGER NOT NULL, UNIQUE (target, name, label));
CREATE TABLE series (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, metric TEXT NOT NULL, object TEXT NOT NULL,
  source INTEGER NOT NULL, unit TEXT NOT NULL, kind TEXT NOT NULL, last_ns INTEGER);
CREATE UNIQUE INDEX series_name ON series (target, metric, object);
CREATE TABLE layout (
  id INTEGER PRIMARY KEY, series BLOB NOT NULL, kinds TEXT NOT NULL, digest BLOB NOT NULL UNIQUE);
CREATE TABLE error (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE poll (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, seq INTEGER NOT NULL, due_ns INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, outcome INTEGER NOT NULL, error INTEGER NOT NULL,
  layout INTEGER NOT NULL, offsets BLOB, data BLOB NOT NULL, link BLOB);
CREATE UNIQUE INDEX poll_source ON poll (source, seq);
CREATE TABLE chunk (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, first_seq INTEGER NOT NULL, polls INTEGER NOT NULL,
  samples INTEGER NOT NULL, first_block INTEGER NOT NULL, last_block INTEGER NOT NULL,
  first_due_ns INTEGER NOT NULL, last_due_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  due BLOB NOT NULL, start BLOB NOT NULL, duration BLOB NOT NULL, outcome BLOB NOT NULL, error BLOB NOT NULL);
CREATE UNIQUE INDEX chunk_source ON chunk (source, first_seq);
CREATE TABLE axis (
  id INTEGER PRIMARY KEY, chunk INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  positions BLOB, offsets BLOB);
CREATE TABLE block (
  id INTEGER PRIMARY KEY, series INTEGER NOT NULL, axis INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX block_series ON block (series);
CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT, origin TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL,
  object TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER, detail TEXT NOT NULL, expect TEXT NOT NULL,
  deadline_ns INTEGER);
CREATE TABLE fault (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, metric TEXT NOT NULL, object TEXT NOT NULL, text TEXT NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, count INTEGER NOT NULL);
CREATE INDEX fault_of ON fault (source, metric, object);
CREATE TABLE phase (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER);
CREATE TABLE finding (
  id INTEGER PRIMARY KEY, live INTEGER NOT NULL, judged_ns INTEGER NOT NULL, withdrawn_ns INTEGER,
  identity TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE artifact (
  name TEXT PRIMARY KEY, media TEXT NOT NULL, data BLOB NOT NULL, time_ns INTEGER, kind TEXT NOT NULL,
  about TEXT NOT NULL, size INTEGER NOT NULL);
CREATE TABLE cursor (sink TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE span (id INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE link (
  part TEXT NOT NULL, bucket INTEGER NOT NULL, rows TEXT NOT NULL, PRIMARY KEY (part, bucket));
CREATE TABLE chain (
  id INTEGER PRIMARY KEY, n INTEGER NOT NULL, before BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE seal (
  n INTEGER PRIMARY KEY, document TEXT NOT NULL, signature TEXT, stamp BLOB);
CREATE TABLE rollup (
  id INTEGER PRIMARY KEY, series INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, open INTEGER NOT NULL,
  last_block INTEGER NOT NULL, keys BLOB NOT NULL, figures BLOB NOT NULL);
CREATE INDEX rollup_series ON rollup (series, last);
INSERT INTO chain VALUES (0, 0, x'', x'');
"""
SCHEMA_VERSION = 6
_READ_TOO = frozenset({5})
_PACKS_TEXTS = 6  # from this version on
_SMALL_PAGES = ((2 << 20, 512), (8 << 20, 1024))
"""Up to so many bytes of a file pages of this size make it smallest. Above, a tenth of it is room in its pages, and to
write it again would take seconds."""


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty file, all of them or none. Raises sqlite3.Error."""
    pragmas = f"PRAGMA application_id={APPLICATION_ID:d}; PRAGMA user_version={SCHEMA_VERSION:d};"
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} {pragmas} COMMIT;")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_version(connection: sqlite3.Connection, path: Path) -> None:
    """Raise RecordError if an open file is no record, or one of a schema that this Soakwatch does not know."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise RecordError(f"{path} is not a record of Soakwatch: name a run's folder or its {RECORD_NAME}")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version != SCHEMA_VERSION and version not in _READ_TOO:
        writer = "a newer" if version > SCHEMA_VERSION else "an older"
        raise RecordError(
            f"{path} was written by {writer} Soakwatch, with schema version {version} where this one has"
            f" {SCHEMA_VERSION}: read it with the Soakwatch that wrote it"
        )


def packs_texts(connection: sqlite3.Connection) -> bool:
    """Whether long texts are compressed in this file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0]) >= _PACKS_TEXTS


def make_small(connection: sqlite3.Connection) -> None:
    """Rewrite the file of a short run, which nobody else has open, with small pages: half of it is room in pages that
    are not full. Raises sqlite3.Error; the file is then as it was."""
    pages, size = (connection.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_count", "page_size"))
    small = next((page for most, page in _SMALL_PAGES if pages * size <= most), None)
    if small is not None:
        connection.execute("DROP INDEX IF EXISTS series_name")
        connection.execute(f"PRAGMA page_size={small:d}")
        connection.execute("PRAGMA auto_vacuum=NONE")
        connection.execute("VACUUM")
