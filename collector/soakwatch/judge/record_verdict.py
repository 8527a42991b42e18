"""From a record to its verdict: run the rules of its plan, and store the result in the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from soakwatch.core.c_allocator import freed_memory_kept
from soakwatch.core.errors import PlanError, RecordError
from soakwatch.core.registry import INSTALLED
from soakwatch.core.yaml import parse
from soakwatch.judge.capacity import stated_capacity
from soakwatch.judge.in_parts import InParts
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.record_trust import refuse_contradictions, with_record_check
from soakwatch.judge.uncatalogued_metrics import (
    additional_metrics,
    inconclusive_if_unjudged,
    named_rules,
    traits,
    widened,
)
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, plan_from_text
from soakwatch.plan.rule_plan import RulePlan, planned_rules, rules_in, with_parameters
from soakwatch.plan.tenant_plan import TenantPlan, tenants_in
from soakwatch.record import Record, RecordView
from soakwatch.record.lifecycle import lifecycle_of
from soakwatch.record.meta import IMPORTED_KEY
from soakwatch_model.finding import Outcome

ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})


def recorded_plan(view: RecordView) -> Plan:
    """The plan that the record was made with. Raises PlanError if there is none."""
    text = view.meta("plan")
    if text is None:
        raise PlanError("the record holds no plan: name one with --plan")
    return plan_from_text(text, "plan in the record")


def recorded_rules(view: RecordView) -> tuple[RulePlan, ...]:
    """The rules of the recorded plan; its sources need not be installed here. Raises PlanError."""
    text = view.meta("plan")
    if text is None:  # readings without a plan
        return ()
    return rules_in(parse(text, "plan in the record"), INSTALLED)


def recorded_tenants(view: RecordView) -> tuple[TenantPlan, ...]:
    """The tenants of the recorded plan; its sources need not be installed here. Raises PlanError."""
    text = view.meta("plan")
    if text is None:
        return ()
    return tenants_in(parse(text, "plan in the record"), INSTALLED)


def rules_for(
    view: RecordView, plan: Plan | None = None, only: Sequence[str] = (), given: Sequence[RulePlan] = ()
) -> list[RuleUse]:
    """The rules that judge a record: those of its own plan or of ``plan``, or ``only`` some of them; parameters that
    are ``given`` override the plan's."""
    only = only or (named_rules(view) if plan is None else ())
    plans = with_parameters(recorded_rules(view) if plan is None else plan.rules, given)
    demanded = {rule.name for rule in plans if rule.required}
    required = {rule.name: rule.required for rule in plans} | dict.fromkeys(only, True)
    held = traits(view) if only and view.meta(IMPORTED_KEY) is not None else {}
    return [
        RuleUse(
            widened(rule, additional_metrics(rule, held)),
            required.get(rule.name),
            rule.name in required,
            rule.name in demanded,
        )
        for planned in planned_rules(plans)
        for rule in (stated_capacity(planned, view),)
        if not only or rule.name in only
    ]


def judge_record(
    view: RecordView,
    plan: Plan | None = None,
    only: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
    earlier: Sequence[RecordView] = (),
    *,
    ended: bool = False,
    given: Sequence[RulePlan] = (),
    in_parts: bool = False,
) -> Verdict:
    """The verdict of a record under its own plan or another one, or ``only`` some of its rules, with ``given``
    parameters overriding the plan's, compared with ``earlier`` runs.

    While the run goes on the verdict is preliminary; ``ended`` says that it has ended and is about to be sealed. Any
    other record is checked: a changed one is inconclusive. Raises RecordError for one that contradicts itself,
    PlanError.

    With ``in_parts`` a record that takes long is judged in several processes of this machine, unless the run goes on.

    Rules named in ``only``, or at the import of a table, also judge gauges outside of the catalogue if they judge each
    series by itself.
    """
    refuse_contradictions(view)
    for other in earlier:
        if words := other.check().words:
            raise RecordError(f"{other.path} was {words}: nothing can be compared with it")
    uses = rules_for(view, plan, only, given)
    tenants = recorded_tenants(view) if plan is None else plan.tenants
    goes_on = not ended and lifecycle_of(view.metas(), view.path) == "running"
    run = view.meta("run") or "run"
    judging = InParts(view, tuple(earlier), tuple(tenants)) if in_parts and not goes_on else None
    with freed_memory_kept():
        judged = judge(view, run, uses, progress, earlier, goes_on=goes_on, tenants=tenants, judging=judging)
    verdict = inconclusive_if_unjudged(view, judged)
    verdict = replace(verdict, labels=view.labels)
    if goes_on or ended:
        return verdict
    checked = view.check()
    if view.meta(IMPORTED_KEY) is not None and checked.seal is None and not checked.changed:
        return verdict  # an imported table needs no seal
    return with_record_check(verdict, checked)


def keep(record: Record, verdict: Verdict, judged_ns: int) -> None:
    """Write findings, verdict and reason into the record for pages, lists and sinks, replacing earlier ones. Raises
    RecordError."""
    record.put_findings(verdict.findings, live=False, judged_ns=judged_ns)
    record.set_meta("verdict", verdict.outcome.value)
    record.set_meta("reason", verdict.reason)
