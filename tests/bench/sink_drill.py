"""A run whose InfluxDB goes away: killed and started again, and once its disk full; prints a table, asserts nothing.

    python tests/bench/sink_drill.py                  each away for 10 minutes, side by side; 13 minutes in all
    python tests/bench/sink_drill.py --away 20s       the quick pass
    python tests/bench/sink_drill.py --drill killed   only one of them

A real influxd on the loopback, the installed collector with a plan of one sink, this machine as the device. The full
disk is a tmpfs of its own below the engine's folder, and needs root; where room alone does not help, the server is also
started anew: InfluxDB 2.7 does not try again to open what it could not open once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from soakwatch.core.units import seconds, show_seconds
from soakwatch.record import RecordView
from soakwatch.report.sections.sinks import sink_accounts
from soakwatch.transfer.sinks.feed import MAX_PAUSE_S
from soakwatch_model.sample import PollOutcome
from soakwatch_testing.influxd import BUCKET, ORG, Influxd, find_influxd, start_influxd

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
LEAD_S, TAIL_S = 20.0, 60.0
_DISK = 256 << 20  # bytes; influxd keeps a reserve of some tens of megabytes in sparse files


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was recorded, what the database has of it, what the outage did to the run, and the ``output`` of the run."""

    recorded: int
    written: int
    polls: int
    polls_written: int
    missed: int
    refused: int
    longest_lag_s: float
    collector_bytes: int
    feed_bytes: int
    verdict: str
    output: str


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of its own for the engine. Raises CalledProcessError without root."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "soakwatch-drill", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path) -> None:
    """Not one byte more fits."""
    with suppress(OSError), (folder / "filled").open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))


def drill(
    folder: Path, server: Influxd, breaks: Callable[[], None], mends: Callable[[], None], away_s: float
) -> Outcome:
    """A run during which the server is away for so long, from its begin to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(server.token)
    plan = folder / "plan.yaml"
    plan.write_text(
        f"name: drill\nduration: {LEAD_S + away_s + TAIL_S:g}s\n"
        "targets: {dut: {sources: [local: {interval: 1s}]}}\n"
        f"sinks: [{{influxdb: {{url: '{server.url}', org: {ORG}, bucket: {BUCKET}, token: 'file:{folder}/token',"
        " timeout: 5s}}]\n"
    )
    run = folder / "run"
    command: list[str | Path] = [SOAKWATCH, "run", plan, "--into", run, "--no-web"]
    environment = {**os.environ, "COLUMNS": "200"}
    peak: Counter[str] = Counter()
    with (folder / "output").open("w+") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment)
        over = threading.Event()
        weighing = threading.Thread(target=_weigh, args=(process.pid, peak, over))
        weighing.start()
        try:
            _until(lambda: bool(server.influxql("SELECT count(ok) FROM soakwatch_poll")), process)
            time.sleep(LEAD_S / 2)
            breaks()
            time.sleep(away_s)
            mends()
            process.wait(away_s + 300)
        finally:
            over.set()
            weighing.join()
            process.kill()
            process.wait()
        log.seek(0)
        return _outcome(run, server, peak, log.read())


def _until(holds: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "nothing arrives"
        assert process.poll() is None, "the run ended"
        time.sleep(0.2)


def _weigh(pid: int, peak: Counter[str], over: threading.Event) -> None:
    while not over.wait(0.5):
        with suppress(psutil.Error):
            collector = psutil.Process(pid)
            peak["collector"] = max(peak["collector"], collector.memory_info().rss)
            for child in collector.children():
                with suppress(psutil.Error):
                    if "soakwatch.transfer.sinks" in child.cmdline():
                        peak["feed"] = max(peak["feed"], child.memory_info().rss)


def _outcome(run: Path, server: Influxd, peak: Counter[str], output: str) -> Outcome:
    with RecordView.open(run) as view:
        sampled = view.keys()
        names = {key.metric for key in sampled}
        counts, account = view.counts(), sink_accounts(view)
        lost = Counter[str]()
        for source in view.sources():
            polls = view.poll_outcomes(source.id)
            lost.update(polls.words[number] for number in polls.outcome.tolist())
        verdict = view.meta("verdict") or "none"
    return Outcome(
        recorded=counts.samples,
        written=sum(_count(server, name, "value") for name in names),
        polls=counts.polls,
        polls_written=_count(server, "soakwatch_poll", "ok"),
        missed=sum(lost[outcome.value] for outcome in (PollOutcome.MISSED, PollOutcome.OVERRUN, PollOutcome.GAP)),
        refused=sum(sink_row.refused for sink_row in account),
        longest_lag_s=max((sink_row.longest_s for sink_row in account), default=0.0),
        collector_bytes=peak["collector"],
        feed_bytes=peak["feed"],
        verdict=verdict,
        output=output,
    )


def _count(server: Influxd, measurement: str, field: str) -> int:
    rows = server.influxql(f'SELECT count("{field}") FROM "{measurement}"')
    return int(rows[0]["count"]) if rows else 0


def killed(program: Path, folder: Path, away_s: float) -> Outcome:
    """The server is killed, and started again."""
    with ExitStack() as stack:
        server = start_influxd(program, folder / "influxd", stack)
        return drill(folder, server, server.kill, server.start, away_s)


def full(program: Path, folder: Path, away_s: float) -> Outcome:
    """The server's disk is full, and has room again."""
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / "influxd" / "engine"))
        server = start_influxd(program, folder / "influxd", stack)

        def mend() -> None:
            (disk / "filled").unlink()
            before, deadline = _count(server, "soakwatch_poll", "ok"), time.monotonic() + MAX_PAUSE_S + 5
            while _count(server, "soakwatch_poll", "ok") == before:
                if time.monotonic() > deadline:
                    server.stop()
                    server.start()
                    return
                time.sleep(0.5)

        return drill(folder, server, lambda: fill(disk), mend, away_s)


DRILLS = {"killed": killed, "full": full}


def main() -> None:
    """The drills side by side, and a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--away", default="10m", help="how long the server is away [10m]")
    parser.add_argument("--drill", choices=DRILLS, action="append", help="only this one; may be repeated")
    parser.add_argument("--keep", type=Path, help="leave the records in this folder")
    asked = parser.parse_args()
    away_s = seconds(asked.away)
    program = find_influxd()
    if program is None:
        sys.exit("there is no influxd 2.x: tests/influxd/build makes one, or name it in INFLUXD")
    server, done = program, dict[str, Outcome]()
    with ExitStack() as stack:
        folder = asked.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sink-drill-")))

        def exercise(name: str) -> None:
            done[name] = DRILLS[name](server, folder / name, away_s)

        each = [threading.Thread(target=exercise, args=(name,)) for name in asked.drill or DRILLS]
        for thread in each:
            thread.start()
        for thread in each:
            thread.join()
    print(f"away for {show_seconds(away_s)}")
    for name, run in done.items():
        print(
            f"{name:8} samples recorded {run.recorded}, written {run.written}; polls recorded {run.polls}, written"
            f" {run.polls_written}; polls missed {run.missed}; lines refused {run.refused}; longest lag"
            f" {show_seconds(round(run.longest_lag_s))}; memory of the collector {run.collector_bytes / 1e6:.0f} MB,"
            f" of the feed {run.feed_bytes / 1e6:.0f} MB; verdict {run.verdict}"
        )
        sink_lines = [
            line for line in run.output.splitlines() if "sink" in line or "lab/soak" in line or "127.0.0.1" in line
        ]
        print("\n".join(f"         {line}" for line in sink_lines if not line.startswith("[")))


if __name__ == "__main__":
    main()
