"""Opens a record for reading only, wherever it lies: live, finished, mailed, or on a read-only medium. What cannot be
read in place is copied to a temporary folder, and the copy is repaired, never the original."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from soakwatch.core.units import show_bytes
from soakwatch.record._files import BUSY_S, SIDE_SUFFIXES, has_side_file, record_file
from soakwatch.record._schema import check_version
from soakwatch.record._sqlite_errors import as_record_error, damaged


def open_snapshot(path: Path, stack: ExitStack) -> sqlite3.Connection:
    """A connection to the record as it is now, which sees no later change; the caller's stack closes it.

    Raises RecordError.
    """
    try:
        try:
            connection = _begin(_uri(path, immutable=_is_still(path)), stack)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
                raise
            connection = _begin(_copied(path, stack).absolute().as_uri(), stack)
        check_version(connection, path)
        _check_whole(connection, path)
    except (sqlite3.Error, OSError) as error:
        raise as_record_error(error, path) from None
    except (ValueError, TypeError) as error:  # the names of the file's tables are damaged
        raise damaged(path, str(error)) from None
    return connection


@contextmanager
def snapshot(folder_or_file: Path) -> Iterator[sqlite3.Connection]:
    """``open_snapshot`` of the record in a folder, or of a record's file, for a few queries.

    Errors of SQLite and of the codec in the block become RecordError.
    """
    path = record_file(folder_or_file)
    with ExitStack() as stack:
        sql = open_snapshot(path, stack)
        try:
            yield sql
        except sqlite3.Error as error:
            raise as_record_error(error, path) from None
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(path, str(error)) from None


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose last page is cut: SQLite notices only when it needs that page."""
    pages, page = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size"))
    size = path.stat().st_size
    if size < pages * page and not any(has_side_file(path, suffix) for suffix in SIDE_SUFFIXES):
        raise damaged(path, f"only {show_bytes(size)} of its {show_bytes(pages * page)} are there")


def _is_still(path: Path) -> bool:
    """Whether no process can be writing it: there is no side file, and none can be made."""
    return not os.access(path.parent, os.W_OK) and not any(has_side_file(path, suffix) for suffix in SIDE_SUFFIXES)


def _uri(path: Path, *, immutable: bool) -> str:
    return f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if immutable else ''}"


def _begin(uri: str, stack: ExitStack) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    stack.callback(connection.close)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # takes the snapshot
    return connection


def _copied(path: Path, stack: ExitStack) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soakwatch-")))
    for suffix in ("", *SIDE_SUFFIXES):
        with suppress(FileNotFoundError):
            shutil.copyfile(path.with_name(path.name + suffix), folder / (path.name + suffix))
    return folder / path.name
