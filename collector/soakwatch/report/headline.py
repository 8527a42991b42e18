"""The verdict in one sentence for a reader who does not know the rules: who passed or failed, under which load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import quantity
from soakwatch.core.plain_names import plain_name
from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.report.load import Generator, figure_of
from soakwatch.report.moments import first_failure_ns
from soakwatch.report.summaries import deciding
from soakwatch_model.fact import Growth
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.window import Window
from soakwatch_rules.traits import Family, GrowthMethod, plain_words, traits_of
from soakwatch_rules.wording.words import counted

_REASONS: Mapping[InconclusiveReason, str] = {
    InconclusiveReason.TOO_SHORT: "the run was too short",
    InconclusiveReason.TOO_FEW: "there were too few samples",
    InconclusiveReason.CADENCE: "it was polled too rarely",
    InconclusiveReason.RESOLUTION: "its samples are too coarse",
    InconclusiveReason.GAP: "the samples do not cover all of it",
    InconclusiveReason.GENERATOR: "the traffic generator was at fault",
    InconclusiveReason.CYCLE: "its period is longer than the run",
    InconclusiveReason.RELEASE: "it had not settled",
    InconclusiveReason.NOISE: "its samples are too noisy",
    InconclusiveReason.UNREAD: "required data could not be read",
    InconclusiveReason.PENDING: "an event was not over at the end",
    InconclusiveReason.NO_REFERENCE: "there is no reference to compare with",
    InconclusiveReason.NOT_BEGUN: "a phase of the plan never started",
}
_LOST_POLLS = "too many polls were lost"
_MAX_NAMED = 3


def headline(verdict: Verdict, load: Sequence[Generator]) -> str:
    """One sentence for a manager: who passed or failed, under which load and for how long, and why."""
    span = f"{show_seconds(verdict.window.seconds)} {under(load, verdict.window)}".rstrip()
    names = _names([t.target for t in verdict.targets if t.role == DUT])
    if not names:
        return f"No device was judged in {span}: no target has the role dut."
    if verdict.checked is not None and verdict.checked.changed:
        return f"{names}: the record was changed after it was written: nothing that it says is proven."
    if verdict.outcome is Outcome.FAIL:
        hit = _names([t.target for t in verdict.targets if t.outcome is Outcome.FAIL])
        so_far = " so far" if verdict.preliminary else ""
        return f"{hit} failed {_when(verdict, span)}{so_far}: {_why(verdict)}."
    warned = sum(f.outcome is Outcome.WARN for f in verdict.findings)
    result = f"no failures, {counted(warned, 'warning')}"
    if verdict.preliminary:
        return f"{names}: {result} so far, after {span}."
    if verdict.outcome is Outcome.PASS:
        return f"{names} passed {span}: {result}."
    return f"{names} could not be judged over {span}: {_why(verdict)}."


def _when(verdict: Verdict, span: str) -> str:
    """When the first failure was; where what failed has no moment (growth), over which time."""
    failed_ns = first_failure_ns(verdict)
    if failed_ns is None or failed_ns < verdict.window.begin_ns:
        return f"over {span}"
    return f"after {show_seconds((failed_ns - verdict.window.begin_ns) * 1e-9)} of {span}"


def under(load: Sequence[Generator], window: Window) -> str:
    """The load of an interval in a few words; empty where none was recorded."""
    figures = [figure_of(generator.rate, window) for generator in load if generator.rate is not None]
    figures = [figure for figure in figures if figure.readings]
    if not figures:
        return ""
    first = figures[0]
    text = f"under {quantity(first.mean, first.unit)}"
    if first.high is not None and first.mean is not None and first.high > 1.2 * first.mean:
        text += f" (peak {quantity(first.high, first.unit)})"
    more = len(figures) - 1
    return text + (f" and {counted(more, 'more load')}" if more else "")


def _why(verdict: Verdict) -> str:
    """The leading causes in plain words, each once."""
    every = [c for c in verdict.causes if c.outcome is verdict.outcome]
    causes = [c for c in every if not c.waived] or every  # where nothing at all was decided
    leading = [deciding(verdict, cause) for cause in causes]
    reasons = list(dict.fromkeys(failure_words(finding) for finding in leading))
    if verdict.outcome is Outcome.INCONCLUSIVE:
        reasons = list(dict.fromkeys(_undecided_words(verdict, finding) for finding in leading))
    if not reasons:
        return verdict.reason.rstrip(".")
    more = len(reasons) - _MAX_NAMED
    return ", ".join(reasons[:_MAX_NAMED]) + (f", and {counted(more, 'more reason')}" if more > 0 else "")


def _undecided_words(verdict: Verdict, finding: Finding) -> str:
    """Why a finding is inconclusive. Samples may be missing though every poll was answered, as where a generator prints
    nothing: polls were lost only where a rule that counts them says so."""
    if finding.why is InconclusiveReason.GAP:
        open_ = (f for f in verdict.findings if f.outcome is Outcome.INCONCLUSIVE)
        if any(traits_of(f.rule).family is Family.POLLS for f in open_):
            return _LOST_POLLS
    return plain_words(finding.rule) if finding.why is None else _REASONS.get(finding.why, plain_words(finding.rule))


def rate_of(finding: Finding) -> tuple[float, str] | None:
    """How fast what a finding of growth is of grows (below zero: falls), with its unit per hour; None of others."""
    growth = traits_of(finding.rule).growth
    grew = finding.fact(Growth)
    measured = None if growth is GrowthMethod.STAGES else finding.measured  # theirs is a level
    rate = measured if grew is None else grew.per_hour
    if growth is None or rate is None or not finding.metric:
        return None
    return rate, finding.unit if finding.unit.endswith("/h") else f"{finding.unit}/h"


def allowed_words(finding: Finding) -> str:
    """What a rule of growth allows: a rate, or an increase over the run; empty where it does not say."""
    rate = rate_of(finding)
    if rate is None or not finding.limit:
        return ""
    if finding.unit == rate[1]:
        return f"allowed {quantity(abs(finding.limit), rate[1])}"
    grew = finding.fact(Growth)
    return "" if grew is None or grew.tolerance is None else f"allowed {quantity(grew.tolerance, '1')}"


def failure_words(finding: Finding) -> str:
    """What failed, of what, and by how much where that is one figure: "memory of bgpd grows by 52.0 MiB/h"."""
    rate = rate_of(finding)
    if rate is None:
        return plain_words(finding.rule)
    grew = finding.fact(Growth)
    change = "" if grew is None or grew.change is None else f"{100 * grew.change:+.3g} %"
    words = [change, allowed_words(finding)]
    brackets = ", ".join(part for part in words if part)
    verb = "grows" if rate[0] > 0 else "falls"
    text = f"{plain_name(finding.metric, finding.object)} {verb} by {quantity(abs(rate[0]), rate[1])}"
    return f"{text} ({brackets})" if brackets else text


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMED])
    return shown + (f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else "")
