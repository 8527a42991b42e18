"""The runs of this user that go on now, wherever their folders are: an entry for each in the user's own state folder.

Whether a run goes on is told from the lock of its record, as everywhere, so an entry whose monitor was killed is never
believed; it is removed when it is met. Where the state folder cannot be written a run goes on without an entry.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import make_private_folder, state_folder, write_private
from soakwatch.record.writer_lock import is_written


@contextmanager
def listed_as_running(folder: Path) -> Iterator[None]:
    """Enter a run, whose record is open for writing, and take the entry back at the end."""
    entry: Path | None = None
    with suppress(OSError, RuntimeError):  # no home, or a full disk: the run matters more
        place = state_folder() / "running"
        make_private_folder(place)
        absolute = str(folder.resolve())
        data = absolute.encode("utf-8", "surrogateescape")
        # By the process as well: another run may take the place of this one before this one has ended.
        entry = place / f"{hashlib.sha256(data).hexdigest()[:16]}-{os.getpid()}"
        write_private(entry, data)
    try:
        yield
    finally:
        if entry is not None:
            with suppress(OSError):
                entry.unlink()


def running_folders() -> tuple[Path, ...]:
    """The folders of the runs that go on, in the order in which they began; entries of others are removed."""
    found: list[tuple[float, Path]] = []
    with suppress(OSError, RuntimeError):
        for entry in (state_folder() / "running").iterdir():
            with suppress(OSError):
                folder = Path(entry.read_bytes().decode("utf-8", "surrogateescape"))
                began = entry.stat().st_mtime
                places = (folder, folder.with_name(f"{folder.name}.rescue"))  # where a record goes that was taken away
                written = [place for place in places if _goes_on(place)]
                if written:
                    found.append((began, written[0]))
                else:
                    entry.unlink()
    return tuple(dict.fromkeys(folder for _, folder in sorted(found)))


def _goes_on(folder: Path) -> bool:
    try:
        return is_written(folder)
    except RecordError:  # it is gone
        return False


def running_elsewhere() -> str:
    """What an error about ``last`` adds: where a run goes on, "" if none does."""
    folders = running_folders()
    if not folders:
        return ""
    more = f", and {len(folders) - 1} more (soakwatch ps)" if len(folders) > 1 else ""
    return f"{folders[-1]} is running{more}: name that folder"
