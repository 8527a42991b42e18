"""The files of an export: a folder per table with a file per run, or one file."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Literal

from soakwatch.record import RecordView, artifact_name
from soakwatch.record.frames import EVERYTHING, Selection
from soakwatch.transfer.export.csv_files import write_long, write_small, write_wide
from soakwatch.transfer.export.line_protocol import write_lines
from soakwatch.transfer.export.readings import Columns, Run, columns_of
from soakwatch.transfer.export.staging import ExportError, staging
from soakwatch.transfer.export.tables import TABLES, SmallTable

Format = Literal["csv", "parquet", "line-protocol"]
SUFFIXES: dict[str, Format] = {".csv": "csv", ".parquet": "parquet", ".lp": "line-protocol"}
SAMPLES = "samples"
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """One written file: what it holds, its run, path, and rows (lines of line protocol)."""

    what: str
    run: str
    path: Path
    rows: int


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What to write of each run: format, readings, and whether each series is a column (``wide``)."""

    format: Format
    selection: Selection = EVERYTHING
    wide: bool = False


def runs_of(paths: Sequence[Path]) -> list[Run]:
    """Runs named by their folders; equal names are numbered from the second on (``night-2``)."""
    runs: list[Run] = []
    taken: set[str] = set()
    for path in paths:
        folder = (path.parent if path.is_file() else path).resolve()
        name, number = folder.name or "run", 1
        while name in taken:
            number += 1
            name = f"{folder.name}-{number}"
        taken.add(name)
        runs.append(Run(name, path))
    return runs


def export_folder(runs: Sequence[Run], options: ExportOptions, folder: Path, *, force: bool = False) -> list[Written]:
    """Writes everything of runs below a folder: ``samples/RUN.parquet``, ``polls/RUN.parquet`` and so on, or
    ``RUN.lp``.

    Files get their names only when all are complete. Raises ExportError, and RecordError for an unreadable record.
    """
    suffix = next(suffix for suffix, known in SUFFIXES.items() if known == options.format)
    columns = _columns(runs, options)
    written: list[Written] = []
    with staging(force=force) as staged:
        for run in runs:
            file = f"{artifact_name(run.name)}{suffix}"
            if options.format == "line-protocol":
                path = folder / file
                with staged.file(path).open("wb", buffering=_BUFFER) as lines:
                    written.append(Written("lines", run.name, path, write_lines(lines, run, path)))
                continue
            with RecordView.open(run.path) as view:
                path = folder / SAMPLES / file
                written.append(
                    Written(SAMPLES, run.name, path, _samples(staged.file(path), view, run, columns, options))
                )
                for table in TABLES:
                    path = folder / table.name / file
                    rows = _small(staged.file(path), view, run, table, options.format)
                    written.append(Written(table.name, run.name, path, rows))
    return written


def export_file(runs: Sequence[Run], options: ExportOptions, path: Path, *, force: bool = False) -> list[Written]:
    """Writes the readings, or all lines, of runs to one file; Parquet and wide tables take one run.

    Raises ExportError, and RecordError for an unreadable record.
    """
    _one_file(runs, options)
    columns = _columns(runs, options)
    with staging(force=force) as staged:
        draft = staged.file(path)
        if options.format == "parquet":
            with RecordView.open(runs[0].path) as view:
                return [Written(SAMPLES, runs[0].name, path, _samples(draft, view, runs[0], columns, options))]
        with draft.open("wb", buffering=_BUFFER) as file:
            return _stream(runs, options, columns, file, path)


def export_stream(runs: Sequence[Run], options: ExportOptions, file: BinaryIO) -> None:
    """The same as text to an open file, such as standard output. Raises as ``export_file``."""
    _one_file(runs, options)
    if options.format == "parquet":
        raise ExportError("a Parquet file cannot be written to a pipe: name a file or folder with --output")
    _stream(runs, options, _columns(runs, options), file, Path("standard output"))


def _one_file(runs: Sequence[Run], options: ExportOptions) -> None:
    if len(runs) > 1 and (options.format == "parquet" or options.wide):
        what = "wide table" if options.wide else "Parquet file"
        raise ExportError(f"one {what} takes one run, and {len(runs)} are named: name a folder with --output")


def _columns(runs: Sequence[Run], options: ExportOptions) -> Columns:
    if options.format == "line-protocol":
        if options.selection != EVERYTHING or options.wide:
            raise ExportError(
                "line protocol is all that a sink would write: --metric, --target, --phase and --wide are for CSV and"
                " Parquet"
            )
        return Columns((), ())
    if options.format == "parquet":
        from soakwatch.transfer.export.parquet_files import needs_pyarrow

        needs_pyarrow()
    return columns_of(runs, options.selection)


def _stream(
    runs: Sequence[Run], options: ExportOptions, columns: Columns, file: IO[bytes], path: Path
) -> list[Written]:
    written = []
    for number, run in enumerate(runs):
        if options.format == "line-protocol":
            written.append(Written("lines", run.name, path, write_lines(file, run, path)))
            continue
        with RecordView.open(run.path) as view, _text(file) as text:
            if options.wide:
                rows = write_wide(text, view, options.selection)
            else:
                rows = write_long(text, view, run, columns, options.selection, head=number == 0)
        written.append(Written(SAMPLES, run.name, path, rows))
    return written


def _samples(draft: Path, view: RecordView, run: Run, columns: Columns, options: ExportOptions) -> int:
    if options.format == "parquet":
        from soakwatch.transfer.export import parquet_files

        if options.wide:
            return parquet_files.write_wide(draft, view, run, options.selection)
        return parquet_files.write_long(draft, view, run, columns, options.selection)
    with draft.open("wb", buffering=_BUFFER) as file, _text(file) as text:
        if options.wide:
            return write_wide(text, view, options.selection)
        return write_long(text, view, run, columns, options.selection, head=True)


def _small(draft: Path, view: RecordView, run: Run, table: SmallTable, kind: Format) -> int:
    if kind == "parquet":
        from soakwatch.transfer.export import parquet_files

        return parquet_files.write_small(draft, view, run, table)
    with draft.open("wb", buffering=_BUFFER) as file, _text(file) as text:
        return write_small(text, view, run, table)


@contextmanager
def _text(file: IO[bytes]) -> Iterator[io.TextIOWrapper]:
    """Wraps a binary file as text; does not close it."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    try:
        yield text
    finally:
        text.flush()
        text.detach()
