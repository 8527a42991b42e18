"""Ruling: a failure of a generator or of the monitor is a warning about the run, not about the device."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric_load import RETURNED
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_rules.traits import traits_of

_ELSEWHERE = {Outcome.FAIL: Outcome.WARN, Outcome.INCONCLUSIVE: Outcome.NOT_APPLICABLE}


def role(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """A failure of a generator or of the monitor only warns; what is inconclusive about it does not block a pass.

    Exceptions: the account of their polls and the generator's health, for without a known load it is unknown what the
    device withstood.

    Returned load over one device is judged as that device's. With several devices it is reported for the generator,
    since it is unknown which one caused it.
    """
    return [_ruled(finding, context.role(finding.target), context.cases.devices) for finding in findings]


def _ruled(finding: Finding, played: str, devices: int) -> Finding:
    instead = _ELSEWHERE.get(finding.outcome)
    whatever_role = finding.outcome is Outcome.INCONCLUSIVE and traits_of(finding.rule).inconclusive.any_role
    if played == DUT or instead is None or whatever_role:
        return finding
    text = f"not the device: its role is {played}"
    if finding.metric in RETURNED and played == GENERATOR and devices > 1:
        text = f"which of the {devices} devices it is due to is not known"
    return finding.ruled("role", instead, text, why=finding.why, settle=finding.settle)
