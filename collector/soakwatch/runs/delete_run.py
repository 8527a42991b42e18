"""Deleting a run: what would be lost is shown first, and a run that is being written is never touched."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.record import RecordView
from soakwatch.record.writer_lock import is_written, release_lock, take_lock
from soakwatch.runs.catalog import RECORD
from soakwatch.runs.run_note import FILE as NOTE
from soakwatch.runs.summary import RunSummary, summary_of

_MAX_FILES = 10_000
_OWN = frozenset(
    {
        RECORD,
        f"{RECORD}-wal",
        f"{RECORD}-shm",
        f"{RECORD}-journal",
        "record.lock",
        "report.html",
        "report.md",
        "junit.xml",
        "verdict.json",
        "ctrf.json",
        "test-result.intoto.json",
        "badge.svg",
        "annotations.txt",
        "known_hosts",
        NOTE,
        "web.token",
        "web.url",
    }
)


@dataclass(frozen=True, slots=True)
class DeletionLoss:
    """What is lost with a run. ``files`` and ``bytes`` count everything in its folder; ``others`` are files in there
    that Soakwatch did not write. ``lends_to`` are runs that were held against its baseline: they keep what they need.
    ``refusal`` says why it cannot be deleted, empty where it can.
    """

    summary: RunSummary
    artifacts: int
    events: int
    files: int
    bytes: int
    others: tuple[str, ...]
    lends_to: tuple[str, ...]
    refusal: str


def loss_of(folder: Path, runs: Iterable[RunSummary]) -> DeletionLoss:
    """What is lost with the run in ``folder``, which stands among ``runs``."""
    files = _files(folder)
    artifacts = events = 0
    try:
        with RecordView.open(folder) as view:
            artifacts, events = len(view.artifact_entries()), len(view.events())
    except RecordError:
        pass  # what cannot be read can be deleted all the same
    return DeletionLoss(
        summary_of(folder, drawn=False),
        artifacts,
        events,
        len(files),
        sum(files.values()),
        tuple(sorted(name for name in files if name not in _OWN))[:20],
        tuple(sorted(run.line.folder.name for run in runs if run.baseline_run == folder.name)),
        refusal(folder),
    )


def refusal(folder: Path) -> str:
    """Why a run cannot be deleted, in one sentence; empty where it can."""
    if folder.is_symlink():
        return f"{folder.name} is a link to another folder: remove it by hand"
    if is_written(folder):
        return f"{folder.name} is being written: stop the run first"
    if any(file.parent != folder for file in folder.glob(f"**/{RECORD}")):
        return f"{folder.name} holds other runs in folders of its own: remove it by hand"
    return ""


def delete(folder: Path) -> None:
    """Remove the folder of a run with everything in it. It vanishes at once, as a whole, or stays as it is.

    Raises RecordError for a run that is being written and for one that must be removed by hand, SoakwatchError if the
    folder cannot be changed.
    """
    if why := refusal(folder):
        raise RecordError(why)
    lock = take_lock(folder / RECORD)  # from here on nobody resumes it
    try:
        gone = folder.with_name(f".deleted-{secrets.token_hex(8)}")
        try:
            folder.rename(gone)
        except OSError as error:
            raise SoakwatchError(f"{folder.name} cannot be deleted: {_why(error)}") from None
        try:
            shutil.rmtree(gone)
        except OSError as error:
            message = f"{folder.name} is deleted, but some of its files are left in {gone.name}: {_why(error)}"
            raise SoakwatchError(message) from None
    finally:
        release_lock(lock)


def _why(error: OSError) -> str:
    return (error.strerror or "no reason given").lower()


def _files(folder: Path) -> Mapping[str, int]:
    """The files of a folder by their way in it, with their sizes; links are not followed."""
    sizes: dict[str, int] = {}
    for path in folder.rglob("*"):
        if len(sizes) >= _MAX_FILES:
            break
        try:
            if path.is_symlink() or path.is_file():
                sizes[path.relative_to(folder).as_posix()] = path.lstat().st_size
        except OSError:
            continue
    return sizes
