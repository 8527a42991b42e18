"""Ruling: a rule that the plan requires and that found nothing to judge is inconclusive."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_rules.traits import Judges, traits_of


def required(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """A required rule that found nothing to judge on a device (or on a generator, if it judges those) is
    inconclusive."""
    needs = {name: rule.spec.needs for name, rule in context.rules.items() if name in context.demanded}
    decided = {(f.rule, f.target) for f in findings if f.outcome is not Outcome.NOT_APPLICABLE}
    return [
        f.ruled(
            "required",
            Outcome.INCONCLUSIVE,
            "required, and nothing to judge:",
            place=Place.BEFORE,
            why=InconclusiveReason.UNREAD,
            settle=f"give the run what it needs ({needs[f.rule]}), or do not require the rule",
        )
        if f.rule in needs
        and (f.rule, f.target) not in decided
        and context.role(f.target) == (GENERATOR if traits_of(f.rule).judges is Judges.GENERATOR else DUT)
        else f
        for f in findings
    ]
