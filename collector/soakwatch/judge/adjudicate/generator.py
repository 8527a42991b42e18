"""Ruling: when a generator is at fault, findings that depend on its load neither clear nor blame a device."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import Lost
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_model.metric_load import RETURNED
from soakwatch_rules.traits import Judges, traits_of

_DECIDED = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.PASS})


def generator(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """When a generator is at fault, findings that depend on its load become inconclusive and state their own
    outcome."""
    # A silent generator contradicts nobody's readings: it only keeps the run from passing.
    health = (f for f in findings if traits_of(f.rule).judges is Judges.GENERATOR)
    at_fault = (f for f in health if f.why is not InconclusiveReason.UNREAD)
    fault = next((f for f in at_fault if f.outcome is Outcome.INCONCLUSIVE), None)
    if fault is None:
        return list(findings)
    bound = frozenset(name for name, rule in context.rules.items() if rule.spec.needs_load)
    return [
        f.ruled(
            "generator",
            Outcome.INCONCLUSIVE,
            f"the generator was at fault ({fault.sentence}); without that: {f.outcome},",
            place=Place.BEFORE,
            why=InconclusiveReason.GENERATOR,
            settle="fix the generator, then run again",
        )
        if (f.rule in bound or f.metric in RETURNED) and f.outcome in _DECIDED and not _whatever_was_sent(f)
        else f
        for f in findings
    ]


def _whatever_was_sent(finding: Finding) -> bool:
    """Whether a finding holds under any load: it comes from probes, or nothing at all came back."""
    if finding.outcome is not Outcome.FAIL:
        return finding.metric.startswith("reach.")
    lost = finding.fact(Lost)
    stood_still = traits_of(finding.rule).standstill or (lost is not None and lost.stops > 0)
    return stood_still or finding.metric.startswith("reach.")
