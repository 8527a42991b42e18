"""Keeps what was read of files, until they change: for pages that ask for the same every few seconds."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

from soakwatch.runs.catalog import RECORD
from soakwatch.runs.run_note import FILE as NOTE

T = TypeVar("T")
Stamp = tuple[tuple[int, int], ...]


def stamp_of(folder: Path) -> Stamp:
    """Time and size of a run's record, its logs and its note.

    An empty log does not count, since every reader creates one.
    """
    stamp = []
    for suffix in ("", "-wal", "-journal"):
        try:
            status = (folder / f"{RECORD}{suffix}").stat()
        except OSError:
            continue
        if status.st_size or not suffix:
            stamp.append((status.st_mtime_ns, status.st_size))
    with suppress(OSError):
        stamp.append(((folder / NOTE).stat().st_mtime_ns, -1))
    return tuple(stamp)


def file_stamp(file: Path) -> Stamp:
    """Time and size of a file; () where it is missing."""
    try:
        status = file.stat()
    except OSError:
        return ()
    return ((status.st_mtime_ns, status.st_size),)


class ReadOnce(Generic[T]):
    """The ``most`` values read last, by a place and what was asked of it, until the stamp of the place changes.

    A place is the folder of a run, or what ``stamp`` understands. Thread-safe; two that miss both read.
    """

    def __init__(self, most: int, stamp: Callable[[Path], Stamp] = stamp_of) -> None:
        self._most, self._stamp = most, stamp
        self._kept: OrderedDict[tuple[Path, Hashable], tuple[Stamp, T]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, place: Path, asked: Hashable = ()) -> T | None:
        """The value, or None where it must be read."""
        stamp = self._stamp(place)
        with self._lock:
            kept = self._kept.get((place, asked))
            if kept is None or kept[0] != stamp:
                return None
            self._kept.move_to_end((place, asked))
            return kept[1]

    def read(self, read: Callable[[], T], place: Path, asked: Hashable = ()) -> T:
        """The value, read where it is not known. Raises what ``read`` does, and then keeps nothing."""
        known = self.known(place, asked)
        if known is not None:
            return known
        stamp = self._stamp(place)  # before it is read: what changes meanwhile is read again
        value = read()
        with self._lock:
            self._kept[place, asked] = stamp, value
            self._kept.move_to_end((place, asked))
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return value
