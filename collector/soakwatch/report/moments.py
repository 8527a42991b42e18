"""The outcome of each single moment of a cause: a cause fails by one of its findings, others may only accompany it."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.judge.verdict import Verdict
from soakwatch_rules.causes import Cause
from soakwatch_rules.rule import Mark, Outcome

Outcomes = Mapping[int, list[tuple[str, str, Outcome]]]
"""By the beginning of a mark: the rule, the mark's text, and the outcome of each finding that has it."""


def outcomes_by_moment(verdict: Verdict) -> Outcomes:
    """The marks of all findings by their beginning."""
    outcomes: dict[int, list[tuple[str, str, Outcome]]] = {}
    for finding in verdict.findings:
        for mark in finding.marks:
            outcomes.setdefault(mark.begin_ns, []).append((finding.rule, mark.text, finding.outcome))
    return outcomes


def outcome_at(mark: Mark, outcomes: Outcomes) -> Outcome | None:
    """The outcome of the finding whose moment it is, the worst of several; None for an event, which is not judged."""
    own = [
        outcome
        for rule, text, outcome in outcomes.get(mark.begin_ns, ())
        if mark.text.endswith(f": {text}") and rule in mark.text.removesuffix(f": {text}").split()
    ]
    return min(own, key=list(Outcome).index, default=None)


def failed_ns(cause: Cause, outcomes: Outcomes) -> int | None:
    """The first moment of a cause that failed; where what fails has none of its own, the first that goes with it; None
    where it has no moment."""
    own = [mark.begin_ns for mark in cause.timeline if outcome_at(mark, outcomes) is Outcome.FAIL]
    return min(own or [mark.begin_ns for mark in cause.timeline], default=None)


def first_failure_ns(verdict: Verdict, outcomes: Outcomes) -> int | None:
    """The first of these moments of all that fails."""
    moments = [failed_ns(cause, outcomes) for cause in verdict.causes if cause.outcome is Outcome.FAIL]
    return min((time_ns for time_ns in moments if time_ns is not None), default=None)
