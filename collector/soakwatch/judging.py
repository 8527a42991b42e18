"""From a record to its verdict: the rules of its plan, the judge, and the files that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from soakwatch.errors import PlanError
from soakwatch.judge import RuleUse, judge
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.rules import RulePlan, planned_rules, read_rules
from soakwatch.plan.text import parse, plan_error
from soakwatch.record import Record, RecordView
from soakwatch.record.outside import is_written
from soakwatch.record.reader import IMPORTED_KEY
from soakwatch.registry import INSTALLED
from soakwatch.verdict import Verdict
from soakwatch.widening import beside, named_rules, nothing_passes_unseen, traits, widened
from soakwatch_rules.rule import Finding, Outcome

ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})
REPORT_FILES = {"html": "report.html", "json": "verdict.json", "junit": "junit.xml", "md": "report.md"}


def recorded_plan(view: RecordView) -> Plan:
    """The plan that the record was made with. Raises PlanError if it holds none."""
    text = view.meta("plan")
    if text is None:
        raise PlanError("the record holds no plan: name one with --plan")
    return plan_from_text(text, "plan in the record")


def recorded_rules(view: RecordView) -> tuple[RulePlan, ...]:
    """What the recorded plan says of rules; its sources need not be installed here. Raises PlanError."""
    text = view.meta("plan")
    if text is None:  # anybody's series
        return ()
    document = parse(text, "plan in the record")
    rules, problems = read_rules(document, INSTALLED)
    if problems:
        raise plan_error("plan in the record", problems)
    return rules


def judge_record(
    view: RecordView,
    plan: Plan | None = None,
    only: Sequence[str] = (),
    told: Callable[[str], None] | None = None,
    earlier: Sequence[RecordView] = (),
    *,
    ended: bool = False,
) -> Verdict:
    """The verdict of a record under its own plan, or another, or only some of its rules; beside ``earlier`` runs.

    While somebody writes the record and has not said that the run ended, the verdict is preliminary; ``ended`` says it.

    Rules that are named in ``only``, or were when somebody's series were imported, also judge gauges outside of the
    catalogue, where they judge each series by itself.
    """
    only = only or (named_rules(view) if plan is None else ())
    said = recorded_rules(view) if plan is None else plan.rules
    required = {rule.name: rule.required for rule in said} | dict.fromkeys(only, True)
    held = traits(view) if only and view.meta(IMPORTED_KEY) is not None else {}
    uses = [
        RuleUse(widened(rule, beside(rule, held)), required.get(rule.name), rule.name in required)
        for rule in planned_rules(said)
        if not only or rule.name in only
    ]
    goes_on = not ended and view.meta("ended_ns") is None and is_written(view.path)
    return nothing_passes_unseen(view, judge(view, view.meta("run") or "run", uses, told, earlier, goes_on=goes_on))


def write_reports(view: RecordView, verdict: Verdict, folder: Path) -> Path:
    """Write report.html, verdict.json, junit.xml and report.md; the path of the page."""
    # Bokeh and Jinja2 are not for a collector that runs for days, nor for its live judge.
    from soakwatch.report.closer import closer_looks
    from soakwatch.report.html import render_html
    from soakwatch.report.json import render_json
    from soakwatch.report.junit import render_junit
    from soakwatch.report.markdown import render_markdown
    from soakwatch.report.sinks import sink_accounts

    closer = closer_looks(view.events())
    texts = {
        "html": render_html(view, verdict),
        "json": render_json(verdict),
        "junit": render_junit(verdict),
        "md": render_markdown(verdict, view.withdrawn(), closer, view.artifact_entries(), sink_accounts(view)),
    }
    for kind, text in texts.items():
        (folder / REPORT_FILES[kind]).write_text(text, encoding="utf-8")
    return folder / REPORT_FILES["html"]


def _that_stand(said: Iterable[Finding], verdict: Iterable[Finding]) -> list[Finding]:
    """What was said while the run went on, without the alarms that the verdict does not share: they are withdrawn."""
    alarms = {(f.rule, f.target, f.metric, f.object) for f in verdict if f.outcome in ALARMS}
    return [f for f in said if f.outcome not in ALARMS or (f.rule, f.target, f.metric, f.object) in alarms]


def conclude(
    folder: Path, record: Record, end_ns: int, told: Callable[[str], None] | None = None,
    heard: Callable[[Verdict], None] | None = None,
) -> Verdict:  # fmt: skip
    """Judge a run that has ended, keep the findings in its record, close it, and write its reports beside it.

    ``heard`` is told the verdict while the record can still take what that sets off.
    """
    try:
        with RecordView.open(folder) as view:
            verdict, said = judge_record(view, told=told, ended=True), view.findings(live=True)
        record.put_findings(_that_stand(said, verdict.findings), live=True, judged_ns=end_ns)
        record.put_findings(verdict.findings, live=False, judged_ns=end_ns)
        record.set_meta("verdict", verdict.outcome.value)
        record.set_meta("reason", verdict.reason)
        if heard is not None:
            heard(verdict)
    finally:
        record.finish()
    with RecordView.open(folder) as view:
        write_reports(view, verdict, folder)
    return verdict
