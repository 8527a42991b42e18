"""The files of a run on the disk: its verdict and reports, and what scripts and hooks left in its record."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.private_files import shared_mode, write_private
from soakwatch.record import RECORD_NAME, RecordView, artifact_name
from soakwatch.report.formats import ALL, FORMATS, IN_EVERY_RUN, OF_RUNS
from soakwatch.report.rendering import Rendering, Renders

REPORT_FILES = {kind: FORMATS[kind].file for kind in IN_EVERY_RUN}
STANDARD_OUTPUT = "-"
_NO_REPORT = frozenset({".yaml", ".yml", ".sqlite"})
"""How plans and records end: a slip such as ``--junit plan.yaml`` must not cost one."""


@dataclass(frozen=True, slots=True)
class ReportPlace:
    """Where a format is wanted: a file, or standard output (None)."""

    kind: str
    file: Path | None

    @property
    def words(self) -> str:
        """As a user would give it."""
        return f"{FORMATS[self.kind].option} {STANDARD_OUTPUT if self.file is None else self.file}"


def write_reports(rendering: Rendering, folder: Path) -> tuple[str, ...]:
    """Write report.html, verdict.json, junit.xml and report.md with the access rights of the record. If one cannot be
    written the others still are. Returns a sentence for each failure: its path and the reason."""
    failures, mode = [], shared_mode(folder / RECORD_NAME)
    for kind, name in REPORT_FILES.items():
        try:
            _write(folder / name, rendering.text(kind), mode)
        except OSError as error:
            failures.append(_cannot(folder / name, error))
    return tuple(failures)


def places_of(
    asked: Mapping[str, str], default: Path | None = None, kinds: Sequence[str] = OF_RUNS
) -> tuple[ReportPlace, ...]:
    """Where formats are wanted, by their kinds: a file, a folder for its usual name, "-" for standard output, or "" for
    its usual name in the folder ``default``; ``ALL`` is the folder for all ``kinds`` that are not asked for besides.
    Nothing is written yet, and each place is tried.

    Raises SoakwatchError for one that cannot be written, and for two formats in one place.
    """
    if asked.get(ALL) in {"", STANDARD_OUTPUT}:
        raise SoakwatchError(f"--{ALL} names a folder, such as --{ALL} out, not {asked[ALL]!r}")
    places: list[ReportPlace] = []
    everything = dict.fromkeys(kinds, f"{asked[ALL]}/") if ALL in asked else {}
    for kind, place in (everything | {kind: place for kind, place in asked.items() if kind != ALL}).items():
        file = None if place == STANDARD_OUTPUT else _file_of(kind, place, default)
        if other := next((known for known in places if known.file == file), None):
            what = "standard output" if file is None else str(file)
            names = f"{FORMATS[other.kind].option} and {FORMATS[kind].option}"
            raise SoakwatchError(f"{names} both go to {what}: name another file for one of them")
        if file is not None:
            _try(ReportPlace(kind, file))
        places.append(ReportPlace(kind, file))
    return tuple(places)


def clear_places(places: Sequence[ReportPlace]) -> None:
    """Remove the files of an earlier run, so that they are not taken for those of one that dies before its end."""
    for place in places:
        with suppress(OSError):
            if place.file is not None and stat.S_ISREG(place.file.lstat().st_mode):
                place.file.unlink()


def write_places(
    rendering: Renders, places: Sequence[ReportPlace], show: Callable[[str], None], folder: Path
) -> Mapping[ReportPlace, str]:
    """Write each format where it is wanted, with the folders above it; ``show`` prints a text on standard output. Files
    in the ``folder`` of the run get the access rights of its record. Returns a sentence for each failure."""
    failures: dict[ReportPlace, str] = {}
    for place in sorted(places, key=lambda place: place.kind == "html"):  # HTML is the last that a page can make
        try:
            text = rendering.text(place.kind)
        except SoakwatchError as error:
            failures[place] = f"{place.words} was not written: {error}"
            continue
        if place.file is None:
            show(text)
            continue
        try:
            place.file.parent.mkdir(parents=True, exist_ok=True)
            in_run = place.file.parent.resolve() == folder.resolve()
            _write(place.file, text, shared_mode(folder / RECORD_NAME) if in_run else None)
        except OSError as error:
            failures[place] = _cannot(place.file, error)
    return failures


def _file_of(kind: str, place: str, default: Path | None) -> Path:
    """The path of a format; a folder gets the usual name."""
    if not place:
        if default is None:
            raise SoakwatchError(f"{FORMATS[kind].option} names no file")
        return default / FORMATS[kind].file
    file = Path(place)
    with suppress(OSError):
        if place.endswith("/") or file.is_dir():
            file /= FORMATS[kind].file
        if file.is_symlink() and (file.is_file() or not file.exists()):  # else a pipe, such as /dev/stdout
            file = file.resolve()
    return file


def _try(place: ReportPlace) -> None:
    """Try to make a file beside it, or in the nearest folder above it that is there. Raises SoakwatchError."""
    file = place.file
    assert file is not None
    try:
        if file.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        if file.suffix in _NO_REPORT:
            raise FileExistsError(0, "it is named as a plan or record")
        if file.exists() and not os.access(file, os.W_OK):
            raise PermissionError(0, "its rights do not allow it")
        if file.exists() and not file.is_file():
            return  # a pipe or a device
        above = next(folder for folder in file.parents if folder.exists())
        if not above.is_dir():
            raise NotADirectoryError(0, f"{above} is no folder")
        with tempfile.NamedTemporaryFile(dir=above, prefix=f".{file.name}."):
            pass
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        said = f"{FORMATS[place.kind].option}: {file} cannot be written ({why}): name another file"
        raise SoakwatchError(said) from None


def _cannot(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {error.strerror or type(error).__name__}"


def write_files(view: RecordView, folder: Path) -> list[Path]:
    """Write every file of a record below a folder, under its name; what lies there under such a name is replaced.

    Raises RecordError if the folder cannot be written.
    """
    written = []
    for entry in view.artifact_entries():
        # Whoever made the record may have given any name: nothing is written outside of the folder.
        path = folder / artifact_name(*entry.name.split("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(view.artifact(entry.name).data)
        except OSError as error:
            raise RecordError(f"{path} cannot be written ({error.strerror}): name another folder") from None
        written.append(path)
    return written


def _write(path: Path, text: str, mode: int | None) -> None:
    """Write a file so that whoever reads it finds all of it; without a ``mode`` with the rights that the umask gives. A
    pipe or device is written as it is. Raises OSError."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    draft = path.with_name(f"{path.name}.part")
    try:
        if mode is None:
            draft.write_text(text, encoding="utf-8")
        else:
            write_private(draft, text, mode)
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()
        raise
