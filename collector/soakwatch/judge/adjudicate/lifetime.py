"""Ruling: a rule does not apply to an object that existed too briefly for it."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.units import show_seconds
from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import PartOfRun
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place

_TOO_BRIEF = frozenset({InconclusiveReason.TOO_SHORT, InconclusiveReason.TOO_FEW})


def lifetime(findings: Sequence[Finding], _: Context) -> list[Finding]:
    """Not applicable is an inconclusive finding on an object that came or went during the run and was too
    short-lived."""
    return [_ruled(finding) for finding in findings]


def _ruled(finding: Finding) -> Finding:
    part = finding.fact(PartOfRun)
    if part is None or finding.outcome is not Outcome.INCONCLUSIVE or finding.why not in _TOO_BRIEF:
        return finding
    text = f"it was there for {show_seconds(part.lived_s)} only:"
    return finding.ruled("lifetime", Outcome.NOT_APPLICABLE, text, place=Place.BEFORE)
