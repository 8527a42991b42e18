"""What the monitor costs beside the tools of Debian that read the same machine, all at work in one run.

    python tests/bench/cost.py [--seconds 600] [--processes 195] [--watched 20]

The bench makes sleeping processes until the machine has so many and watches some of them. Each program reads the
machine once a second: the agent; ``soakwatch run`` with its page on offer, with its page open, and without one; sadc,
pidstat, node_exporter (scraped each second) and collectd. CPU is that of a program and of all that it started, from
/proc/PID/stat, with the children that ended; memory is the sum of their PSS at most. Ratios are of blocks of time, with
the least and the most of them. The tables are printed before anything is stopped, as Markdown; nothing is asserted.
Rivals that are not installed are left out, and named: apt-get install sysstat prometheus-node-exporter collectd-core.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import psutil

from soakwatch.record import RecordView
from soakwatch.runs.catalog import ADDRESS_FILE, TOKEN_FILE
from soakwatch_model.window import Window

WARM_S = 20.0
"""Starts, first polls and what a run then finds to warn of are not measured; the live judge, a minute later, is."""
START_S = 120.0  # at most, until every run polls
BLOCKS = 10
SHORTEST_BLOCK_S = 6.0  # CPU time comes in steps of 10 ms
STOP_S = 90.0  # a run judges and writes its report when it is stopped
PAGE_EVERY_S = 2.0  # as an open page asks
BINARIES = Path(sys.executable).parent
BASES = ("pidstat, all processes", "node_exporter")
MAIN = "collector"


@dataclass
class Program:
    """One program at work, and what was seen of it: CPU seconds by part at the edge of each block."""

    name: str
    command: Sequence[str]
    scraped: str = ""
    run: Path | None = None
    looked_at: bool = False
    log: Path = Path(os.devnull)
    process: psutil.Popen | None = None
    marks: list[dict[str, float]] = field(default_factory=list)
    pss_mib: dict[str, float] = field(default_factory=dict)
    ended: str = ""

    def start(self, folder: Path, number: int) -> None:
        """Starts it in a folder of its own."""
        own = folder / f"program{number}"
        own.mkdir()
        self.log = own / "log"
        with self.log.open("w") as file:
            self.process = psutil.Popen(
                self.command, cwd=own, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
            )

    def mark(self) -> None:
        """Notes CPU and memory of now."""
        seen: dict[str, float] = {}
        memory: dict[str, float] = {}
        for process in self._tree():
            with suppress(OSError, psutil.Error):
                part = _part(process)
                seen[part] = seen.get(part, 0.0) + sum(process.cpu_times()[:4])
                memory[part] = memory.get(part, 0.0) + _pss_mib(process.pid)
        # What ended and was reaped is in the time of its parent; what was not is not lost either.
        before = self.marks[-1] if self.marks else {}
        self.marks.append({part: max(seen.get(part, 0.0), before.get(part, 0.0)) for part in {*seen, *before}})
        memory["all"] = sum(memory.values())
        for part, value in memory.items():
            self.pss_mib[part] = max(self.pss_mib.get(part, 0.0), value)
        if self.process is not None and self.process.poll() is not None and not self.ended:
            self.ended = f"exit code {self.process.poll()}: {self.log.read_text(errors='replace')[-300:].strip()}"

    def spent_s(self, part: str = "") -> list[float]:
        """CPU seconds of each block, of a part or of all."""
        totals = [mark.get(part, 0.0) if part else sum(mark.values()) for mark in self.marks]
        return [after - before for before, after in pairwise(totals)]

    def stop(self) -> str:
        """Ends it; returns a sentence if it did not end in time."""
        if self.process is None or self.process.poll() is not None:
            return ""
        self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except psutil.TimeoutExpired:
            for process in self._tree():
                with suppress(psutil.Error):
                    process.kill()
            self.process.wait()
            return f"{self.name} had not ended {STOP_S:g} s after it was told to, and was killed."
        return ""

    def _tree(self) -> Iterator[psutil.Process]:
        if self.process is not None:
            with suppress(psutil.Error):
                yield from [self.process, *self.process.children(recursive=True)]


def main() -> int:
    """Runs the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600.0, help="that are measured, after some of warming up")
    parser.add_argument("--processes", type=int, default=195, help="that the machine has, at least")
    parser.add_argument("--watched", type=int, default=20, help="of them are watched")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        pids = _sleepers(stack, options.processes, options.watched)
        programs = _programs(Path(work), pids)
        for number, program in enumerate(programs):
            program.start(Path(work), number)
            stack.callback(program.stop)
        there, load = len(psutil.pids()), os.getloadavg()[0]
        begun_ns, ended_ns, block_s = _measure(programs, options.seconds)
        print(
            f"{there} processes, {options.watched} of them watched, each second, {len(programs)} programs at once;"
            f" {options.seconds:g} s in blocks of {block_s:.0f} s; {psutil.cpu_count()} cores, load average"
            f" {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end\n"
        )
        print(table(programs, block_s), flush=True)
        print(parts(programs, block_s), flush=True)
        for program in programs:
            if program.ended:
                print(f"{program.name} ended early, {program.ended}")
        for sentence in _stopped(programs):
            print(sentence)
        for program in programs:
            print(_polls(program, begun_ns, ended_ns), end="", flush=True)
    return 0


def table(programs: Sequence[Program], block_s: float) -> str:
    """A line a program: its CPU and memory, and its CPU as a ratio to that of each base in the same block."""
    bases = [program for name in BASES for program in programs if program.name == name]
    lines = [
        f"| program | CPU, ms a second | PSS, MiB |{''.join(f' ratio to {base.name} |' for base in bases)}",
        f"|---|---|--:|{'---|' * len(bases)}",
    ]
    for program in programs:
        spent = program.spent_s()
        ratios = [
            _spread([own / other for own, other in zip(spent, base.spent_s(), strict=False) if other > 0], 2)
            for base in bases
        ]
        cells = [_spread([1000 * each / block_s for each in spent], 1), f"{program.pss_mib.get('all', 0.0):.0f}"]
        lines.append(f"| {' | '.join([program.name, *cells, *ratios])} |")
    return "\n".join(lines) + "\n"


def parts(programs: Sequence[Program], block_s: float) -> str:
    """A line for each process of a run."""
    lines = ["| process of a run | CPU, ms a second | PSS, MiB |", "|---|---|--:|"]
    for program in programs:
        for part in sorted({part for mark in program.marks for part in mark}) if program.run is not None else ():
            spent = _spread([1000 * each / block_s for each in program.spent_s(part)], 1)
            lines.append(f"| {program.name}: {part} | {spent} | {program.pss_mib.get(part, 0.0):.0f} |")
    return "\n".join(lines) + "\n"


def _spread(values: Sequence[float], digits: int) -> str:
    """The mean of blocks, and the least and the most of them."""
    if not values:
        return "?"
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _measure(programs: Sequence[Program], seconds: float) -> tuple[int, int, float]:
    """Lets them work; returns when that began and ended, UTC ns, and how long a block is."""
    blocks = max(1, min(BLOCKS, int(seconds / SHORTEST_BLOCK_S)))
    latest = time.monotonic() + START_S
    while time.monotonic() < latest and not all((p.run / "record.sqlite").exists() for p in programs if p.run):
        _ask(programs, 1.0)
    _ask(programs, WARM_S)
    begun_ns = time.time_ns()
    for program in programs:
        program.mark()
    for _ in range(blocks):
        _ask(programs, seconds / blocks)
        for program in programs:
            program.mark()
    return begun_ns, time.time_ns(), seconds / blocks


def _ask(programs: Sequence[Program], seconds: float) -> None:
    """Scrapes what is scraped each second, and asks as an open page does, for so long."""
    due = time.monotonic()
    until, turn = due + seconds, 0
    while due < until:
        for program in programs:
            for request in _requests(program, turn):
                with suppress(OSError):  # it is still starting, or shows as one that did nothing
                    urllib.request.urlopen(request, timeout=5).read()
        due, turn = due + 1.0, turn + 1
        time.sleep(max(0.0, due - time.monotonic()))


def _requests(program: Program, turn: int) -> Iterator[urllib.request.Request]:
    if program.scraped:
        yield urllib.request.Request(program.scraped)
    if program.looked_at and program.run is not None and turn % PAGE_EVERY_S == 0:
        with suppress(OSError, ValueError):
            url, token = ((program.run / file).read_text().strip() for file in (ADDRESS_FILE, TOKEN_FILE))
            yield urllib.request.Request(f"{url}/api/runs/current/state", headers={"Authorization": f"Bearer {token}"})


def _stopped(programs: Sequence[Program]) -> Iterator[str]:
    for program in programs:  # all at once, then wait for each
        if program.process is not None and program.process.poll() is None:
            program.process.send_signal(signal.SIGTERM)
    for program in programs:
        if sentence := program.stop():
            yield sentence


def _polls(program: Program, begun_ns: int, ended_ns: int) -> str:
    """How many polls a run kept of those that were due."""
    if program.run is None:
        return ""
    with RecordView.open(program.run) as view:
        ledgers = view.ledgers(Window(begun_ns, ended_ns))
    got, due = sum(ledger.got for ledger in ledgers), sum(ledger.due for ledger in ledgers)
    return f"{program.name}: {got} of {due} polls that were due are in its record.\n"


def _part(process: psutil.Process) -> str:
    """Which process of a run it is."""
    words = f"{process.name()} {' '.join(process.cmdline())}"
    for word, part in (("judge", "live judge"), ("soakwatch.web", "page"), ("soakwatch-web", "page")):
        if word in words:
            return part
    return MAIN


def _pss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _programs(folder: Path, pids: Sequence[int]) -> list[Program]:
    """All that are installed; says which are not."""
    plan = {
        "name": "cost",
        "phases": [{"soak": "2h"}],
        "targets": {
            "dut": {"role": "dut", "sources": [{"local": {"interval": "1s"}}], "watch": {"processes": ["soakbench*"]}}
        },
    }
    (folder / "plan.yaml").write_text(json.dumps(plan))
    run = [str(BINARIES / "soakwatch"), "run", str(folder / "plan.yaml"), "--into"]
    agent = [str(BINARIES / "soakwatch-agent"), "--interval", "1s", "--process", "soakbench*"]
    port = _free_port()
    (folder / "collectd.conf").write_text(_collectd(folder, len(pids)))
    every = [
        Program("agent", agent),
        Program("run, page on offer", [*run, str(folder / "offer")], run=folder / "offer"),
        Program("run, page open", [*run, str(folder / "open")], run=folder / "open", looked_at=True),
        Program("run --no-web", [*run, str(folder / "none"), "--no-web"], run=folder / "none"),
        Program("sadc -S XALL", ["/usr/lib/sysstat/sadc", "-S", "XALL", "1", str(folder / "sa")]),
        Program(BASES[0], ["pidstat", "-p", "ALL", "-u", "-r", "-h", "1"]),
        Program(f"pidstat, {len(pids)} processes", ["pidstat", "-p", ",".join(map(str, pids)), "-u", "-r", "-h", "1"]),
        Program(
            BASES[1],
            ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}"],
            scraped=f"http://127.0.0.1:{port}/metrics",
        ),
        Program("collectd", ["collectd", "-f", "-C", str(folder / "collectd.conf")]),
    ]
    there = [program for program in every if shutil.which(program.command[0])]
    for program in every:
        if program not in there:
            print(f"{program.name} is left out: {program.command[0]} is not installed")
    return there


_PLUGINS = "cpu contextswitch df disk entropy interface load memory processes protocols swap uptime vmem"


def _collectd(folder: Path, watched: int) -> str:
    """The configuration of collectd: what Debian's reads of a machine, each second, and the watched processes."""
    names = "".join(f'  Process "soakbench{number}"\n' for number in range(watched))
    loads = "".join(f"LoadPlugin {name}\n" for name in _PLUGINS.split())
    return (
        f'Interval 1\nBaseDir "{folder}"\nPIDFile "{folder}/collectd.pid"\n{loads}LoadPlugin csv\n'
        f'<Plugin csv>\n  DataDir "{folder}/csv"\n</Plugin>\n<Plugin processes>\n{names}</Plugin>\n'
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _sleepers(stack: ExitStack, processes: int, watched: int) -> list[int]:
    """Processes that sleep, until the machine has so many; returns those that are watched."""
    pids = []
    for number in range(max(processes - len(psutil.pids()), watched)):
        name = f"soakbench{number}" if number < watched else "soaksleep"
        child = subprocess.Popen([name, "7200"], executable="/bin/sleep", close_fds=True)
        stack.callback(child.wait)
        stack.callback(child.kill)
        pids += [child.pid] if number < watched else []
    return pids


if __name__ == "__main__":
    sys.exit(main())
