"""The first moment that failed: a cause fails by one of its findings, and the others are beside it."""

from __future__ import annotations

from soakwatch.judge.verdict import Verdict
from soakwatch_model.finding import Outcome
from soakwatch_rules.causes import Cause


def failed_ns(cause: Cause) -> int | None:
    """The moment of a cause; None where none is known."""
    return cause.since_ns


def first_failure_ns(verdict: Verdict) -> int | None:
    """The first of these moments of all that fails."""
    moments = [failed_ns(cause) for cause in verdict.causes if cause.outcome is Outcome.FAIL]
    return min((time_ns for time_ns in moments if time_ns is not None), default=None)
