"""JUnit XML: the verdict for continuous integration."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from xml.etree import ElementTree as ET

from soakwatch.core.formatting import iso, printable, quantity, subject
from soakwatch.judge.record_trust import seal_words
from soakwatch.judge.verdict import Verdict
from soakwatch.runs.compare.compared_runs import ABSENT
from soakwatch.runs.setup_changes import Changed
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.wording.quantities import counted

_TAGS = {Outcome.FAIL: "failure", Outcome.INCONCLUSIVE: "error", Outcome.NOT_APPLICABLE: "skipped"}
_MAX_CHANGES = 50
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}


def render_junit(verdict: Verdict, difference: Changed | None = None) -> str:
    """JUnit XML: one suite a target, one test case a rule and target (class = target, name = rule).

    It agrees with the verdict: of a run that passes no case is a failure or an error, of one that fails at least one
    is a failure, and of one that is inconclusive at least one is an error. A failing case lists every failing finding
    with its reason and definition. A doubt that makes the run inconclusive is an ``error`` of type "inconclusive" and
    not ``skipped``: every CI shows skipped as green, and no data must never look like a pass. A doubt that was not
    required to be settled, and what is not applicable, is ``skipped`` with its reason; a warning goes to
    ``system-out``. A target, or a run, that is inconclusive by none of its rules gets a case "judged" that says why.
    The labels of the run are properties of each suite, and so are the seal of its record and what of its set-up differs
    from an earlier run.
    """
    suites = ET.Element("testsuites", name=printable(verdict.run))
    total: Counter[str] = Counter()
    for target in verdict.targets:
        suite = _suite(suites, target.target, verdict, difference)
        counts: Counter[str] = Counter()
        own = [(f, index in verdict.waived) for index, f in enumerate(verdict.findings) if f.target == target.target]
        for rule, group in groupby(sorted(own, key=lambda item: item[0].rule), key=lambda item: item[0].rule):
            _case(counts, suite, target.target, rule, list(group))
        if not own or _unexplained(target.outcome, counts):
            _tell(counts, _element(suite, target.target, "judged"), _TAGS.get(target.outcome), target.reason)
        total += _written(suite, counts)
    if _unexplained(verdict.outcome, total):
        suite = _suite(suites, verdict.run, verdict, difference)
        counts = Counter()
        _tell(counts, _element(suite, verdict.run, "judged"), _TAGS.get(verdict.outcome), verdict.reason)
        total += _written(suite, counts)
    _written(suites, total)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _suite(suites: ET.Element, name: str, verdict: Verdict, difference: Changed | None) -> ET.Element:
    suite = ET.SubElement(suites, "testsuite", name=printable(name))
    suite.set("timestamp", iso(verdict.window.begin_ns)[:-5])
    suite.set("time", f"{verdict.window.seconds:.3f}")
    sealed = verdict.checked is not None and (verdict.checked.seal is not None or verdict.checked.changed)
    seal = {"seal": seal_words(verdict.checked)} if sealed else {}
    told = {**verdict.labels, **seal, **_differences(difference)}
    if told:
        properties = ET.SubElement(suite, "properties")
        for label, text in told.items():
            ET.SubElement(properties, "property", name=printable(label), value=printable(text))
    return suite


def _differences(difference: Changed | None) -> dict[str, str]:
    """What of the set-up differs from an earlier run, as properties; what is left out is counted."""
    if difference is None:
        return {}
    told = {"compared with": difference.run}
    for change in difference.changes[:_MAX_CHANGES]:
        told[f"changed {change.about}"] = f"{change.before or ABSENT} -> {change.now or ABSENT}"
    if len(difference.changes) > _MAX_CHANGES:
        told["changed"] = f"{len(difference.changes) - _MAX_CHANGES} more"
    if difference.plan:
        told["changed plan"] = counted(len(difference.plan), "line")
    return told


def _written(suite: ET.Element, counts: Counter[str]) -> Counter[str]:
    for name in ("tests", *_COUNTED.values()):
        suite.set(name, str(counts[name]))
    return counts


def _unexplained(outcome: Outcome, counts: Counter[str]) -> bool:
    """Whether it is inconclusive, and no case says so."""
    return outcome is Outcome.INCONCLUSIVE and counts["failures"] + counts["errors"] == 0


def _element(suite: ET.Element, target: str, rule: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=printable(target), name=printable(rule))


def _case(
    counts: Counter[str], suite: ET.Element, target: str, rule: str, findings: list[tuple[Finding, bool]]
) -> None:
    """The case of one rule, of its findings and whether each was waived: the worst of them decides."""
    case = _element(suite, target, rule)
    ranks = [(f.outcome.rank, waived) for f, waived in findings]
    worst = [f for (f, _), rank in zip(findings, ranks, strict=True) if rank == min(ranks)]
    outcome, waived = worst[0].outcome, min(ranks)[1]
    tag = "skipped" if waived else _TAGS.get(outcome)
    body = "" if outcome is Outcome.NOT_APPLICABLE else "\n\n".join(_story(f) for f in worst)
    _tell(counts, case, tag, _summary(worst), body)
    warned = [f for f, _ in findings if f.outcome is Outcome.WARN]
    if warned:
        ET.SubElement(case, "system-out").text = printable("\n\n".join(_story(f) for f in warned), lines=True)


def _tell(counts: Counter[str], case: ET.Element, tag: str | None, message: str, body: str = "") -> None:
    counts["tests"] += 1
    if tag is None:
        return
    counts[_COUNTED[tag]] += 1
    element = ET.SubElement(case, tag, message=printable(message))
    if tag != "skipped":
        element.set("type", "fail" if tag == "failure" else "inconclusive")
    element.text = printable(body, lines=True) or None


def _summary(findings: list[Finding]) -> str:
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return findings[0].sentence + more


def _story(finding: Finding) -> str:
    lines = [f"{finding.outcome.value}: {subject(finding.metric, finding.object)}", finding.sentence]
    lines.append(f"definition: {finding.definition}")
    if finding.measured is not None:
        lines.append(
            f"measured: {quantity(finding.measured, finding.unit)}; limit: {quantity(finding.limit, finding.unit)}"
        )
    lines.append(f"samples: {finding.samples:,}" + ("" if finding.expected is None else f" of {finding.expected:,}"))
    if finding.settle:
        lines.append(f"to resolve: {finding.settle}")
    return "\n".join(line for line in lines if line)
