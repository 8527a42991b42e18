"""Judging a record: make its cases, run the rules on them, and fold the findings into the verdict.

The same code judges a run while it goes on, at its end, and a year later: it reads only the record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from soakwatch.core.event_kinds import DECIDED
from soakwatch.judge.adjudicate.context import Context
from soakwatch.judge.adjudicate.order import adjudicate
from soakwatch.judge.adjudicate.set_aside import with_set_aside_facts
from soakwatch.judge.capacity import capacity_findings, recorded_searches
from soakwatch.judge.cases import CaseBuilder, Concerned, SubjectMatter
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.judge.pass_requirements import Demand
from soakwatch.judge.planned import shared_hosts
from soakwatch.judge.unjudged_columns import unjudged_columns
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch.record.model import MONITOR_ORIGIN
from soakwatch_model.case import Case
from soakwatch_model.fact import PartOfRun
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.shared_times import times_shared
from soakwatch_rules.rule import Rule


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule with the plan's parameters.

    ``required``: whether its inconclusive findings make the run inconclusive; None (the plan does not say) means yes,
    unless the run as planned could not show what the rule detects (``pass_requirements``). ``named``: the plan gives
    the rule parameters. ``demanded``: the plan says ``required: true``, so finding nothing to judge is inconclusive
    too.
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
    judging: Judging | None = None,
) -> Verdict:
    """The verdict of a record under these rules; preliminary while the run ``goes_on``.

    ``progress`` is called with the rule and object judged next. ``earlier`` are records of other runs for the rules
    that compare runs. ``tenants`` are those of the plan. ``concerned`` selects the cases that are judged; without it
    ``judging`` may judge them in other processes.
    """
    uses = sorted(rules, key=lambda use: use.rule.name)
    case_builder = CaseBuilder(record, earlier, tenants)
    if judging is None:
        found: Mapping[int, Sequence[Finding]] = found_in(
            case_builder, cases_of(case_builder, uses, concerned), progress
        )
    else:
        found = judging(case_builder, uses, progress)
    written = [finding for place in sorted(found) for finding in found[place]]
    devices = sorted(target for target, role in case_builder.roles.items() if role == DUT)
    written += capacity_findings(record, case_builder.window, devices)
    context = Context(
        case_builder,
        {use.rule.name: use.rule for use in uses},
        frozenset(use.rule.name for use in uses if use.demanded),
        shared_hosts(record),
    )
    findings = adjudicate(written, context, live=False)
    insisted = all(use.required for use in uses)
    judged = [f for f in findings if f.own_outcome is not Outcome.NOT_APPLICABLE]
    findings += unjudged_columns(record, [use.rule for use in uses], judged, case_builder.window, insisted=insisted)
    planned_s = None if case_builder.planned is None else case_builder.planned.duration_s
    length_s = case_builder.window.seconds if planned_s is None else planned_s
    optional = frozenset(
        use.rule.name
        for use in uses
        if use.required is False or (use.required is None and not use.named and length_s < use.rule.spec.shortest_s)
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
        decided=why_decided(record),
    )
    return replace(verdict, capacity=recorded_searches(record), set_aside=case_builder.plausible.set_aside())


def why_decided(record: JudgeableRecord) -> str:
    """What was decided, in a sentence, where the monitor ended the run because every required rule had its final
    answer; "" of any other run."""
    for stored in record.events():
        if stored.event.kind == DECIDED and stored.origin == MONITOR_ORIGIN:
            return stored.event.detail.get("text") or stored.event.detail.get("outcome", "")
    return ""


@dataclass(frozen=True, slots=True)
class CaseOfRule:
    """What one rule is asked about, and its place among all that is asked."""

    place: int
    rule: Rule
    about: SubjectMatter

    @property
    def reading_order(self) -> tuple[bool, str, str, str, int]:
        """Sorted by this, the cases of one series follow each other, so that it is read once; those of whole targets
        come last."""
        if self.rule.scope == "target":
            return True, "", "", "", self.place
        first = self.about.keys[0]
        return False, self.about.target, first.object, first.metric, self.place


def cases_of(case_builder: CaseBuilder, uses: Iterable[RuleUse], concerned: Concerned | None) -> list[CaseOfRule]:
    """Everything that is asked, in the order in which it is reported."""
    every = ((use.rule, about) for use in uses for about in case_builder.subject_matters(use.rule, concerned))
    return [CaseOfRule(place, rule, about) for place, (rule, about) in enumerate(every)]


def found_in(
    case_builder: CaseBuilder, cases: Iterable[CaseOfRule], progress: Callable[[str], None] | None
) -> dict[int, Sequence[Finding]]:
    """What the rules find, by the place of the case; each series is read once."""
    found = {}
    with times_shared():
        for case in sorted(cases, key=lambda case: case.reading_order):
            if progress is not None:
                progress(f"{case.rule.name} {case.about.target} {case.about.keys[0].object if case.about.keys else ''}")
            found[case.place] = _judged_case(case_builder, case)
    return found


class Judging(Protocol):
    """What judges the cases of a record: here, or in several processes (``in_parts``)."""

    def __call__(
        self, case_builder: CaseBuilder, uses: Sequence[RuleUse], progress: Callable[[str], None] | None
    ) -> Mapping[int, Sequence[Finding]]:
        """The findings by the place of their case."""
        ...


def _judged_case(case_builder: CaseBuilder, one: CaseOfRule) -> Sequence[Finding]:
    """What a rule finds in a case."""
    case = case_builder.case(one.rule, one.about.target, one.about.keys, one.about.window)
    judged_by = _judged if case_builder.begun(one.rule) else _never_begun
    return judged_by(case_builder, one.rule, case)


def _judged(case_builder: CaseBuilder, rule: Rule, case: Case) -> Sequence[Finding]:
    """The findings of a case, with the facts that its object existed for only a part of the window, and which readings
    were set aside."""
    findings = rule.judge(case)
    if case.window not in case_builder.stretches(rule):
        part = PartOfRun(case.window.seconds)
        findings = tuple(replace(finding, facts=(*finding.facts, part)) for finding in findings)
    plausible = case_builder.plausible
    return with_set_aside_facts(findings, plausible.of(case), plausible.of_load(case))


def _never_begun(case_builder: CaseBuilder, rule: Rule, case: Case) -> Sequence[Finding]:  # noqa: ARG001
    """The finding of a rule whose phases never started: growth of a soak is not judged by the baseline before it."""
    phases = " or ".join(rule.phases)
    finding = Finding(
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
    return (finding,)
