"""The verdict in one line that needs no knowledge of the rules: what held or not, for how long, under which load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import quantity
from soakwatch.core.roles import DUT
from soakwatch.core.subjects import subject_words
from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.report.load import Generator, figure_of
from soakwatch.report.moments import first_failure_ns
from soakwatch_rules.rule import Finding, InconclusiveReason, Outcome, Window
from soakwatch_rules.traits import RISE_PER_HOUR, GrowthMethod, plain_words, traits_of
from soakwatch_rules.wording.words import counted
from soakwatch_rules.wording.words import duration as took

_DOUBTS: Mapping[InconclusiveReason, str] = {
    InconclusiveReason.TOO_SHORT: "the run was too short",
    InconclusiveReason.TOO_FEW: "there were too few readings",
    InconclusiveReason.CADENCE: "it was read too seldom",
    InconclusiveReason.RESOLUTION: "its readings are too coarse",
    InconclusiveReason.GAP: "too much of it could not be read",
    InconclusiveReason.GENERATOR: "the traffic generator did not do its part",
    InconclusiveReason.CYCLE: "it swings more slowly than the run was long",
    InconclusiveReason.RELEASE: "it had not settled",
    InconclusiveReason.NOISE: "its readings are too restless",
    InconclusiveReason.UNREAD: "what is needed could not be read",
    InconclusiveReason.PENDING: "something was not over at the end",
    InconclusiveReason.NO_REFERENCE: "there is nothing to compare it with",
    InconclusiveReason.NOT_BEGUN: "a phase of the plan never began",
}
_MOST = 3


def headline(verdict: Verdict, load: Sequence[Generator]) -> str:
    """One sentence for a manager: who passed or failed, under which load and for how long, and why."""
    span = f"{lasting(verdict.window.seconds)} {under(load, verdict.window)}".rstrip()
    names = _names([t.target for t in verdict.targets if t.role == DUT])
    if not names:
        return f"No device was judged in {span}: no target has the role dut."
    if verdict.outcome is Outcome.FAIL:
        hit = _names([t.target for t in verdict.targets if t.outcome is Outcome.FAIL])
        so_far = " so far" if verdict.preliminary else ""
        return f"{hit} failed {_when(verdict, span)}{so_far}: {_why(verdict)}."
    warned = sum(f.outcome is Outcome.WARN for f in verdict.findings)
    told = f"no failures, {counted(warned, 'warning')}"
    if verdict.preliminary:
        return f"{names}: {told} so far, after {span}."
    if verdict.outcome is Outcome.PASS:
        return f"{names} passed {span}: {told}."
    return f"{names} could not be judged over {span}: {_why(verdict)}."


def _when(verdict: Verdict, span: str) -> str:
    """When the first failure was; where what failed has no moment (growth), over which time."""
    failed_ns = first_failure_ns(verdict)
    if failed_ns is None or failed_ns < verdict.window.begin_ns:
        return f"over {span}"
    return f"after {took((failed_ns - verdict.window.begin_ns) * 1e-9)} of {span}"


def lasting(seconds: float) -> str:
    """A length of time for a sentence.

    >>> lasting(8 * 3600), lasting(72 * 3600), lasting(90), lasting(5400)
    ('8 hours', '72 hours', '90 seconds', '90 minutes')
    """
    for length, word, least in ((3600, "hours", 2 * 3600), (60, "minutes", 120), (1, "seconds", 2)):
        if seconds >= least and abs(seconds / length - round(seconds / length)) < 0.02 * seconds / length:
            return f"{round(seconds / length)} {word}"
    return show_seconds(seconds)


def under(load: Sequence[Generator], window: Window) -> str:
    """The load of a stretch in a few words; empty where none was recorded."""
    figures = [figure_of(one.rate, window) for one in load if one.rate is not None]
    figures = [one for one in figures if one.readings]
    if not figures:
        return ""
    first = figures[0]
    told = f"under {quantity(first.mean, first.unit)}"
    if first.high is not None and first.mean is not None and first.high > 1.2 * first.mean:
        told += f" (at most {quantity(first.high, first.unit)})"
    more = len(figures) - 1
    return told + (f" and {more} more load{'s' if more > 1 else ''}" if more else "")


def _why(verdict: Verdict) -> str:
    """The leading causes in plain words, each once."""
    every = [c for c in verdict.causes if c.outcome is verdict.outcome]
    causes = [c for c in every if not c.waived] or every  # where nothing at all was decided
    leading = [verdict.findings[cause.leading] for cause in causes]
    told = list(dict.fromkeys(_failure(finding) for finding in leading))
    if verdict.outcome is Outcome.INCONCLUSIVE:
        reasons = [_DOUBTS[f.why] if f.why is not None and f.why in _DOUBTS else plain_words(f.rule) for f in leading]
        told = list(dict.fromkeys(reasons))
    if not told:
        return verdict.reason.rstrip(".")
    more = len(told) - _MOST
    return ", ".join(told[:_MOST]) + (f", and {more} more reason{'s' if more > 1 else ''}" if more > 0 else "")


def _failure(finding: Finding) -> str:
    """What failed, of what, and by how much where that is one figure: "memory of bgpd grows by 52.0 MiB/h"."""
    growth = traits_of(finding.rule).growth
    rate = finding.numbers.get(RISE_PER_HOUR) if growth is GrowthMethod.STAGES else finding.measured
    if growth is None or rate is None or not finding.metric:
        return plain_words(finding.rule)
    unit = finding.unit if finding.unit.endswith("/h") else f"{finding.unit}/h"
    allowed = f" (allowed {quantity(abs(finding.limit), unit)})" if finding.limit and finding.unit == unit else ""
    change = finding.numbers.get("change")
    allowed = allowed or ("" if change is None else f" ({change:+.0%})")
    way = "grows" if rate > 0 else "falls"
    return f"{subject_words(finding.metric, finding.object)} {way} by {quantity(abs(rate), unit)}{allowed}"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST])
    return shown + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
