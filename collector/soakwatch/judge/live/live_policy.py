"""What a live finding may state: it judges the run so far, and must not claim more than that shows.

* "recent" rules judge the last hour. Their findings stay until the end, with all their marks.
* "minutes" rules judge trends, and a trend so far may be a warm-up: they only warn, when two evaluations in a row
  agree, and never before the run has lasted two hours (or half of its planned length, if that is less). A warning
  that no longer holds is withdrawn: the record keeps it, with the time.
* "whole" rules judge everything that happened; their result is final if nothing more happens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.traits import GrowthMethod, Marks, traits_of

EARLIEST_S = 7200.0
SURE = 0.99  # probability of growth from which an evaluation counts, for rules that state one
MIN_MINUTES = 96  # minutes with samples from which growth is warned of
APART_NS = 300_000_000_000  # evaluations of a trend closer than this count as one

ALARMS = frozenset({Outcome.FAIL, Outcome.WARN})
_MAX_MARKS = 200


@dataclass(frozen=True, slots=True)
class Streak:
    """How many evaluations in a row found a trend, and when the last one was; ``reported`` once it is a warning."""

    times: int = 0
    last_ns: int = 0
    reported: bool = False


def earliest_s(rule: Rule, planned_s: float | None) -> float:
    """How long the window of a trend must be before it may warn."""
    if traits_of(rule.name).growth is GrowthMethod.SHAPE or planned_s is None:
        return EARLIEST_S
    return min(EARLIEST_S, planned_s / 2)


def so_far(finding: Finding, live: Literal["recent", "whole"], run: Window) -> Finding:
    """A finding marked as being about the run so far."""
    part = live == "recent" and finding.window.begin_ns > run.begin_ns
    return replace(finding, reason=f"{finding.reason} ({'in the last hour' if part else 'so far'})")


def of_trend(finding: Finding, streak: Streak) -> tuple[Finding, Streak]:
    """A trend so far: a warning if two evaluations agree, else not reported yet."""
    if finding.outcome not in ALARMS:
        return replace(finding, reason=f"{finding.reason} (so far)"), Streak()
    now_ns, traits = finding.window.end_ns, traits_of(finding.rule)
    unsure = finding.numbers.get("probability", 1.0) < SURE
    if streak.reported:
        streak = replace(streak, last_ns=now_ns)
    elif unsure or (traits.growth is GrowthMethod.SHAPE and finding.samples < MIN_MINUTES):
        streak = Streak()
    elif not streak.times or now_ns - streak.last_ns >= APART_NS:
        streak = Streak(streak.times + 1, now_ns, reported=streak.times >= 1)
    if streak.reported:
        trend = traits.growth is not None or traits.marks is Marks.WHOLE
        why = "it may be a warm-up" if trend else "only the end of the run decides"
        return replace(finding, outcome=Outcome.WARN, reason=f"{finding.reason} (so far: {why})"), streak
    short = "one evaluation is not enough to warn" if streak.times else "not sure enough to warn"
    waiting = replace(
        finding,
        outcome=Outcome.INCONCLUSIVE,
        why=InconclusiveReason.PENDING,
        reason=f"{finding.reason} (so far: {short})",
        settle="another evaluation in ten minutes",
    )
    return waiting, streak


def lasting(before: Finding, now: Finding) -> Finding:
    """What was found in an hour that has gone stays found: both findings as one, with the marks of both."""
    if before.outcome not in ALARMS:
        return now
    if now.outcome not in ALARMS:
        return before
    gone = [mark for mark in before.marks if mark.begin_ns < now.window.begin_ns]
    over_ns = max((mark.end_ns or mark.begin_ns for mark in gone), default=now.window.begin_ns - 1)
    seen = [mark for mark in now.marks if mark.begin_ns > over_ns]  # the others are cut by the begin of the hour
    worse = before if before.outcome is Outcome.FAIL and now.outcome is not Outcome.FAIL else now
    reason = worse.reason if worse is before or not gone else f"{worse.reason}; {len(gone)} found before"
    window = Window(before.window.begin_ns, now.window.end_ns)
    return replace(worse, marks=_bounded((*gone, *seen)), window=window, reason=reason)


def _bounded(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    if len(marks) <= _MAX_MARKS:
        return marks
    return (*marks[: _MAX_MARKS // 2], *marks[-_MAX_MARKS // 2 :])
