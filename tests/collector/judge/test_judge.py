"""Judging a record: roles, and what blocks a pass."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from soakwatch.judge.judge import RuleUse, judge
from soakwatch.record import Record, RecordView
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_rules.causes import CauseKind
from soakwatch_rules.detectors.coverage import Coverage
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.detectors.process_restart import ProcessRestart
from soakwatch_rules.detectors.run_difference import RunDifference
from soakwatch_rules.rule import Rule

SECOND = 10**9
T0 = 1_700_000_000 * SECOND


def recorded(folder: Path, role: str, levels: list[float | None]) -> RecordView:
    """A record of a good device and of a second target, whose memory has these levels (None: a failed poll)."""
    with Record.create(folder) as record:
        for target, its_role, values in (("dut", "dut", [1e8] * len(levels)), ("second", role, levels)):
            record.target(target, its_role)
            source = record.source(target, "local", "local", SECOND, required=True)
            record.begin_phase("soak", T0)
            for index, value in enumerate(values):
                due = T0 + index * SECOND
                if value is None:
                    record.put([Poll(source.id, due, due, 0, PollOutcome.FAILED, "silent", NOTHING)])
                else:
                    sample = Sample("system.memory.usage", "", value, due)
                    record.put([Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer((sample,), (), ()))])
        record.end_phase(T0 + len(levels) * SECOND)
    return RecordView.open(folder)


LEAK: list[float | None] = [1e8 + 1e6 * index for index in range(60)]
FEW: list[float | None] = [1e8] * 5
HOLES: list[float | None] = [1e8] * 30 + [None] * 30


@pytest.mark.parametrize(
    ("role", "levels", "rule", "finding", "verdict"),
    [
        ("dut", LEAK, MemoryGrowth(), Outcome.FAIL, Outcome.FAIL),
        ("monitor", LEAK, MemoryGrowth(warm_up=0), Outcome.WARN, Outcome.PASS),
        ("generator", LEAK, MemoryGrowth(), Outcome.WARN, Outcome.PASS),
        ("dut", HOLES, Coverage(), Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
        ("generator", HOLES, Coverage(), Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
        ("monitor", HOLES, Coverage(), Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
    ],
)
def test_only_a_device_can_fail(
    tmp_path: Path, role: str, levels: list[float | None], rule: Rule, finding: Outcome, verdict: Outcome
) -> None:
    """A leak of the generator or the monitor warns; gaps in a required source block a pass, whoever it is."""
    with recorded(tmp_path / "run", role, levels) as view:
        judged = judge(view, "run", [RuleUse(rule)])
    assert [f.outcome for f in judged.findings if f.target == "second"] == [finding]
    assert judged.outcome is verdict


def test_what_is_not_known_of_the_monitor_blocks_nothing(tmp_path: Path) -> None:
    """Too few readings of the monitor's own memory are reported, and say nothing about the device."""
    with recorded(tmp_path / "run", "monitor", [*FEW, *HOLES[30:], *[None] * 25]) as view:
        judged = judge(view, "run", [RuleUse(MemoryGrowth())])
    (of_monitor,) = [f for f in judged.findings if f.target == "second"]
    assert of_monitor.outcome is Outcome.NOT_APPLICABLE
    assert judged.outcome is Outcome.PASS


def test_events_reach_the_causes(tmp_path: Path) -> None:
    """A restart that only the samples show, and a failover reported before it, are one cause of the verdict."""
    process = "process=web,instance=0"
    with Record.create(tmp_path / "run") as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", SECOND, required=True)
        for index in range(600):
            due = T0 + index * SECOND
            started = Sample("process.start_time", process, 1000.0 if index < 300 else 2000.0, due)
            record.put([Poll(source.id, due, due, 1, PollOutcome.OK, None, Answer((started,), (), ()))])
        record.add_event("dut", Event("failover", "dut", "", T0 + 298 * SECOND, None), "user")
    with RecordView.open(tmp_path / "run") as view:
        verdict = judge(view, "run", [RuleUse(ProcessRestart())])
    (cause,) = verdict.causes
    assert (cause.kind, cause.outcome) == (CauseKind.EVENT, Outcome.FAIL)
    assert [mark.text.partition(":")[0] for mark in cause.timeline] == ["failover", "process_restart web"]


def test_a_run_is_compared_with_the_earlier_runs_that_are_named(tmp_path: Path) -> None:
    """Three runs at 100 MB and one at 150 MB: named as earlier runs they make it differ; unnamed nobody compares."""
    earlier = []
    for run, level in enumerate((1.00e8, 1.01e8, 0.99e8)):
        earlier.append(recorded(tmp_path / f"run{run}", "monitor", [level] * 60))
    with recorded(tmp_path / "new", "monitor", [1.5e8] * 60) as view, ExitStack() as stack:
        others = [stack.enter_context(other) for other in earlier]
        alone = judge(view, "run", [RuleUse(RunDifference())])
        compared = judge(view, "run", [RuleUse(RunDifference())], earlier=others)
    assert alone.findings == ()
    (finding,) = [f for f in compared.findings if f.target == "second"]
    assert finding.outcome is Outcome.WARN
    assert "50" in finding.sentence
    assert finding.metric == "system.memory.usage"
