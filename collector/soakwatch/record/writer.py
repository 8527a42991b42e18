"""Record: the one writer of a run's file. Every call that changes something is one durable transaction."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import make_private_folder
from soakwatch.record import _artifacts, _rollups
from soakwatch.record._chain import Chain
from soakwatch.record._compaction import (
    COMPACT_POLLS,
    COMPACT_SAMPLES,
    compact_oldest,
    count_recent,
    drop_unused_layouts,
)
from soakwatch.record._files import BUSY_S, WAL_LIMIT, connect, record_file
from soakwatch.record._log_watch import LogWatch
from soakwatch.record._rows import CADENCES, EVENT_COLUMNS, event_of, last_time, storable
from soakwatch.record._schema import RECORD_NAME, make_small, make_tables, packs_texts
from soakwatch.record._sqlite_errors import RecordFullError, as_record_error, damaged
from soakwatch.record._texts import lines_of, stored, stored_lines
from soakwatch.record._writer_state import POLL_INSERT, WriterState, change_event, insert_event
from soakwatch.record.bulk import PollStretch, write_columns
from soakwatch.record.findings import finding_to_json, gone_alarms
from soakwatch.record.model import Artifact, Source, StoredEvent
from soakwatch.record.rescue import Identity, OpenFile, displaced, file_identity, moved_to_a_copy, side_files
from soakwatch.record.seal import Seal, write_seal
from soakwatch.record.writer_lock import is_lock_of, release_lock, take_lock
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding
from soakwatch_model.sample import Poll

_MAX_LAYOUTS = 1000  # unused layouts are removed when there are more: a source whose polls never have the same shape


class Record:
    """One record, open for writing. One thread at a time may call it; one process at a time has it open.

    Every method raises RecordError: RecordFullError if the disk refuses (nothing of the call is stored then, and it can
    be repeated), plain RecordError for a damaged file.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: int) -> None:
        self.path = path
        self._connection, self._lock = connection, lock
        self._guard = threading.RLock()
        self._closed = False
        self._pause = 0  # puts until compaction is tried again after the disk refused it
        self._packs = packs_texts(connection)
        self._chain = Chain(connection)
        self._state = WriterState(connection)
        self._stale = False  # a transaction was rolled back: the state must be worked out again
        self.events_added = 0
        """How many events ``add_event`` has stored."""
        self.lost_polls = 0
        """How many polls that were stored another program has taken out of the record since it was opened."""
        self._identity = file_identity(path)
        self._sides: Mapping[str, Identity] = {}
        self._log = LogWatch(path)
        self._data_version = 0  # SQLite's own: it changes when another program has written

    @classmethod
    def create(cls, folder: Path, fill: Callable[[Record], None] | None = None) -> Record:
        """Make a new record in ``folder``, which is made if needed; only the owner may read either.

        ``fill`` writes the first content before the file gets its name: a monitor that is killed meanwhile leaves no
        record. Raises RecordError if the folder holds one already.
        """
        path = folder / RECORD_NAME
        try:
            make_private_folder(folder)
        except OSError as error:
            raise as_record_error(error, folder) from None
        if path.exists():
            raise RecordError(f"{folder} already holds a record: go on with `soakwatch resume`, or name a new folder")
        try:
            return cls._locked(path, new=True, fill=fill)
        except RecordFullError:
            for leftover in folder.glob(f"{RECORD_NAME}*"):
                with suppress(OSError):
                    leftover.unlink()
            raise

    @classmethod
    def open(cls, folder_or_file: Path) -> Record:
        """Open an existing record to go on with it. Raises RecordError."""
        return cls._locked(record_file(folder_or_file), new=False)

    @classmethod
    def _locked(cls, path: Path, *, new: bool, fill: Callable[[Record], None] | None = None) -> Record:
        with ExitStack() as undo:
            try:
                descriptor = take_lock(path)
                undo.callback(release_lock, descriptor)
                if new and path.exists():
                    raise RecordError(f"{path} was made by another process just now: name a new folder")
                if new:
                    _make(path, descriptor, fill)
                connection = connect(path)
                undo.callback(connection.close)
                record = cls(path, connection, descriptor)
            except sqlite3.Error as error:
                raise as_record_error(error, path) from None
            except (ValueError, LookupError) as error:
                raise damaged(path, str(error)) from None
            undo.pop_all()
        return record

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what the run is about ---------------------------------------------------------------------------------

    def set_meta(self, key: str, value: str) -> None:
        """Keep a text under a key; an older one is replaced."""
        with self._writing() as sql:
            text = storable(value)
            kept = stored(text) if self._packs else text
            sql.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (storable(key), kept))

    def target(self, name: str, role: str) -> None:
        """Make a target and its role known."""
        with self._writing() as sql:
            sql.execute("INSERT OR REPLACE INTO target VALUES (?,?)", (storable(name), storable(role)))

    def source(self, target: str, name: str, label: str, interval_ns: int, required: bool) -> Source:  # noqa: FBT001
        """The source of this target, name and label; made if it is new, brought up to date if it is not."""
        identity = storable(target), storable(name), storable(label)
        with self._writing() as sql:
            sql.execute(
                "INSERT INTO source (target, name, label, interval_ns, required) VALUES (?,?,?,?,?)"
                " ON CONFLICT DO UPDATE SET interval_ns=excluded.interval_ns, required=excluded.required",
                (*identity, interval_ns, required),
            )
            number = sql.execute("SELECT id FROM source WHERE target=? AND name=? AND label=?", identity).fetchone()[0]
            role = sql.execute("SELECT role FROM target WHERE name=?", identity[:1]).fetchone()
        before = self._state.sources.get(number)
        cadences = () if before is None else before.cadences
        source = Source(number, *identity, interval_ns, required, role[0] if role else None, cadences)
        self._state.know(source)
        return source

    def cadences(self, source: int, seconds: Mapping[str, float]) -> None:
        """Set the interval in seconds of metrics that a source brings less often than it is polled."""
        self.set_meta(f"{CADENCES}{source}", json.dumps(dict(sorted(seconds.items()))))
        known = self._state.sources.get(source)
        if known is not None:
            self._state.know(replace(known, cadences=tuple(sorted(seconds.items()))))

    # --- what was seen -----------------------------------------------------------------------------------------

    def put(self, polls: Iterable[Poll]) -> None:
        """Store polls with their readings, faults and events as one transaction.

        A reading that the catalogue refuses, or that is not later than the one before it, becomes a fault; the others
        are kept. If several sources of a target see a series, one brings the readings: see ``_owners``. A poll for a
        due time that the record has already is a late poll: its readings may be earlier, and if it was answered it
        replaces the poll that was lost. On RecordError nothing is stored, and the same polls can be put again.
        """
        with self._writing() as sql:
            rows = []
            for poll in polls:
                source = self._state.sources.get(poll.source)
                if source is None:
                    raise RecordError(
                        f"{self.path} does not know the source {poll.source}: make it known with source()"
                    )
                row = self._state.take(source, poll)
                if row is not None:
                    rows.append(row)
            sql.executemany(POLL_INSERT, self._chain.linked(rows))
        self._compact_one()

    def put_columns(self, source: Source, stretch: PollStretch) -> None:
        """Store successive polls of a source directly as blocks, for readings that are complete already."""
        with self._writing() as sql:
            write_columns(sql, source, stretch)
        self._stale = True  # the state knows nothing of them

    def add_event(self, target: str, event: Event, origin: str) -> int:
        """Store an event of a target ("" for none); returns its number."""
        with self._writing() as sql:
            number = insert_event(sql, target, event, origin)
        self.events_added += 1
        return number

    def end_event(self, number: int, end_ns: int | None, detail: Mapping[str, str] | None = None) -> None:
        """Set when an event ended (None: leaves it as it is), and add to its ``detail``.

        Raises RecordError if there is no such event.
        """
        with self._writing() as sql:
            change_event(sql, self.path, number, end_ns, detail or {})

    def events_after(self, number: int) -> tuple[StoredEvent, ...]:
        """The events with a higher number, also those that other processes added."""
        with self._reading() as sql:
            rows = sql.execute(f"SELECT {EVENT_COLUMNS} FROM event WHERE id>? ORDER BY id", (number,))  # noqa: S608
            return tuple(event_of(row) for row in rows)

    def begin_phase(self, name: str, begin_ns: int) -> None:
        """Begin a phase; one that is open ends here."""
        with self._writing() as sql:
            sql.execute("UPDATE phase SET end_ns=? WHERE end_ns IS NULL", (begin_ns,))
            sql.execute("INSERT INTO phase (name, begin_ns) VALUES (?,?)", (storable(name), begin_ns))

    def end_phase(self, end_ns: int) -> None:
        """End the open phase, if there is one."""
        with self._writing() as sql:
            sql.execute("UPDATE phase SET end_ns=? WHERE end_ns IS NULL", (end_ns,))

    def begin_span(self, begin_ns: int) -> None:
        """Record that a life of the monitor begins."""
        with self._writing() as sql:
            sql.execute("INSERT INTO span (begin_ns, end_ns) VALUES (?,?)", (begin_ns, begin_ns))

    def heartbeat(self, now_ns: int) -> None:
        """Record that the monitor is still alive."""
        with self._writing() as sql:
            sql.execute("UPDATE span SET end_ns=? WHERE id=(SELECT max(id) FROM span)", (now_ns,))

    # --- what was made of it -----------------------------------------------------------------------------------

    def put_findings(self, findings: Iterable[Finding], live: bool, judged_ns: int) -> None:  # noqa: FBT001
        """Replace the findings of the judging before, live or final.

        A live failure or warning that is not found again is kept as withdrawn; everything else is replaced.
        """
        bodies = [finding_to_json(finding) for finding in findings]
        with self._writing() as sql:
            query = "SELECT judged_ns, body FROM finding WHERE live=? AND withdrawn_ns IS NULL ORDER BY id"
            rows = sql.execute(query, (live,)).fetchall() if live else []
            gone = gone_alarms((line for _, body in rows for line in lines_of(body)), bodies)
            sql.execute("DELETE FROM finding WHERE live=? AND withdrawn_ns IS NULL", (live,))
            new: list[tuple[bool, int, int | None, list[str]]] = [(live, judged_ns, None, bodies)]
            new += [(live, max(row[0] for row in rows), judged_ns, gone)] if gone else []
            sql.executemany(
                "INSERT INTO finding (live, judged_ns, withdrawn_ns, identity, outcome, body) VALUES (?,?,?,'','',?)",
                [(*row, cell) for *row, lines in new for cell in (stored_lines(lines) if self._packs else lines)],
            )

    def keep_artifact(self, artifact: Artifact) -> bool:
        """Keep a file that belongs to the run; an older one of its name is replaced. False where all of them together
        would be too large: then nothing is changed."""
        packed = _artifacts.packed(artifact.data)
        with self._writing() as sql:
            return _artifacts.keep(sql, artifact, packed)

    def set_cursor(self, sink: str, position: str) -> None:
        """Remember how far a sink has read (what ``RecordView.polls_after`` returned)."""
        with self._writing() as sql:
            sql.execute("INSERT OR REPLACE INTO cursor VALUES (?,?)", (storable(sink), position))

    def cursor(self, sink: str) -> str:
        """How far a sink has read; "" before its first poll."""
        with self._reading() as sql:
            row = sql.execute("SELECT position FROM cursor WHERE sink=?", (storable(sink),)).fetchone()
        return str(row[0]) if row else ""

    # --- the file ----------------------------------------------------------------------------------------------

    @property
    def last_ns(self) -> int | None:
        """The latest time that the record knows of: a poll, an edge of a phase, a heartbeat; None if it is empty."""
        with self._reading() as sql:
            return last_time(sql, self._state.polls_ns)

    def troubled(self, heard: Callable[[str], None] | None = None, pages: int | None = None) -> None:
        """For tests of what a run survives: ``heard`` is called before each statement, and the file grows by at most
        so many ``pages``, as on a disk that is full; None: no longer."""
        with self._reading() as sql:
            sql.set_trace_callback(heard)
            now = sql.execute("PRAGMA page_count").fetchone()[0]
            sql.execute(f"PRAGMA max_page_count={2**32 - 2 if pages is None else now + pages:d}").fetchall()

    def displaced(self) -> str:
        """What became of the file or of its log, in a few words, where another program took or cut it; "" if they are
        as they were. Counts ``lost_polls`` as well."""
        if self._identity is None:
            return ""
        why = displaced(self.path, self._identity) or self._log.trouble(WAL_LIMIT) or self._keep_lock()
        if not why:
            self._sides = side_files(self.path)
            self._count_lost()
        return why

    def rescue(self) -> str:
        """Go on in a whole copy of a record that is ``displaced``: at its own path if that is free, else beside it.

        Returns why that is impossible everywhere, "" once it is done; ``path`` says where it is now.
        """
        with self._guard:
            moved, why = moved_to_a_copy(OpenFile(self.path, self._connection, self._lock, self._identity, self._sides))
            if moved is not None:
                before = None if self._stale else self._state
                self.path, self._connection, self._lock = moved.path, moved.connection, moved.lock
                self._identity, self._log = file_identity(moved.path), LogWatch(moved.path)
                self._chain = Chain(self._connection)
                with self._reading() as sql:
                    self._state, self._stale = WriterState(sql), False
                self.lost_polls += 0 if before is None else before.polls_beyond(self._state)
        return why

    def compact(self, final: bool = False) -> None:  # noqa: FBT001, FBT002
        """Compact every source that has enough recent polls; with ``final`` every poll of every source."""
        for source in sorted(self._state.recent):
            while self._is_due(source) or (final and self._state.recent.get(source, (0, 0))[0]):
                if not self._compact(source):  # another program deleted what was counted here
                    self.lost_polls += self._state.recent.pop(source)[0]

    def finish(self) -> bool:
        """Compact everything and make one file of it that can be mailed.

        Returns False if readers kept the write-ahead log open, so that it stays beside the file; nothing is lost.
        """
        self.compact(final=True)
        with self._writing() as sql:
            drop_unused_layouts(sql)
            _rollups.drop(sql)
            self._state.packer.forget_layouts()
        with self._reading() as sql:
            sql.executescript("PRAGMA incremental_vacuum")  # execute() would free one page
            sql.execute("PRAGMA busy_timeout=500")  # a reader may stay long: it must not delay the end of a run
            try:
                sql.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                if sql.execute("PRAGMA journal_mode=DELETE").fetchone()[0] != "delete":
                    return False
                self._log = LogWatch(self.path)  # there is none any more
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                return False
            else:
                with suppress(sqlite3.OperationalError):  # a reader came, or the disk is full: it is whole as it is
                    make_small(sql)
                return True
            finally:
                sql.execute(f"PRAGMA busy_timeout={round(BUSY_S * 1000):d}")

    def put_seal(self, time_ns: int) -> Seal:
        """Seal everything that the record holds, at this time (UTC ns): see ``soakwatch.record.seal``. Returns the last
        seal if nothing changed since it was made."""
        with self._writing() as sql:
            self._chain.drop_late_links()
            self._chain.commit()  # the seal names this link
            return write_seal(sql, time_ns)

    def sign_seal(self, number: int, signature: str, stamp: bytes = b"") -> None:
        """Keep the signature of a seal and the answer of a time-stamp authority; an empty one changes nothing."""
        with self._writing() as sql:
            for column, value in (("signature", signature), ("stamp", stamp)):
                if value:
                    sql.execute(f"UPDATE seal SET {column}=? WHERE n=?", (value, number))  # noqa: S608

    def close(self) -> None:
        """Close the file and give up the lock; a second time does nothing."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
            with suppress(sqlite3.Error):
                self._connection.close()
            release_lock(self._lock)

    # --- inside ------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._guard:
            if self._closed:
                raise RecordError(f"{self.path} is closed")
            try:
                yield self._connection
            except (sqlite3.Error, OSError) as error:
                raise as_record_error(error, self.path) from None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as sql:
            if self._stale:
                self._state = WriterState(sql)
                self._stale = False
            try:
                with self._chain.transaction():
                    yield sql
            except BaseException:
                self._stale = True
                raise

    def _is_due(self, source: int) -> bool:
        polls, samples = self._state.recent.get(source, (0, 0))
        return polls >= COMPACT_POLLS or samples >= COMPACT_SAMPLES

    def _compact_one(self) -> None:
        """Compact one source if one is due. If the disk refuses, ``put`` has not failed: the polls are stored."""
        self._pause = max(0, self._pause - 1)
        due = next((source for source in self._state.recent if self._is_due(source)), None)
        if due is not None and not self._pause:
            try:
                if not self._compact(due):
                    self.lost_polls += self._state.recent.pop(due)[0]
            except RecordError:
                self._pause = 60

    def _keep_lock(self) -> str:
        """Take the lock anew if its file was deleted, before another process does; "" unless that was faster."""
        if is_lock_of(self.path, self._lock):
            return ""
        try:
            fresh = take_lock(self.path)
        except RecordFullError:
            return ""  # tried again at the next look
        except RecordError:
            return "its lock was deleted, and another process writes to it"
        release_lock(self._lock)
        self._lock = fresh
        return ""

    def _count_lost(self) -> None:
        """Compare the polls that are not compacted yet with those that were stored, if another program has written."""
        if self._stale or self._closed:
            return
        with suppress(sqlite3.Error), self._guard:  # what cannot be read, the next batch of polls reports
            version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            if version == self._data_version:
                return
            self._data_version = version
            stored = count_recent(self._connection)
            lost = sum(
                max(0, polls - stored.get(source, (0, 0))[0]) for source, (polls, _) in self._state.recent.items()
            )
            if lost:
                self.lost_polls, self._stale = self.lost_polls + lost, True

    def _compact(self, source: int) -> int:
        """How many polls were compacted: the oldest, or none if there is none."""
        with self._writing() as sql:
            polls, samples, series = compact_oldest(sql, source, self._chain.compacts)
            sql.executemany("UPDATE series SET last_ns=? WHERE id=?", self._state.packer.last_of(series))
            if sql.execute("SELECT count(*) FROM layout").fetchone()[0] > _MAX_LAYOUTS:
                drop_unused_layouts(sql)
                self._state.packer.forget_layouts()
        self._state.compacted(source, polls, samples)
        return polls


def _make(path: Path, lock: int, fill: Callable[[Record], None] | None) -> None:
    """Make a record under a temporary name, which becomes its own once it is complete. Raises sqlite3.Error, OSError,
    RecordError."""
    draft = path.with_name(f"{path.name}.new")
    for left in path.parent.glob(f"{draft.name}*"):  # by a monitor that was killed
        left.unlink()
    with closing(connect(draft, new=True)) as connection:
        make_tables(connection)
        if fill is not None:
            fill(Record(draft, connection, lock))
    draft.rename(path)


def add_outside_event(path: Path, target: str, event: Event, origin: str = "user") -> int:
    """Add an event from another process, also while the run goes on; returns its number. Raises RecordError."""
    file = record_file(path)
    try:
        with closing(connect(file)) as connection, Chain(connection).transaction() as sql:
            return insert_event(sql, target, event, origin)
    except sqlite3.Error as error:
        raise as_record_error(error, file) from None
