"""Converts rows of the small tables to the types that the record returns, and texts to what SQLite can keep."""

from __future__ import annotations

import json
import sqlite3

from soakwatch.record._texts import text_of
from soakwatch.record.model import Source, StoredEvent
from soakwatch_model.event import Event

CADENCES = "cadences:"  # and the source's number: a key of meta
EVENT_COLUMNS = "id, origin, target, kind, object, begin_ns, end_ns, detail, expect, deadline_ns"
EventRow = tuple[int, str, str, str, str, int, int | None, str, str, int | None]


def storable(text: str) -> str:
    r"""The text, with what UTF-8 cannot carry (half of a surrogate pair, as in undecodable file names) escaped.

    >>> storable("a\udcffb")
    'a\\udcffb'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def event_of(row: EventRow) -> StoredEvent:
    """The event of one row of ``EVENT_COLUMNS``."""
    number, origin, target, kind, name, begin_ns, end_ns, detail, expect, deadline_ns = row
    event = Event(kind, target, name, begin_ns, end_ns, json.loads(detail), json.loads(expect), deadline_ns)
    return StoredEvent(number, origin, event)


def sources_of(sql: sqlite3.Connection) -> tuple[Source, ...]:
    """All sources with the roles of their targets, by id."""
    rows = sql.execute(
        "SELECT id, source.target, source.name, label, interval_ns, required, role"
        " FROM source LEFT JOIN target ON target.name = source.target ORDER BY id"
    ).fetchall()
    cadences = sql.execute("SELECT key, value FROM meta WHERE key GLOB 'cadences:*'").fetchall()
    texts = {key: text_of(value) for key, value in cadences}
    return tuple(
        Source(
            number,
            target,
            name,
            label,
            interval_ns,
            bool(required),
            role,
            _cadences(texts.get(f"{CADENCES}{number}")),
        )
        for number, target, name, label, interval_ns, required, role in rows
    )


def _cadences(text: str | None) -> tuple[tuple[str, float], ...]:
    return tuple(sorted((str(key), float(value)) for key, value in json.loads(text or "{}").items()))


def last_time(sql: sqlite3.Connection, polls_ns: int | None) -> int | None:
    """The latest time in the record; ``polls_ns`` is that of its polls, if the caller knows it.

    The times of readings do not count: they come from the device.
    """
    if polls_ns is None:
        polls_ns = sql.execute(
            "SELECT max(t) FROM (SELECT max(last_ns) AS t FROM chunk UNION ALL"
            " SELECT max(max(due_ns, start_ns + duration_ns)) FROM poll)"
        ).fetchone()[0]
    others = sql.execute(
        "SELECT max(t) FROM (SELECT max(begin_ns) AS t FROM phase UNION ALL SELECT max(end_ns) FROM phase"
        " UNION ALL SELECT max(end_ns) FROM span)"
    ).fetchone()[0]
    known = [time_ns for time_ns in (polls_ns, others) if time_ns is not None]
    return max(known, default=None)
