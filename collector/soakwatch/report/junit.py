"""JUnit XML: the verdict for continuous integration."""

from __future__ import annotations

from itertools import groupby
from xml.etree import ElementTree as ET

from soakwatch.report.show import iso, printable, quantity, subject
from soakwatch.verdict import Verdict
from soakwatch_rules.rule import Finding, Outcome

_WORST_FIRST = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN, Outcome.PASS, Outcome.NOT_APPLICABLE)
_TAGS = {Outcome.FAIL: "failure", Outcome.INCONCLUSIVE: "error"}


def render_junit(verdict: Verdict) -> str:
    """JUnit XML: one suite a target, one test case a rule and target (class = target, name = rule).

    A failing case lists every failing finding with its reason and definition. Inconclusive is an ``error`` of
    type "inconclusive" and not ``skipped``: every CI shows skipped as green, and no data must never look like a
    pass. Not applicable is ``skipped`` with its reason; a warning goes to ``system-out``. A target of which
    nothing was judged gets a case "judged", so that it cannot vanish.
    """
    suites = ET.Element("testsuites", name=printable(verdict.run))
    total = [0, 0, 0, 0]
    for target in verdict.targets:
        suite = ET.SubElement(suites, "testsuite", name=printable(target.target))
        suite.set("timestamp", iso(verdict.window.begin_ns)[:-5])
        suite.set("time", f"{verdict.window.seconds:.3f}")
        own = sorted((f for f in verdict.findings if f.target == target.target), key=lambda f: f.rule)
        counts = [0, 0, 0, 0]
        for rule, group in groupby(own, key=lambda f: f.rule):
            _count(counts, _case(suite, target.target, rule, list(group)))
        if not own:
            case = _element(suite, target.target, "judged")
            _tell(case, target.outcome, target.reason, "")
            _count(counts, target.outcome)
        for name, value in zip(("tests", "failures", "errors", "skipped"), counts, strict=True):
            suite.set(name, str(value))
        total = [a + b for a, b in zip(total, counts, strict=True)]
    for name, value in zip(("tests", "failures", "errors", "skipped"), total, strict=True):
        suites.set(name, str(value))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _count(counts: list[int], outcome: Outcome) -> None:
    counts[0] += 1
    column = {Outcome.FAIL: 1, Outcome.INCONCLUSIVE: 2, Outcome.NOT_APPLICABLE: 3}.get(outcome)
    if column is not None:
        counts[column] += 1


def _element(suite: ET.Element, target: str, rule: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=printable(target), name=printable(rule))


def _case(suite: ET.Element, target: str, rule: str, findings: list[Finding]) -> Outcome:
    case = _element(suite, target, rule)
    worst = min((f.outcome for f in findings), key=_WORST_FIRST.index)
    told = [f for f in findings if f.outcome is worst]
    message, body = _summary(told), "\n\n".join(_story(f) for f in told)
    _tell(case, worst, message, body)
    warned = [f for f in findings if f.outcome is Outcome.WARN]
    if warned:
        ET.SubElement(case, "system-out").text = printable("\n\n".join(_story(f) for f in warned), lines=True)
    return worst


def _tell(case: ET.Element, outcome: Outcome, message: str, body: str) -> None:
    if outcome is Outcome.NOT_APPLICABLE:
        ET.SubElement(case, "skipped", message=printable(message))
    elif outcome in _TAGS:
        element = ET.SubElement(case, _TAGS[outcome], message=printable(message), type=outcome.value)
        element.text = printable(body, lines=True) or None


def _summary(findings: list[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return findings[0].reason + more


def _story(finding: Finding) -> str:
    lines = [f"{finding.outcome.value}: {subject(finding.metric, finding.object)}", finding.reason]
    lines.append(f"definition: {finding.definition}")
    if finding.measured is not None:
        lines.append(
            f"measured: {quantity(finding.measured, finding.unit)}; limit: {quantity(finding.limit, finding.unit)}"
        )
    lines.append(f"samples: {finding.samples}" + ("" if finding.expected is None else f" of {finding.expected}"))
    if finding.settle:
        lines.append(f"would settle it: {finding.settle}")
    return "\n".join(line for line in lines if line)
