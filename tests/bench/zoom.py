"""How long a zoom takes over HTTP on a full record, and the memory of the server; prints tables, asserts nothing.

    python tests/bench/zoom.py                           makes 72 h x 1000 series x 1 s first: some minutes
    python tests/bench/zoom.py --polls 3600              the same in blocks of an hour, as an import makes them
    python tests/bench/zoom.py --record /tmp/full        a record that is there

Blocks are as long as those of a run with so many series (324 polls of 987 series). The server is a process of its own
(``soakwatch serve``); a question is for 12 series drawn at random, at 2000 points each, then for the same again, a
tenth narrower. Times are those of who asks; CPU is the server's.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench import judge
from tests.bench.record import BEGIN_NS

from soakwatch.record import Record
from soakwatch.record.bulk import PollStretch, Readings
from soakwatch_model.metric import BY_NAME

SERIES = 12
WIDTHS = {"72 h": 72.0, "24 h": 24.0, "6 h": 6.0, "1 h": 1.0, "10 min": 1 / 6}
HOUR_MS = 3600 * 1000
SECOND, SECONDS = 10**9, 72 * 3600


def make(folder: Path, polls: int, seed: int) -> None:
    """The record of ``judge.py``, 72 h long, in blocks of so many polls."""
    load = judge.generator(seed)
    with Record.create(folder) as record:
        record.set_meta("run", "bench")
        record.target("dut", "dut")
        record.target("tg", "generator")
        record.begin_span(BEGIN_NS)
        for target, signals in (("dut", judge.device(1000 - len(load), 1.0, seed)), ("tg", load)):
            source = record.source(target, "local", "local", SECOND, required=True)
            rng = np.random.default_rng(seed)
            for first in range(0, SECONDS, polls):
                number = np.arange(first, min(first + polls, SECONDS))
                time_ns = BEGIN_NS + number * SECOND + rng.gamma(3, 30_000, number.size).astype(np.int64)
                readings = []
                for signal in signals:
                    entry = BY_NAME[signal.metric]
                    position = np.flatnonzero(number % max(1, round(entry.every)) == 0)
                    if position.size:
                        value = signal.draw(position.size)
                        key = signal.metric, signal.object, entry.unit, entry.kind
                        readings.append(Readings(*key, position, time_ns[position], value))
                record.put_columns(source, PollStretch(time_ns, np.ones(number.size, np.bool_), "", readings))
        record.set_meta("ended_ns", str(BEGIN_NS + SECONDS * SECOND))
        record.finish()


@contextmanager
def served(record: Path) -> Iterator[tuple[httpx.Client, int]]:
    """A server of a record in a process of its own, asked with its token; and the number of that process."""
    with ExitStack() as stack:
        runs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soakwatch-bench-")))
        (runs / "bench").symlink_to(record.absolute(), target_is_directory=True)
        command: list[Path | str] = [
            Path(sys.executable).with_name("soakwatch"),
            "serve",
            runs,
            "--listen",
            "127.0.0.1:0",
        ]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(process.terminate)
        assert process.stdout is not None
        banner = re.search(r"at (http://\S+)", process.stdout.readline())
        assert banner is not None, "the server does not say where it is"
        headers = {"authorization": f"Bearer {(runs / 'web.token').read_text().strip()}"}
        yield (
            stack.enter_context(httpx.Client(base_url=banner[1], headers=headers, trust_env=False, timeout=120)),
            process.pid,
        )


def resident_mb(pid: int) -> float:
    """Resident memory of a process, MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_ms(pid: int) -> float:
    """CPU time that a process has used, ms (in ticks of 10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e3 / os.sysconf("SC_CLK_TCK")


def timed(ask: Callable[[], httpx.Response]) -> tuple[float, httpx.Response]:
    """Milliseconds of a question, and its answer."""
    begun = time.perf_counter()
    answer = ask()
    took = (time.perf_counter() - begun) * 1e3
    assert answer.status_code == 200, answer.text[:200]
    return took, answer


def zooms(client: httpx.Client, pid: int, rounds: int, seed: int) -> None:
    """For each width: series that nobody asked for before, and the same ones again in another place nearby."""
    listing, listed = timed(lambda: client.get("/api/runs/bench/series"))
    anew, _ = timed(lambda: client.get("/api/runs/bench/series"))
    rows, until = listed.json()["series"], listed.json()["until"]
    print(f"list of {len(rows)} series: {listing:.0f} ms, again {anew:.0f} ms")
    keys = [row["key"] for row in rows if row["readings"] > 1000]
    begin = until - 72 * HOUR_MS
    rng = random.Random(seed)
    print(f"ms      {'first: median':>15}{'worst':>8}{'CPU':>6}{'again: median':>16}{'worst':>8}{'CPU':>6}{'kB':>7}")
    for name, hours in WIDTHS.items():
        took: tuple[list[float], list[float]] = ([], [])
        cpu = [0.0, 0.0]
        size = 0
        for _ in range(rounds):
            begin_of_zoom = begin + rng.random() * (72 - hours) * HOUR_MS
            chosen = rng.sample(keys, min(SERIES, len(keys)))
            for again, moved in enumerate((0.0, 0.1)):
                body = {
                    "series": chosen,
                    "begin": begin_of_zoom + moved * hours * HOUR_MS,
                    "end": begin_of_zoom + hours * HOUR_MS,
                }
                before_ms = cpu_ms(pid)
                lasted_ms, answer = timed(lambda body=body: client.post("/api/runs/bench/series/data", json=body))  # type: ignore[misc]
                took[again].append(lasted_ms)
                cpu[again] += (cpu_ms(pid) - before_ms) / rounds
                size = max(size, len(answer.content))
        first, later = took
        print(
            f"{name:8}{statistics.median(first):15.0f}{max(first):8.0f}{cpu[0]:6.0f}"
            f"{statistics.median(later):16.0f}{max(later):8.0f}{cpu[1]:6.0f}{size / 1e3:7.0f}"
        )


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, help="the folder of a record")
    parser.add_argument("--polls", type=int, default=324, help="polls of a block")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work:
        record = options.record or Path(work) / "run"
        if options.record is None:
            begun = time.perf_counter()
            make(record, options.polls, options.seed)
            print(f"made 72 h x 1000 series x 1 s in {time.perf_counter() - begun:.0f} s")
        with served(record) as (client, pid):
            before = resident_mb(pid)
            zooms(client, pid, options.rounds, options.seed)
            print(f"memory of the server: {before:.0f} MB before, {resident_mb(pid):.0f} MB after")


if __name__ == "__main__":
    main()
