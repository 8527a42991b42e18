"""From a record to its verdict: the rules of its plan, the judge, and the files that tell of it.

``python -m soakwatch.judging FOLDER`` judges a run that goes on and prints one finding a line, for live judging.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from soakwatch.errors import PlanError
from soakwatch.judge import RuleUse, judge
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.rules import RulePlan, planned_rules, read_rules
from soakwatch.plan.text import parse, plan_error
from soakwatch.record import Record, RecordView, finding_to_json
from soakwatch.registry import INSTALLED
from soakwatch.verdict import Verdict
from soakwatch_rules.rule import Finding, Outcome

GROWTH_RULES = frozenset({"memory_growth"})
REPORT_FILES = {"html": "report.html", "json": "verdict.json", "junit": "junit.xml", "md": "report.md"}


def recorded_plan(view: RecordView) -> Plan:
    """The plan that the record was made with. Raises PlanError if it holds none."""
    text = view.meta("plan")
    if text is None:
        raise PlanError("the record holds no plan: name one with --plan")
    return plan_from_text(text, "plan in the record")


def recorded_rules(view: RecordView) -> tuple[RulePlan, ...]:
    """What the recorded plan says of rules; its sources need not be installed here. Raises PlanError."""
    document = parse(view.meta("plan") or "", "plan in the record")
    rules, problems = read_rules(document, INSTALLED)
    if problems:
        raise plan_error("plan in the record", problems)
    return rules


def judge_record(
    view: RecordView,
    plan: Plan | None = None,
    only: Sequence[str] = (),
    told: Callable[[str], None] | None = None,
) -> Verdict:
    """The verdict of a record under its own plan, or another, or only some of its rules."""
    said = recorded_rules(view) if plan is None else plan.rules
    required = {rule.name: rule.required for rule in said} | dict.fromkeys(only, True)
    uses = [RuleUse(rule, required.get(rule.name)) for rule in planned_rules(said) if not only or rule.name in only]
    return judge(view, view.meta("run") or "run", uses, told)


def write_reports(view: RecordView, verdict: Verdict, folder: Path) -> Path:
    """Write report.html, verdict.json, junit.xml and report.md; the path of the page."""
    # Bokeh and Jinja2 are not for a collector that runs for days, nor for its live judge.
    from soakwatch.report.html import render_html
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import render_markdown

    texts = {
        "html": render_html(view, verdict),
        "json": render_json(verdict),
        "junit": render_junit(verdict),
        "md": render_markdown(verdict),
    }
    for kind, text in texts.items():
        (folder / REPORT_FILES[kind]).write_text(text, encoding="utf-8")
    return folder / REPORT_FILES["html"]


def conclude(folder: Path, record: Record, end_ns: int, told: Callable[[str], None] | None = None) -> Verdict:
    """Judge a run that has ended, keep the findings in its record, close it, and write its reports beside it."""
    try:
        with RecordView.open(folder) as view:
            verdict = judge_record(view, told=told)
        record.put_findings(verdict.findings, live=False, judged_ns=end_ns)
        record.set_meta("verdict", verdict.outcome.value)
        record.set_meta("reason", verdict.reason)
    finally:
        record.finish()
    with RecordView.open(folder) as view:
        write_reports(view, verdict, folder)
    return verdict


def main() -> None:
    """Print the findings of a run so far, one JSON text a line."""
    os.nice(10)
    with RecordView.open(Path(sys.argv[1])) as view:
        for finding in judge_record(view).findings:
            print(finding_to_json(early(finding)))


def early(finding: Finding) -> Finding:
    """A finding of a run that goes on: growth only warns, for a warm-up looks like a leak until it levels off."""
    if finding.rule not in GROWTH_RULES or finding.outcome is not Outcome.FAIL:
        return finding
    return replace(finding, outcome=Outcome.WARN, reason=f"{finding.reason} (so far: it may be a warm-up)")


if __name__ == "__main__":
    main()
