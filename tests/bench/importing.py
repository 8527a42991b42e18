"""CPU time and memory of `soakwatch import` by form of table; prints a table, asserts nothing.

    python tests/bench/importing.py                                   2 million samples in each form
    python tests/bench/importing.py --form "wide, epoch" --samples 100000000
    python tests/bench/importing.py --command                         the whole command: it judges and reports too

Each form holds the same signals: levels with noise, two decimals, some of them whole numbers, one reading a second.
By default a process of its own reads the table and writes the record, which is what an import adds to judging; CPU is
user and system time of that process, its start and imports (printed first) taken off. ``python`` may be the one of
another checkout: the same tables are read by both, in turn.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Lines = Callable[[int], Iterator[str]]
"""The lines of a table with so many samples."""
BEGIN_S, COLUMNS, CHUNK = 1_795_000_000, 20, 20_000
HERE = """
import sys
from pathlib import Path
from soakwatch.transfer.importing.files import import_files
from soakwatch.transfer.importing.timeline import ImportOptions
if len(sys.argv) > 2:
    import_files([sys.argv[1]], Path(sys.argv[2]), "bench", ImportOptions())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process took."""

    cpu_s: float
    wall_s: float
    peak_bytes: int


def signals(samples: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Seconds since 1970, shape (n,), and readings, shape (n, 20), a chunk at a time."""
    rng = np.random.default_rng(11)
    for first in range(0, samples // COLUMNS, CHUNK):
        second = BEGIN_S + np.arange(first, min(first + CHUNK, samples // COLUMNS))
        value = 100.0 * np.arange(1, COLUMNS + 1) + rng.normal(0, 5, (second.size, COLUMNS))
        value[:, ::4] = np.round(value[:, ::4])
        yield second, np.round(value, 2)


def iso(second: int) -> str:
    """A time as ISO 8601."""
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"


def european(second: int) -> str:
    """A time with its day first."""
    return f"{datetime.fromtimestamp(second, UTC):%d.%m.%Y %H:%M:%S}"


def wide(
    when: Callable[[int], str], sign: str = ",", decimal: str = ".", hole: int = 0
) -> Callable[[int], Iterator[str]]:
    """A line a time, a column a series; with ``hole`` every so many cells one is empty."""

    def lines(samples: int) -> Iterator[str]:
        yield sign.join(["time", *(f"signal {number}" for number in range(COLUMNS))]) + "\n"
        count = 0
        for seconds, values in signals(samples):
            for second, row in zip(seconds.tolist(), values.tolist(), strict=True):
                cells = [f"{value:g}" if value == int(value) else f"{value:.2f}" for value in row]
                for index in range(COLUMNS if hole else 0):
                    count += 1
                    cells[index] = "" if count % hole == 0 else cells[index]
                yield sign.join([when(second), *(cell.replace(".", decimal) for cell in cells)]) + "\n"

    return lines


def long(when: Callable[[int], str], *, quoted: bool = False) -> Lines:
    """A line a reading."""

    def lines(samples: int) -> Iterator[str]:
        yield "time,target,metric,object,value\n"
        mark = '"' if quoted else ""
        for seconds, values in signals(samples):
            for second, row in zip(seconds.tolist(), values.tolist(), strict=True):
                at = when(second)
                for index, value in enumerate(row):
                    yield f"{at},fw,{mark}imported.signal{mark},{mark}port={index}{mark},{value:.2f}\n"

    return lines


def sysbench(samples: int) -> Iterator[str]:
    """The lines of sysbench: three readings each."""
    yield "sysbench 1.0.20 (using bundled LuaJIT 2.1.0-beta2)\n"
    rng = np.random.default_rng(11)
    for second, noise in enumerate(rng.normal(0, 5, samples // 3).tolist(), 1):
        yield (
            f"[ {second}s ] thds: 8 tps: {900 + noise:.2f} qps: {18000 + noise:.2f} (r/w/o: 1/2/3)"
            f" lat (ms,95%): {50 + noise:.2f} err/s: 0.00 reconn/s: 0.00\n"
        )


FORMS: dict[str, tuple[str, Lines]] = {
    "wide, epoch": ("epoch.csv", wide(str)),
    "wide, epoch, gzip": ("gzip.csv.gz", wide(str)),
    "wide, ISO 8601": ("iso.csv", wide(iso)),
    "wide, ISO 8601, every 50th cell empty": ("holes.csv", wide(iso, hole=50)),
    "wide, semicolons and decimal commas, day first": ("european.csv", wide(european, ";", ",")),
    "long, epoch": ("long-epoch.csv", long(str)),
    "long, ISO 8601": ("long.csv", long(iso)),
    "long, ISO 8601, quoted words": ("quoted.csv", long(iso, quoted=True)),
    "sysbench": ("sysbench.txt", sysbench),
}


def write(path: Path, lines: Iterator[str]) -> None:
    """Write a table, if it does not exist."""
    if path.exists():
        return
    with gzip.open(path, "wt", compresslevel=1) if path.suffix == ".gz" else path.open("w") as file:
        file.writelines(lines)


def measured(command: list[str]) -> Cost:
    """What a command takes; it must succeed."""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(command[:3])} ended with {process.returncode}: {said.decode()[-2000:]}")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - begun, usage.ru_maxrss * 1024)


def imported(python: str, table: Path, work: Path, *, whole: bool) -> tuple[Cost, int]:
    """What an import took, and how many samples the record has."""
    folder = Path(tempfile.mkdtemp(dir=work))
    if whole:
        program = [
            str(Path(python).with_name("soakwatch")),
            "import",
            str(table),
            "--runs",
            str(folder),
            "--name",
            "bench",
        ]
    else:
        program = [python, "-c", HERE, str(table), str(folder / "run")]
    cost = measured(program)
    from soakwatch.record import RecordView

    (record,) = folder.glob("*/record.sqlite")
    with RecordView.open(record.parent) as view:
        return cost, view.counts().samples


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2_000_000, help="in each table")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is read")
    parser.add_argument("--form", action="append", choices=list(FORMS), help="only this one; may be repeated")
    parser.add_argument("--python", action="append", help="read the tables with this one; may be repeated")
    parser.add_argument("--command", action="store_true", help="the whole command, which judges and reports")
    parser.add_argument("--keep", type=Path, help="keep the tables in this folder, and read those that are there")
    options = parser.parse_args()
    pythons: list[str] = options.python or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as held:
        work = Path(held)
        tables: Path = options.keep or work
        tables.mkdir(exist_ok=True)
        starts = {python: 0.0 if options.command else measured([python, "-c", HERE]).cpu_s for python in pythons}
        print(f"start and imports: {json.dumps({python: round(cpu, 2) for python, cpu in starts.items()})} s CPU\n")
        print("| form | bytes a sample | samples | CPU µs a sample (worst) | most memory |")
        print("|---|--:|--:|--:|--:|")
        for form in options.form or FORMS:
            name, lines = FORMS[form]
            path = tables / f"{options.samples}-{name}"
            write(path, lines(options.samples))
            costs: dict[str, list[Cost]] = {python: [] for python in pythons}
            count = 0
            for _ in range(options.rounds):
                for python in pythons:
                    cost, count = imported(python, path, work, whole=options.command)
                    costs[python].append(cost)
            each = path.stat().st_size / count
            for python, some in costs.items():
                took = [(cost.cpu_s - starts[python]) / count * 1e6 for cost in some]
                peak = max(cost.peak_bytes for cost in some) / 1e6
                label = form if len(pythons) == 1 else f"{form}: {python}"
                cpu = f"{statistics.median(took):.2f} ({max(took):.2f})"
                print(f"| {label} | {each:.1f} | {count:,} | {cpu} | {peak:.0f} MB |", flush=True)
            if options.keep is None:
                path.unlink()


if __name__ == "__main__":
    main()
