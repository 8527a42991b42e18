"""Many records judged again: in a loop, in processes of this machine, on dask workers; prints a table, asserts nothing.

    python tests/bench/cluster.py                      200 records of 72 h x 200 series, a reading each 10 minutes
    python tests/bench/cluster.py --records 40 --interval 60
    python tests/bench/cluster.py --keep /tmp/archive  keeps the records, and takes those that are there

Every way is the whole command ``soakwatch judge``, from its start to its end, one after the other on the same records;
the loop is one command with one process. ``sent`` hides the files from the workers, so that their bytes are sent.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import psutil
from tests.bench.judge import ONE_THREAD, make

from soakwatch_testing.dask_servers import DaskServers

COMMAND = [sys.executable, "-m", "soakwatch.cli", "judge"]
LOOP = """
import sys
from pathlib import Path
from soakwatch.runs.judge_again import JudgeAgain, Rules, judge_again
for folder in sorted(Path(sys.argv[1]).iterdir()):
    judge_again(JudgeAgain("record.sqlite", Rules()), folder)
"""


def archive(folder: Path, records: int, series: int, interval_s: float) -> float:
    """Makes what is missing of so many records of 72 h; their bytes in all."""
    for number in range(records):
        place = folder / f"run-{number:04}"
        if not place.exists():
            make(place, 72, series, interval_s, number)
    return sum(file.stat().st_size for file in folder.rglob("record.sqlite"))


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds of wall time and of CPU, of the command, its processes and the workers that it used."""

    wall_s: float
    cpu_s: float


def timed(command: list[str], folder: Path, servers: DaskServers | None = None) -> Took:
    """What a command takes. Exit codes are verdicts; others end the bench."""
    others = [] if servers is None else [psutil.Process(each.pid) for each in servers.workers.values()]
    before_s = _cpu_s(others)
    began = time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, **ONE_THREAD}, check=False)
    if done.returncode not in {0, 1, 3}:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return Took(time.perf_counter() - began, _cpu_s(others) - before_s)


def _cpu_s(others: list[psutil.Process]) -> float:
    ours = resource.getrusage(resource.RUSAGE_CHILDREN)
    theirs = sum(sum(other.cpu_times()[:2]) for other in others)
    return ours.ru_utime + ours.ru_stime + theirs


@contextmanager
def workers(folder: Path, count: int) -> Iterator[DaskServers]:
    """A scheduler with so many workers of one thread."""
    with DaskServers(folder, environment=ONE_THREAD) as servers:
        for number in range(count):
            servers.add_worker(f"w{number}")
        yield servers


def verdicts(file: Path) -> list[tuple[str, str, str]]:
    """What was said of each record."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted((Path(line["record"]).name, line["now"], line["reason"]) for line in lines)


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--interval", type=float, default=600.0, help="seconds from one reading to the next")
    parser.add_argument("--keep", type=Path, help="where the records are made, or are already")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as scratch:
        place = Path(scratch)
        records = given.keep or place / "archive"
        records.mkdir(parents=True, exist_ok=True)
        size = archive(records, given.records, given.series, given.interval)
        print(
            f"{given.records} records of 72 h x {given.series} series, a reading each {given.interval:g} s,"
            f" {size / 1e6:.0f} MB; {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}"
        )
        ways: list[tuple[str, Took, Path | None]] = []
        ways.append(("loop in one process", timed([sys.executable, "-c", LOOP, str(records)], place), None))
        for jobs in (1, 2):
            out = place / f"jobs-{jobs}.jsonl"
            took = timed([*COMMAND, str(records), "--jobs", str(jobs), "--json", str(out)], place)
            ways.append((f"--jobs {jobs}", took, out))
        for count in (1, 2):
            with workers(place / f"lab-{count}", count) as servers:
                out = place / f"dask-{count}.jsonl"
                took = timed([*COMMAND, str(records), "--on", servers.address, "--json", str(out)], place, servers)
                ways.append((f"--on, workers: {count}", took, out))
        with workers(place / "lab-sent", 2) as servers:
            out = place / "sent.jsonl"
            # Each process has its own current folder: the workers see nothing there.
            took = timed([*COMMAND, "/proc/self/cwd", "--on", servers.address, "--json", str(out)], records, servers)
            ways.append(("--on, workers: 2, sent", took, out))
        print(f"{'way':24}{'s':>8}{'of the loop':>13}{'s CPU':>9}{'a record':>10}")
        loop_s = ways[0][1].wall_s
        for name, took, _ in ways:
            each_s = took.cpu_s / given.records
            print(f"{name:24}{took.wall_s:8.1f}{loop_s / took.wall_s:12.2f}x{took.cpu_s:9.1f}{each_s:10.2f}")
        said = [verdicts(out) for _, _, out in ways if out is not None]
        print(f"the same verdict for each record by all ways: {'yes' if all(one == said[0] for one in said) else 'NO'}")
    peak_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    print(f"peak memory of the largest process: {peak_mb:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
