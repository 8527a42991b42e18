"""Bytes, speed and memory of the record on a synthetic run; prints tables, asserts nothing.

    python tests/bench/record.py                         72 h x 200 series x 1 s, some minutes
    python tests/bench/record.py --hours 2 --keep /tmp/two-hours
    python tests/bench/record.py --parts runs/20260112-night      what takes how many bytes of a record that is there

The mixture is that of a device under load: CPU ticks, byte and packet counters, resident memory in pages, shares of
ticks k/N and of measured time (every digit of a double), descriptors and threads that hardly change, latencies.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pcodec import ChunkConfig, standalone

from soakwatch.record import Record, RecordView
from soakwatch.record._blocks import encode
from soakwatch.record.model import Values
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text

BEGIN_NS = 1_767_225_600_000_000_000
STRETCH = 2000  # polls that are made at once


@dataclass
class Signal:
    """One synthetic series: ``draw`` makes the next readings and remembers where it stands."""

    metric: str
    object: str
    kind: str
    level: float
    rng: np.random.Generator
    last_level: int = field(default=0)

    def draw(self, count: int) -> Values:
        """The next readings."""
        rng, level = self.rng, self.level
        if self.kind == "ticks":
            steps = self.last_level + np.cumsum(rng.binomial(100, level, count))
            self.last_level = int(steps[-1])
            ticks: NDArray[np.float64] = steps / 100
            return ticks
        if self.kind == "poisson":
            counts = self.last_level + np.cumsum(rng.poisson(level, count))
            self.last_level = int(counts[-1])
            return counts.astype(np.int64)
        if self.kind == "bytes":
            octets = self.last_level + np.cumsum(rng.poisson(level, count) * 66 + rng.integers(0, 1400, count))
            self.last_level = int(octets[-1])
            return octets.astype(np.int64)
        if self.kind == "pages":
            pages = self.last_level + np.cumsum((rng.random(count) < 0.05) * rng.integers(-20, 22, count))
            self.last_level = max(int(pages[-1]), 0)
            return (np.maximum(pages, 0) * 4096 + int(level) * 4096).astype(np.int64)
        if self.kind == "share":
            ratios: NDArray[np.float64] = rng.binomial(99, level, count) / rng.choice([99, 100, 100, 100, 101], count)
            return ratios
        if self.kind == "elapsed":
            shares: NDArray[np.float64] = rng.binomial(100, level, count) / 100 / (1 + rng.normal(0, 50e-6, count))
            return shares
        if self.kind == "few":
            few = int(level) + (np.cumsum(rng.random(count) < 0.02) + self.last_level) % 3
            self.last_level += int(few[-1])
            return few.astype(np.int64)
        latencies: NDArray[np.float64] = rng.lognormal(np.log(level), 0.5, count)
        return latencies


def signals(count: int, seed: int) -> list[Signal]:
    """The mixture: a machine of 8 cores and 4 interfaces, a load, and processes until there are enough series."""
    drawn: list[Signal] = []

    def add(metric: str, kind: str, level: float, **labels: object) -> None:
        rng = np.random.default_rng([seed, len(drawn)])
        drawn.append(Signal(metric, object_text(**labels), kind, level, rng, int(rng.integers(1, 10**6))))

    for core in range(8):
        add("system.cpu.core.utilization", "share", 0.1 * core + 0.05, core=core)
        add("system.interrupts", "poisson", 3000, core=core)
        add("system.softnet.processed", "poisson", 20000, core=core)
        for mode in ("user", "system", "idle", "iowait", "irq", "softirq"):
            add("system.cpu.core.time", "ticks", 0.02 if mode in {"iowait", "irq"} else 0.3, core=core, mode=mode)
    for interface in ("eth0", "eth1", "eth2", "eth3"):
        for direction in ("receive", "transmit"):
            labels = {"interface": interface, "direction": direction}
            add("system.network.io", "bytes", 80000, **labels)
            add("system.network.packets", "poisson", 80000, **labels)
            add("system.network.packet.dropped", "poisson", 0.01, **labels)
    for metric in ("usage", "available", "cached", "slab", "committed"):
        add(f"system.memory.{metric}", "pages", 500_000)
    add("system.context_switches", "poisson", 40000)
    add("load.requests", "poisson", 12000)
    for quantile in ("0.5", "0.9", "0.99"):
        add("load.latency", "latency", 0.002, quantile=quantile)
    for process in range(1000):
        labels = {"process": f"worker{process}", "instance": "0"}
        add("process.memory.usage", "pages", 30_000, **labels)
        add("process.cpu.utilization", "elapsed", 0.3, **labels)
        add("process.cpu.time", "ticks", 0.3, **labels, mode="user")
        add("process.cpu.time", "ticks", 0.05, **labels, mode="system")
        add("process.open_files", "few", 120, **labels)
        add("process.threads", "few", 16, **labels)
        if len(drawn) >= count:
            return drawn[:count]
    return drawn


def polls(
    source: int, drawn: list[Signal], interval_ns: int, total: int, seed: int, begin_ns: int = BEGIN_NS
) -> Iterator[list[Poll]]:
    """The polls of a run in stretches; starts come some 100 µs late, durations vary."""
    rng = np.random.default_rng(seed)
    for first in range(0, total, STRETCH):
        count = min(STRETCH, total - first)
        columns = [signal.draw(count).tolist() for signal in drawn]
        names = [(signal.metric, signal.object) for signal in drawn]
        late = rng.gamma(3, 30_000, count).astype(int).tolist()
        lasted = rng.gamma(20, 100_000, count).astype(int).tolist()
        stretch = []
        for row, values in enumerate(zip(*columns, strict=True)):
            due = begin_ns + (first + row) * interval_ns
            start = due + late[row]
            samples = tuple(
                [Sample(metric, name, value, start) for (metric, name), value in zip(names, values, strict=True)]
            )
            stretch.append(Poll(source, due, start, lasted[row], PollOutcome.OK, None, Answer(samples, (), ())))
        yield stretch


def resident_mb() -> float:
    """Resident memory of this process, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def codecs(drawn: list[Signal]) -> None:
    """Bytes and CPU of the candidates on one block of each kind of signal."""
    candidates: dict[str, Callable[[Values], bytes]] = {
        "the record's": encode,
        "pcodec 4": _pco(4),
        "pcodec 6": _pco(6),
        "pcodec 8": _pco(8),
        "pcodec 12": _pco(12),
    }
    try:
        import zstandard
    except ModuleNotFoundError:
        print("(zstandard is not installed: left out)")
    else:
        for level in (3, 9):
            candidates[f"zstd {level} over delta"] = _zstd(zstandard.ZstdCompressor(level=level).compress)
    kinds = {signal.kind: signal for signal in reversed(drawn)}
    blocks = {kind: [signal.draw(STRETCH) for _ in range(10)] for kind, signal in sorted(kinds.items())}
    print(f"bytes a reading, blocks of {STRETCH}; last column: CPU µs a block")
    print(f"{'':20}" + "".join(f"{kind:>9}" for kind in blocks) + f"{'CPU':>9}")
    for name, compress in candidates.items():
        begun = time.process_time()
        sizes = [sum(len(compress(block)) for block in ten) / (10 * STRETCH) for ten in blocks.values()]
        cpu = (time.process_time() - begun) / (10 * len(blocks)) * 1e6
        print(f"{name:20}" + "".join(f"{size:9.2f}" for size in sizes) + f"{cpu:9.0f}")
    print()


def _pco(level: int) -> Callable[[Values], bytes]:
    def compress(values: Values) -> bytes:
        packed: bytes = standalone.simple_compress(values, ChunkConfig(compression_level=level))
        return packed

    return compress


def _zstd(compress: Callable[[bytes], bytes]) -> Callable[[Values], bytes]:
    def delta(values: Values) -> bytes:
        words = values.view(np.uint64)
        if values.dtype.kind == "f":
            changed: NDArray[np.uint64] = np.concatenate([words[:1], words[1:] ^ words[:-1]])
        else:
            steps = np.concatenate([words[:1], words[1:] - words[:-1]]).view(np.int64)
            changed = ((steps << 1) ^ (steps >> 63)).view(np.uint64)
        return compress(changed.view(np.uint8).reshape(-1, 8).T.tobytes())

    return delta


def batches(drawn: list[Signal], folder: Path) -> None:
    """Committed samples a second by the number of polls in a commit."""
    print("polls a commit   samples/s wall   samples/s CPU")
    for size in (1, 5, 20):
        with Record.create(folder / f"batch{size}") as record:
            source = record.source("dut", "local", "dut/local", 10**9, required=True)
            stretch = next(polls(source.id, drawn, 10**9, 1000, 1))
            wall, cpu = time.perf_counter(), time.process_time()
            for start in range(0, len(stretch), size):
                record.put(stretch[start : start + size])
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            count = sum(len(poll.answer.samples) for poll in stretch)
            print(f"{size:14}{count / wall:17,.0f}{count / cpu:16,.0f}")
    print()


def parts(folder: Path) -> None:
    """Bytes of each table and index of a record: what its rows need, and what is room in its pages."""
    file = folder / "record.sqlite" if folder.is_dir() else folder
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as sql:
        try:
            rows = sql.execute(
                "SELECT name, sum(pgsize), sum(payload), sum(unused), sum(ncell * (pagetype = 'leaf'))"
                " FROM dbstat GROUP BY name ORDER BY 2 DESC"
            ).fetchall()
        except sqlite3.OperationalError as error:
            print(f"(its parts are not known: {error})")
            return
        size, samples = file.stat().st_size, sql.execute("SELECT coalesce(sum(samples), 0) FROM chunk").fetchone()[0]
        page, version = (sql.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_size", "user_version"))
    print(f"{'part':28}{'bytes':>12}{'share':>8}{'rows':>9}{'content':>12}{'room':>10}")
    small = [row for row in rows if row[1] < 0.01 * size]
    for name, taken, content, unused, cells in [row for row in rows if row not in small]:
        print(f"{name:28}{taken:12,}{100 * taken / size:7.1f}%{cells or 0:9,}{content:12,}{unused:10,}")
    rest = [sum(row[column] or 0 for row in small) for column in (1, 2, 3, 4)]
    name, taken, content, unused, cells = f"{len(small)} smaller ones", *rest
    print(f"{name:28}{taken:12,}{100 * taken / size:7.1f}%{cells:9,}{content:12,}{unused:10,}")
    each = f", {size / samples:.3f} a sample" if samples else ""
    print(f"{'all':28}{size:12,}   schema {version}, pages of {page}, {samples:,} samples{each}")


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=72)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds")
    parser.add_argument("--batch", type=int, default=10, help="polls a commit")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="make the record in this folder and leave it there")
    parser.add_argument("--parts", type=Path, help="only the sizes of the parts of this record, a run's folder")
    options = parser.parse_args()
    if options.parts:
        parts(options.parts)
        return
    work = Path(tempfile.mkdtemp(prefix="soakwatch-bench-"))
    try:
        codecs(signals(options.series, options.seed))
        batches(signals(options.series, options.seed), work)
        run(options, options.keep or work / "run")
    finally:
        shutil.rmtree(work)


def run(options: argparse.Namespace, folder: Path) -> None:
    """Write the run, then read it."""
    drawn = signals(options.series, options.seed)
    interval_ns = round(options.interval * 1e9)
    total = round(options.hours * 3600 / options.interval)
    marks = {total // 4: "25 %", total // 2: "50 %", total: "100 %"}
    wall = cpu = longest = 0.0
    done = 0
    memory: list[str] = []
    with Record.create(folder) as record:
        record.set_meta("name", "bench")
        record.target("dut", "dut")
        record.begin_span(BEGIN_NS)
        source = record.source("dut", "local", "dut/local", interval_ns, required=True)
        record.begin_phase("soak", BEGIN_NS)
        for stretch in polls(source.id, drawn, interval_ns, total, options.seed):
            for start in range(0, len(stretch), options.batch):
                batch = stretch[start : start + options.batch]
                wall_before, cpu_before = time.perf_counter(), time.process_time()
                record.put(batch)
                took = time.perf_counter() - wall_before
                wall, cpu, longest = wall + took, cpu + time.process_time() - cpu_before, max(longest, took)
                before, done = done, done + len(batch)
                for mark, name in marks.items():
                    if before < mark <= done:
                        memory.append(f"{name}: {resident_mb():.0f} MB")
        record.end_phase(BEGIN_NS + total * interval_ns)
        begun = time.perf_counter()
        record.finish()
        finished = time.perf_counter() - begun
    del drawn
    gc.collect()
    with RecordView.open(folder) as view:
        counts, keys = view.counts(), view.keys()
    chosen = random.Random(options.seed).choices(keys, k=20)
    times, opened = [], []
    for key in chosen:
        begun = time.perf_counter()
        with RecordView.open(folder) as view:
            opened.append(time.perf_counter() - begun)
            length = len(view.series(key))
            times.append(time.perf_counter() - begun)
    begun = time.perf_counter()
    with RecordView.open(folder) as view:
        for key in keys:
            view.series(key)
    every = time.perf_counter() - begun
    size = (folder / "record.sqlite").stat().st_size
    print(f"{options.hours:g} h x {len(keys)} series x {options.interval:g} s: {counts.samples:,} samples")
    print(f"bytes a sample          {size / counts.samples:.3f}  (file {size / 1e6:.1f} MB)")
    print(f"committed samples/s     {counts.samples / wall:,.0f} wall, {counts.samples / cpu:,.0f} CPU")
    print(f"longest put             {longest * 1e3:.0f} ms (with a compaction); finish {finished:.2f} s")
    print(f"one series ({length:,})   median {statistics.median(times) * 1e3:.1f} ms, worst {max(times) * 1e3:.1f} ms")
    print(f"all series, one view    {every:.2f} s")
    print(f"resident memory         {'   '.join(memory)}   (generator included)\n")
    parts(folder)


if __name__ == "__main__":
    main()
