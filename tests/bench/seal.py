"""What the chain of digests costs: the same polls written with and without it, side by side; prints, asserts nothing.

    python tests/bench/seal.py                      two shapes of runs, nine pairs each
    python tests/bench/seal.py --pairs 3 --hours 0.5

Each pair writes the same polls twice, in turn which is first, up to the compact record; CPU time of the process and
wall time with every commit on the disk. Then a record is checked and sealed.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from record import Signal, polls, signals

from soakwatch.record import Record
from soakwatch.record import writer as record_writer
from soakwatch_agent.sample import Poll


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


def written(folder: Path, batches: Sequence[Sequence[Poll]], shape: Shape) -> tuple[float, float]:
    """CPU and wall seconds of writing it all."""
    with Record.create(folder) as record:
        record.target("dut", "dut")
        for number in range(shape.sources):
            record.source(f"dut{number}", "local", f"dut{number}/local", 10**9, required=True)
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            record.put(batch)
        record.finish()
        return time.process_time() - cpu, time.perf_counter() - wall


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


def _without() -> Callable[[object], None]:
    return lambda _sql: None


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--hours", type=float, default=1.0, help="of the first shape; less of the others")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{'shape':42} {'samples/s CPU':>14} {'CPU with/without':>24} {'wall with/without':>24}")
    for shape in SHAPES:
        hours = given.hours * min(1.0, 200 / (shape.sources * shape.series))
        hours = max(hours, 2 * 3600 / 3600 / 8)
        batches = batches_of(shape, hours, given.seed)
        samples = sum(len(poll.answer.samples) for batch in batches for poll in batch)
        ratios: list[tuple[float, float]] = []
        speeds: list[float] = []
        for pair in range(given.pairs):
            seen: dict[bool, tuple[float, float]] = {}
            for chained in (pair % 2 == 0, pair % 2 == 1):
                with tempfile.TemporaryDirectory() as folder:
                    if chained:
                        seen[True] = written(Path(folder) / "run", batches, shape)
                    else:
                        with patch.object(record_writer, "start_chain", _without()):
                            seen[False] = written(Path(folder) / "run", batches, shape)
            ratios.append((seen[True][0] / seen[False][0], seen[True][1] / seen[False][1]))
            speeds.append(samples / seen[False][0])
        cpu, wall = (sorted(column) for column in zip(*ratios, strict=True))
        print(f"{shape.name:42} {statistics.median(speeds):14,.0f} {_spread(cpu):>24} {_spread(wall):>24}", flush=True)


def _spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"


if __name__ == "__main__":
    main()
