"""An archive of many devices and nights: what adding a run takes, what a question takes, what judging all of it takes.

    python tests/bench/archive.py                       1,000 devices x 1,000 series x 7 nights of 12 h at 60 s
    python tests/bench/archive.py --interval 10 --runs 8 --nights 1
    python tests/bench/archive.py --keep DIR            keeps records and archive, and takes those that are there
    python tests/bench/archive.py --keep DIR --only query

So many records are made (``--runs``), judged and added by the command; of the rows that they have then the archive is
filled up to all devices and nights, for a thousand records a night would take a day to make. In release 7.2 some
processes grow that do not in 7.1. Every figure is of a whole command, from its start to its end: CPU is user and system
time of the command and its processes, the median of the repeats, with the lowest and highest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import duckdb
import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.cluster import workers
from tests.bench.judge import make

from soakwatch.judge.record_verdict import judge_record
from soakwatch.record import Record, RecordView
from soakwatch.transfer.archive.state import Archive, ListedFile, digest_of, load, save

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
GROWS = 5
"""Of a hundred processes so many grow in release 7.2 alone, and so many in both."""
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("grew", "--release", "7.2", "--not-in", "7.1"),
    ("failed",),
    ("slope", "--metric", "process.memory.usage", "--release", "7.2", "--process", "worker7"),
    ("slope", "--metric", "system.memory.usage"),
    ("drops",),
    ("levels", "--metric", "load.latency"),
    ("verdicts",),
    ("--sql", "SELECT metric, max(highest) AS highest, any_value(unit) AS unit FROM series GROUP BY metric"),
)


@dataclass(frozen=True, slots=True)
class Took:
    """Wall and CPU seconds of a command, and the most memory of its largest process in bytes."""

    wall_s: float
    cpu_s: float
    peak: int


def measured(words: Sequence[str | Path], folder: Path, codes: frozenset[int] = frozenset({0})) -> Took:
    """What a command takes. Ends the bench if it does."""
    script = (
        "import os, resource, subprocess, sys, time; began = time.perf_counter();"
        "code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(code, time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)], cwd=folder, capture_output=True, text=True, check=True
    )
    code, wall, cpu, peak = done.stdout.split()
    if int(code) not in codes:
        sys.exit(f"{' '.join(map(str, words))} ended with {code}")
    return Took(float(wall), float(cpu), int(peak) * 1024)


def records(folder: Path, runs: int, hours: float, series: int, interval_s: float) -> None:
    """Makes what is missing of the records, each with its verdict and findings."""
    for number in range(runs):
        place = folder / f"run-{number:04}"
        if place.exists():
            continue
        make(place, hours, series, interval_s, number)
        with RecordView.open(place) as view:
            verdict = judge_record(view)
            window = view.window()
        with Record.open(place) as record:
            labels = {"release": "7.1" if number % 2 else "7.2", "device": f"device-{number:04}"}
            record.set_meta("labels", json.dumps(labels))
            record.put_findings(verdict.findings, live=False, judged_ns=window.end_ns)
            record.set_meta("verdict", verdict.outcome.value)
            record.set_meta("reason", verdict.reason)
            record.put_seal(window.end_ns)


def fill(folder: Path, devices: int, nights: int) -> None:
    """Fills an archive up to so many devices and nights with the rows that its runs have, under other names."""
    archive = load(folder)
    number, made = archive.number, []
    (first,) = {file.night for file in archive.files}
    for night in range(nights):
        day = (date.fromisoformat(first) + timedelta(days=night)).isoformat()
        release = "7.1" if night < nights // 2 else "7.2"
        for table, order in (
            ("runs", "release, device"),
            ("series", "metric, phase, device, object"),
            ("findings", "rule, outcome, device, metric, object"),
        ):
            number += 1
            path = f"{table}/night={day}/{number:06}.parquet"
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            rows = _copies(archive, table, order, place, devices, night, release)
            listed = ListedFile(
                table=table, night=day, path=path, rows=rows, bytes=place.stat().st_size, sha256=digest_of(place)
            )
            made.append(listed)
            print(f"  {path}: {rows:,} rows, {listed.bytes / 1e6:.0f} MB", flush=True)
    save(Archive(folder, number, tuple(made)))


def _copies(archive: Archive, table: str, order: str, place: Path, devices: int, night: int, release: str) -> int:
    sources = [str(archive.folder / file.path) for file in archive.of(table)]
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-", dir=archive.folder.parent) as spill:
        sql = duckdb.connect(
            config={"memory_limit": "1500MB", "temp_directory": spill, "preserve_insertion_order": False}
        )
        found = [
            row[0]
            for row in sql.execute("SELECT DISTINCT key FROM read_parquet($f) ORDER BY key", {"f": sources}).fetchall()
        ]
        names = [
            str(row[0]) for row in sql.execute("DESCRIBE SELECT * FROM read_parquet($f)", {"f": sources}).fetchall()
        ]
        own = {
            "key": f"printf('%08x%08x', d.number, {night})",
            "run": f"run || '-' || d.number || '-{night}'",
            "device": "printf(CASE WHEN role = 'dut' THEN 'device-%04d' ELSE 'tg-%04d' END, d.number)",
            "release": f"'{release}'",
        }
        if table == "findings":
            # Some processes grow in 7.2 alone, and some in both.
            number = "coalesce(TRY_CAST(regexp_extract(process, '[0-9]+$') AS INT) % 100, 100)"
            grows = f"(rule = 'growth' AND {number} < {2 * GROWS if release == '7.2' else GROWS} AND d.number % 10 = 0)"
            own |= {
                "grew": f"CASE WHEN {grows} THEN true ELSE grew END",
                "outcome": f"CASE WHEN {grows} THEN 'fail' ELSE outcome END",
            }
        # No two devices have the same values: equal ones would be packed as one.
        chance = f"(1 + hash(d.number, metric, object, phase, {night}) % 1000003 / 1e7)"
        values = ("first", "last", "lowest", "highest", "mean", "deviation", "per_hour") if table == "series" else ()
        own |= {name: f"{name} * {chance}" for name in values}
        columns = ", ".join(f"{own[name]} AS {name}" if name in own else name for name in names if name != "night")
        done = sql.execute(
            f"COPY (SELECT {columns} FROM read_parquet($f, hive_partitioning=false) r JOIN (SELECT range AS number,"
            f" list_extract($k, (range % {len(found)} + 1)::INT) AS of FROM range({devices})) d ON r.key = d.of"
            f" ORDER BY {order}) TO '{place}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 60000)",
            {"f": sources, "k": found},
        ).fetchone()
        sql.close()
    return 0 if done is None else int(done[0])


def repeated(what: Callable[[], Took], repeats: int) -> tuple[list[float], list[float], int]:
    """Wall and CPU seconds of each repeat, sorted, and the most memory of all."""
    took = [what() for _ in range(repeats)]
    return sorted(each.wall_s for each in took), sorted(each.cpu_s for each in took), max(each.peak for each in took)


def spread(values: Sequence[float]) -> str:
    """The median, and the lowest and highest."""
    return f"{statistics.median(values):.2f} s ({values[0]:.2f} to {values[-1]:.2f})"


def add(place: Path, given: argparse.Namespace) -> None:
    """What adding takes: with and without readings, a process and two."""
    print("| archive add | CPU s a run | wall s a run | KB a run | MB at most, a process |")
    print("|---|--:|--:|--:|--:|")
    for words in (("--jobs", "1"), ("--jobs", "2"), ("--jobs", "1", "--no-readings")):
        target = Path(tempfile.mkdtemp(prefix="archive-", dir=place))
        took = measured([SOAKWATCH, "archive", "add", place / "runs", "--archive", target, *words], place)
        size = sum(file.stat().st_size for file in target.rglob("*.parquet"))
        print(
            f"| `{' '.join(words)}` | {took.cpu_s / given.runs:.2f} | {took.wall_s / given.runs:.2f}"
            f" | {size / given.runs / 1e3:,.0f} | {took.peak / 1e6:.0f} |",
            flush=True,
        )
        subprocess.run(["rm", "-rf", target], check=True)


def query(place: Path, given: argparse.Namespace) -> None:
    """What questions take, of an archive of all devices and nights."""
    archive = place / f"archive-{given.devices}-{given.nights}"
    if not archive.exists():
        measured([SOAKWATCH, "archive", "add", place / "runs", "--archive", archive, "--no-readings"], place)
        fill(archive, given.devices, given.nights)
    state = load(archive)
    for table in ("runs", "series", "findings"):
        files = state.of(table)
        print(f"{table}: {sum(f.rows for f in files):,} rows, {sum(f.bytes for f in files) / 1e6:,.0f} MB", flush=True)
    print("\n| soakwatch query | wall, the first time | wall | CPU | MB at most |")
    print("|---|--:|--:|--:|--:|")
    for words in QUESTIONS:
        line: list[str | Path] = [SOAKWATCH, "query", *words, "--archive", archive, "--format", "csv"]
        first = measured(line, place)
        wall, cpu, peak = repeated(partial(measured, line, place), given.repeats)
        named = " ".join(words)
        print(f"| `{named}` | {first.wall_s:.2f} s | {spread(wall)} | {spread(cpu)} | {peak / 1e6:.0f} |", flush=True)


def judge(place: Path, given: argparse.Namespace) -> None:
    """What judging takes: records in processes of this machine."""
    whole = frozenset({0, 1, 3})
    print("| judge | CPU s a run | wall s a run | MB at most, a process | so many devices |")
    print("|---|--:|--:|--:|--:|")
    for jobs in ("1", "2"):
        line: list[str | Path] = [SOAKWATCH, "judge", place / "runs", "--jobs", jobs]
        wall, cpu, peak = repeated(partial(measured, line, place, whole), given.repeats)
        each = [value / given.runs for value in wall]
        print(
            f"| `--jobs {jobs}` | {spread([value / given.runs for value in cpu])} | {spread(each)} | {peak / 1e6:.0f}"
            f" | {statistics.median(each) * given.devices / 60:.0f} min |",
            flush=True,
        )


def dask(place: Path, given: argparse.Namespace) -> None:
    """What 1, 2 and 4 workers of dask take of CPU, and what driver and scheduler take beside them.

    Few machines have a free core for each worker. Where there is one, 4 workers judge as fast as their CPU allows if
    driver and scheduler take less for a record than a quarter of what a worker does: all are shown. Each way is
    measured when its workers have judged all records once, so that their imports are in no figure.
    """
    print("| judge --on dask | CPU s a run, workers | driver | scheduler | wall s a run | of linear, by CPU |")
    print("|---|--:|--:|--:|--:|--:|")
    alone_s = 0.0
    for count in (1, 2, 4):
        with workers(place / f"dask-{count}", count) as servers:
            line: list[str | Path] = [SOAKWATCH, "judge", place / "runs", "--on", servers.address]
            measured(line, place, frozenset({0, 1, 3}))
            assert servers.scheduler is not None
            theirs, middle = [each.pid for each in servers.workers.values()], [servers.scheduler.pid]
            figures = []
            for _ in range(given.repeats):
                before = cpu_of(theirs), cpu_of(middle)
                took = measured(line, place, frozenset({0, 1, 3}))
                after = cpu_of(theirs), cpu_of(middle)
                figures.append((after[0] - before[0], took.cpu_s, after[1] - before[1], took.wall_s))
            work, driver, scheduler, wall = (sorted(column) for column in zip(*figures, strict=True))
        each = [[value / given.runs for value in column] for column in (work, driver, scheduler, wall)]
        alone_s = alone_s or statistics.median(each[0])
        cells = " | ".join(map(spread, each))
        print(f"| workers: {count} | {cells} | {alone_s / statistics.median(each[0]):.2f} |", flush=True)


def cpu_of(pids: Sequence[int]) -> float:
    """The CPU seconds of processes so far."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8, help="records that are made, judged and added")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--nights", type=int, default=7)
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=12.0)
    parser.add_argument("--interval", type=float, default=60.0, help="seconds from one reading to the next")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where records and archive are made, or are already")
    parser.add_argument("--only", choices=["add", "query", "judge", "dask"], action="append", help="may be repeated")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as scratch:
        place = (given.keep or Path(scratch)).absolute()
        (place / "runs").mkdir(parents=True, exist_ok=True)
        records(place / "runs", given.runs, given.hours, given.series, given.interval)
        size = sum(file.stat().st_size for file in (place / "runs").rglob("record.sqlite"))
        print(
            f"{given.runs} records of {given.hours:g} h x {given.series} series, a reading each {given.interval:g} s,"
            f" {size / given.runs / 1e3:,.0f} KB each; {given.devices} devices, {given.nights} nights;"
            f" {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}\n",
            flush=True,
        )
        for name, part in (("add", add), ("query", query), ("judge", judge), ("dask", dask)):
            if not given.only or name in given.only:
                part(place, given)
                print(flush=True)


if __name__ == "__main__":
    main()
