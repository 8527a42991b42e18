"""Small records of runs that are compared, and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from soakwatch.record import Record
from soakwatch_model.event import Event
from soakwatch_model.fact import Fact
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_model.window import Window

SECOND = 10**9
T0 = 1_790_000_000 * SECOND
MakeRun = Callable[..., Path]


def finding(rule: str, outcome: Outcome, target: str = "fw", **more: object) -> Finding:
    """What a rule said, with its reason."""
    reason = str(more.pop("reason", f"{rule} says {outcome.value}"))
    facts = cast("tuple[Fact, ...]", more.pop("facts", ()))
    metric, unit = str(more.pop("metric", "")), str(more.pop("unit", ""))
    return Finding(rule, 1, outcome, target, metric, "", Window(0, 1), "as defined", reason, 1, unit=unit, facts=facts)


def written_run(
    runs: Path,
    name: str,
    *findings: Finding,
    begin_s: int = 0,
    level: float = 20.0,
    dropping: bool = False,
    seconds: int = 120,
    noise: Sequence[float] = (),
    target: str = "fw",
    plan: str = "",
    machine: str = "{}",
    version: str = "7.2",
) -> Path:
    """A record of a device whose CPU was at ``level`` per cent and whose interface dropped a packet each second."""
    folder = runs / name
    begin_ns = T0 + begin_s * SECOND
    with Record.create(folder) as record:
        metas = {"run": name, "plan": plan, "fingerprint": machine, "verdict": "pass", "ended_ns": "1"}
        for key, text in metas.items():
            record.set_meta(key, text)
        record.target(target, "dut")
        source = record.source(target, "snmp", f"{target}/snmp", SECOND, required=True)
        record.begin_phase("soak", begin_ns)
        record.add_event(
            target, Event("device.identity", target, f"{target}/snmp", begin_ns, None, {"version": version}), "probe"
        )
        polls = []
        for second in range(seconds):
            due = begin_ns + second * SECOND
            cpu = 0.99 if second == seconds // 2 else (level + (noise[second] if len(noise) else 0)) / 100
            samples = (
                Sample("system.cpu.utilization", "", cpu, due),
                Sample("system.network.packet.dropped", "interface=a,direction=receive", second * dropping, due),
            )
            polls.append(Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ())))
        record.put(polls)
        record.put_findings(findings, live=False, judged_ns=1)
    return folder
