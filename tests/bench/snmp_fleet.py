"""A hundred devices over SNMP in one collector: ``soakwatch run`` as it is, with its record and its own watch.

    python tests/bench/snmp_fleet.py [--devices 100] [--interval 10] [--seconds 90] [--version 3]

Real net-snmpds answer, each as 25 to 125 devices; each device is asked for 200 counters. The polls and how late they
began are read from the record; CPU and memory are the kernel's. Prints a table of Markdown, asserts nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.bench import snmp_stage as stage
from tests.bench.snmp_rivals import cpu_s, ended

from soakwatch.record import RecordView
from soakwatch_model.sample import Poll, PollOutcome

AGENTS = 4  # at least: each can be as many as ``DEVICES_EACH``
DEVICES_EACH = 125
WARM_S = 20.0  # all are surveyed in it
SLOW_NS = 10**9


def main() -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=100)
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between the polls of a device")
    parser.add_argument("--seconds", type=float, default=90.0, help="that are measured")
    parser.add_argument("--version", choices=("2c", "3"), default="3", help="3: authPriv, SHA and AES")
    options = parser.parse_args()
    stage.inside()
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as work, ExitStack() as stack:
        measure(options, Path(work), stack)
    return 0


def measure(options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
    """One run, and its table."""
    agents = stage.agents(stack, folder, max(AGENTS, options.devices // DEVICES_EACH))
    profiles = stage.profile(folder / "profiles")
    targets = {}
    for number in range(options.devices):
        keys = {
            **stage.keys(agents[number % len(agents)], options.version, profiles),
            "interval": f"{options.interval:g}s",
        }
        targets[f"sw{number:03}"] = {"role": "dut", "sources": [{"snmp": keys}]}
    (folder / "plan.yaml").write_text(json.dumps({"name": "fleet", "phases": [{"soak": "1h"}], "targets": targets}))
    command = [str(Path(sys.executable).with_name("soakwatch")), "run", "plan.yaml", "--into", "run"]
    with (folder / "log").open("w") as log:
        process = psutil.Popen(command, cwd=folder, env=stage.secrets(), stdout=log, stderr=log)
    stack.callback(ended, process)
    marks, memory = [], []
    time.sleep(WARM_S)
    marks.append((time.monotonic(), time.time_ns(), *cpu_s(process)))
    while time.monotonic() < marks[0][0] + options.seconds and process.poll() is None:
        memory.append(process.memory_info().rss / 1e6)
        time.sleep(0.5)
    if process.poll() is not None:
        print(f"the run ended: {(folder / 'log').read_text()[-1000:]}")
        return
    marks.append((time.monotonic(), time.time_ns(), *cpu_s(process)))
    process.terminate()  # it judges and writes its report meanwhile; what is read below is in the record already
    polls = polls_of(folder / "run", marks[0][1], marks[1][1] - SLOW_NS)
    seconds = marks[1][0] - marks[0][0]
    good = [poll for poll in polls if poll.outcome is PollOutcome.OK]
    late = sorted((poll.start_ns - poll.due_ns) / 1e6 for poll in good)
    took = sorted(poll.duration_ns / 1e6 for poll in good)
    within = sum(value <= 1000 for value in late) / max(len(polls), 1)
    samples = statistics.mean(len(poll.answer.samples) for poll in good)
    print(
        f"{options.devices} devices x {samples:.0f} samples x {options.interval:g} s, SNMP v{options.version}, "
        f"{seconds:.0f} s, {psutil.cpu_count()} cores\n"
    )
    print("| what | seen |\n|---|---|")
    print(f"| polls, lost | {len(polls)}, {len(polls) - len(good)} |")
    lost = [poll for poll in polls if poll.outcome is not PollOutcome.OK]
    minutes = Counter((poll.due_ns - marks[0][1]) // (60 * 10**9) for poll in lost)
    if minutes:
        by_minute = ", ".join(str(minutes[each]) for each in range(max(minutes) + 1))
        print(f"| lost in the first minute, the second, … | {by_minute} (none after) |")
        print(f"| lost as | {', '.join(f'{n} {name}' for name, n in reasons_of(polls))} |")
    print(f"| begun within 1 s of their due time | {100 * within:.2f} % |")
    print(f"| late: median, 99 %, worst | {middle(late, 0.5):.1f}, {middle(late, 0.99):.1f}, {late[-1]:.0f} ms |")
    print(f"| taking: median, 99 %, worst | {middle(took, 0.5):.1f}, {middle(took, 0.99):.1f}, {took[-1]:.0f} ms |")
    own, judging = ((marks[1][column] - marks[0][column]) / seconds for column in (2, 3))
    print(f"| CPU of the collector | {100 * own:.1f} % of a core, {1000 * own * seconds / len(polls):.2f} ms a poll |")
    print(f"| CPU of its live judging, a process a minute | {100 * judging:.1f} % of a core |")
    print(f"| memory of the collector | {max(memory):.0f} MB |")


def polls_of(record: Path, begin_ns: int, end_ns: int) -> list[Poll]:
    """The polls of the devices that were due in a time."""
    polls_found: list[Poll] = []
    with RecordView.open(record) as view:
        wanted = {source.id for source in view.sources() if source.name == "snmp"}
        cursor = ""
        while True:
            polls, cursor = view.polls_after(cursor, 5000)
            if not polls:
                return polls_found
            polls_found += [poll for poll in polls if poll.source in wanted and begin_ns <= poll.due_ns < end_ns]


def reasons_of(polls: list[Poll]) -> list[tuple[str, int]]:
    """How many polls were lost as what, the most first."""
    return Counter(poll.outcome.value for poll in polls if poll.outcome is not PollOutcome.OK).most_common()


def middle(values: list[float], share: float) -> float:
    """A quantile of sorted values."""
    return values[min(int(len(values) * share), len(values) - 1)]


if __name__ == "__main__":
    sys.exit(main())
