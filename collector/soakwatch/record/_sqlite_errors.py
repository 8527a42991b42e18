"""Errors of SQLite and of the disk as sentences that name the file and the remedy."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.units import show_bytes


class RecordFullError(RecordError):
    """The record cannot grow: disk full, read-only or failing. What was committed stays readable; try again later."""


_FAILING = {
    sqlite3.SQLITE_FULL: "the disk is full: make room, the next batch is tried again",
    sqlite3.SQLITE_IOERR: "the disk refused the write: check its space, its quota and its health",
    sqlite3.SQLITE_READONLY: "it or its folder is read-only: make both writable, or name another folder with --runs",
    sqlite3.SQLITE_CANTOPEN: "its folder cannot be written: make it writable, or name another folder with --runs",
}


def damaged(path: Path, why: str) -> RecordError:
    """The error of a file that is damaged."""
    return RecordError(
        f"{path} is damaged ({why}): `sqlite3 {path.name} .recover | sqlite3 saved.sqlite` saves what can still be read"
    )


def as_record_error(error: Exception, path: Path) -> RecordError:
    """Convert an error of sqlite3 or of the file system to one with a sentence for people."""
    if isinstance(error, RecordError):
        return error
    if isinstance(error, OSError):
        return RecordFullError(
            f"{path} cannot be written ({error.strerror}): check the folder, its rights and its space"
        )
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _FAILING:
        return RecordFullError(f"{path} cannot be written ({error}): {_FAILING[code]}")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return RecordError(f"{path} is locked by another program: close it there and try again")
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, f"{error}; it has {_size(path)}")
    if code == sqlite3.SQLITE_NOTADB:
        return RecordError(f"{path} is not a record of Soakwatch, or its start is overwritten: restore it from a copy")
    return RecordError(f"{path} cannot be used as a record ({error}): it was written by something else or is damaged")


def _size(path: Path) -> str:
    try:
        return show_bytes(path.stat().st_size)
    except OSError:
        return "an unknown size"
