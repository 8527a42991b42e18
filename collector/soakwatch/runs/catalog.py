"""Folders of runs: where a new one goes, which one is meant, and what each of them is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import make_new_private_folder
from soakwatch.core.suggest import nearest
from soakwatch.record import RecordView, not_yours
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.running_elsewhere import running_elsewhere

TOKEN_FILE, ADDRESS_FILE = "web.token", "web.url"

RECORD = "record.sqlite"
DEFAULT_RUNS = Path("runs")
LAST = "last"
STAMP = re.compile(r"^\d{8}T\d{6}Z-")
"""The time of its start, with which the name of a run's folder begins."""


@dataclass(frozen=True, slots=True)
class RunLine:
    """One line of ``soakwatch runs``; what is not known is None, and ``trouble`` says why."""

    folder: Path
    name: str
    begin_ns: int | None
    seconds: float | None
    state: str  # running, ended, broken off, unreadable
    verdict: str | None
    bytes: int
    trouble: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def new_folder(runs: Path, name: str, now_ns: int) -> Path:
    """A new folder ``runs/<time>-<name>``, made now so that nobody else gets it; ``-2`` and so on behind the name of
    further runs of one second. Where none can be made, its path: who writes into it says why."""
    stem = f"{stamp(now_ns)}-{_safe(name)}"
    for number in count(1):
        folder = runs / (stem if number == 1 else f"{stem}-{number}")
        try:
            make_new_private_folder(folder)
        except FileExistsError:
            if folder.exists():
                continue
        except OSError:
            pass
        return folder
    raise AssertionError


@contextmanager
def kept_if_filled(folder: Path) -> Iterator[Path]:
    """A new folder that goes again if what was to fill it fails before anything is in it."""
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # there is something in it
            folder.rmdir()
        raise


def _safe(name: str) -> str:
    """The name of a run as its folder has it."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name)


def may_be_called(folder: str, name: str) -> bool:
    """Whether the folder of a run of this name may be called so: its start, its name, and a number where several began
    in one second.

    >>> [may_be_called(f"20260101T000000Z-{rest}", "web night") for rest in ("web-night", "web-night-2", "web")]
    [True, True, False]
    """
    bare = STAMP.sub("", folder)
    return bare == _safe(name) or re.fullmatch(rf"{re.escape(_safe(name))}-\d+", bare) is not None


def stamp(time_ns: int) -> str:
    """A time (UTC ns) as names of folders begin with it; a hyphen follows.

    >>> stamp(1_767_225_600_000_000_000)
    '20260101T000000Z'
    """
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y%m%dT%H%M%SZ")


def find_run(text: str, runs: Path = DEFAULT_RUNS) -> Path:
    """The folder or record file of a run that is named by its folder, its record file, its name below ``runs`` (with or
    without the time before it; of several of one name the latest), or ``last``.

    Raises RecordError if there is no such run, if it is private to another user, and for a name that several runs have
    that began in one second.
    """
    if text == LAST:
        folders = [file.parent for file in runs.glob(f"*/{RECORD}")]
        if not folders:
            elsewhere = running_elsewhere() or "start one, or name its folder with --runs"
            raise RecordError(f"there is no run in {runs}/: {elsewhere}")
        return max(folders, key=lambda folder: (_begun(folder), folder.name))
    for path in (Path(text), runs / text):
        try:
            if path.is_file() or (path / RECORD).is_file():
                return path
        except PermissionError:
            raise not_yours(path) from None
    named = [folder for folder in folders_of(runs) if STAMP.sub("", folder.name) == text or _is_named(folder, text)]
    if named:
        began = STAMP.match(named[-1].name)
        at_once = [folder.name for folder in named if began is not None and folder.name.startswith(began[0])]
        if len(at_once) > 1:
            raise RecordError(f"{text} is the name of {len(at_once)} runs: name one of {', '.join(at_once)}")
        return named[-1]
    known = [STAMP.sub("", folder.name) for folder in folders_of(runs)]
    meant = nearest(text, known)
    near = "" if meant is None else f"; did you mean {meant!r}?"
    raise RecordError(f"{text} is not a run: name a folder that holds {RECORD}, that file, or 'last'{near}")


def _begun(folder: Path) -> str:
    """When a run began, as its folder's name says, or where that is a name of the user's own, its record."""
    if (match := STAMP.match(folder.name)) is not None:
        return match[0]
    with suppress(RecordError, PermissionError), RecordView.open(folder) as view:
        if (start := view.meta("start_ns")) is not None:
            return f"{stamp(int(start))}-"
    return ""


def _is_named(folder: Path, name: str) -> bool:
    """Whether a run says that it has this name, though its folder has more behind it or other letters."""
    return may_be_called(folder.name, name) and run_line(folder).name == name


def list_runs(runs: Path) -> list[RunLine]:
    """Every run below a folder, oldest first; one that cannot be read is listed with the reason."""
    return [run_line(folder) for folder in folders_of(runs)]


def folders_of(runs: Path) -> list[Path]:
    """The folders of all runs below a folder, oldest first; not those whose names begin with a dot."""
    return [file.parent for file in sorted(runs.glob(f"*/{RECORD}")) if not file.parent.name.startswith(".")]


def run_line(folder: Path) -> RunLine:
    """How one run stands, by its folder; with the reason if it cannot be read."""
    try:
        with RecordView.open(folder) as view:
            return line_of(view, folder)
    except RecordError as error:
        return unreadable(folder, str(error))


def line_of(view: RecordView, folder: Path) -> RunLine:
    """How the run stands whose record is open. Raises RecordError if it holds nothing."""
    window = view.window()
    return RunLine(
        folder,
        view.meta("run") or folder.name,
        window.begin_ns,
        window.seconds,
        lifecycle_of(view.metas(), folder),
        view.meta("verdict"),
        _size(folder),
        labels=view.labels,
    )


def unreadable(folder: Path, why: str) -> RunLine:
    """A run that cannot be read, and why."""
    return RunLine(folder, folder.name, None, None, "unreadable", None, _size(folder), why)


def _size(folder: Path) -> int:
    total = 0
    for file in folder.glob("record.sqlite*"):
        with suppress(OSError):  # a write-ahead log goes when the run ends
            total += file.stat().st_size
    return total
