"""The sink beside raw HTTP: points a second, and CPU of both ends, into a real influxd on the loopback.

    python tests/bench/sink.py [--hours 6] [--series 200] [--rounds 3]

Taking turns, ``soakwatch sink`` pushes a record, and the very same bodies are posted again by ``http.client`` over one
connection that stays open; each into a bucket of its own, once the server has come to rest. The sink is counted whole:
from the start of its process to its end, reading of the record, imports and all. Ratios are those of a round; the
median counts. Prints tables of Markdown, asserts nothing.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.record import BEGIN_NS, polls, signals

from soakwatch.record import Record
from soakwatch_testing.influxd import ORG, Influxd, find_influxd, run_influxd

AT_LEAST, AT_MOST_S = 0.9, 0.6  # of raw HTTP's points a second; CPU a million points
REST_SHARE, REST_S, LONGEST_REST_S = 0.1, 1.0, 60.0
RUN = "bench"
TOKEN = "SINK_TOKEN"


@dataclass
class Spent:
    """Seconds of one push: on the clock, of our CPU, and of the server's."""

    wall_s: float
    cpu_s: float
    server_s: float


def main() -> int:
    """The figures; 2 if there is no influxd."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=6.0, help="of the record, a reading of each series a second")
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    program = find_influxd()
    if program is None:
        print("no influxd 2: build it with tests/influxd/build", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        folder = Path(work, "run")
        make(folder, options)
        bodies = bodies_of(folder, Path(work))
        count, size = lines_of(bodies), sum(file.stat().st_size for file in bodies)
        print(
            f"{options.hours:g} h x {options.series} series x 1 s: {count:,} lines of {size / count:.0f} bytes in"
            f" {len(bodies)} requests; {psutil.cpu_count()} cores\n"
        )
        options.hours = 1 / 3600
        make(Path(work, "moment"), options)
        with run_influxd(program, Path(work, "influxd")) as server:
            start_s = start(server, Path(work, "moment"), options.rounds)
            rounds = [one_round(server, folder, bodies, number) for number in range(options.rounds)]
        tell(rounds, count, start_s)
        packed(bodies)
    return 0


def make(folder: Path, options: argparse.Namespace) -> None:
    """The record of a device under load."""
    drawn = signals(options.series, options.seed)
    total = round(options.hours * 3600)
    with Record.create(folder) as record:
        record.target("dut", "dut")
        record.begin_span(BEGIN_NS)
        source = record.source("dut", "local", "dut/local", 10**9, required=True)
        record.begin_phase("soak", BEGIN_NS)
        for stretch in polls(source.id, drawn, 10**9, total, options.seed):
            record.put(stretch)
        record.end_phase(BEGIN_NS + total * 10**9)
        record.finish()


def lines_of(bodies: Sequence[Path]) -> int:
    """How many lines they hold."""
    return sum(file.read_bytes().count(b"\n") + 1 for file in bodies)


def bodies_of(folder: Path, work: Path) -> list[Path]:
    """What the sink sends, as a server sees it: a file for each request."""
    paths: list[Path] = []

    class Writes(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            paths.append(work / f"body-{len(paths)}")
            paths[-1].write_bytes(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Writes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            push(folder, f"http://127.0.0.1:{server.server_address[1]}", "x", "any")
        finally:
            server.shutdown()
            thread.join()
    return paths


def one_round(server: Influxd, folder: Path, bodies: Sequence[Path], number: int) -> tuple[Spent, Spent]:
    """The sink and raw HTTP; in every other round raw HTTP is first."""
    spent: dict[str, Spent] = {}
    for name in ("sink", "raw") if number % 2 == 0 else ("raw", "sink"):
        bucket = f"{name}{number}"
        server.make_bucket(bucket)
        if name == "sink":
            spent[name] = measured(server, lambda: push(folder, server.url, server.token, bucket))  # noqa: B023
        else:
            spent[name] = measured(server, lambda: post(server, bodies, bucket))  # noqa: B023
        server.delete_bucket(bucket)
    return spent["sink"], spent["raw"]


def start(server: Influxd, moment: Path, rounds: int) -> float:
    """CPU seconds of a push of next to nothing: what a process costs before it has sent anything."""
    server.make_bucket("start")
    times = [push(moment, server.url, server.token, "start") for _ in range(rounds)]
    server.delete_bucket("start")
    return statistics.median(times)


def measured(server: Influxd, work: Callable[[], float]) -> Spent:
    """One push to a server that is at rest; ``work`` gives its own CPU seconds."""
    assert server.process is not None
    process = psutil.Process(server.process.pid)
    deadline = time.monotonic() + LONGEST_REST_S
    while time.monotonic() < deadline and process.cpu_percent(REST_S) > 100 * REST_SHARE:
        pass
    before, begun = process.cpu_times(), time.perf_counter()
    cpu_s = work()
    wall_s, after = time.perf_counter() - begun, process.cpu_times()
    return Spent(wall_s, cpu_s, after.user + after.system - before.user - before.system)


def push(folder: Path, url: str, token: str, bucket: str) -> float:
    """``soakwatch sink``; its CPU seconds. Raises SystemExit if it fails."""
    program = str(Path(sys.executable).with_name("soakwatch"))
    command = [
        program,
        "sink",
        str(folder),
        "--to",
        url,
        "--org",
        ORG,
        "--bucket",
        bucket,
        "--token",
        f"env:{TOKEN}",
        "--as",
        RUN,
    ]
    null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    child = os.posix_spawn(program, command, {**os.environ, TOKEN: token}, file_actions=[null])
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"soakwatch sink ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def post(server: Influxd, bodies: Sequence[Path], bucket: str) -> float:
    """The same bodies over one connection; CPU seconds. Raises SystemExit if one is refused."""
    begun = time.process_time()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    path = f"/api/v2/write?org={ORG}&bucket={bucket}&precision=ns"
    for body in bodies:
        connection.request("POST", path, body.read_bytes(), {"authorization": f"Token {server.token}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 204:
            raise SystemExit(f"influxd answers {answer.status}")
    connection.close()
    return time.process_time() - begun


def tell(rounds: Sequence[tuple[Spent, Spent]], count: int, start_s: float) -> None:
    """The tables."""
    million = count / 1e6
    print("| round | sink: points/s | raw: points/s | ratio | sink: CPU s a million | raw | server: sink, raw |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for number, (sink, raw) in enumerate(rounds, 1):
        print(
            f"| {number} | {count / sink.wall_s:,.0f} | {count / raw.wall_s:,.0f} | {raw.wall_s / sink.wall_s:.2f} |"
            f" {sink.cpu_s / million:.2f} | {raw.cpu_s / million:.2f} | {sink.server_s / million:.2f},"
            f" {raw.server_s / million:.2f} |"
        )
    ratio = statistics.median(raw.wall_s / sink.wall_s for sink, raw in rounds)
    cpu_s = statistics.median(sink.cpu_s for sink, _ in rounds) / million
    print(f"\nthroughput beside raw HTTP, median: {ratio:.2f} (at least {AT_LEAST})")
    print(
        f"CPU s of the sink a million points, median: {cpu_s:.2f} (at most {AT_MOST_S}),"
        f" {start_s / million:.2f} of it the start of a process"
    )


def packed(bodies: Sequence[Path]) -> None:
    """What gzip would cost, and spare; the sink does without."""
    some = [file.read_bytes() for file in bodies[len(bodies) // 2 :][:10]]
    lines, size = sum(body.count(b"\n") + 1 for body in some), sum(map(len, some))
    begun = time.process_time()
    small = sum(len(gzip.compress(body, 1)) for body in some)
    spent_s = time.process_time() - begun
    print(f"gzip -1 would cost {spent_s / lines * 1e6:.2f} CPU s a million and send {small / size:.0%} of the bytes")


if __name__ == "__main__":
    sys.exit(main())
