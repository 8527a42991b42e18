"""Adds runs to an archive: each is staged by a worker, and becomes part of the archive with others, all at once."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.workers.executor import ClusterError, Executor, JobLostError, completed
from soakwatch.transfer.archive._database import NO_FILTERS, Known, merge, needs_duckdb, opened
from soakwatch.transfer.archive.staged import Staged, StageJob, content_of, stage
from soakwatch.transfer.archive.state import (
    DRAFTS,
    Archive,
    ListedFile,
    clear_unlisted,
    drafts,
    inside,
    not_written,
    save,
    settle,
    writing,
)
from soakwatch.transfer.archive.tables import INDEX, Table

_TOGETHER = 50
"""Runs that become part of the archive at once: a kill costs the work on so many."""
_LARGE = 4
"""A file with so many times the rows of all smaller ones is left as it is."""
MANY_FILES = 16
"""Files of one night and table beyond which they are merged into one."""


@dataclass(frozen=True, slots=True)
class Added:
    """What ``add`` did with each record: new; put in place of what was there of that run; there already; or in trouble.
    ``removed`` counts files that a killed ``add`` had left."""

    new: tuple[Staged, ...] = ()
    replaced: tuple[Staged, ...] = ()
    same: tuple[Staged, ...] = ()
    failed: tuple[Staged, ...] = ()
    removed: int = 0


def add_runs(
    folder: Path,
    records: Iterable[Path],
    executor: Executor | None,
    *,
    readings: bool,
    again: bool = False,
    waits: Callable[[], None] = lambda: None,
    one_more: Callable[[], None] = lambda: None,
) -> Added:
    """Adds the runs of some records to the archive in a folder, which is made if need be; ``again``: also those that it
    has. Without an executor this process does the work. ``waits`` is called if another process adds to it, whose end is
    awaited; ``one_more`` after each record.

    A record that cannot be read costs the others nothing. Raises ArchiveError if the archive cannot be read or written:
    what it held, and what was added until then, is still there.
    """
    needs_duckdb()
    with writing(folder, waits) as found:
        archive = found
        with opened(archive, NO_FILTERS) as database:
            known = database.known()
        removed = clear_unlisted(archive, frozenset(path for run in known.values() for path in run.readings))
        drafts(folder)
        added = Added(removed=removed)
        waiting: list[Staged] = []
        handled: dict[str, Staged] = {}
        for staged in _staged(executor, records, folder, {} if again else known, readings=readings):
            one_more()
            if staged.trouble:
                added = replace(added, failed=(*added.failed, staged))
            elif not staged.parts:
                added = replace(added, same=(*added.same, staged))
            elif staged.key in handled:
                other = handled[staged.key].record
                trouble = f"it is another state of the same run as {other}: name the one that is to be kept"
                added = replace(added, failed=(*added.failed, replace(staged, trouble=trouble)))
            else:
                waiting.append(staged)
                handled[staged.key] = staged
                if staged.key in known:
                    added = replace(added, replaced=(*added.replaced, staged))
                else:
                    added = replace(added, new=(*added.new, staged))
            if len(waiting) >= _TOGETHER:
                archive = _commit(archive, waiting, known)
                waiting.clear()
        if waiting:
            _commit(archive, waiting, known)
        shutil.rmtree(folder / DRAFTS, ignore_errors=True)
        return added


def _staged(
    executor: Executor | None, records: Iterable[Path], folder: Path, known: dict[str, Known], *, readings: bool
) -> Iterator[Staged]:
    """What comes of each record, as it comes."""
    there = {run.content: (key, run) for key, run in known.items()}

    def submit(record: Path) -> Future[Staged]:
        try:
            content = content_of(record)
        except RecordError as error:
            return _answered(Staged(str(record), trouble=str(error)))
        if content in there:
            key, run = there[content]
            return _answered(Staged(str(record), key, run.run, run.night, content))
        job = StageJob(record.absolute(), content, folder.absolute(), readings)
        if executor is None:
            return _answered(stage(job))
        return executor.submit(stage, job, label=f"adding {record}")

    for record, future in completed(submit, records, lambda: 1 if executor is None else executor.slots):
        try:
            yield replace(future.result(), record=str(record))
        except JobLostError as error:
            yield Staged(str(record), trouble=str(error))
        except ClusterError:
            raise


def _answered(staged: Staged) -> Future[Staged]:
    future: Future[Staged] = Future()
    future.set_result(staged)
    return future


def _commit(archive: Archive, runs: Sequence[Staged], known: dict[str, Known]) -> Archive:
    """Makes staged runs part of the archive, in place of what it had of them."""
    folder = archive.folder
    nights: dict[str, list[Staged]] = defaultdict(list)
    for run in runs:
        nights[run.night].append(run)
    number = archive.number
    made: list[ListedFile] = []
    gone: set[str] = set()
    try:
        for run in runs:
            for path, draft in run.readings.items():
                settle(folder / DRAFTS / draft, inside(folder, path))
        for night, staged in sorted(nights.items()):
            again = frozenset(run.key for run in staged if run.key in known)
            for table in INDEX.values():
                before = [file for file in archive.of(table.name) if file.night == night]
                # Those of a run that comes again must not be kept from before.
                before = before if again else _to_merge(before)
                number += 1
                parts = [folder / DRAFTS / run.parts[table.name] for run in staged]
                made.append(rewritten(archive, table, night, before, parts, again, number))
                gone |= {file.path for file in before}
    except OSError as error:
        raise not_written(folder, error) from None
    after = replace(archive, number=number).with_files(tuple(made), frozenset(gone))
    save(after)
    for run in runs:
        known[run.key] = Known(run.run, run.night, run.content, tuple(run.readings))
        for part in run.parts.values():
            with suppress(OSError):
                (folder / DRAFTS / part).unlink()
    return after


def _to_merge(files: Sequence[ListedFile]) -> list[ListedFile]:
    """Which files of a night to merge with what comes: none while they are few, else the small ones, so that a large
    one is not written anew for each small one."""
    if len(files) < MANY_FILES:
        return []
    merged: list[ListedFile] = []
    rows = 0
    for file in sorted(files, key=lambda file: file.rows):
        if len(merged) >= 2 and file.rows > _LARGE * rows:
            break
        merged.append(file)
        rows += file.rows
    return merged


def rewritten(
    archive: Archive,
    table: Table,
    night: str,
    before: Sequence[ListedFile],
    parts: Sequence[Path],
    without: frozenset[str],
    number: int,
) -> ListedFile:
    """One file of the rows of some files of a night, but for those of some runs (by their keys), and of drafts.

    Raises ArchiveError for a file that is damaged, OSError.
    """
    folder = archive.folder
    kept = [inside(folder, file.path) for file in before]
    if kept and without:
        draft = folder / DRAFTS / f"{number:06}-kept.parquet"
        merge(kept, table, draft, without)
        kept = [draft]
    draft = folder / DRAFTS / f"{number:06}.parquet"
    rows = merge([*kept, *parts], table, draft, frozenset())
    path = f"{table.name}/night={night}/{number:06}.parquet"
    size, digest = settle(draft, folder / path)
    return ListedFile(table=table.name, night=night, path=path, rows=rows, bytes=size, sha256=digest)
