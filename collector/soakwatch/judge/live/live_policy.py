"""When a trend is reported live, and what stays found of hours that have gone; ``so_far`` has the words."""

from __future__ import annotations

from dataclasses import replace

from soakwatch.judge.adjudicate.context import ALARMS, Stand, Streak
from soakwatch_model.fact import Certainty
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.traits import GrowthMethod, traits_of

EARLIEST_S = 7200.0
SURE = 0.99  # probability of growth from which an evaluation counts, for rules that state one
MIN_MINUTES = 96  # minutes with samples from which growth is warned of
APART_NS = 300_000_000_000  # evaluations of a trend closer than this count as one

_MAX_MARKS = 200


def earliest_s(rule: Rule, planned_s: float | None) -> float:
    """How long the window of a trend must be before it may warn."""
    if traits_of(rule.name).growth is GrowthMethod.SHAPE or planned_s is None:
        return EARLIEST_S
    return min(EARLIEST_S, planned_s / 2)


def advanced(streak: Streak, finding: Finding) -> Streak:
    """The streak after one more evaluation of a trend."""
    if finding.outcome not in ALARMS:
        return Streak()
    now_ns, traits = finding.window.end_ns, traits_of(finding.rule)
    certainty = finding.fact(Certainty)
    unsure = certainty is not None and certainty.probability < SURE
    if streak.reported:
        return replace(streak, last_ns=now_ns)
    if unsure or (traits.growth is GrowthMethod.SHAPE and finding.samples < MIN_MINUTES):
        return Streak()
    if not streak.times or now_ns - streak.last_ns >= APART_NS:
        return Streak(streak.times + 1, now_ns, reported=streak.times >= 1)
    return streak


def lasts(finding: Finding) -> bool:
    """Whether a finding outlives the hour that it is about: a failure, a warning, or a generator that was at fault."""
    return finding.outcome in ALARMS or finding.why is InconclusiveReason.GENERATOR


def lasting(before: tuple[Finding, Stand], now: tuple[Finding, Stand]) -> tuple[Finding, Stand]:
    """An earlier and a new finding as one, with the marks of both: what was found in an hour that is over stays found.

    What is still seen, whole, and is no longer sure stands as it is seen now: more of it has come.
    """
    (old, old_stand), (new, stand) = before, now
    if not lasts(old):
        return now
    if new.outcome not in ALARMS:
        return now if new.outcome is Outcome.INCONCLUSIVE and _seen_again(old, new) else before
    gone = [mark for mark in old.marks if mark.begin_ns < new.window.begin_ns]
    over_ns = max((mark.end_ns or mark.begin_ns for mark in gone), default=new.window.begin_ns - 1)
    seen = [mark for mark in new.marks if mark.begin_ns > over_ns]  # the others are cut by the begin of the hour
    worse, known = new, replace(stand, found_before=len(gone))
    if old.outcome.rank < new.outcome.rank:
        worse, known = old, old_stand
    window = Window(old.window.begin_ns, new.window.end_ns)
    return replace(worse, marks=_bounded((*gone, *seen)), window=window), known


def _seen_again(old: Finding, new: Finding) -> bool:
    """Whether each marked moment of a finding overlaps a moment that a later finding marks."""
    seen = [(mark.begin_ns, mark.end_ns or mark.begin_ns) for mark in new.marks]
    return bool(old.marks) and all(
        any(begin_ns <= (mark.end_ns or mark.begin_ns) and mark.begin_ns <= end_ns for begin_ns, end_ns in seen)
        for mark in old.marks
    )


def _bounded(marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    if len(marks) <= _MAX_MARKS:
        return marks
    return (*marks[: _MAX_MARKS // 2], *marks[-_MAX_MARKS // 2 :])
