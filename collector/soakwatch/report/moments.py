"""What each moment of a cause says by itself: a cause fails by one of its findings, and the others stand beside it."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.verdict import Verdict
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


def first_failure_ns(verdict: Verdict, told: Told) -> int | None:
    """The first moment that failed; where what fails has none of its own, the first that goes with it."""
    failing: list[Cause] = [cause for cause in verdict.causes if cause.outcome is Outcome.FAIL]
    own = [
        mark.begin_ns for cause in failing for mark in cause.timeline if outcome_at(mark, told) is Outcome.FAIL
    ]  # fmt: skip
    return min(own or [cause.begin_ns for cause in failing if cause.timeline], default=None)
