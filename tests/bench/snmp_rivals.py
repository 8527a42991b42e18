"""CPU of one device's SNMP polls each second: Soakwatch beside the programs that people use for it, in one run.

    python tests/bench/snmp_rivals.py [--seconds 60] [--versions 2c 3] [--telegraf PATH]

Every rival polls a real net-snmpd of its own, all at the same time: 8 counters of 25 interfaces each second, asked as
the rival's own documentation does it. The kernel says what a process and its children used; the agents say how many
requests and objects they were asked for. Rivals that are not installed are left out, and named. Prints tables of
Markdown, asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench import snmp_programs as programs
from tests.bench import snmp_stage as stage
from tests.collector.sources.snmp.snmpd import Snmpd

WARM_S = 8.0  # starts, surveys and the first polls are not the polling
Plan = Callable[[Snmpd, str, Path], list[str]]
"""From an agent, a version and a folder to the command that polls it each second."""


@dataclass
class Rival:
    """One program: ``needs`` is what must be installed."""

    name: str
    plan: Plan
    needs: Sequence[str] = ()
    scraped: bool = False
    children_only: bool = False  # the loop around a command does not count

    def missing(self) -> str:
        """The program that is not there."""
        return next((program for program in self.needs if shutil.which(program) is None), "")


@dataclass
class Running:
    """A rival at work."""

    rival: Rival
    agent: Snmpd
    process: psutil.Popen
    log: Path
    scrape: str = ""
    begun: tuple[float, float, float, int, int] = (0.0, 0.0, 0.0, 0, 0)
    scraped: int = 0
    samples: int = 0

    def now(self) -> tuple[float, float, float, int, int]:
        """Time, CPU time of its own and of its children, packets and objects of its agent."""
        packets, objects = stage.asked(self.agent)
        return time.monotonic(), *cpu_s(self.process), packets, objects


def cpu_s(process: psutil.Process) -> tuple[float, float]:
    """CPU seconds of a process, and of all that it started: those that ended, and those that run."""
    times = process.cpu_times()
    used = times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            own = child.cpu_times()
        except psutil.Error:
            continue
        used += own.user + own.system
    return times.user + times.system, used


def main() -> int:
    """Run the bench, or one of its parts in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--versions", nargs="+", choices=("2c", "3"), default=["2c", "3"])
    parser.add_argument("--telegraf", default="telegraf", help="the program, if it is not on the PATH")
    parser.add_argument("--part", nargs=2, metavar=("WHAT", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        what, given = options.part[0], json.loads(Path(options.part[1]).read_text())
        return poll(given) if what == "poller" else commands(given)
    stage.inside()
    rivals = [
        Rival("Soakwatch, its poller alone", programs.poller),
        Rival("Soakwatch, a whole run", programs.whole),
        Rival(
            "Telegraf (inputs.snmp)", lambda *given: programs.telegraf(options.telegraf, *given), (options.telegraf,)
        ),
        Rival("collectd (snmp)", programs.collectd, ("collectd",)),
        Rival("snmp_exporter, scraped", programs.exporter, ("prometheus-snmp-exporter",), scraped=True),
        Rival("snmpget, 2 a poll", programs.commanded, ("snmpget",), children_only=True),
        Rival("snmpbulkwalk, 8 a poll", programs.walked, ("snmpbulkwalk",), children_only=True),
    ]
    for rival in list(rivals):
        if missing := rival.missing():
            print(f"{rival.name} is left out: {missing} is not installed")
            rivals.remove(rival)
    for version in options.versions:
        compare(rivals, version, options.seconds)
    return 0


def compare(rivals: Sequence[Rival], version: str, seconds: float) -> None:
    """All rivals at once, each with its agent; a table."""
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        folder = Path(work)
        running = []
        for rival, agent in zip(rivals, stage.agents(stack, folder, len(rivals)), strict=True):
            own = folder / f"rival{agent.port}"
            own.mkdir()
            command = rival.plan(agent, version, own)
            log = own / "log"
            with log.open("w") as file:
                process = psutil.Popen(command, stdout=file, stderr=file, env=stage.secrets(), cwd=own)
            stack.callback(ended, process)
            running.append(Running(rival, agent, process, log, command[-1] if rival.scraped else ""))
        keep(running, WARM_S)
        for program in running:
            program.begun = program.now()
            program.scraped = program.samples = 0
        keep(running, seconds)
        alive = [program for program in running if program.process.poll() is None]
        rows = sorted((line for program in alive for line in lines(program)), key=lambda line: line[1])
        base = next(used for name, used, _ in rows if name.endswith("alone"))
        print(
            f"\nSNMP v{version}{' authPriv, SHA and AES' if version == '3' else ''}: 200 counters each second for "
            f"{seconds:g} s, {len(alive)} programs at the same time, {psutil.cpu_count()} cores\n"
        )
        print("| poller | CPU ms a poll | ratio | requests a second | objects a second | RSS MB |")
        print("|---|---:|---:|---:|---:|---:|")
        for name, used, rest in rows:
            print(f"| {name} | {used:.2f} | {used / base:.1f} | {rest} |")
        for program in running:
            if program.process.poll() is not None:
                print(f"{program.rival.name} ended: {program.log.read_text()[-300:]}")


def lines(program: Running) -> list[tuple[str, float, str]]:
    """Name, CPU ms a poll, and the rest of each of its lines."""
    began, now = program.begun, program.now()
    seconds = now[0] - began[0]
    own, children = (1000 * (now[column] - began[column]) / seconds for column in (1, 2))
    memory = 0.0 if program.rival.children_only else program.process.memory_info().rss / 1e6
    # The two calls of the bench itself are not the rival's.
    requests, objects = (now[3] - began[3] - 2) / seconds, (now[4] - began[4] - 2) / seconds
    rest = f"{requests:.1f} | {objects:.0f} | {f'{memory:.0f}' if memory else ''}"
    if program.rival.children_only:
        return [(program.rival.name, children, rest)]
    more = [(f"{program.rival.name}: its live judging, a process a minute", children, " | | ")] if children else []
    return [(program.rival.name, own, rest), *more]


def keep(running: Sequence[Running], seconds: float) -> None:
    """Let them poll for a while; what is scraped is scraped each second."""
    until = time.monotonic() + seconds
    due = time.monotonic()
    while due < until:
        for program in running:
            if program.scrape:
                try:
                    with urllib.request.urlopen(program.scrape, timeout=5) as answer:
                        program.samples += sum(line.startswith(b"bench_") for line in answer)
                        program.scraped += 1
                except OSError:
                    pass  # it is still starting, or shows below as one that was not asked
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))


def ended(process: psutil.Popen) -> None:
    """End a rival and all that it started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(20)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait()


def poll(keys: dict[str, object]) -> int:
    """The poller on its grid, for ever."""
    from soakwatch.sources.abc import SourceContext, SourceError
    from soakwatch.sources.pollers.snmp import start
    from soakwatch.sources.transport.snmp.config import Config

    async def ever() -> None:
        async with AsyncExitStack() as stack:
            poller = await start(
                Config.model_validate(keys), SourceContext("dut", "dut", (), None, Path(), time.time_ns, 1.0), stack
            )
            due = time.monotonic()
            while True:
                try:
                    answer = await poller.poll(time.time_ns())
                    print(len(answer.samples), flush=True)
                except SourceError as failure:
                    print(failure, flush=True)
                due += 1.0
                await asyncio.sleep(max(0.0, due - time.monotonic()))

    asyncio.run(ever())
    return 0


def commands(every: list[list[str]]) -> int:
    """Some commands each second, for ever."""
    due = time.monotonic()
    while True:
        for words in every:
            subprocess.run(words, check=False, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        due += 1.0
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    sys.exit(main())
