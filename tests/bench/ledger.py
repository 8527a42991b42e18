"""The memory ledger: CPU of one a minute, the share of the memory that has an owner, and whose growth is found.

``python tests/bench/ledger.py [--processes 400] [--large 40] [--minutes 60] [--rounds 3] [--mib 64]
[--tries 3]`` starts sleeping
processes until the machine has that many, some of them with 8 MiB of their own, and takes a ledger for each of 60
minutes, in virtual time. Then programs take memory in thirteen ways, one after the other, and the growth of their owner
is printed beside what they took. All of it needs root.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

from soakwatch_agent.context import SECOND, HostContext
from soakwatch_agent.memory_ledger.take import LedgerReader, take_ledger
from soakwatch_agent.probes.ledger import LedgerProbe
from soakwatch_model.memory_owners import OWNER_BY_NAME

_GROWERS = Path(__file__).parents[1] / "agent" / "memory_growers.py"
_OWNERS = {
    "heap": ("processes", "grower-heap"),
    "anonymous": ("processes", "grower-anonymou"),
    "tmpfs": ("shared", "/dev/shm"),
    "memfd": ("shared", ""),
    "shared": ("shared", "mapped by grower-shared"),
    "file_cache": ("page_cache", ""),
    "huge_pages": ("huge_pages", ""),
    "tcp": ("sockets", ""),
    "slab": ("slab", "msg_msg-512"),
    "page_tables": ("page_tables", ""),
    "kernel_stacks": ("kernel_stacks", ""),
    "vmalloc": ("vmalloc", "array_map_alloc"),
    "pipes": ("none", ""),
}


def cost_ms(minutes: int) -> list[float]:
    """CPU of the probe in each of so many minutes, with its samples; the first reads everything."""
    context = HostContext()
    probe, spent = LedgerProbe(context), []
    for minute in range(minutes):
        begun = time.process_time_ns()
        probe.read(minute * 60 * SECOND)
        spent.append((time.process_time_ns() - begun) / 1e6)
    probe.close()
    return spent


def growth(kind: str, mib: int, tries: int) -> str:
    """A line of the table: what a program took, and what its owner gained; the median of some tries, for other programs
    take and give back memory too."""
    tried = [grown(kind, mib) for _ in range(tries)]
    failed = next((each for each in tried if isinstance(each, str)), None)
    if failed is not None:
        return f"{kind:<14} {failed}"
    pairs = sorted(each for each in tried if not isinstance(each, str))
    found, taken = pairs[len(pairs) // 2]
    lowest, highest = (100 * each[0] / each[1] for each in (pairs[0], pairs[-1]))
    name = OWNER_BY_NAME[_OWNERS[kind][0]].phrase(_OWNERS[kind][1])
    share = f"{100 * found / taken:.1f} % ({lowest:.0f} to {highest:.0f})"
    return f"{kind:<14}{taken / 2**20:>8.1f} {found / 2**20:>10.1f} {share:>22}  {name}"


def grown(kind: str, mib: int) -> tuple[int, int] | str:
    """What the owner gained and what a program took; why it could not, as it says."""
    owner, part = _OWNERS[kind]
    with subprocess.Popen(
        [sys.executable, str(_GROWERS), kind, str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdout.readline()
        before = LedgerReader(HostContext()).read(0, first=[program.pid])
        program.stdin.write("\n")
        program.stdin.flush()
        answer = program.stdout.readline().strip()
        after = LedgerReader(HostContext()).read(0, first=[program.pid])
        program.stdin.close()
    if not answer.isdigit():
        return answer
    if owner == "none":
        return after.left - before.left, int(answer)
    if part:
        return after.parts[owner].get(part, 0) - before.parts[owner].get(part, 0), int(answer)
    return after.owned[owner] - before.owned[owner], int(answer)


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in (("processes", 400), ("large", 40), ("minutes", 60), ("rounds", 3), ("mib", 64), ("tries", 3)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    with ExitStack() as stack:
        for number in range(max(options.processes - len(psutil.pids()), 0)):
            large = number < options.large
            words = [sys.executable, str(_GROWERS), "anonymous", "8"] if large else ["sleep", "3600"]
            child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            stack.callback(child.wait)
            stack.callback(child.kill)
            if large and child.stdin is not None:
                child.stdin.write(b"\n")
                child.stdin.flush()
        time.sleep(3.0)  # until they have their memory
        processes = len(psutil.pids())
        means = []
        for _ in range(options.rounds):
            spent = cost_ms(options.minutes)
            means.append(statistics.fmean(spent[1:]))
            sys.stdout.write(
                f"{processes} processes, {os.cpu_count()} cores, {options.minutes} ledgers, one a minute: the first "
                f"{spent[0]:.1f} ms of CPU, after it mean {means[-1]:.2f}, median {statistics.median(spent[1:]):.2f}, "
                f"most {max(spent[1:]):.1f}\n"
            )
        sys.stdout.write(f"means of the rounds {min(means):.2f} to {max(means):.2f} ms of CPU a minute\n")
        begun = time.process_time_ns()
        full = take_ledger(HostContext(), 0)
        sys.stdout.write(
            f"a full ledger, with smaps of all processes: {(time.process_time_ns() - begun) / 1e6:.0f} ms of CPU\n"
            f"owned: {100 * full.owned_share:.2f} % of {full.total / 2**30:.1f} GiB; without an owner: "
            f"{full.left / 2**20:.0f} MiB\n"
        )
        for owner, why in full.unread.items():
            sys.stdout.write(f"not read: {owner}: {why}\n")
    sys.stdout.write(f"\n{'taken as':<14}{'MiB':>8} {'found':>10} {'share':>22}  as growth of\n")
    for kind in _OWNERS:
        sys.stdout.write(f"{growth(kind, options.mib, options.tries)}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
