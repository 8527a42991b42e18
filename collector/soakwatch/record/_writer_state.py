"""What a writer remembers of the file between batches, and the rows it makes of a poll."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.record._chain import NewPoll
from soakwatch.record._compaction import count_recent
from soakwatch.record._packer import PollPacker
from soakwatch.record._rows import last_time, sources_of, storable
from soakwatch.record.model import OUTCOME_NUMBERS, Source
from soakwatch_model.event import Event
from soakwatch_model.sample import Fault, Poll

MAX_REASONS = 16
"""Maximum number of reasons that are kept for one metric of one object: a reason with a changing number would otherwise
add a row with each poll. Further reasons are counted in one last row that quotes the first of them."""

_MAX_ERROR_TEXTS = 1000  # error texts

POLL_INSERT = (
    "INSERT INTO poll (source, seq, due_ns, start_ns, duration_ns, outcome, error, layout, offsets, data, link)"
    " VALUES (?,?,?,?,?,?,?,?,?,?,?)"
)


class WriterState:
    """The state of a writer, read from the file. Make a new one after a rollback: this one remembers what was rolled
    back."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql
        self.sources = {source.id: source for source in sources_of(sql)}
        self.packer = PollPacker(sql, self.sources)
        self.recent = dict(count_recent(sql))  # source -> polls, samples that are not compacted
        self.polls_ns = last_time(sql, None)
        self._next_seq: dict[int, int] = dict(
            sql.execute(
                "SELECT source, max(seq) FROM (SELECT source, max(seq) AS seq FROM poll GROUP BY source UNION ALL"
                " SELECT source, max(first_seq + polls - 1) FROM chunk GROUP BY source) GROUP BY source"
            ).fetchall()
        )
        rows = sql.execute("SELECT source, metric, object, count(*) FROM fault GROUP BY source, metric, object")
        self._due_ns: dict[int, tuple[int, int]] = {  # source -> first and last due time
            source: (first, last)
            for source, first, last in sql.execute(
                "SELECT source, min(first), max(last) FROM (SELECT source, first_due_ns AS first, last_due_ns AS last"
                " FROM chunk UNION ALL SELECT source, due_ns, due_ns FROM poll) GROUP BY source"
            )
        }
        self._reasons: dict[tuple[int, str, str], int] = {
            (source, metric, name): count for source, metric, name, count in rows
        }
        self._errors: dict[str, int] = {}

    def take(self, source: Source, poll: Poll) -> NewPoll | None:
        """The row of a new poll; its faults and events are written at once.

        None for a poll that was due before the first one of its source: it does not belong to this run.
        """
        first_ns, last_ns = self._due_ns.get(source.id, (poll.due_ns, poll.due_ns - 1))
        if poll.due_ns < first_ns:
            return None
        self._due_ns[source.id] = first_ns, max(last_ns, poll.due_ns)
        packed = self.packer.pack(source, poll, late=poll.due_ns <= last_ns)
        seq = self._next_seq[source.id] = self._next_seq.get(source.id, 0) + 1
        for fault in poll.answer.faults:
            self._count(poll, fault)
        for fault in packed.faults:
            self._count(poll, fault)
        for event in poll.answer.events:
            insert_event(self._sql, source.target, event, "probe")
        polls, samples = self.recent.get(source.id, (0, 0))
        self.recent[source.id] = polls + 1, samples + packed.count
        self.polls_ns = max(self.polls_ns or poll.due_ns, poll.due_ns, poll.start_ns + poll.duration_ns)
        outcome, error = OUTCOME_NUMBERS[poll.outcome], self._error(poll.error)
        times = poll.due_ns, poll.start_ns, poll.duration_ns
        return (source.id, seq, *times, outcome, error, packed.layout, packed.offsets, packed.data)

    def know(self, source: Source) -> None:
        """Take note of a source that is new or has changed."""
        self.sources[source.id] = source
        self.packer.sources_changed()

    def polls_beyond(self, other: WriterState) -> int:
        """How many polls this state knows of that another one does not: they were stored after its last."""
        return sum(max(0, seq - other._next_seq.get(source, 0)) for source, seq in self._next_seq.items())

    def compacted(self, source: int, polls: int, samples: int) -> None:
        """Subtract polls and samples that were compacted from the recent ones of a source."""
        before = self.recent.get(source, (polls, samples))
        self.recent[source] = before[0] - polls, before[1] - samples

    def _error(self, text: str | None) -> int:
        if text is None:
            return 0
        known = self._errors.get(text)
        if known is None:
            kept = storable(text)
            self._sql.execute("INSERT OR IGNORE INTO error (text) VALUES (?)", (kept,))
            known = int(self._sql.execute("SELECT id FROM error WHERE text=?", (kept,)).fetchone()[0])
            if len(self._errors) >= _MAX_ERROR_TEXTS:
                self._errors.clear()
            self._errors[text] = known
        return known

    def _count(self, poll: Poll, fault: Fault) -> None:
        metric, name, text = storable(fault.metric), storable(fault.object), storable(fault.text)
        again = (
            "UPDATE fault SET first_ns=min(first_ns, ?), last_ns=max(last_ns, ?), count=count+1"
            " WHERE source=? AND metric=? AND object=? AND "
        )
        identity = poll.source, metric, name
        first_and_last = poll.start_ns, poll.start_ns, *identity
        if self._sql.execute(again + "text=?", (*first_and_last, text)).rowcount:
            return
        kept = self._reasons.get(identity, 0)
        if kept > MAX_REASONS and self._sql.execute(again + "text LIKE 'further reasons%'", first_and_last).rowcount:
            return
        if kept == MAX_REASONS:
            text = f"further reasons, the first of them: {text}"
        self._reasons[identity] = kept + 1
        self._sql.execute(
            "INSERT INTO fault (source, metric, object, text, first_ns, last_ns, count) VALUES (?,?,?,?,?,?,1)",
            (poll.source, metric, name, text, poll.start_ns, poll.start_ns),
        )


def insert_event(sql: sqlite3.Connection, target: str, event: Event, origin: str) -> int:
    """Write an event; returns its number."""
    number = sql.execute(
        "INSERT INTO event (origin, target, kind, object, begin_ns, end_ns, detail, expect, deadline_ns)"
        " VALUES (?,?,?,?,?,?,?,?,?)",
        (
            *(origin, storable(target), storable(event.kind), storable(event.object)),
            *(event.begin_ns, event.end_ns, json.dumps(dict(event.detail)), json.dumps(dict(event.expect))),
            event.deadline_ns,
        ),
    ).lastrowid
    assert number is not None
    return number


def change_event(sql: sqlite3.Connection, path: Path, number: int, end_ns: int | None, more: Mapping[str, str]) -> None:
    """Write the end of an event, and details that became known since. Raises RecordError if there is no such event."""
    row = sql.execute("SELECT end_ns, detail FROM event WHERE id=?", (number,)).fetchone()
    if row is None:
        raise RecordError(f"{path} has no event {number}")
    detail = json.dumps({**json.loads(row[1]), **more})
    sql.execute(
        "UPDATE event SET end_ns=?, detail=? WHERE id=?", (row[0] if end_ns is None else end_ns, detail, number)
    )
