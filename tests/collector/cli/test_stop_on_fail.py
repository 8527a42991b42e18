"""Which failures end a run: the option alone, with rules, the plan's key; and what is said of a rule that is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from tests.collector.engine.hooks.hooks_kit import FAIL, finding

from soakwatch.cli.main import COMMANDS, run
from soakwatch.cli.options import parse_stop_on_fail
from soakwatch.core.clock import SteadyClock
from soakwatch.engine.start import begin, resume
from soakwatch.judge.live.client import JudgeProcess, LiveJudge
from soakwatch.plan import plan_from_text
from soakwatch.record import RecordView, finding_to_json
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding
from soakwatch_model.sample import NOTHING, Poll, PollOutcome

PLAN = "duration: 1h\ntargets: {dut: {sources: [local]}}\n"
PLAN += "events: [{kind: a, at: 1m}, {kind: switch, at: 1m, run: [sh]}]\nstop_on_fail: [hang]\n"


@pytest.mark.parametrize("name", ["run", "resume"])
def test_the_option_is_given_alone_or_with_a_rule(name: str) -> None:
    """A bare option never takes the word behind it; with a rule it may be repeated; ``--`` ends the options."""
    command = COMMANDS.module(name).command
    assert isinstance(command, click.Command)

    def parsed(*words: str) -> tuple[object, object]:
        with command.make_context(name, list(words)) as context:
            return context.params["stop_on_fail"], context.params["plan" if name == "run" else "run"]

    assert parsed("--stop-on-fail", "x.yaml") == (("*",), parsed("x.yaml")[1])
    assert parsed("--stop-on-fail=hang", "x.yaml", "--stop-on-fail=reboot")[0] == ("hang", "reboot")
    assert parsed("x.yaml")[0] == ()
    assert str(parsed("--", "--stop-on-fail")[1]) == "--stop-on-fail"


def test_what_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Every rule, or these; a rule that does not exist is refused with the nearest that does."""
    assert parse_stop_on_fail(("*",)) == (True, frozenset())
    assert parse_stop_on_fail(("hang", "reboot")) == (False, frozenset({"hang", "reboot"}))
    assert parse_stop_on_fail(()) == (False, frozenset())
    assert run(["run", "--target", "local", "--stop-on-fail=hangs"]) == 2
    assert "unknown rule 'hangs'; did you mean 'hang'?" in capsys.readouterr().err


def judged(live: LiveJudge, *findings: Finding, at_s: int) -> None:
    """What the judge's process answered."""
    lines = [json.dumps({"of": "x", "findings": [finding_to_json(finding) for finding in findings]})]
    live._hear(lines, at_s * 10**9)


@pytest.mark.parametrize(("rules", "stops"), [(None, True), ({"hang"}, False), ({"hang", "memory_growth"}, True)])
def test_only_the_rules_that_are_meant_end_a_run(tmp_path: Path, rules: set[str] | None, *, stops: bool) -> None:
    """A failure of another rule is judged as ever, and the run goes on."""
    live = LiveJudge(JudgeProcess(tmp_path), lambda: 0, confirm=True, rules=rules)
    for at_s in (0, 20):
        judged(live, FAIL, finding("hang", target="tg") if rules is None else replace(FAIL, rule="drops"), at_s=at_s)
    assert live.confirmed is stops


def test_the_plans_rules_hold_for_a_resumed_run_as_well(tmp_path: Path) -> None:
    """The plan's key and the option's rules together; events that were begun, and what was said, come back."""
    plan = plan_from_text(PLAN, "p.yaml")
    clock = SteadyClock()
    course, record = begin(plan, tmp_path / "run", clock, ["x"], stop_on_fail=False, stop_rules=["reboot"])
    assert (course.stop_on_fail, set(course.stop_rules)) == (False, {"hang", "reboot"})
    with record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "local", 10**9, required=True).id
        record.put([Poll(source, course.start_ns, course.start_ns, 1, PollOutcome.OK, None, NOTHING)])
        done = Event("a", "", "", course.start_ns + 60 * 10**9, None)
        record.add_event("", done, "plan")
        cut = replace(done, kind="switch", begin_ns=course.start_ns)
        record.add_event("", cut, "plan")
        record.add_event("", replace(done, kind="b"), "user")
        record.put_findings([FAIL], live=True, judged_ns=1)
    course, record, _ = resume(tmp_path / "run", stop_on_fail=False)
    record.close()
    assert course.stop_rules == {"hang"}
    assert course.planned_events == (cut, done)
    with RecordView.open(tmp_path / "run") as view:
        ends = {stored.event.kind: (stored.event.end_ns, dict(stored.event.detail)) for stored in view.events()}
    assert ends["switch"] == (course.start_ns + 2, {"cut": "the monitor was not running"})
    assert ends["a"] == ends["b"] == (None, {})
    assert len(course.live_findings) == 1
