"""Events from other processes than the run's own, while the record is being written or afterwards."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from soakwatch.record._chain import Chain
from soakwatch.record._files import connect, record_file
from soakwatch.record._rows import EVENT_COLUMNS, event_of, storable
from soakwatch.record._sqlite_errors import as_record_error
from soakwatch.record._texts import text_of
from soakwatch.record._writer_state import insert_event
from soakwatch.record.model import USER_ORIGIN, StoredEvent
from soakwatch_model.event import Event


class ExternalEvents:
    """The events of one record within one transaction: nothing changes between reading and writing."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def meta(self, key: str) -> str | None:
        """The text kept under a key; None if there is none."""
        row = self._sql.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return None if row is None else text_of(row[0])

    def targets(self) -> frozenset[str]:
        """The names of the run's targets."""
        return frozenset(str(name) for (name,) in self._sql.execute("SELECT name FROM target"))

    def number(self) -> int:
        """The number of events that users added."""
        return int(self._sql.execute("SELECT count(*) FROM event WHERE origin=?", (USER_ORIGIN,)).fetchone()[0])

    def events(self, kind: str, target: str, name: str) -> tuple[StoredEvent, ...]:
        """Events of one kind, target and object, of any origin, oldest first."""
        query = f"SELECT {EVENT_COLUMNS} FROM event WHERE kind=? AND target=? AND object=? ORDER BY id"  # noqa: S608
        rows = self._sql.execute(query, (storable(kind), storable(target), storable(name))).fetchall()
        return tuple(event_of(row) for row in rows)

    def opened(self) -> tuple[StoredEvent, ...]:
        """Events that a user began and that have no end yet, oldest first."""
        query = f"SELECT {EVENT_COLUMNS} FROM event WHERE origin=? AND end_ns IS NULL ORDER BY id"  # noqa: S608
        return tuple(event_of(row) for row in self._sql.execute(query, (USER_ORIGIN,)).fetchall())

    def add(self, event: Event) -> StoredEvent:
        """Keep a new event."""
        return StoredEvent(insert_event(self._sql, event.target, event, USER_ORIGIN), USER_ORIGIN, event)

    def end(self, stored: StoredEvent, end_ns: int, labels: Mapping[str, str]) -> StoredEvent:
        """Set when an event ended, and add labels to its detail."""
        detail = {**stored.event.detail, **labels}
        self._sql.execute("UPDATE event SET end_ns=?, detail=? WHERE id=?", (end_ns, json.dumps(detail), stored.id))
        return replace(stored, event=replace(stored.event, end_ns=end_ns, detail=detail))


@contextmanager
def external_events(path: Path) -> Iterator[ExternalEvents]:
    """The events of the record in a folder, or of a record's file. The changes of the block are kept together, or none.

    A run that writes waits while the block lasts. Raises RecordError.
    """
    file = record_file(path)
    try:
        with closing(connect(file)) as connection, Chain(connection).transaction() as sql:
            yield ExternalEvents(sql)
    except sqlite3.Error as error:
        raise as_record_error(error, file) from None
