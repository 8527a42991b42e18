"""Judging a record: builds cases from it, runs the rules on them, and folds the findings into the verdict.

The same code judges a run while it goes on, at its end, and a year later: it reads the record and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.core.units import show_seconds
from soakwatch.judge.capacity import capacity_findings, searches_of
from soakwatch.judge.cases import CaseBuilder, Concerned
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.judge.memory import of_memory
from soakwatch.judge.overload_cut import of_own_baseline
from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.unjudged_columns import unjudged_columns
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.plan.tenants import TenantPlan
from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.metric_load import RETURNED
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.traffic_verdict import agreed, of_shared_load, of_the_management_path
from soakwatch_rules.traits import STOPS, Judges, traits_of

_TOO_BRIEF = frozenset({InconclusiveReason.TOO_SHORT, InconclusiveReason.TOO_FEW})
_ELSEWHERE = {Outcome.FAIL: Outcome.WARN, Outcome.INCONCLUSIVE: Outcome.NOT_APPLICABLE}


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule with the plan's parameters; ``required`` says whether its being inconclusive makes the run inconclusive.

    None, if the plan does not say: it does unless the run as planned could not show what the rule detects
    (``pass_requirements``). ``named``: the plan gives the rule parameters. ``demanded``: the plan says that it is
    required, so it may not find nothing to judge either.
    """

    rule: Rule
    required: bool | None = None
    named: bool = False
    demanded: bool = False


def judge(
    record: JudgeableRecord,
    run: str,
    rules: Iterable[RuleUse],
    progress: Callable[[str], None] | None = None,
    earlier: Sequence[JudgeableRecord] = (),
    *,
    goes_on: bool = False,
    tenants: Sequence[TenantPlan] = (),
    concerned: Concerned | None = None,
) -> Verdict:
    """The verdict of a record under these rules; a preliminary one of a run that ``goes_on``.

    ``progress`` is called with the rule and object that are judged next.

    ``earlier`` are the records of other runs, with which the rules that compare runs compare this one. ``tenants`` are
    those of the plan. With ``concerned`` only the cases that it chooses are judged.
    """
    uses = sorted(rules, key=lambda use: use.rule.name)
    case_builder = CaseBuilder(record, earlier, tenants)
    findings = [
        of_role(finding, case_builder.roles.get(finding.target, DUT), case_builder.devices)
        for use in uses
        for case in case_builder.cases(use.rule, progress, concerned)
        for finding in (
            of_life(of_own_baseline(use.rule.judge(case), case.phases), case, case_builder.stretches(use.rule))
            if case_builder.begun(use.rule)
            else (_never_begun(use.rule, case),)
        )
    ]
    findings = of_memory(findings, case_builder, record, (use.rule for use in uses))
    insisted = all(use.required for use in uses)
    findings += unjudged_columns(record, [use.rule for use in uses], findings, case_builder.window, insisted=insisted)
    devices = sorted(target for target, role in case_builder.roles.items() if role == DUT)
    findings += capacity_findings(record, case_builder.window, devices)
    findings = _insisted(findings, uses, case_builder.roles)
    findings = without_load(findings, frozenset(use.rule.name for use in uses if use.rule.manner.needs_load))
    findings = of_the_management_path(of_shared_load(agreed(findings)))
    planned_s = None if case_builder.planned is None else case_builder.planned.duration_s
    length_s = case_builder.window.seconds if planned_s is None else planned_s
    optional = frozenset(
        use.rule.name
        for use in uses
        if use.required is False or (use.required is None and not use.named and length_s < use.rule.manner.shortest_s)
    )
    demand = Demand(
        optional,
        frozenset(use.rule.name for use in uses if use.named),
        frozenset(use.rule.name for use in uses if use.required),
    )
    accounts = case_builder.accounts(case_builder.window)
    verdict = fold(
        run,
        case_builder.window,
        case_builder.roles,
        findings,
        accounts,
        case_builder.phases,
        demand,
        planned_s,
        case_builder.events,
        goes_on=goes_on,
    )
    return replace(verdict, capacity=searches_of(record))


def _never_begun(rule: Rule, case: Case) -> Finding:
    """Nobody judges the growth of a soak by the baseline before it."""
    phases = " or ".join(rule.phases)
    return Finding(
        rule=rule.name,
        version=rule.version,
        outcome=Outcome.INCONCLUSIVE if case.series else Outcome.NOT_APPLICABLE,
        target=case.target,
        metric=case.series[0].metric if case.series else "",
        object=case.object,
        window=case.window,
        definition=rule.definition(),
        reason=f"the {phases} phase, in which this is judged, never started",
        samples=0,
        why=InconclusiveReason.NOT_BEGUN if case.series else None,
        settle=f"let the run reach its {phases} phase" if case.series else "",
    )


def of_life(findings: Sequence[Finding], case: Case, windows: Sequence[Window]) -> Sequence[Finding]:
    """What was there for a part of its window only, and too briefly for a rule, is nothing that the rule applies to."""
    if case.window in windows:
        return findings
    return [
        replace(
            f,
            outcome=Outcome.NOT_APPLICABLE,
            why=None,
            settle="",
            reason=f"it was there for {show_seconds(case.window.seconds)} only: {f.reason}",
        )
        if f.outcome is Outcome.INCONCLUSIVE and f.why in _TOO_BRIEF
        else f
        for f in findings
    ]


def of_role(finding: Finding, role: str, devices: int = 1) -> Finding:
    """Turns a failure of a generator or of the monitor into a warning about the run: it is no failure of the device.

    What is undecided about them does not keep the run from passing either, except for the account of their polls and
    the generator's health: without a known load it is unknown what the device withstood. What came back over one
    device is judged as that device's; with several ``devices`` it is reported for the generator, since it is unknown
    which one caused it.
    """
    instead = _ELSEWHERE.get(finding.outcome)
    whatever_role = finding.outcome is Outcome.INCONCLUSIVE and traits_of(finding.rule).inconclusive.any_role
    if role == DUT or instead is None or whatever_role:
        return finding
    why = f"not the device: its role is {role}"
    if finding.metric in RETURNED and role == GENERATOR and devices > 1:
        why = f"which of the {devices} devices it is due to is not known"
    return replace(finding, outcome=instead, reason=f"{finding.reason} ({why})")


def _insisted(findings: Sequence[Finding], uses: Sequence[RuleUse], roles: Mapping[str, str]) -> list[Finding]:
    """A rule that is required and found nothing to judge of a device, or of a generator, did not decide."""
    needs = {use.rule.name: use.rule.manner.needs for use in uses if use.demanded}
    decided = {(f.rule, f.target) for f in findings if f.outcome is not Outcome.NOT_APPLICABLE}
    return [
        replace(
            f,
            outcome=Outcome.INCONCLUSIVE,
            why=InconclusiveReason.UNREAD,
            reason=f"required, and nothing to judge: {f.reason}",
            settle=f"give the run what it needs ({needs[f.rule]}), or do not require the rule",
        )
        if f.rule in needs
        and (f.rule, f.target) not in decided
        and roles.get(f.target, DUT) == (GENERATOR if traits_of(f.rule).judges is Judges.GENERATOR else DUT)
        else f
        for f in findings
    ]


def without_load(findings: list[Finding], bound: frozenset[str]) -> list[Finding]:
    """With a generator at fault, findings that rest on its load are dropped: they neither clear nor blame a device."""
    # One that is silent says nothing against what others, or the device, report: it only keeps the run from passing.
    health = (f for f in findings if traits_of(f.rule).judges is Judges.GENERATOR)
    at_fault = (f for f in health if f.why is not InconclusiveReason.UNREAD)
    fault = next((f for f in at_fault if f.outcome is Outcome.INCONCLUSIVE), None)
    if fault is None:
        return findings
    return [
        replace(
            f,
            outcome=Outcome.INCONCLUSIVE,
            why=InconclusiveReason.GENERATOR,
            reason=f"the generator was at fault ({fault.reason}); without that: {f.outcome}, {f.reason}",
            settle="fix the generator, then run again",
        )
        if (f.rule in bound or f.metric in RETURNED)
        and f.outcome in {Outcome.FAIL, Outcome.WARN, Outcome.PASS}
        and not _whatever_was_sent(f)
        else f
        for f in findings
    ]


def _whatever_was_sent(finding: Finding) -> bool:
    """Whether a finding holds with any load: from probes, or a standstill with nothing coming back."""
    return finding.metric.startswith("reach.") or (
        finding.outcome is Outcome.FAIL and (traits_of(finding.rule).standstill or finding.numbers.get(STOPS, 0.0) > 0)
    )
