"""Checks an archive by the SHA-256 of its files, and takes out what is damaged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.transfer.archive._database import needs_duckdb, runs_of_files
from soakwatch.transfer.archive.adding import rewritten
from soakwatch.transfer.archive.state import DRAFTS, ListedFile, drafts, inside, load, save, writing, wrong_with
from soakwatch.transfer.archive.tables import INDEX, RUNS


@dataclass(frozen=True, slots=True)
class CheckedArchive:
    """What is there, what is wrong with files (by path), and in words what they held."""

    files: int
    bytes: int
    runs: int
    damaged: Mapping[str, str]
    lost: tuple[str, ...]
    nights: frozenset[str]
    """Nights of which a table is damaged."""
    keys: Mapping[str, str]
    """Runs of which readings are damaged, with their nights, which are not among those."""


def check(folder: Path) -> CheckedArchive:
    """Checks the archive in a folder; reads all of it. Raises ArchiveError if it is none."""
    needs_duckdb()
    archive = load(folder)
    listed = {file.path: (file.bytes, file.sha256) for file in archive.files}
    damaged = wrong_with(archive, listed, digests=True)
    nights = frozenset(file.night for file in archive.files if file.path in damaged)
    whole = [inside(folder, file.path) for file in archive.of(RUNS.name) if file.path not in damaged]
    runs = runs_of_files(whole)
    readings = {run.readings: (run.bytes, run.sha256) for run in runs if run.readings}
    broken = wrong_with(archive, readings, digests=True)
    keys = {run.key: run.night for run in runs if run.readings in broken and run.night not in nights}
    lost = [f"the night {night}, of which a table is damaged" for night in sorted(nights)]
    lost += [f"the readings of {run.run} ({run.device})" for run in runs if run.readings in broken]
    return CheckedArchive(
        files=len(listed) + len(readings),
        bytes=sum(size for size, _ in (*listed.values(), *readings.values())),
        runs=len({run.key for run in runs}),
        damaged={**damaged, **broken},
        lost=tuple(lost),
        nights=nights,
        keys=keys,
    )


def drop_damaged(folder: Path, checked: CheckedArchive, waits: Callable[[], None]) -> None:
    """Takes nights with a damaged table, and runs with damaged readings, out. Raises ArchiveError."""
    with writing(folder, waits) as archive:
        drafts(folder)
        number = archive.number
        gone = {file.path for file in archive.files if file.night in checked.nights}
        made: list[ListedFile] = []
        for night in sorted(set(checked.keys.values())):
            for table in INDEX.values():
                before = [file for file in archive.of(table.name) if file.night == night]
                number += 1
                listed = rewritten(archive, table, night, before, (), frozenset(checked.keys), number)
                made.append(listed)
                gone |= {file.path for file in before}
        save(replace(archive, number=number).with_files(tuple(made), frozenset(gone)))
        shutil.rmtree(folder / DRAFTS, ignore_errors=True)
