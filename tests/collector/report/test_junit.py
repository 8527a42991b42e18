"""JUnit agrees with the verdict: a CI that reads it is green where the command's exit code is 0, and red elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.collector.report.conftest import BEGIN, finding

from soakwatch.cli.main import run
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.report.junit import render_junit
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

T0 = 1_767_225_600
COLUMNS = ("--map", "heap=process.memory.usage,process=nginx", "--map", "cpu=system.cpu.utilization")
DOUBT = finding(Outcome.INCONCLUSIVE, "fw", "growth", "m", "process=a", reason="too short", settle="1 h more")
PASS = finding(Outcome.PASS, "fw", "cpu_spike", "m")
FAIL = finding(Outcome.FAIL, "fw", "reboot", "m", reason="it restarted")
WARN = finding(Outcome.WARN, "fw", "cpu_spike", "n", reason="one spike")


def read(text: str) -> ET.Element:
    """The document; its counts are those of the cases in each suite and in all."""
    root = ET.fromstring(text)
    for part in [root, *root.iter("testsuite")]:
        tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
        if part is root:
            del tags["skipped"]  # the schema has none there
        assert {name: part.get(name) for name in tags} == {
            name: str(len(list(part.iter(tag)))) for name, tag in tags.items()
        }
    return root


def totals(root: ET.Element) -> tuple[int, int]:
    """Failures and errors of the whole run."""
    return int(root.get("failures", "-1")), int(root.get("errors", "-1"))


def case(root: ET.Element, name: str) -> ET.Element:
    """The one case of that name."""
    (element,) = [case for case in root.iter("testcase") if case.get("name") == name]
    return element


def verdict_of(*findings: Finding, optional: tuple[str, ...] = (), planned_s: float | None = None) -> Verdict:
    """The verdict of an hour of one device."""
    window = Window(BEGIN, BEGIN + 3600 * 10**9)
    return fold("night", window, {"fw": "dut"}, findings, [], [], frozenset(optional), planned_s)


@pytest.mark.parametrize(
    ("leak", "exit_code"), [(0.0, 0), (20_000.0, 1)], ids=["fifty quiet minutes pass", "a leak fails"]
)
def test_junit_of_a_reported_run_agrees_with_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: float, exit_code: int
) -> None:
    """Fifty minutes are too short for `growth` and `step_change`, which then are not required: skipped, with why."""
    monkeypatch.chdir(tmp_path)
    rows = (f"{T0 + n},{1e8 + n % 2 + n * leak},{0.2 + 0.01 * (n * 7 % 5)}\n" for n in range(3000))
    Path("night.csv").write_text("time,heap,cpu\n" + "".join(rows), encoding="utf-8")
    assert run(["import", "night.csv", *COLUMNS, "--target", "fw"]) == 0
    assert run(["judge", "last"]) == exit_code
    assert run(["report", "last", "--junit", "junit.xml"]) == 0
    root = read(Path("junit.xml").read_text(encoding="utf-8"))
    failures, errors = totals(root)
    assert errors == 0
    assert (failures > 0) == (exit_code == 1)
    (skipped,) = case(root, "step_change")
    assert skipped.tag == "skipped"
    assert "2 h needed" in skipped.get("message", "")
    assert "needs 1 h 10 min more" in (skipped.text or "")


def test_an_inconclusive_finding_is_an_error_where_it_blocks_the_verdict_and_skipped_where_it_does_not() -> None:
    """The same inconclusive finding, of a required rule and of another, with a failure as well."""
    assert totals(read(render_junit(verdict_of(DOUBT, PASS)))) == (0, 1)
    assert totals(read(render_junit(verdict_of(DOUBT, PASS, optional=("growth",))))) == (0, 0)
    assert totals(read(render_junit(verdict_of(DOUBT, PASS, FAIL)))) == (1, 1)
    failed = read(render_junit(verdict_of(DOUBT, PASS, FAIL, optional=("growth",))))
    assert totals(failed) == (1, 0)
    assert [child.tag for child in case(failed, "growth")] == ["skipped"]


def test_of_one_rule_a_required_inconclusive_finding_goes_before_an_optional_one() -> None:
    """The error lists only the inconclusive finding that blocks the verdict."""
    both = verdict_of(DOUBT, replace(DOUBT, object="process=b", reason="a hole"), PASS)
    (error,) = case(read(render_junit(replace(both, waived=frozenset({0})))), "growth")
    assert (error.tag, error.get("message")) == ("error", "a hole")


def test_a_warning_goes_to_system_out_and_fails_nothing() -> None:
    """The case of a rule that warned is green, and what it warned of can be read."""
    root = read(render_junit(verdict_of(WARN, PASS)))
    assert totals(root) == (0, 0)
    (system_out,) = case(root, "cpu_spike")
    assert system_out.tag == "system-out"
    assert "one spike" in (system_out.text or "")


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        (verdict_of(DOUBT, finding(Outcome.PASS, "fw", "coverage", "m"), optional=("growth",)), "fw"),
        (verdict_of(PASS, planned_s=8 * 3600.0), "night"),
        (fold("night", Window(0, 0), {}, [], [], []), "night"),
        (verdict_of(), "fw"),
    ],
    ids=["nothing decided", "ended early", "no device", "nothing judged"],
)
def test_a_run_that_is_inconclusive_by_none_of_its_rules_is_an_error(verdict: Verdict, name: str) -> None:
    """It is never green: the target or the run itself says why."""
    assert verdict.outcome is Outcome.INCONCLUSIVE
    root = read(render_junit(verdict))
    assert totals(root) == (0, 1)
    judged = case(root, "judged")
    assert judged.get("classname") == name
    (error,) = judged
    assert error.get("message") in {verdict.reason, *(target.reason for target in verdict.targets)}
