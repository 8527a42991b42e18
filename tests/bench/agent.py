"""What the agent costs its host: a tick (poll, encoding, spool) with watched processes, and the flight recorder.

``python tests/bench/agent.py [--processes 450] [--watched 20] [--looks 300] [--seconds 20]`` starts sleeping processes
until the machine has that many, watches some of them, and prints CPU time of this process. The aims are 2 ms a tick and
1 % of a core for the recorder.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack

import psutil

from soakwatch_agent.context import SECOND, HostContext, watch_of
from soakwatch_agent.host import Host
from soakwatch_agent.recorder import EVERY_S, Recorder
from soakwatch_agent.spool import Spool
from soakwatch_agent.wire import encode
from soakwatch_model.sample import Answer, Poll, PollOutcome


def cpu_s() -> float:
    """User and system time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def tick_ms(host: Host, spool: Spool | None, polls: int, *, encoded: bool) -> float:
    """Mean CPU milliseconds of a tick, a second of steady time apart, after one that warms up."""
    start_ns = time.monotonic_ns()
    host.poll(start_ns)
    start = cpu_s()
    for number in range(1, polls + 1):
        time_ns = start_ns + number * SECOND
        answer: Answer = host.poll(time_ns)
        if encoded:
            wire = encode(Poll(0, time_ns, time_ns, 1, PollOutcome.OK, None, answer)).encode()
            if spool is not None:
                spool.append(1, wire)
                spool.ack(number - 10)
    return (cpu_s() - start) * 1000 / polls


def main() -> int:
    """Measures and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=450)
    parser.add_argument("--watched", type=int, default=20)
    parser.add_argument("--looks", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    missing = max(options.processes - len(psutil.pids()), options.watched)
    with ExitStack() as stack:
        for number in range(missing):
            name = f"soakbench{number}" if number < options.watched else "soaksleep"
            child = subprocess.Popen([name, "600"], executable="/bin/sleep", close_fds=True)
            stack.callback(child.wait)
            stack.callback(child.kill)
        watches = tuple(watch_of(f"soakbench{number}") for number in range(options.watched))
        host = Host(HostContext(watches=watches))
        up, start = 0.0, time.monotonic()
        while (up < options.watched and time.monotonic() < start + 30) or time.monotonic() < start + 3:
            answer = host.poll(time.monotonic_ns())
            up = sum(sample.value for sample in answer.samples if sample.metric == "process.up")
            time.sleep(0.05)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        spool = Spool(folder)
        stack.callback(spool.close)
        sys.stdout.write(f"{len(psutil.pids())} processes, {up:.0f} watched, {os.cpu_count()} cores\n\n")
        polled = tick_ms(host, None, options.looks, encoded=False)
        as_line = tick_ms(host, None, options.looks, encoded=True)
        kept = tick_ms(host, spool, options.looks, encoded=True)
        sys.stdout.write(f"{'what':<34}{'ms CPU a tick':>14}{'ratio':>8}\n")
        for what, cost in (("look", polled), ("look, as a line", as_line), ("look, as a line, in the spool", kept)):
            sys.stdout.write(f"{what:<34}{cost:>14.2f}{cost / polled:>8.2f}\n")
        recorder = Recorder(time.time_ns)
        recorder.start()
        before = cpu_s()
        time.sleep(options.seconds)
        spent = cpu_s() - before
        recorder.end()
        rate, share = 1 / recorder.every_s, spent / options.seconds
        sys.stdout.write(
            f"\nflight recorder at {rate:.0f} Hz (of {1 / EVERY_S:.0f}): {share:.2%} of a core, "
            f"{share / rate * 1000:.2f} ms a sample, {share / (kept / 1000):.2f} of a tick a second\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
