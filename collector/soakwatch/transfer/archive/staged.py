"""Stages a run for an archive in a worker: reads its record once, and makes drafts of the files that it adds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import quote

from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.record import SIDE_SUFFIXES, RecordView, record_file
from soakwatch.record.frames import Selection, chosen_keys
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.runs.verification import verify
from soakwatch.transfer.archive.rows import (
    ReadingsFile,
    RunFacts,
    facts_of,
    finding_rows,
    run_rows,
    seal_word,
    series_rows,
)
from soakwatch.transfer.archive.state import DRAFTS, READINGS, digest_of
from soakwatch.transfer.archive.tables import FINDINGS, RUNS, SERIES, Row, Table, Value, arrow
from soakwatch.transfer.export.readings import Columns, Run

_PIECE = 20_000
"""Rows that are held at once."""


@dataclass(frozen=True, slots=True)
class StageJob:
    """The job: a run's record with its SHA-256, the archive's folder, and whether the readings are wanted."""

    record: Path
    content: str
    archive: Path
    readings: bool


@dataclass(frozen=True, slots=True)
class Staged:
    """What came of a record. ``parts`` are the drafts of the tables, ``readings`` those of readings by the paths that
    they get; ``series`` counts the series. ``trouble`` says why it cannot be added."""

    record: str
    key: str = ""
    run: str = ""
    night: str = ""
    content: str = ""
    seal: str = ""
    verdict: str | None = None
    series: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)
    readings: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""


def content_of(record: Path) -> str:
    """The SHA-256 of a record with its write-ahead log. Raises RecordError."""
    try:
        file = record_file(record)
        sides = [file.with_name(file.name + suffix) for suffix in SIDE_SUFFIXES]
        # A reader may leave an empty one.
        digests = [digest_of(each) for each in (file, *sides) if each.is_file() and each.stat().st_size]
    except OSError as error:
        raise RecordError(f"{record} cannot be read: {error.strerror or error}") from None
    return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()


def stage(job: StageJob) -> Staged:
    """The job itself. Never raises for a record: what is wrong with one is its trouble."""
    name = str(job.record)
    try:
        with RecordView.open(job.record) as view:
            if lifecycle_of(view.metas(), view.path) in {"running", "waiting"}:
                return Staged(name, trouble="it goes on: add it once it has ended")
            return _stage(job, view)
    except SoakwatchError as error:
        return Staged(name, trouble=str(error))
    except OSError as error:
        return Staged(name, trouble=f"its files cannot be written ({error.strerror or error})")


def _stage(job: StageJob, view: RecordView) -> Staged:
    facts = facts_of(view)
    verification = verify(view)
    folder = job.archive / DRAFTS
    unique = f"{facts.key}-{job.content[:8]}"
    drafts: dict[str, str] = {}
    files: dict[str, ReadingsFile] = {}
    if job.readings:
        for target in facts.roles:
            draft = folder / f"{unique}-{len(files)}-readings.parquet"
            file = _readings(view, facts, target, draft, unique)
            if file is not None:
                files[target] = file
                drafts[file.path] = draft.name
    slopes: dict[tuple[str, str, str], tuple[Value, Value]] = {}
    parts: dict[str, str] = {}
    with _Part(SERIES, folder, unique, parts) as part:
        for row in series_rows(view, facts):
            part.put(row)
            about = dict(zip(SERIES.names, row, strict=True))
            if about["phase"] == "":
                subject = str(about["target"]), str(about["metric"]), str(about["object"])
                slopes[subject] = about["per_hour"], about["unit"]
    with _Part(FINDINGS, folder, unique, parts) as part:
        for row in finding_rows(view, facts, slopes):
            part.put(row)
    with _Part(RUNS, folder, unique, parts) as part:
        for row in run_rows(view, facts, verification, job.content, files):
            part.put(row)
    return Staged(
        str(job.record),
        *(facts.key, facts.run, facts.night, job.content),
        seal_word(verification),
        view.meta("verdict"),
        len(slopes),
        parts,
        drafts,
    )


def _readings(view: RecordView, facts: RunFacts, target: str, draft: Path, unique: str) -> ReadingsFile | None:
    """Writes the readings of a target; None if it has none."""
    from soakwatch.transfer.export.parquet_files import write_long

    if target not in {key.target for key in chosen_keys(view)}:
        return None
    # Brackets, stars and question marks in a target's name are no glob here.
    exactly = "".join(f"[{sign}]" if sign in "[*?" else sign for sign in target)
    rows = write_long(draft, view, Run(facts.key, view.path), Columns((), ()), Selection(targets=(exactly,)))
    device = quote(facts.devices[target], safe=" -_.")
    path = f"{READINGS}/device={device}/night={facts.night}/{unique}.parquet"
    if facts.devices[target] != target or len(facts.devices) != len(set(facts.devices.values())):
        path = path.replace(unique, f"{unique}-{hashlib.sha256(target.encode()).hexdigest()[:8]}")
    return ReadingsFile(path, rows, draft.stat().st_size, digest_of(draft))


class _Part:
    """The draft of a table, written in pieces. A context manager; ``parts`` gets its name."""

    def __init__(self, table: Table, folder: Path, unique: str, parts: dict[str, str]) -> None:
        import pyarrow.parquet as pq

        self._table = table
        name = f"{unique}-{table.name}.parquet"
        self._writer = pq.ParquetWriter(folder / name, arrow(table, ()).schema, compression="zstd")
        self._rows: list[Row] = []
        parts[table.name] = name

    def put(self, row: Row) -> None:
        self._rows.append(row)
        if len(self._rows) >= _PIECE:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(arrow(self._table, self._rows))
        self._rows.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._write()
        finally:
            self._writer.close()
