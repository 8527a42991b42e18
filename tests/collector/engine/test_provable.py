"""What a run of its length can prove: from the rules' own words, never from a second list."""

from __future__ import annotations

import re

from soakwatch.engine.plan_check import SourceCheck
from soakwatch.engine.provable import provable
from soakwatch.engine.sensitivity import judged_s, smallest_leak
from soakwatch.plan import plan_from_text
from soakwatch.plan.rule_plan import planned_rules
from soakwatch_model.sample import Sample

_METRICS = ("process.memory.usage", "process.up", "system.cpu.utilization", "system.conntrack.count")


def _said(length: str) -> tuple[str, float]:
    """The sentence about a run of this length of one host that is polled every second, and its leak per hour."""
    text = f"phases: [{{soak: {length}}}]\ntargets: {{web: {{sources: [{{local: {{interval: 1s}}}}]}}}}"
    plan = plan_from_text(text, "p.yaml")
    (target,) = plan.targets
    samples = tuple(Sample(metric, "process=nginx,instance=0", 1e8, 0) for metric in _METRICS)
    checks = (SourceCheck(target, target.sources[0], None, samples=samples),)
    leak = smallest_leak(plan, checks)
    assert judged_s(plan, ("soak",)) == plan.duration_s
    return provable(plan, checks), 0.0 if leak is None else leak.per_hour


def test_what_needs_longer_is_named_with_its_length() -> None:
    said, leak = _said("30m")
    assert said.startswith("30 min can show: ")
    shown, leaks, *longer = said.removeprefix("30 min can show: ").split("; ")
    assert "process restarts" in shown
    assert "growth" not in shown.split(", ")
    assert leaks == f"leaks from {leak / 2**20:.3g} MiB/h of watched processes"
    assert any(part.startswith("2 h for growth") for part in longer)


def test_the_lengths_are_those_of_the_rules() -> None:
    """Each length that is named is one that a rule asks for, and a run that has it does not name it."""
    asked = {rule.spec.shortest_s / 3600 for rule in planned_rules(())}
    lengths = [float(number) for number in re.findall(r"; (\d+) h for", _said("30m")[0])]
    assert lengths
    assert set(lengths) <= asked
    assert lengths == sorted(lengths)
    assert not re.findall(r"; (\d+) h for", _said("24h")[0])


def test_a_longer_run_sees_slower_leaks() -> None:
    assert _said("8h")[1] < _said("2h")[1] < _said("30m")[1]


def test_where_nothing_was_read_nothing_is_promised() -> None:
    plan = plan_from_text("phases: [{soak: 1h}]\ntargets: {web: {sources: [{local: {interval: 1s}}]}}", "p.yaml")
    assert provable(plan, ()) == ""
