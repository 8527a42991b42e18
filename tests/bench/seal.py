"""What the chain of digests costs: the same polls written with and without it, side by side; prints, asserts nothing.

    python tests/bench/seal.py                      four shapes of runs, nine pairs each
    python tests/bench/seal.py --pairs 3 --hours 0.5

Each pair writes the same polls into two records, batch by batch and in turn which is first, up to the compact record;
CPU time of the writing thread, and wall time with every commit on the disk.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.record import Signal, polls, signals

from soakwatch.record import Record
from soakwatch.record import writer as record_writer
from soakwatch.record._chain import Chain, LinkedPoll, NewPoll
from soakwatch.record._digests import PollBytes
from soakwatch_model.sample import Poll

if TYPE_CHECKING:
    from hashlib import _Hash


@dataclass(frozen=True, slots=True)
class Shape:
    """So many sources of so many series, polled every second and committed every ``commit_s``."""

    name: str
    sources: int
    series: int
    commit_s: int


SHAPES = (
    Shape("1 source x 200 series, a commit in 10 s", 1, 200, 10),
    Shape("1 source x 200 series, a commit in 1 s", 1, 200, 1),
    Shape("20 sources x 50 series, a commit in 1 s", 20, 50, 1),
    Shape("20 sources x 10 series, a commit in 1 s", 20, 10, 1),
)


def written(folder: Path, batches: Sequence[Sequence[Poll]], shape: Shape) -> tuple[float, float, float, float]:
    """CPU and wall seconds of writing it all with the chain, and without it: batch by batch, in turn which is first."""
    cpu, wall = {True: 0.0, False: 0.0}, {True: 0.0, False: 0.0}

    def timed(chained: bool, work: Callable[[], object]) -> None:
        began, ran = time.perf_counter(), time.thread_time()
        work()
        cpu[chained] += time.thread_time() - ran
        wall[chained] += time.perf_counter() - began

    with _record(folder / "with", shape) as chained:
        with patch.object(record_writer, "Chain", Unchained):
            plain = _record(folder / "without", shape)
        with plain:
            gc.collect()
            for number, batch in enumerate(batches):
                for one in (True, False) if number % 2 else (False, True):
                    timed(one, partial((chained if one else plain).put, batch))
            timed(True, chained.finish)
            timed(False, plain.finish)
    return cpu[True], wall[True], cpu[False], wall[False]


def _record(folder: Path, shape: Shape) -> Record:
    record = Record.create(folder)
    for number in range(shape.sources):
        record.source(f"dut{number}", "local", f"dut{number}/local", 10**9, required=True)
    return record


class Unchained(Chain):
    """In place of ``Chain``: it links nothing."""

    def __init__(self, sql: sqlite3.Connection) -> None:
        self._sql = sql

    def begin(self) -> None:
        """Do nothing, as the others."""

    commit = rolled_back = begin

    def linked(self, rows: Sequence[NewPoll]) -> Sequence[LinkedPoll]:
        """The rows with an empty digest."""
        return [(*row, b"") for row in rows]

    def compacts(self, source: int, rows: Sequence[PollBytes]) -> _Hash:
        """A digest that nobody reads."""
        return hashlib.sha256()


def batches_of(shape: Shape, hours: float, seed: int) -> list[list[Poll]]:
    """The polls of all sources, a list a commit."""
    total = round(hours * 3600 / shape.commit_s) * shape.commit_s
    by_source: list[list[Poll]] = []
    for source in range(1, shape.sources + 1):
        drawn: list[Signal] = signals(shape.series, seed + source)
        by_source.append([poll for stretch in polls(source, drawn, 10**9, total, seed + source) for poll in stretch])
    return [
        [own[second + more] for more in range(shape.commit_s) for own in by_source]
        for second in range(0, total, shape.commit_s)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--hours", type=float, default=1.0, help="of the first shape; less of the others")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{'shape':42} {'samples/s CPU':>14} {'CPU with/without':>24} {'wall with/without':>24}")
    for shape in SHAPES:
        hours = max(given.hours * min(1.0, 200 / (shape.sources * shape.series)), 0.25)
        batches = batches_of(shape, hours, given.seed)
        samples = sum(len(poll.answer.samples) for batch in batches for poll in batch)
        ratios: list[tuple[float, float]] = []
        speeds: list[float] = []
        for _ in range(given.pairs):
            with tempfile.TemporaryDirectory() as folder:
                cpu, wall, plain_cpu, plain_wall = written(Path(folder), batches, shape)
            ratios.append((cpu / plain_cpu, wall / plain_wall))
            speeds.append(samples / plain_cpu)
        by_cpu, by_wall = (sorted(column) for column in zip(*ratios, strict=True))
        speed = f"{statistics.median(speeds):,.0f}"
        print(f"{shape.name:42} {speed:>14} {_spread(by_cpu):>24} {_spread(by_wall):>24}", flush=True)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


if __name__ == "__main__":
    main()
