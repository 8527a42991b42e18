"""What belongs to an archive: ``archive.json`` lists its files, and is replaced as a whole when all of them are there.

A file that is not listed is none of the archive's: what a killed ``archive add`` left is never read. A file that is
listed is checked by its size whenever it is read, and by its SHA-256 by ``soakwatch archive check``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.file_lock import lock_file, name_holder
from soakwatch.core.units import show_bytes

VERSION = 1
"""Raised when columns or files change so that an older soakwatch would read them wrongly."""
STATE, LOCK, DRAFTS = "archive.json", "archive.lock", ".adding"
READINGS = "readings"
_FORMAT = "soakwatch archive"
_LOOK_S = 0.2


class ArchiveError(SoakwatchError):
    """An archive cannot be read or written."""


class ListedFile(BaseModel):
    """A file of a table: its night, its path relative to the archive, its rows, bytes and SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: str
    night: str
    path: str
    rows: int
    bytes: int
    sha256: str


class _Head(BaseModel):
    """What archives of every version have."""

    format: str
    version: int


class _Written(_Head):
    model_config = ConfigDict(extra="forbid")

    number: int
    files: tuple[ListedFile, ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of an archive at one moment. ``number`` is that of the last file that was made."""

    folder: Path
    number: int = 0
    files: tuple[ListedFile, ...] = ()

    def of(self, table: str) -> list[ListedFile]:
        """The files of one table, by night."""
        return sorted((file for file in self.files if file.table == table), key=lambda file: (file.night, file.path))

    def with_files(self, added: Iterator[ListedFile] | tuple[ListedFile, ...], without: frozenset[str]) -> Archive:
        """The archive with other files in place of some."""
        return replace(self, files=(*(file for file in self.files if file.path not in without), *added))


def load(folder: Path) -> Archive:
    """The archive in a folder. Raises ArchiveError if there is none, or one that this version cannot read."""
    file = folder / STATE
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        raise ArchiveError(
            f"{folder} is no archive: there is no {STATE}; make one with soakwatch archive add RUN --archive {folder}"
        ) from None
    except OSError as error:
        raise ArchiveError(f"{file} cannot be read: {error.strerror or error}") from None
    try:
        head = _Head.model_validate_json(text)
    except ValidationError:
        raise ArchiveError(f"{file} is not the list of an archive, or it is damaged: {_REMEDY}") from None
    if head.format != _FORMAT:
        raise ArchiveError(f"{file} is of {head.format[:40]!r}, not of a {_FORMAT}: name another folder")
    if head.version != VERSION:
        newer = head.version > VERSION
        remedy = "update soakwatch" if newer else "make a new archive, and add its runs to that"
        raise ArchiveError(f"{folder} is an archive of version {head.version}, and this is {VERSION}: {remedy}")
    try:
        written = _Written.model_validate_json(text)
    except ValidationError:
        raise ArchiveError(f"{file} is damaged: {_REMEDY}") from None
    for listed in written.files:
        inside(folder, listed.path)
    return Archive(folder, written.number, written.files)


_REMEDY = "restore it from a copy, or make a new archive of the records"


def inside(folder: Path, path: str) -> Path:
    """The file of a path relative to the archive. Raises ArchiveError if that would be elsewhere."""
    parts = PurePosixPath(path).parts
    if not parts or ".." in parts or parts[0] == "/":
        raise ArchiveError(f"{folder / STATE} names {path[:200]!r}, which is not within the archive: {_REMEDY}")
    return folder / path


def save(archive: Archive) -> None:
    """Makes these the files of the archive, all at once. The files themselves are on the disk before.

    Raises ArchiveError.
    """
    written = _Written(format=_FORMAT, version=VERSION, number=archive.number, files=archive.files)
    draft = archive.folder / f".{STATE}.part"
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(written.model_dump_json(indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(archive.folder / STATE)
        _sync(archive.folder)
    except OSError as error:
        raise not_written(archive.folder, error) from None


def not_written(folder: Path, error: OSError) -> ArchiveError:
    """The sentence about an archive that cannot be written; what it held is still there."""
    why = (error.strerror or str(error) or type(error).__name__).lower()
    return ArchiveError(f"the archive {folder} cannot be written ({why}): what it held before is still there")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest_of(file: Path) -> str:
    """The SHA-256 of a file. Raises OSError."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def settle(draft: Path, place: Path) -> tuple[int, str]:
    """Puts a finished file on the disk under its name; its bytes and SHA-256. Raises OSError."""
    digest = digest_of(draft)
    _sync(draft)
    place.parent.mkdir(parents=True, exist_ok=True)
    draft.replace(place)
    _sync(place.parent)
    return place.stat().st_size, digest


@contextmanager
def writing(folder: Path, waits: Callable[[], None]) -> Iterator[Archive]:
    """The archive in a folder, made if the folder has none, for one process alone. ``waits`` is called once if another
    process writes it, whose end is awaited. Raises ArchiveError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / STATE).exists() and any(path.name not in {LOCK, DRAFTS} for path in folder.iterdir()):
            raise ArchiveError(f"{folder} is a folder of something else: name another folder with --archive")
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise not_written(folder, error) from None
    try:
        told = False
        while True:
            try:
                lock_file(descriptor)
                break
            except OSError:
                if not told:
                    waits()
                told = True
                time.sleep(_LOOK_S)
        name_holder(descriptor, f"{os.getpid()}")
        if not (folder / STATE).exists():
            save(Archive(folder))
        yield load(folder)
    finally:
        os.close(descriptor)


def drafts(folder: Path) -> Path:
    """The folder in which files are made that do not belong to the archive yet."""
    place = folder / DRAFTS
    place.mkdir(exist_ok=True)
    return place


def clear_unlisted(archive: Archive, readings: frozenset[str]) -> int:
    """Removes files that are not the archive's: those that the ``archive add`` before replaced, which a question may
    have been reading, and what one left that was killed; how many of the latter, 0 if none was.

    ``readings`` are the files of readings that rows name.
    """
    place = archive.folder / DRAFTS
    killed = place.exists()
    shutil.rmtree(place, ignore_errors=True)
    listed = {file.path for file in archive.files} | readings
    count = 0
    for file in archive.folder.glob("*/*=*/**/*.parquet"):
        if file.relative_to(archive.folder).as_posix() not in listed and file.is_file():
            count += 1
            with suppress(OSError):
                file.unlink()
    return count if killed else 0


def wrong_with(archive: Archive, listed: Mapping[str, tuple[int, str]], *, digests: bool) -> dict[str, str]:
    """What is wrong with files, by path: missing, another size, or (``digests``) other bytes than were written.

    ``listed`` are size and SHA-256 by path.
    """
    wrong: dict[str, str] = {}
    for path, (size, digest) in listed.items():
        file = inside(archive.folder, path)
        try:
            found = file.stat().st_size
            if found != size:
                wrong[path] = f"has {show_bytes(found)}, and {show_bytes(size)} were written"
            elif digests and digest_of(file) != digest:
                wrong[path] = "was changed since it was written"
        except FileNotFoundError:
            wrong[path] = "is missing"
        except OSError as error:
            wrong[path] = f"cannot be read ({error.strerror or error})"
    return wrong


def require_whole(archive: Archive, tables: frozenset[str]) -> None:
    """Raises ArchiveError if a file of these tables is missing or has another size."""
    listed = {file.path: (file.bytes, file.sha256) for file in archive.files if file.table in tables}
    for path, why in wrong_with(archive, listed, digests=False).items():
        raise ArchiveError(f"{archive.folder / path} {why}: {remedy(archive)}")


def load_whole(folder: Path, tables: frozenset[str]) -> Archive:
    """The archive in a folder, whose files of these tables are there. Raises ArchiveError.

    A file that is missing may have been replaced just now: then the new list names others.
    """
    archive = load(folder)
    while True:
        try:
            require_whole(archive, tables)
        except ArchiveError:
            now = load(folder)
            if now.number == archive.number:
                raise
            archive = now
        else:
            return archive


def remedy(archive: Archive) -> str:
    """What to do about a file that is damaged."""
    return f"soakwatch archive check {archive.folder} says what is lost"
