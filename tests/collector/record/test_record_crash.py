"""kill -9 at any moment loses at most the batch in flight; memory does not grow with the run."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch.record import Record, RecordView

WRITER = """
import sys
from pathlib import Path

from soakwatch.record import Record, RecordView
from soakwatch_model.event import Event
from soakwatch_model.sample import Answer, Fault, Poll, PollOutcome, Sample

folder, compact_every = Path(sys.argv[1]), int(sys.argv[2])
record = Record.open(folder) if (folder / "record.sqlite").exists() else Record.create(folder)
record.target("dut", "dut")
source = record.source("dut", "local", "dut/local", 10**9, required=True).id
with RecordView.open(folder) as view:
    first = view.counts().polls
for at in range(first, first + 100_000):
    due = 10**18 + at * 10**9
    samples = tuple(Sample("process.memory.usage", f"process=p{n}", at * 100 + n, due) for n in range(60))
    samples += (Sample("process.memory.usage", f"process=once{at}", at, due),)
    events = (Event("mark", "", "", due, None, {"at": str(at)}),)
    answer = Answer(samples, events, (Fault("load.latency", "", "no"),))
    record.put([Poll(source, due, due, 1, PollOutcome.OK, None, answer)])
    print(at, flush=True)
    if at % compact_every == compact_every - 1:
        print("compaction", flush=True)
        record.compact(final=True)
"""


def killed_after(folder: Path, lines: int, compact_every: int, *, in_compaction: bool) -> int:
    """Run the writer, kill it after so many reported batches (or as a compaction begins); the last one reported."""
    last = -1
    command = [sys.executable, "-c", WRITER, str(folder), str(compact_every)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for seen, line in enumerate(writer.stdout):
            if line.strip() != "compaction":
                last = int(line)
            if seen >= lines and (not in_compaction or line.strip() == "compaction"):
                writer.send_signal(signal.SIGKILL)
                break
        for line in writer.stdout:
            if line.strip() != "compaction":
                last = int(line)
        assert writer.wait(240) == -signal.SIGKILL
    return last


@pytest.mark.parametrize("in_compaction", [pytest.param(False, marks=pytest.mark.slow), True])
def test_kill_9_loses_at_most_the_batch_in_flight(tmp_path: Path, in_compaction: bool) -> None:
    """Every batch that was reported as committed is there after each kill, whole, once, and in order."""
    dice = random.Random(7)
    for _ in range(5):
        last = killed_after(tmp_path, dice.randrange(1, 120), dice.randrange(3, 40), in_compaction=in_compaction)
        with RecordView.open(tmp_path) as view:
            counts = view.counts()
            assert counts.polls in {last + 1, last + 2}, "only the batch in flight may be there or not"
            assert counts.samples == 61 * counts.polls
            for key in view.keys(["process.memory.usage"]):
                series = view.series(key)
                number = key.object.removeprefix("process=")
                if number.startswith("once"):
                    assert series.value.tolist() == [int(number[4:])]
                else:
                    assert series.value.tolist() == [index * 100 + int(number[1:]) for index in range(counts.polls)]
            assert [stored.event.detail["at"] for stored in view.events()] == [
                str(index) for index in range(counts.polls)
            ]
            assert [fault.count for fault in view.faults()] == [counts.polls]
    connection = sqlite3.connect(tmp_path / "record.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    with Record.open(tmp_path) as record:
        assert record.finish()
    with RecordView.open(tmp_path) as view:
        assert view.counts().polls >= last + 1


GROWTH = """
import gc, sys, tracemalloc
from pathlib import Path

from soakwatch.record import Record
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample

record = Record.create(Path(sys.argv[1]))
source = record.source("dut", "local", "dut/local", 10**9, required=True).id
names = [f"process=p{n}" for n in range(40)]


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


tracemalloc.start()
for compaction in range(50):
    polls = []
    for at in range(compaction * 100, compaction * 100 + 100):
        due = 10**18 + at * 10**9
        samples = tuple([Sample("process.memory.usage", name, at * 4096, due) for name in names])
        polls.append(Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
    record.put(polls)
    record.compact(final=True)
    del polls, samples
    if compaction in (9, 49):
        gc.collect()
        print(tracemalloc.get_traced_memory()[0], resident())
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    """Between the tenth and the fiftieth compaction the writer's memory does not grow."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    early, late = ([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert late[0] - early[0] < 30_000
    assert late[1] - early[1] < 4_000_000
