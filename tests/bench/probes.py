"""CPU time per poll: the agent's probes beside psutil over all processes, side by side in one run.

``python tests/bench/probes.py [--processes 450] [--watched 20] [--looks 300]`` starts sleeping processes until the
machine has that many, watches some of them, and prints user + system time of this process per poll.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

import psutil

from soakwatch_agent.context import SECOND, HostContext, watch_of
from soakwatch_agent.host import Host, probe_names

_ATTRIBUTES = ["pid", "name", "create_time", "status", "cpu_times", "memory_info", "num_threads", "num_fds"]


def cpu_s() -> float:
    """User and system time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cost_ms(poll: Callable[[int], object], polls: int) -> float:
    """Mean CPU milliseconds of a poll, a second of steady time apart, after one that warms up."""
    start_ns = time.monotonic_ns()
    poll(start_ns)
    begin = cpu_s()
    for number in range(1, polls + 1):
        poll(start_ns + number * SECOND)
    return (cpu_s() - begin) * 1000 / polls


def psutil_over_all(_: int) -> object:
    """What a monitor on psutil alone does: the same attributes of every process, and the system's counters."""
    processes = [process.info for process in psutil.process_iter(_ATTRIBUTES)]
    system = (
        psutil.cpu_times(percpu=True),
        psutil.cpu_stats(),
        psutil.virtual_memory(),
        psutil.swap_memory(),
        psutil.net_io_counters(pernic=True),
        psutil.disk_io_counters(perdisk=True),
        psutil.getloadavg(),
    )
    return processes, system


def main() -> int:
    """Runs the comparison and prints its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=450)
    parser.add_argument("--watched", type=int, default=20)
    parser.add_argument("--looks", type=int, default=300)
    options = parser.parse_args()
    missing = max(options.processes - len(psutil.pids()), options.watched)
    with ExitStack() as stack:
        for number in range(missing):
            name = f"soakbench{number}" if number < options.watched else "soaksleep"
            child = subprocess.Popen([name, "600"], executable="/bin/sleep", close_fds=True)
            stack.callback(child.wait)
            stack.callback(child.kill)
        watches = tuple(watch_of(f"soakbench{number}") for number in range(options.watched))
        everything = Host(HostContext(watches=watches))
        up, begin = 0.0, time.monotonic()
        # An exec may take a while on a busy machine, and what was just born is looked at more often for two seconds.
        while (up < options.watched and time.monotonic() < begin + 30) or time.monotonic() < begin + 3:
            answer = everything.poll(time.monotonic_ns())
            up = sum(sample.value for sample in answer.samples if sample.metric == "process.up")
            time.sleep(0.05)
        sys.stdout.write(
            f"{len(psutil.pids())} processes, {up:.0f} watched, {os.cpu_count()} cores, {options.looks} looks\n\n"
        )
        ours = cost_ms(everything.poll, options.looks)
        theirs = cost_ms(psutil_over_all, max(options.looks // 5, 20))
        sys.stdout.write(f"{'what':<34}{'ms CPU a poll':>14}{'ratio':>8}\n")
        sys.stdout.write(f"{'soakwatch, all probes':<34}{ours:>14.2f}{1:>8.1f}\n")
        sys.stdout.write(f"{'psutil, system and all processes':<34}{theirs:>14.2f}{theirs / ours:>8.1f}\n\n")
        for name in probe_names():
            host = Host(HostContext(watches=watches), [name])
            cost = cost_ms(host.poll, options.looks)
            sys.stdout.write(f"{'  probe ' + name:<34}{cost:>14.3f}{cost / ours:>8.2f}\n")
            host.close()
        everything.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
