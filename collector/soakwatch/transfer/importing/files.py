"""Imports files to a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from soakwatch.core.suggest import hint
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.table import STDIN
from soakwatch.transfer.importing.build_series import Imported, ImportedSeries, read_table
from soakwatch.transfer.importing.timeline import ImportOptions
from soakwatch.transfer.importing.write import write_record

_SUFFIXES = (".gz", ".csv", ".tsv", ".txt", ".dat", ".log")


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """The imported series, and notes for people."""

    series: tuple[ImportedSeries, ...]
    notes: tuple[str, ...]


def stem_of(path: str) -> str:
    """The name of a run or target from a file's name.

    >>> stem_of("/tmp/rss of fw.csv.gz"), stem_of("-")
    ('rss of fw', 'stdin')
    """
    if path == STDIN:
        return "stdin"
    name = Path(path).name
    while name.lower().endswith(_SUFFIXES) and len(name) > 4:
        name = name[: name.rindex(".")]
    return name


def import_files(
    paths: Sequence[str],
    folder: Path,
    name: str,
    options: ImportOptions,
    command: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    rules: Sequence[str] = (),
) -> ImportedRun:
    """Makes a record in ``folder`` from files. Raises DataError and RecordError.

    A series in several files is one series; at equal times the later file wins.
    """
    parts: list[Imported] = []
    for path in paths:
        if progress is not None:
            progress(f"reading {path}")
        parts.append(read_table(path, options.target or stem_of(path), options, progress))
    parts = _merged(parts)
    targets = {series.target for part in parts for series in part.series}
    for target in options.roles.keys() - targets:
        raise DataError(
            f"--role {target}={options.roles[target]}: there is no target {target!r}{hint(target, targets)}"
        )
    notes = write_record(folder, name, parts, command, progress, rules, timeline=options.timeline)
    return ImportedRun(
        tuple(series for part in parts for series in part.series),
        tuple(dict.fromkeys([*(note for part in parts for note in part.notes), *notes])),
    )


def _merged(parts: list[Imported]) -> list[Imported]:
    """Each series once, with its readings from all files."""
    if len(parts) < 2:
        return parts
    known: dict[tuple[str, str, str], tuple[int, ImportedSeries]] = {}
    for index, part in enumerate(parts):
        for series in part.series:
            key = series.target, series.metric, series.object
            if key not in known:
                known[key] = index, series
                continue
            first, before = known[key]
            if before.unit != series.unit or before.kind != series.kind:
                raise DataError(
                    f"{part.file}: {series.column} is in {series.unit} here and in {before.unit} in "
                    f"{parts[first].file}: give its unit with --unit '{series.column}=…'"
                )
            known[key] = first, _joined(before, series)
    merged = [
        replace(part, series=tuple(series for first, series in known.values() if first == index))
        for index, part in enumerate(parts)
    ]
    return [part for part in merged if part.series or part.notes]


def _joined(before: ImportedSeries, after: ImportedSeries) -> ImportedSeries:
    time_ns = np.concatenate([after.time_ns, before.time_ns])
    value = np.concatenate([after.value, before.value])
    unique, first = np.unique(time_ns, return_index=True)
    return replace(before, time_ns=unique, value=value[first])
