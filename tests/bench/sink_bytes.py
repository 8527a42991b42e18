"""Bytes a sample at rest: the record itself, InfluxDB 2 and VictoriaMetrics, fed with the same record by the sink.

    python tests/bench/sink_bytes.py                              one device of 200 series x 10 s x 72 h
    python tests/bench/sink_bytes.py --devices 1000 --hours 0.05  200,000 series: memory and index

Blocks of the disk are counted and not lengths, for the servers make files with gaps; after everything was written,
compacted, come to rest and the server was stopped. What an empty server takes is subtracted. CPU and memory are the
server's. Prints tables of Markdown, asserts nothing; a server that is not there is named.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.record import BEGIN_NS, polls, signals

from soakwatch.record import Record
from soakwatch.transfer.sinks.influxdb import GRAINS_NS, Influxdb
from soakwatch.transfer.sinks.push import push
from soakwatch_testing.influxd import BUCKET, ORG, find_influxd, start_influxd
from soakwatch_testing.victoria import find_victoria, start_victoria

TOKEN = "SINK_BYTES_TOKEN"
WHOLE = 1000 * 200 * 6 * 60 * 72  # samples of 1000 devices x 200 series x 10 s x 72 h
SOON = ("--storage-cache-snapshot-write-cold-duration=10s", "--storage-compact-full-write-cold-duration=10s")
REST_S, LONGEST_REST_S = 25.0, 300.0


@dataclass(frozen=True, slots=True)
class Fed:
    """What one store came to: bytes, seconds that the push took, CPU of the sink and the server, the server's memory;
    None for the record, which has none of these."""

    name: str
    size: int
    at_once: int
    wall_s: float | None = None
    sink_s: float | None = None
    cpu_s: float | None = None
    memory: int | None = None


def main() -> int:
    """The figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--series", type=int, default=200, help="of each device")
    parser.add_argument("--interval", type=float, default=10.0, help="seconds")
    parser.add_argument("--hours", type=float, default=72.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as name:
        work = Path(name)
        samples = make(work / "run", options)
        print(
            f"{options.devices} devices x {options.series} series x {options.interval:g} s x {options.hours:g} h:"
            f" {samples:,} samples; {psutil.cpu_count()} cores\n"
        )
        fed_rows = [Fed("record", blocks(work / "run"), blocks(work / "run"))]
        fed = (influxdb(work, "ns"), influxdb(work, "ms"), victoria(work))
        fed_rows += [candidate for candidate in fed if candidate is not None]
        tell(fed_rows, samples)
    return 0


def make(folder: Path, options: argparse.Namespace) -> int:
    """The record of devices under load, and the number of its samples."""
    interval_ns, total = round(options.interval * 1e9), round(options.hours * 3600 / options.interval)
    with Record.create(folder) as record:
        record.begin_span(BEGIN_NS)
        feeds = []
        for device in range(options.devices):
            target = f"dut{device}"
            record.target(target, "dut")
            source = record.source(target, "snmp", f"{target}/snmp", interval_ns, required=True)
            drawn, seed = signals(options.series, options.seed + device), options.seed + device
            feeds.append(polls(source.id, drawn, interval_ns, total, seed))
        record.begin_phase("soak", BEGIN_NS)
        for stretches in zip(*feeds, strict=True):
            for stretch in stretches:
                record.put(stretch)
        record.end_phase(BEGIN_NS + total * interval_ns)
        record.set_meta("verdict", "pass")
        record.finish()
    return int(total * options.devices * options.series)


def influxdb(work: Path, precision: str) -> Fed | None:
    """InfluxDB 2, told to compact soon; its times are delta coded, so that their digits are what takes the room."""
    program = find_influxd()
    if program is None:
        print("no influxd 2: build it with tests/influxd/build", file=sys.stderr)
        return None
    with ExitStack() as stack:
        server = start_influxd(program, work / f"influxd-{precision}", stack, *SOON)
        os.environ[TOKEN] = server.token
        empty = blocks(server.folder / "engine")
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        to = Influxdb(server.url, ORG, BUCKET, f"env:{TOKEN}", timeout_s=300, grain_ns=GRAINS_NS[precision])
        wall_s, sink_s = pushed(work / "run", to)
        at_once = blocks(server.folder / "engine")
        rest(server.folder / "engine")
        cpu_s, memory = cpu(process), peak(process)
        server.stop()
        size = blocks(server.folder / "engine") - empty
        return Fed(f"InfluxDB 2.7, precision: {precision}", size, at_once - empty, wall_s, sink_s, cpu_s, memory)


def victoria(work: Path) -> Fed | None:
    """VictoriaMetrics, told to merge everything."""
    program = find_victoria()
    if program is None:
        print("no victoria-metrics: it is a package of Debian's", file=sys.stderr)
        return None
    with ExitStack() as stack:
        server = start_victoria(program, work / "victoria", stack, "-dedup.minScrapeInterval=1ms")
        os.environ[TOKEN] = "any"
        empty = blocks(server.folder / "data")
        assert server.process is not None
        process = psutil.Process(server.process.pid)
        wall_s, sink_s = pushed(work / "run", Influxdb(server.url, "-", "-", f"env:{TOKEN}", timeout_s=300))
        server.flush()
        at_once = blocks(server.folder / "data")
        server.merge()
        rest(server.folder / "data")
        cpu_s, memory = cpu(process), peak(process)
        server.stop()
        cache = blocks(server.folder / "data" / "cache")  # made at the end, and made anew where it is missing
        size = blocks(server.folder / "data") - cache - empty
        return Fed("VictoriaMetrics 1.79", size, at_once - empty, wall_s, sink_s, cpu_s, memory)


def pushed(run: Path, to: Influxdb) -> tuple[float, float]:
    """Send the record; the seconds that it took, and those of our CPU."""
    begin, busy = time.monotonic(), time.process_time()
    done = push(run, run.name, to, 60)
    if done.error or done.rejected:
        raise SystemExit(f"{to.url} did not take everything: {done.error}, {done.rejected} refused")
    return time.monotonic() - begin, time.process_time() - busy


def rest(folder: Path) -> None:
    """Wait until nothing changes there any more."""
    begin = since = time.monotonic()
    before = -1
    while time.monotonic() - since < REST_S and time.monotonic() - begin < LONGEST_REST_S:
        now = blocks(folder)
        if now != before:
            before, since = now, time.monotonic()
        time.sleep(1)


def blocks(folder: Path) -> int:
    """Bytes of the disk that a folder takes."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            try:
                total += Path(parent, name).stat().st_blocks * 512
            except FileNotFoundError:  # it was compacted away just now
                continue
    return total


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU, of the user and the system."""
    times = process.cpu_times()
    return float(times.user + times.system)


def peak(process: psutil.Process) -> int:
    """The most memory that it had resident, bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def tell(fed_rows: list[Fed], samples: int) -> None:
    """The tables."""
    print("| store | bytes a sample | before compaction | CPU s a million: server | sink | memory | samples a second |")
    print("|---|---|---|---|---|---|---|")
    for fed in fed_rows:
        print(
            f"| {fed.name} | {fed.size / samples:.2f} | {fed.at_once / samples:.2f} |"
            f" {shown(fed.cpu_s, lambda value: f'{value / samples * 1e6:.1f}')} |"
            f" {shown(fed.sink_s, lambda value: f'{value / samples * 1e6:.2f}')} |"
            f" {shown(fed.memory, lambda value: f'{value / 2**20:.0f} MB')} |"
            f" {shown(fed.wall_s, lambda value: f'{samples / value:,.0f}')} |"
        )
    print(f"\n1000 devices x 200 series x 10 s x 72 h are {WHOLE:,} samples:\n")
    print("| store | on its disk |\n|---|---|")
    for fed in fed_rows:
        print(f"| {fed.name} | {fed.size / samples * WHOLE / 1e9:.1f} GB |")


def shown(value: float | None, how: Callable[[float], str]) -> str:
    """A figure, or nothing."""
    return "" if value is None else how(value)


if __name__ == "__main__":
    sys.exit(main())
