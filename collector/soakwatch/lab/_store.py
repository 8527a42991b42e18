"""The file of a lab server: jobs, schedules and audit in SQLite with a write-ahead log, each change one transaction.

APScheduler's own job store was not taken: it pickles, needs SQLAlchemy, and its transactions are its own, so that a
server that is killed between "the time has come" and "the job is queued" would run it twice or never.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from soakwatch.core.private_files import open_private
from soakwatch.lab.lab_model import AuditEntry, Job, JobState, Order, Schedule, StoreError, Testbed, User

VERSION = 1
_BUSY_S = 30.0
_JOBS = """CREATE TABLE IF NOT EXISTS job (
    id INTEGER PRIMARY KEY AUTOINCREMENT, state TEXT NOT NULL, rank INTEGER NOT NULL, schedule INTEGER, due_ns INTEGER,
    data TEXT NOT NULL, UNIQUE (schedule, due_ns))"""
_AUDIT = """CREATE TABLE IF NOT EXISTS audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, told INTEGER NOT NULL, data TEXT NOT NULL)"""
_TABLES = (
    "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    _JOBS,
    "CREATE INDEX IF NOT EXISTS job_state ON job (state, rank)",
    "CREATE TABLE IF NOT EXISTS schedule (id INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT NOT NULL)",
    _AUDIT,
    "CREATE INDEX IF NOT EXISTS audit_untold ON audit (told, run)",
)


class Store:
    """The kept state. For several threads; what is read within ``change`` is not changed by another meanwhile.

    Raises StoreError if the file cannot be used.
    """

    def __init__(self, file: Path) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self.version = 0
        """Rises with every change: what was made of the state holds until then."""
        try:
            open_private(file, append=True).close()  # its mode is right before anything is in it
            self._db = sqlite3.connect(file, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            with self.change():
                for statement in _TABLES:
                    self._db.execute(statement)
                if (kept := self.meta("version")) == "":
                    self.set_meta("version", str(VERSION))
            if kept and kept != str(VERSION):
                raise StoreError(f"{file} is of another version of Soakwatch ({kept}): use that one, or move it away")
        except (sqlite3.Error, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(f"the queue {file} cannot be used ({why}): check the file and its folder") from None

    def close(self) -> None:
        """Close the file; what was changed is kept."""
        with self._lock:
            self._db.close()

    @contextmanager
    def change(self) -> Iterator[None]:
        """One transaction: kept whole at its end, or not at all if the block raises. Raises StoreError."""
        with self._lock:
            if self._depth:  # within another one
                yield
                return
            self._depth += 1
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
                self.version += 1
            except sqlite3.Error as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise StoreError(f"the queue cannot be written ({error}): check the disk of the runs folder") from None
            finally:
                self._depth -= 1

    @contextmanager
    def still(self) -> Iterator[None]:
        """Nothing is changed within the block by another thread."""
        with self._lock:
            yield

    def meta(self, key: str) -> str:
        """A value of the server itself, "" if there is none."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else ""

    def set_meta(self, key: str, value: str) -> None:
        """Keep a value of the server itself."""
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))

    # --- jobs ---

    def add_job(self, job: Job) -> Job | None:
        """Keep a new job, at the end of the queue; None if its schedule made one for that time before."""
        with self.change():
            last = self._rows("SELECT COALESCE(MAX(rank), 0) FROM job")[0][0]
            job = replace(job, rank=int(str(last)) + 1)
            try:
                cursor = self._db.execute(
                    "INSERT INTO job (state, rank, schedule, due_ns, data) VALUES (?, ?, ?, ?, ?)",
                    (job.state, job.rank, job.schedule, job.due_ns, _text(job)),
                )
            except sqlite3.IntegrityError:
                return None
            return replace(job, id=cast("int", cursor.lastrowid))

    def put_job(self, job: Job) -> None:
        """Replace a job."""
        with self.change():
            self._db.execute(
                "UPDATE job SET state = ?, rank = ?, data = ? WHERE id = ?", (job.state, job.rank, _text(job), job.id)
            )

    def job(self, number: int) -> Job | None:
        """The job of a number."""
        found = self._rows("SELECT id, data FROM job WHERE id = ?", number)
        return _job(*found[0]) if found else None

    def jobs(self, state: JobState) -> list[Job]:
        """The jobs in a state, in the order of the queue."""
        return [_job(*row) for row in self._rows("SELECT id, data FROM job WHERE state = ? ORDER BY rank, id", state)]

    def ended_jobs(self, limit: int) -> list[Job]:
        """The jobs that are over, the newest first."""
        return [
            _job(*row)
            for row in self._rows(
                "SELECT id, data FROM job WHERE state NOT IN (?, ?) ORDER BY rank DESC, id DESC LIMIT ?",
                JobState.QUEUED,
                JobState.RUNNING,
                limit,
            )
        ]

    def forget_jobs(self, keep: int) -> list[int]:
        """Remove the oldest jobs that are over, but for ``keep``; their numbers."""
        over = [job.id for job in self.ended_jobs(-1)[keep:]]
        with self.change():
            self._db.executemany("DELETE FROM job WHERE id = ?", [(number,) for number in over])
        return over

    # --- schedules ---

    def add_schedule(self, schedule: Schedule) -> Schedule:
        """Keep a new schedule."""
        with self.change():
            cursor = self._db.execute("INSERT INTO schedule (data) VALUES (?)", (_text(schedule),))
            return replace(schedule, id=cast("int", cursor.lastrowid))

    def put_schedule(self, schedule: Schedule) -> None:
        """Replace a schedule."""
        with self.change():
            self._db.execute("UPDATE schedule SET data = ? WHERE id = ?", (_text(schedule), schedule.id))

    def remove_schedule(self, number: int) -> None:
        """Forget a schedule."""
        with self.change():
            self._db.execute("DELETE FROM schedule WHERE id = ?", (number,))

    def schedules(self) -> list[Schedule]:
        """Every schedule, in the order in which they were made."""
        return [_schedule(*row) for row in self._rows("SELECT id, data FROM schedule ORDER BY id")]

    # --- audit ---

    def add_audit(self, entry: AuditEntry) -> None:
        """Keep who did what."""
        with self.change():
            self._db.execute(
                "INSERT INTO audit (run, told, data) VALUES (?, ?, ?)", (entry.run, int(entry.told), _text(entry))
            )

    def tell(self, entry: AuditEntry) -> None:
        """Note that the record of the run has an entry."""
        with self.change():
            self._db.execute(
                "UPDATE audit SET told = 1, data = ? WHERE id = ?", (_text(replace(entry, told=True)), entry.id)
            )

    def untold(self) -> list[AuditEntry]:
        """What the records of runs do not have yet, oldest first."""
        return [
            _entry(*row) for row in self._rows("SELECT id, data FROM audit WHERE told = 0 AND run != '' ORDER BY id")
        ]

    def name_run(self, job: int, run: str) -> None:
        """Put the run into those entries of a job that no record has yet."""
        with self.change():
            for number, data in self._rows("SELECT id, data FROM audit WHERE told = 0"):
                entry = _entry(number, data)
                if entry.job == job:
                    named = replace(entry, run=run)
                    self._db.execute("UPDATE audit SET run = ?, data = ? WHERE id = ?", (run, _text(named), entry.id))

    def audit(self, limit: int, before: int | None = None) -> list[AuditEntry]:
        """The newest entries, newest first; those before a number."""
        rows = self._rows(
            "SELECT id, data FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?", before or 2**63 - 1, limit
        )
        return [_entry(*row) for row in rows]

    def _rows(self, statement: str, *values: object) -> list[tuple[object, ...]]:
        with self._lock:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.Error as error:
                raise StoreError(f"the queue cannot be read ({error}): check the disk of the runs folder") from None


def _text(thing: Job | Schedule | AuditEntry) -> str:
    data = asdict(thing)
    del data["id"]
    return json.dumps(data, ensure_ascii=False)


def _parts(data: object) -> dict[str, object]:
    parts = cast("dict[str, object]", json.loads(str(data)))
    if isinstance(user := parts.get("user"), dict):
        parts["user"] = User(**user)
    if isinstance(order := parts.get("order"), dict):
        parts["order"] = Order(order["plan"], order["labels"], tuple(order["values"]))
    return parts


def _job(number: object, data: object) -> Job:
    parts = _parts(data)
    bed = cast("Mapping[str, list[str]]", parts.pop("testbed"))
    state = JobState(str(parts.pop("state")))
    testbed = Testbed(tuple(bed["names"]), tuple(bed["hosts"]))
    return Job(id=cast("int", number), testbed=testbed, state=state, **parts)  # type: ignore[arg-type]


def _schedule(number: object, data: object) -> Schedule:
    parts = _parts(data)
    missed = tuple(cast("list[int]", parts.pop("missed")))
    return Schedule(id=cast("int", number), missed=missed, **parts)  # type: ignore[arg-type]


def _entry(number: object, data: object) -> AuditEntry:
    return AuditEntry(id=cast("int", number), **_parts(data))  # type: ignore[arg-type]
