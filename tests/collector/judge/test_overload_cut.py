"""A search for the capacity overloads the device on purpose: which rules see it, and what the others judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from soakwatch.core.registry import rules
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.overload_cut import around_searches, sees_overload
from soakwatch.plan.rule_plan import planned_rules
from soakwatch.record import Record, RecordView
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_model.window import Phase, Window

S = 10**9
START = 1_700_000_000 * S


def test_only_deaths_standstills_and_polls_are_judged_in_a_search() -> None:
    """And how a machine is set up; all other rules that are here leave it out."""
    seeing = {rule.name for rule in planned_rules(()) if sees_overload(rule)}
    of_the_run = {"core_dump", "coverage", "gap", "hang", "kernel_fault", "oom_kill", "process_restart", "reboot"}
    assert seeing == {*of_the_run, "setup"}
    assert {"loss", "drops", "overload_loss", "latency", "generator_health", "level"} <= set(rules()) - seeing


@pytest.mark.parametrize(
    ("edges", "judged"),
    [
        ([("soak", 0, 10), ("capacity", 10, 20), ("soak", 20, 30)], [(0, 10), (20, 30)]),
        ([("baseline", 0, 10), ("capacity", 10, 20), ("soak", 20, 30)], [(20, 30)]),
        ([("baseline", 0, 10), ("capacity", 10, 30)], [(0, 10)]),
        ([("capacity", 0, 30)], []),
        ([("capacity", 0, 5), ("capacity", 5, 9), ("spike", 9, 30)], [(9, 30)]),
        ([("soak", 0, 30)], [(0, 30)]),
    ],
)
def test_the_stretches_around_the_searches(edges: list[tuple[str, int, int]], judged: list[tuple[int, int]]) -> None:
    """A baseline before a search is no stretch of its own where there is another."""
    phases = [Phase(name, Window(begin, end)) for name, begin, end in edges]
    assert [(w.begin_ns, w.end_ns) for w in around_searches(Window(0, 30), phases)] == judged


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A record of ten minutes: baseline, a search in which half is dropped and lost, and a soak with none."""
    folder = tmp_path / "run"
    with Record.create(folder) as record:
        for key, text in {"run": "run", "start_ns": str(START)}.items():
            record.set_meta(key, text)
        record.target("dut", "dut")
        record.target("gen", "generator")
        dut = record.source("dut", "local", "local", S, required=True)
        gen = record.source("gen", "command", "command", S, required=True)
        for name, begin_s in (("baseline", 0), ("capacity", 120), ("soak", 300)):
            record.begin_phase(name, START + begin_s * S)
        sent = lost = 0
        for second in range(601):
            due = START + second * S
            sent += 0 if second < 120 else 1000
            lost += 500 if 120 < second <= 300 else 0
            port = object_text(interface="eth0", direction="receive")
            device = (
                Sample("system.network.packets", port, sent, due),
                Sample("system.network.packet.dropped", port, lost, due),
            )
            load = (Sample("load.tx.packets", "", sent, due), Sample("load.rx.packets", "", sent - lost, due))
            record.put(
                [
                    Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))
                    for source, samples in ((dut, device), (gen, load))
                ]
            )
        record.end_phase(START + 600 * S)
        record.set_meta("ended_ns", str(START + 600 * S))
    return folder


def test_what_a_search_loses_is_no_finding(lossy: Path) -> None:
    """90,000 packets were dropped and lost in the search: loss and drops of the soak pass."""
    uses = [RuleUse(rule) for rule in planned_rules(()) if rule.name in {"loss", "drops", "overload_loss"}]
    with RecordView.open(lossy) as view:
        verdict = judge(view, "run", uses)
    assert {f.outcome for f in verdict.findings} <= {Outcome.PASS, Outcome.NOT_APPLICABLE}
    passed = {f.rule: f for f in verdict.findings if f.outcome is Outcome.PASS}
    assert {"loss", "drops"} <= set(passed)
    assert all(f.window.begin_ns >= START + 300 * S for f in passed.values())
