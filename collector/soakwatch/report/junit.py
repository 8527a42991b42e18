"""JUnit XML: the verdict for continuous integration."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from soakwatch.core.formatting import iso
from soakwatch.judge.verdict import Verdict
from soakwatch.report.check_list import CheckList, CheckState, CheckSuite, ReportedCheck, check_list
from soakwatch.runs.setup_changes import Changed

_TAGS = {CheckState.FAILED: "failure", CheckState.INCONCLUSIVE: "error", CheckState.SKIPPED: "skipped"}
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render_junit(verdict: Verdict, difference: Changed | None = None) -> str:
    """JUnit XML: one suite a target, one test case a rule and target (class = target, name = rule)."""
    return junit_of(check_list(verdict, difference))


def junit_of(checks: CheckList) -> str:
    """The same of a list of checks.

    A failing case lists every failing finding with its reason and definition. A doubt that makes the run inconclusive
    is an ``error`` of type "inconclusive" and not ``skipped``: every CI shows skipped as green, and no data must never
    look like a pass. A doubt that was not required to be settled, and what is not applicable, is ``skipped`` with its
    reason; a warning goes to ``system-out``. Labels, the seal of the record, and what of its set-up differs from an
    earlier run are properties of each suite.
    """
    root = ET.Element("testsuites", name=checks.name)
    total: Counter[str] = Counter()
    for suite in checks.suites:
        total += _suite(root, suite, checks)
    for name in ("tests", "failures", "errors"):  # the schema has no "skipped" here
        root.set(name, str(total[name]))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, suite: CheckSuite, checks: CheckList) -> Counter[str]:
    """Adds a suite and returns its counts."""
    element = ET.SubElement(root, "testsuite", name=suite.name)
    element.set("timestamp", iso(suite.window.begin_ns)[:-5])
    element.set("time", f"{suite.window.seconds:.3f}")
    if checks.facts:
        properties = ET.SubElement(element, "properties")
        for name, text in checks.facts.items():
            ET.SubElement(properties, "property", name=name, value=text)
    counts: Counter[str] = Counter()
    for check in suite.checks:
        counts["tests"] += 1
        if tag := _TAGS.get(check.state):
            counts[_COUNTED[tag]] += 1
        _case(element, check)
    for name in ("tests", *_COUNTED.values()):
        element.set(name, str(counts[name]))
    return counts


def _case(suite: ET.Element, check: ReportedCheck) -> None:
    case = ET.SubElement(suite, "testcase", classname=check.target, name=check.name)
    if check.window is not None:
        case.set("time", f"{check.window.seconds:.3f}")
    if tag := _TAGS.get(check.state):
        element = ET.SubElement(case, tag, message=check.message)
        if check.state.holds_back:
            element.set("type", "fail" if check.state is CheckState.FAILED else "inconclusive")
        element.text = check.body or None
    if check.warnings:
        ET.SubElement(case, "system-out").text = check.warnings
