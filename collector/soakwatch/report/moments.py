"""What each moment of a cause says by itself: a cause fails by one of its findings, and the others stand beside it."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.judge.verdict import Verdict
from soakwatch_rules.causes import Cause
from soakwatch_rules.rule import Mark, Outcome

Told = Mapping[int, list[tuple[str, str, Outcome]]]
"""By the beginning of a mark: the rule, the mark's text, and the outcome of each finding that has it."""


def told_moments(verdict: Verdict) -> Told:
    """The marks of all findings."""
    found: dict[int, list[tuple[str, str, Outcome]]] = {}
    for finding in verdict.findings:
        for mark in finding.marks:
            found.setdefault(mark.begin_ns, []).append((finding.rule, mark.text, finding.outcome))
    return found


def outcome_at(mark: Mark, told: Told) -> Outcome | None:
    """What the finding came to whose moment it is, the worst of several; None for an event, which nobody judged."""
    found = [
        outcome
        for rule, text, outcome in told.get(mark.begin_ns, ())
        if mark.text.endswith(f": {text}") and rule in mark.text.removesuffix(f": {text}").split()
    ]
    return min(found, key=list(Outcome).index, default=None)


def failed_ns(cause: Cause, told: Told) -> int | None:
    """The first moment of a cause that failed; where what fails has none of its own, the first that goes with it; None
    where it has no moment."""
    own = [mark.begin_ns for mark in cause.timeline if outcome_at(mark, told) is Outcome.FAIL]
    return min(own or [mark.begin_ns for mark in cause.timeline], default=None)


def first_failure_ns(verdict: Verdict, told: Told) -> int | None:
    """The first of these moments of all that fails."""
    found = [failed_ns(cause, told) for cause in verdict.causes if cause.outcome is Outcome.FAIL]
    return min((at_ns for at_ns in found if at_ns is not None), default=None)
