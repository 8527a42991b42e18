"""The plain lines of each rule: all there, short, and with a key that a plan takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.in_process import command_here

from soakwatch.core.registry import INSTALLED
from soakwatch.plan import plan_from_text
from soakwatch.plan.rule_plan import planned_rules
from soakwatch_rules.traits import Guide, traits_of

PLAN = "name: n\nduration: 3h\ntargets: {{d: {{role: dut, sources: [local]}}}}\nrules:\n  {knob}\n"


@pytest.mark.parametrize("name", INSTALLED.rules.names())
def test_a_rule_says_in_plain_lines_what_it_does(name: str) -> None:
    """When it fails, what it misses and what to do are short sentences without a raw number of bytes."""
    guide = traits_of(name).guide
    assert len(guide.lines) == 3, f"detectors/{name}.py needs TRAITS with a Guide: fails_when, misses, change_with"
    assert guide.next_step, f"the Guide of detectors/{name}.py needs next_step"
    for text in (guide.fails_when, guide.misses, guide.next_step):
        assert text.endswith(".")
        assert len(text) <= 220
        assert re.search(r"\d{5,}", text) is None


@pytest.mark.parametrize("name", INSTALLED.rules.names())
def test_the_key_that_changes_a_rule_is_one_that_a_plan_takes(name: str) -> None:
    """The line can be copied into a plan, and the rule is then another one than by default."""
    plan = plan_from_text(PLAN.format(knob=traits_of(name).guide.change_with), "plan.yaml")
    (tuned,) = [rule for rule in planned_rules(plan.rules) if rule.name == name]
    assert tuned != type(tuned)(), f"change_with of {name} sets a parameter to something else than its default"


def test_a_rule_of_others_needs_no_guide() -> None:
    """What says nothing has no lines."""
    assert Guide().lines == ()


def test_the_command_lists_all_of_them(tmp_path: Path) -> None:
    """``soakwatch rules --guide`` has a row a rule, ``soakwatch rules NAME`` what to do as well."""
    run = command_here(tmp_path)
    table = run("rules", "--guide")
    assert table.returncode == 0
    assert {line.split()[0] for line in table.stdout.splitlines()[1:]} == set(INSTALLED.rules.names())
    one = run("rules", "reboot").stdout
    for title in ("Fails when:", "Misses:", "Change it with:", "What to do:"):
        assert title in one
