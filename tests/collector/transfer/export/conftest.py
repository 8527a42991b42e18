"""Records to export: two phases, counters that floats cannot hold, lost polls, events, findings, odd names."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import NOTHING, Answer, Fault, Poll, PollOutcome, Sample
from soakwatch_model.window import Window

SECOND = 10**9
T0 = 1_790_000_000 * SECOND
BIG = 2**63 + 1
"""A counter that no float64 holds."""
Recorded = Callable[..., Path]


def fill(record: Record, polls: int, labels: dict[str, str]) -> None:
    """Two targets; of the polls of the first each tenth was lost, and its counter began anew in the middle."""
    record.target("dut", "dut")
    record.target("gen", "generator")
    record.set_meta("labels", json.dumps(labels))
    record.set_meta("run", "night")
    dut = record.source("dut", "local", "local", SECOND, required=True)
    gen = record.source("gen", "command", "load", 2 * SECOND, required=False)
    record.begin_phase("baseline", T0)
    record.begin_phase("soak", T0 + polls // 2 * SECOND)
    taken = []
    for second in range(polls):
        due = T0 + second * SECOND
        if second % 10 == 9:
            taken.append(Poll(dut.id, due, due, SECOND // 2, PollOutcome.TIMEOUT, '=took "too" long, 2 s', NOTHING))
        else:
            packets = BIG + 3 * second if second < polls // 2 else second
            samples = (
                Sample("process.memory.usage", "process=a\\,b\\=c,instance=0", 4096 * second, due + 123_456_789),
                Sample("system.network.packets", "interface=eth0,direction=receive", packets, due),
                Sample("system.cpu.utilization", "", 0.1 + second / 1000, due),
            )
            faults = (Fault("system.temperature", "", "-no sensor"),) if second == 0 else ()
            taken.append(Poll(dut.id, due, due + 5, 1_500_000, PollOutcome.OK, None, Answer(samples, (), faults)))
        if second % 2 == 0:
            sample = Sample("load.rx.packet.rate", "", 1e6 / 3 + second, due)
            taken.append(Poll(gen.id, due, due, 1, PollOutcome.OK, None, Answer((sample,), (), ())))
    record.put(taken)
    record.end_phase(T0 + polls * SECOND)
    record.add_event("", Event("=upgrade", "dut", "", T0 + 5 * SECOND, T0 + 9 * SECOND, {"by": "@hand"}), "user")
    window = Window(T0, T0 + polls * SECOND)
    finding = Finding("level", 1, Outcome.FAIL, "dut", "system.cpu.utilization", "", window, "def", "-too, high", 9)
    record.put_findings([finding], live=False, judged_ns=T0 + polls * SECOND)
    record.set_meta("verdict", "fail")


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    """A record in ``runs/NAME``."""

    def record(name: str = "night", polls: int = 60, **labels: str) -> Path:
        folder = tmp_path / "runs" / name
        with Record.create(folder) as made:
            fill(made, polls, labels or {"release": "7.2", "build": "=42"})
        return folder

    return record


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in this process, in an empty folder, and return what it printed."""
    return command_here(tmp_path)
