"""DuckDB over the files of an archive: the only module of the archive that speaks SQL, beside the questions.

A statement of a user is read-only by three means: it must be one SELECT; no file can be opened but those of the tables;
and the configuration, which says so, is locked. Extensions are never loaded.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from soakwatch.core.installation import to_add_package
from soakwatch.core.workers.local import processors
from soakwatch.transfer.archive.state import Archive, ArchiveError, inside, remedy, require_whole, wrong_with
from soakwatch.transfer.archive.tables import INDEX, NIGHT, READINGS, Column, Table, Value

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")
Parameters = Mapping[str, str | Sequence[str]]
_MEMORY: Final = "1GB"
"""The most memory of a question; one that would need more is refused, for it may write no file."""
_ROWS_OF_GROUP = 60_000
_PIECE = 2_000
_TYPES: Mapping[str, str] = {
    "text": "VARCHAR",
    "int": "BIGINT",
    "float": "DOUBLE",
    "time": "TIMESTAMP_NS",
    "yes or no": "BOOLEAN",
}
_CONFIG: Mapping[str, str | bool | int | float | list[str]] = {
    "allow_persistent_secrets": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "memory_limit": _MEMORY,
}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which rows are asked; an empty tuple or text is no filter. Globs are those of a shell; nights are days as text,
    the first and the last; ``phase`` None: all phases, "": the whole run."""

    releases: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()
    nights: tuple[str, str] = ("", "")
    phase: str | None = None


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Known:
    """A run that an archive has: the SHA-256 of its record, and the files of its readings."""

    run: str
    night: str
    content: str
    readings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A target of a run in a file of runs, and the file of its readings; "" and 0 where it has none."""

    key: str
    run: str
    night: str
    device: str
    readings: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a statement as they come, in columns with these names. Times are ISO 8601 in UTC."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Value, ...]]


def needs_duckdb() -> None:
    """Raises ArchiveError if DuckDB or pyarrow is not installed."""
    try:
        import duckdb  # noqa: F401 - only checks that they are there
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ArchiveError(f"an archive needs DuckDB and pyarrow: {to_add_package('duckdb', 'pyarrow')}") from None


class Database:
    """The tables of an archive, of which some rows are asked. Every method raises ArchiveError."""

    def __init__(self, archive: Archive, sql: duckdb.DuckDBPyConnection) -> None:
        self._archive, self._sql = archive, sql

    def known(self) -> dict[str, Known]:
        """The runs by their keys."""
        rows = self.ask(
            "SELECT key, any_value(run), any_value(night)::VARCHAR, any_value(content),"
            " coalesce(array_to_string(list(readings), chr(10)), '') FROM runs GROUP BY key"
        ).rows
        found = {}
        for key, run, night, content, readings in rows:
            found[str(key)] = Known(str(run), str(night), str(content), tuple(str(readings).split()))
        return found

    def releases(self) -> tuple[str, ...]:
        """The releases of all runs."""
        return self.texts("SELECT DISTINCT release FROM runs WHERE release IS NOT NULL ORDER BY release")

    def phases(self) -> tuple[str, ...]:
        """The phases of all series."""
        return self.texts("SELECT DISTINCT phase FROM series WHERE phase <> '' ORDER BY phase")

    def there(self, column: str) -> tuple[str, ...]:
        """The texts of a column of the runs."""
        return self.texts(f'SELECT DISTINCT "{column}" FROM runs ORDER BY 1')  # noqa: S608 - a name of ours

    def texts(self, statement: str) -> tuple[str, ...]:
        """The first column of a statement's answer, as texts."""
        return tuple(str(row[0]) for row in self.ask(statement).rows)

    def require_select(self, statement: str) -> None:
        """Raises ArchiveError unless a text is one SELECT."""
        import duckdb

        try:
            found = self._sql.extract_statements(statement)
        except duckdb.Error as error:
            raise ArchiveError(f"--sql: {_first_line(error)}") from None
        if len(found) != 1 or found[0].type != duckdb.StatementType.SELECT:
            raise ArchiveError("--sql: the archive can only be read: write one SELECT")

    def ask(self, statement: str, parameters: Parameters | None = None) -> Answer:
        """What a statement answers."""
        import duckdb

        try:
            done = self._interruptible(lambda: self._sql.execute(statement, dict(parameters or {})))
            names = tuple(column[0] for column in done.description or ())
            first = self._interruptible(lambda: done.fetchmany(_PIECE))
        except duckdb.Error as error:
            raise _failed(self._archive, error) from None
        return Answer(names, self._rest(first))

    def _interruptible(self, work: Callable[[], T]) -> T:
        return _interruptible(self._sql, work)

    def _rest(self, piece: list[tuple[object, ...]]) -> Iterator[tuple[Value, ...]]:
        import duckdb

        while piece:
            yield from (tuple(map(_plain, row)) for row in piece)
            try:
                piece = self._interruptible(lambda: self._sql.fetchmany(_PIECE))
            except duckdb.Error as error:
                raise _failed(self._archive, error) from None


def _interruptible(sql: duckdb.DuckDBPyConnection, work: Callable[[], T]) -> T:
    """What ``work`` returns; Ctrl-C ends it, which DuckDB itself does not see while it works, or makes an error of."""
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(work)
        try:
            return future.result()
        except KeyboardInterrupt:
            while not future.done():  # an interrupt before the statement has begun is lost
                sql.interrupt()
                wait([future], timeout=0.05)
            raise


def _failed(archive: Archive, error: duckdb.Error) -> ArchiveError:
    """The sentence about a statement that has no answer."""
    import duckdb

    said, folder = _first_line(error), str(archive.folder.resolve())
    if isinstance(error, duckdb.OutOfMemoryException):
        return ArchiveError(f"the answer needs more than {_MEMORY} of memory: name fewer nights, devices or metrics")
    if isinstance(error, duckdb.PermissionException):
        return ArchiveError("--sql: only the tables of the archive can be read: soakwatch query tables lists them")
    if folder in said:
        return ArchiveError(f"a file of the archive is damaged ({said}): {remedy(archive)}")
    if not isinstance(error, duckdb.ParserException | duckdb.BinderException | duckdb.CatalogException):
        # Bytes that were changed within a file make errors of any kind, which do not name it.
        listed = {file.path: (file.bytes, file.sha256) for file in archive.files}
        for path, why in wrong_with(archive, listed, digests=True).items():
            return ArchiveError(f"{archive.folder / path} {why}: {remedy(archive)}")
    return ArchiveError(f"--sql: {said}")


def _plain(value: object) -> Value:
    """A value as text or number; times as ISO 8601 in UTC, lists and the like as JSON."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False, default=str)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def _literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _list(texts: Sequence[str]) -> str:
    return "[" + ", ".join(map(_literal, texts)) + "]"


def _conditions(table: Table, filters: Filters) -> str:
    """What rows of a table are asked."""
    names = frozenset(table.names)
    parts = []
    if filters.releases and "release" in names:
        parts.append(f"release IN {_tuple(filters.releases)}")
    if filters.roles and "role" in names:
        parts.append(f"role IN {_tuple(filters.roles)}")
    for column, globs in (("device", filters.devices), ("metric", filters.metrics), ("process", filters.processes)):
        if globs and column in names:
            parts.append("(" + " OR ".join(f"{column} GLOB {_literal(glob)}" for glob in globs) + ")")
    first, last = filters.nights
    parts += [f"night >= {_literal(first)}::DATE"] if first else []
    parts += [f"night <= {_literal(last)}::DATE"] if last else []
    if filters.phase is not None and "phase" in names:
        parts.append(f"phase = {_literal(filters.phase)}")
    return " AND ".join(parts) or "true"


def _tuple(texts: Sequence[str]) -> str:
    return "(" + ", ".join(map(_literal, texts)) + ")"


def _view(table: Table, files: Sequence[Path], columns: Sequence[Column], renamed: str, where: str) -> str:
    if not files:
        typed = ", ".join(f"NULL::{_TYPES[column.kind]} AS {column.name}" for column in columns)
        return f"CREATE VIEW {table.name} AS SELECT {typed}, NULL::DATE AS {NIGHT.name} WHERE false"
    paths = _list([str(file) for file in files])
    types = "{'night': DATE, 'device': VARCHAR}" if table is READINGS else "{'night': DATE}"
    return (
        f"CREATE VIEW {table.name} AS SELECT {renamed} FROM"  # noqa: S608 - every text of others is a literal
        f" read_parquet({paths}, hive_partitioning=true, hive_types={types}) WHERE {where}"
    )


@contextmanager
def opened(archive: Archive, filters: Filters, *, readings: bool = False) -> Iterator[Database]:
    """The tables of an archive, read-only; ``readings`` are a table only if they are asked for, for every file costs a
    look. Raises ArchiveError if a file is missing or has another size."""
    needs_duckdb()
    import duckdb

    require_whole(archive, frozenset(INDEX))
    folder = archive.folder.resolve()
    sql = duckdb.connect(":memory:", config={**_CONFIG, "threads": processors(), "temp_directory": ""})

    def run(statement: str, parameters: Mapping[str, object] | None = None) -> None:
        _interruptible(sql, lambda: sql.execute(statement, parameters))

    try:
        database = Database(archive, sql)
        allowed: list[Path] = []
        try:
            for table in INDEX.values():
                files = [inside(folder, file.path) for file in archive.of(table.name)]
                run(_view(table, files, table.columns, "*", _conditions(table, filters)))
                allowed += files
            if readings:
                paths = database.texts("SELECT readings FROM runs WHERE readings IS NOT NULL ORDER BY night, readings")
                files = [inside(folder, path) for path in paths]
                for file in files:
                    if not file.is_file():
                        raise ArchiveError(f"{file} is missing: {remedy(archive)}")
                where = _conditions(READINGS, filters)
                renamed = "run AS key, * EXCLUDE (run)"
                run(_view(READINGS, files, READINGS.columns, renamed, where))
                allowed += files
            run("SET allowed_paths=$paths", {"paths": [str(file) for file in allowed]})
            run("SET enable_external_access=false")
            run("SET lock_configuration=true")
        except duckdb.Error as error:
            raise _failed(archive, error) from None
        yield database
    finally:
        sql.close()


def runs_of_files(files: Sequence[Path]) -> list[HeldRun]:
    """The targets of the runs in some files of runs. Raises ArchiveError for a file that is damaged."""
    import duckdb

    if not files:
        return []
    with duckdb.connect(":memory:", config=dict(_CONFIG)) as sql:
        try:
            rows = sql.execute(
                "SELECT key, run, night::VARCHAR, device, coalesce(readings, ''), coalesce(readings_bytes, 0),"
                " coalesce(readings_sha256, '') FROM read_parquet($files, hive_partitioning=true) ORDER BY 3, 2, 4",
                {"files": [str(file) for file in files]},
            ).fetchall()
        except duckdb.Error as error:
            raise ArchiveError(f"a file of runs cannot be read: {_first_line(error)}") from None
    return [HeldRun(*row) for row in rows]


def merge(sources: Sequence[Path], table: Table, place: Path, without: frozenset[str]) -> int:
    """Writes the rows of some files of a table into one, in its order, but for those of some runs (by their keys); how
    many rows. Raises ArchiveError for a file that is damaged."""
    import duckdb

    columns = ", ".join(table.names)
    gone = f"WHERE key NOT IN {_tuple(sorted(without))}" if without else ""
    order = ", ".join((*table.order, "key"))
    files = _list([str(file) for file in sources])
    statement = (
        f"COPY (SELECT {columns} FROM read_parquet({files}, hive_partitioning=false) {gone} ORDER BY {order})"  # noqa: S608
        f" TO {_literal(str(place))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS_OF_GROUP})"
    )
    with tempfile.TemporaryDirectory(prefix="soakwatch-archive-") as spill:
        sql = duckdb.connect(
            ":memory:",
            config={**_CONFIG, "threads": processors(), "temp_directory": spill, "preserve_insertion_order": False},
        )
        try:
            done = sql.execute(statement).fetchone()
            return 0 if done is None else int(done[0])
        except duckdb.Error as error:
            broken = [str(file) for file in sources if str(file) in str(error)]
            where = broken[0] if broken else str(place)
            raise ArchiveError(f"{where} cannot be read or written: {_first_line(error)}") from None
        finally:
            sql.close()
