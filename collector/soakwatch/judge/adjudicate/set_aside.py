"""Ruling: a series does not pass if too many of its readings were impossible, or if one may hide something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import Aside
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.set_aside import SetAside


def with_set_aside_facts(
    findings: Sequence[Finding], aside: Sequence[SetAside], of_load: Sequence[SetAside]
) -> Sequence[Finding]:
    """Add to each finding, as facts and doubts, which readings of its series were set aside; a finding on the load gets
    those of every series of the load, since it rests on all of them."""
    return [_with_own(finding, aside, of_load) for finding in findings] if aside or of_load else findings


def _with_own(finding: Finding, aside: Sequence[SetAside], of_load: Sequence[SetAside]) -> Finding:
    own = [a for a in aside if finding.metric in {"", a.metric} and finding.object in {"", a.object}]
    own += [a for a in of_load if finding.metric in WHOLE_LOAD and a not in own]
    if not own or finding.outcome is Outcome.NOT_APPLICABLE:
        return finding
    facts = tuple(Aside(found.text, found.undecided) for found in own)
    return replace(finding, facts=(*finding.facts, *facts), doubts=(*finding.doubts, *(found.text for found in own)))


def set_aside(findings: Sequence[Finding], _: Context) -> list[Finding]:
    """A pass becomes inconclusive if too many readings of its series were impossible, or if one may hide something."""
    return [_ruled(finding) for finding in findings]


def _ruled(finding: Finding) -> Finding:
    open_ = next((fact for fact in finding.facts if isinstance(fact, Aside) and fact.undecided), None)
    if open_ is None or finding.outcome is not Outcome.PASS:
        return finding
    return finding.ruled(
        "set_aside",
        Outcome.INCONCLUSIVE,
        f"{open_.text}, {open_.undecided}; without that:",
        place=Place.BEFORE,
        why=InconclusiveReason.UNREAD,
        settle="find out why the source shows what cannot be, then run again",
    )
