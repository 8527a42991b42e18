"""The tables of a record, its version, and the steps that bring an older file up to date.

Polls arrive in ``poll``, one row each, with the readings packed in the order of their ``layout``. Compaction moves them
into ``chunk`` (the columns of the polls of one source), ``axis`` (which polls a series has readings of, and how far
their times are from the polls' starts; shared by all series that have the same) and ``block`` (the readings of one
series). ``seq`` numbers the polls of a source from 1 and survives compaction. The ``source`` of a series is its owner,
the first that brought it; blocks of other sources are what they stood in with (``owners``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from soakwatch.core.errors import RecordError

RECORD_NAME = "record.sqlite"
APPLICATION_ID = 0x536F616B  # "Soak"

_V1 = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS target (name TEXT PRIMARY KEY, role TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS source (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, name TEXT NOT NULL, label TEXT NOT NULL,
  interval_ns INTEGER NOT NULL, required INTEGER NOT NULL, UNIQUE (target, name, label));
CREATE TABLE IF NOT EXISTS series (
  id INTEGER PRIMARY KEY, target TEXT NOT NULL, metric TEXT NOT NULL, object TEXT NOT NULL,
  source INTEGER NOT NULL, unit TEXT NOT NULL, kind TEXT NOT NULL, last_ns INTEGER,
  UNIQUE (target, metric, object));
CREATE TABLE IF NOT EXISTS layout (
  id INTEGER PRIMARY KEY, series BLOB NOT NULL, kinds TEXT NOT NULL, digest BLOB NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS error (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS poll (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, seq INTEGER NOT NULL, due_ns INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL, outcome INTEGER NOT NULL, error INTEGER NOT NULL,
  layout INTEGER NOT NULL, offsets BLOB, data BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS poll_source ON poll (source, seq);
CREATE TABLE IF NOT EXISTS chunk (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, first_seq INTEGER NOT NULL, polls INTEGER NOT NULL,
  samples INTEGER NOT NULL, first_block INTEGER NOT NULL, last_block INTEGER NOT NULL,
  first_due_ns INTEGER NOT NULL, last_due_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  due BLOB NOT NULL, start BLOB NOT NULL, duration BLOB NOT NULL, outcome BLOB NOT NULL, error BLOB NOT NULL);
CREATE UNIQUE INDEX IF NOT EXISTS chunk_source ON chunk (source, first_seq);
CREATE TABLE IF NOT EXISTS axis (
  id INTEGER PRIMARY KEY, chunk INTEGER NOT NULL, first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL,
  positions BLOB, offsets BLOB);
CREATE TABLE IF NOT EXISTS block (
  id INTEGER PRIMARY KEY, series INTEGER NOT NULL, axis INTEGER NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS block_series ON block (series);
CREATE TABLE IF NOT EXISTS event (
  id INTEGER PRIMARY KEY AUTOINCREMENT, origin TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL,
  object TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER, detail TEXT NOT NULL, expect TEXT NOT NULL,
  deadline_ns INTEGER);
CREATE TABLE IF NOT EXISTS fault (
  id INTEGER PRIMARY KEY, source INTEGER NOT NULL, metric TEXT NOT NULL, object TEXT NOT NULL, text TEXT NOT NULL,
  first_ns INTEGER NOT NULL, last_ns INTEGER NOT NULL, count INTEGER NOT NULL,
  UNIQUE (source, metric, object, text));
CREATE TABLE IF NOT EXISTS phase (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER);
CREATE TABLE IF NOT EXISTS finding (
  id INTEGER PRIMARY KEY, live INTEGER NOT NULL, judged_ns INTEGER NOT NULL, withdrawn_ns INTEGER,
  identity TEXT NOT NULL, outcome TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS artifact (name TEXT PRIMARY KEY, media TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS cursor (sink TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS span (id INTEGER PRIMARY KEY, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
"""

_V2 = """
ALTER TABLE artifact ADD COLUMN time_ns INTEGER;
ALTER TABLE artifact ADD COLUMN kind TEXT NOT NULL DEFAULT '';
ALTER TABLE artifact ADD COLUMN about TEXT NOT NULL DEFAULT '';
ALTER TABLE artifact ADD COLUMN size INTEGER;
"""
"""The bytes of an artifact that has a ``size`` are compressed; those of older records have none and are plain."""

_V3 = """
ALTER TABLE poll ADD COLUMN link BLOB;
CREATE TABLE IF NOT EXISTS link (
  part TEXT NOT NULL, bucket INTEGER NOT NULL, rows TEXT NOT NULL, PRIMARY KEY (part, bucket));
CREATE TABLE IF NOT EXISTS chain (
  id INTEGER PRIMARY KEY, n INTEGER NOT NULL, before BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS seal (
  n INTEGER PRIMARY KEY, document TEXT NOT NULL, signature TEXT, stamp BLOB);
INSERT OR IGNORE INTO chain VALUES (0, -1, x'', x'');
"""
"""The chain of digests (``_chain``) and the seals (``seal``). A record that was begun without a chain has ``n`` -1: its
rows have no digests, and nothing can be said of what they were."""

_V4 = """
CREATE TABLE IF NOT EXISTS rollup (
  id INTEGER PRIMARY KEY, series INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, size INTEGER NOT NULL,
  last_block INTEGER NOT NULL, keys BLOB NOT NULL, figures BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS rollup_series ON rollup (series, last);
"""
"""Minutes of the series, a cache (``_rollups``)."""

STEPS: tuple[str, ...] = (_V1, _V2, _V3, _V4)
"""``STEPS[n]`` takes a file from version n to n + 1; a published step is never changed, only followed by another."""
SCHEMA_VERSION = len(STEPS)


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The schema version of an open file. Raises RecordError if it is no record, or one of a newer Soakwatch."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise RecordError(f"{path} is not a record of Soakwatch: name a run's folder or its {RECORD_NAME}")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"{path} has schema version {version} and this Soakwatch reads up to {SCHEMA_VERSION}: "
            "use the newer Soakwatch that wrote it"
        )
    return version


def migrate(connection: sqlite3.Connection, version: int, steps: Sequence[str] = STEPS) -> None:
    """Bring an open file from ``version`` up to ``len(steps)``: all steps in one transaction, or none."""
    if version >= len(steps):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID:d}")
        connection.execute(f"PRAGMA user_version={len(steps):d}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> list[str]:
    statements, pending = [], ""
    for line in script.splitlines():
        pending += line + "\n"
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements
