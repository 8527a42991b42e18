"""CPU time per poll of a Linux device over SSH: one bundled script in a kept shell, beside one command a file.

``python tests/bench/ssh.py [--processes 450] [--watched 20] [--looks 60]`` starts a real sshd on the loopback and
sleeping processes until the machine has that many. It prints user and system time of this process (the collector)
and of the sshd session with all that it started (the device) per poll.
"""

from __future__ import annotations

import argparse
import asyncio
import getpass
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import psutil

from soakwatch.sources.abc import SourceContext, WatchedProcess
from soakwatch.sources.pollers.ssh import Config, start
from soakwatch.sources.transport.ssh.ssh_connection import open_line
from soakwatch_agent.context import SECOND
from soakwatch_testing.sshd import Sshd, run_sshd

_FILES = ("stat", "meminfo", "loadavg", "uptime", "net/dev", "net/snmp", "net/netstat", "net/softnet_stat", "diskstats")
_FILES_OF = ("stat", "statm")
_SETTLED_S = 4.0  # processes younger than this are looked at more closely


def own_s() -> float:
    """User and system time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def device_s(server: Sshd) -> float:
    """User and system time of the sessions of a server and of what they started, as far as it has ended."""
    total = 0.0
    for process in server.sessions():
        times = process.cpu_times()
        total += times.user + times.system + times.children_user + times.children_system
    return total


async def cost(name: str, server: Sshd, polls: int, poll: Callable[[int], Awaitable[object]]) -> None:
    """Prints means of a poll, a second of steady time apart, after two that warm up."""
    begin_ns = time.time_ns()
    for number in range(2):
        await poll(begin_ns + number * SECOND)
    own, device, begin = own_s(), device_s(server), time.perf_counter()
    for number in range(2, polls + 2):
        await poll(begin_ns + number * SECOND)
    wall = (time.perf_counter() - begin) / polls * 1e3
    here, there = (own_s() - own) / polls * 1e3, (device_s(server) - device) / polls * 1e3
    sys.stdout.write(f"{name:<44}{wall:>9.1f}{here:>14.2f}{there:>12.2f}\n")


async def compare(server: Sshd, folder: Path, watched: int, polls: int) -> None:
    """Both ways, one after the other."""
    watches = (WatchedProcess("sleep", "cmdline", "^sleep 98765$"),) if watched else ()
    site = SourceContext("dut", "dut", watches, None, folder, time.time_ns, 1.0)
    sys.stdout.write(f"{'a look':<44}{'wall ms':>9}{'collector ms':>14}{'device ms':>12}\n")
    async with AsyncExitStack() as stack:
        poller = await start(Config.model_validate(server.keys), site, stack)
        await cost("one script in a kept shell (all probes)", server, polls, poller.poll)
    async with AsyncExitStack() as stack:
        line = await open_line(Config.model_validate(server.keys), folder, stack)
        connection = await line.connection()
        pids = [process.pid for process in psutil.process_iter() if process.cmdline() == ["sleep", "98765"]][:watched]
        paths = [f"/proc/{name}" for name in _FILES] + [f"/proc/{pid}/{name}" for pid in pids for name in _FILES_OF]

        async def each(_: int) -> None:
            for path in paths:
                await connection.run(f"cat {path}")

        await cost(f"a command a file ({len(paths)} files), raw", server, max(polls // 10, 2), each)


def main() -> int:
    """Runs the comparison and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=450)
    parser.add_argument("--watched", type=int, default=20)
    parser.add_argument("--looks", type=int, default=60)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(run_sshd(folder / "sshd"))
        missing = max(options.processes - len(psutil.pids()), options.watched)
        for number in range(missing):
            seconds = "98765" if number < options.watched else "98764"
            child = subprocess.Popen(["sleep", seconds])
            stack.callback(child.wait)
            stack.callback(child.kill)
        time.sleep(_SETTLED_S)
        sys.stdout.write(f"{len(psutil.pids())} processes, {options.watched} watched, {getpass.getuser()}\n")
        asyncio.run(compare(server, folder, options.watched, options.looks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
