"""A sink that has six hours to catch up on, beside a run that goes on: does it cost the run a poll?

    python tests/bench/sink_backlog.py [--hours 6] [--seconds 60]

The record of a run that was cut off after six hours of 200 series each second, none of which was sent, is gone on with
by ``soakwatch resume``: a poll of this machine each second, and the live judging of it all. Once without a sink, once
with one that feeds a real influxd on this machine. How late and how complete the polls are is read from the record, CPU
is the kernel's. The sink's process runs at nice 10, the server does not. Prints a table of Markdown, asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench.record import polls, signals
from tests.bench.sink import TOKEN

from soakwatch.engine.start import begin
from soakwatch.plan import load_plan
from soakwatch.record import RecordView
from soakwatch.record.backlog import backlog
from soakwatch_model.sample import PollOutcome
from soakwatch_testing.influxd import BUCKET, ORG, Influxd, find_influxd, start_influxd

SECOND = 10**9
SERIES, PROCESSES = 200, 12  # and as many series of the live evaluations
BEHIND = 5  # polls: caught up
WARM_S = 5.0  # resuming and imports are not the run
MAX_WATCH_S = 900.0
EVERY_S = 0.5


@dataclass
class Seen:
    """What one run showed between two times."""

    begin_ns: int = 0
    end_ns: int = 0
    caught_up_s: float | None = None
    most_behind: int = 0
    feed: dict[int, float] = field(default_factory=dict)
    feed_mb: float = 0.0
    server_s: float = 0.0


class Past:
    """The clock at the beginning of a run that began a while ago."""

    mark = ""

    def __init__(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        """UTC ns."""
        return self._now_ns

    def wall_ns(self) -> int:
        """The same."""
        return self._now_ns


def main() -> int:
    """The figures; 2 if there is no influxd."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=6.0, help="of the backlog")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the run without a sink, and at least with one")
    options = parser.parse_args()
    program = find_influxd()
    if program is None:
        print("no influxd 2: build it with tests/influxd/build", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        for number in range(PROCESSES):
            child = subprocess.Popen([f"soakbench{number}", "3600"], executable="/bin/sleep")
            stack.callback(child.wait)
            stack.callback(child.kill)
        server = start_influxd(program, Path(work, "influxd"), stack)
        print(f"{options.hours:g} h x {SERIES} series x 1 s behind, {psutil.cpu_count()} cores\n")
        print(
            "| | polls due | lost | late: median, 99 %, worst (ms) | samples a poll | behind at most (polls) |"
            " caught up after | sink: CPU s, MB | server: CPU s |"
        )
        print(f"|---{8 * '|---:'}|")
        for name, sink in (("no sink", False), ("with a sink", True), ("no sink, again", False)):
            folder = Path(work, name.replace(" ", "-").replace(",", ""))
            make(folder, options.hours, server if sink else None)
            print_row(name, folder, watched(folder, options.seconds, server, sink=sink))
    return 0


def make(folder: Path, hours: float, server: Influxd | None) -> None:
    """The record of a run that was cut off a moment ago."""
    plan: dict[str, object] = {
        "name": "backlog",
        "phases": [{"soak": f"{round(hours * 3600 + MAX_WATCH_S + 600)}s"}],
        "targets": {
            "dut": {"role": "dut", "sources": [{"local": {"interval": "1s"}}], "watch": {"processes": ["soakbench*"]}}
        },
    }
    if server is not None:
        to = {"url": server.url, "org": ORG, "bucket": BUCKET, "token": f"env:{TOKEN}"}
        plan["sinks"] = [{"influxdb": to}]
    folder.mkdir()
    file = folder / "plan.yaml"
    file.write_text(json.dumps(plan))
    total = round(hours * 3600)
    begin_ns = time.time_ns() // SECOND * SECOND - total * SECOND
    _, record = begin(load_plan(file), folder, Past(begin_ns), ["soakwatch", "run"], stop_on_fail=False)
    with record:
        record.target("dut", "dut")
        record.begin_span(begin_ns)
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        record.begin_phase("soak", begin_ns)
        for stretch in polls(source.id, signals(SERIES, 1), SECOND, total, 1, begin_ns):
            record.put(stretch)


def watched(folder: Path, seconds: float, server: Influxd, *, sink: bool) -> Seen:
    """Go on with the run until the sink has caught up, and at least so long."""
    seen = Seen()
    command = [str(Path(sys.executable).with_name("soakwatch")), "resume", str(folder), "--no-web"]
    environment = {**psutil.Process().environ(), TOKEN: server.token}
    assert server.process is not None
    serving = psutil.Process(server.process.pid).cpu_times()
    with (folder / "log").open("w") as log, ExitStack() as stack:
        process = psutil.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
        stack.callback(end, process)
        begun = time.monotonic()
        seen.begin_ns = time.time_ns() + round(WARM_S * SECOND)
        while time.monotonic() - begun < MAX_WATCH_S and process.poll() is None:
            time.sleep(EVERY_S)
            measure(process, seen)
            if sink and seen.caught_up_s is None:
                behind = left(folder)
                seen.most_behind = max(seen.most_behind, behind)
                if behind <= BEHIND:
                    seen.caught_up_s = time.monotonic() - begun
            if time.monotonic() - begun >= seconds + WARM_S and (not sink or seen.caught_up_s is not None):
                break
        seen.end_ns = time.time_ns()
        if process.poll() is not None:
            raise SystemExit(f"the run ended: {(folder / 'log').read_text()[-2000:]}")
    after = psutil.Process(server.process.pid).cpu_times()
    seen.server_s = after.user + after.system - serving.user - serving.system
    return seen


def end(process: psutil.Popen) -> None:
    """The run and its children are killed: its judging at the end is not of interest."""
    family = [process, *process.children(recursive=True)] if process.poll() is None else []
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    process.wait()


def measure(process: psutil.Popen, seen: Seen) -> None:
    """CPU and memory of the sink's process."""
    try:
        for child in process.children():
            if "soakwatch.transfer.sinks" in child.cmdline():
                times = child.cpu_times()
                seen.feed[child.pid] = times.user + times.system
                seen.feed_mb = max(seen.feed_mb, child.memory_info().rss / 1e6)
    except psutil.Error:  # it went while it was looked at
        pass


def left(folder: Path) -> int:
    """Polls behind the cursor that the record has."""
    with closing(sqlite3.connect(f"file:{folder / 'record.sqlite'}?mode=ro", uri=True)) as sql:
        row = sql.execute("SELECT position FROM cursor").fetchone()
    return backlog(folder, row[0] if row else "").polls


def print_row(name: str, folder: Path, seen: Seen) -> None:
    """A line of the table: the polls that were due while it was watched."""
    late, lost, samples = [], 0, []
    with RecordView.open(folder) as view:
        wanted = {source.id for source in view.sources() if source.name == "local" and source.target == "dut"}
        cursor = ""
        while True:
            some, cursor = view.polls_after(cursor, 5000)
            if not some:
                break
            for poll in some:
                if poll.source in wanted and seen.begin_ns <= poll.due_ns < seen.end_ns - 2 * SECOND:
                    late.append((poll.start_ns - poll.due_ns) / 1e6)
                    lost += poll.outcome is not PollOutcome.OK
                    samples.append(len(poll.answer.samples))
    late.sort()
    behind = "" if seen.caught_up_s is None else f"{seen.most_behind:,}"
    after = "" if seen.caught_up_s is None else f"{seen.caught_up_s:.0f} s"
    feed = "" if not seen.feed else f"{sum(seen.feed.values()):.1f}, {seen.feed_mb:.0f}"
    print(
        f"| {name} | {len(late)} | {lost} | {statistics.median(late):.1f}, {late[int(len(late) * 0.99)]:.1f},"
        f" {late[-1]:.1f} | {statistics.mean(samples):.0f} | {behind} | {after} | {feed} | {seen.server_s:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
