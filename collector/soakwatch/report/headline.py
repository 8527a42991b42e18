"""The verdict in one sentence for a reader who does not know the rules: who passed or failed, under which load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import quantity
from soakwatch.core.units import show_seconds
from soakwatch.judge.problems import clock, fail_words, thing_of
from soakwatch.judge.verdict import Verdict
from soakwatch.report.load import TrafficGenerator, figure_of
from soakwatch.report.summaries import deciding
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.window import Window
from soakwatch_rules.silences import monitor_did_not_poll
from soakwatch_rules.traits import Family, plain_words, traits_of
from soakwatch_rules.wording.quantities import counted, first_few

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


def headline(verdict: Verdict, load: Sequence[TrafficGenerator]) -> str:
    """One sentence for a manager: who passed or failed, under which load and for how long, and why."""
    span = f"{show_seconds(verdict.window.seconds)} {under(load, verdict.window)}".rstrip()
    names = first_few([t.target for t in verdict.targets if t.role == DUT])
    if not names:
        return f"No device was judged in {span}: no target has the role dut."
    if verdict.checked is not None and verdict.checked.changed:
        return f"{names}: the record was changed after it was written: nothing that it says is proven."
    if verdict.outcome is Outcome.FAIL:
        problems = verdict.problems
        then = load_of(load, problems[0].since_ns, problems[0].finding.window) if problems else ""
        course = f"{verdict.course[:1].upper()}{verdict.course[1:]}: " if verdict.course else ""
        return course + fail_words(problems, verdict.window, verdict.phases, then)
    warned = sum(f.outcome is Outcome.WARN for f in verdict.findings)
    result = f"no failures, {counted(warned, 'warning')}" if warned else "no failures or warnings"
    if verdict.preliminary:
        return f"{names}: {result} so far, after {span}."
    if verdict.outcome is Outcome.PASS:
        return f"{names} passed {span}: {result}."
    return f"No verdict for {names} after {span}: {_why(verdict)}."


def load_of(load: Sequence[TrafficGenerator], since_ns: int | None, window: Window) -> str:
    """The load under which something failed: that of its moment; without a moment, the mean of its window."""
    if since_ns is not None:
        return load_then(load, since_ns)
    mean = under(load, window).removeprefix("under ")
    return f"a mean of {mean}" if mean else ""


def load_then(load: Sequence[TrafficGenerator], time_ns: int | None) -> str:
    """The load at a moment; of a generator that stopped then, the load just before. Empty if it is unknown, or there is
    no moment."""
    if time_ns is None:
        return ""
    known = [
        quantity(value, generator.rate.series.trait.unit)
        for generator in load
        if generator.rate is not None and (value := generator.rate_at(time_ns)) is not None
    ]
    more = len(known) - 1
    return known[0] + (f" and {counted(more, 'more load')}" if more else "") if known else ""


def under(load: Sequence[TrafficGenerator], window: Window) -> str:
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
    """Why nothing is decided: the leading causes in plain words, each once."""
    every = [c for c in verdict.causes if c.outcome is verdict.outcome]
    causes = [c for c in every if not c.waived] or every  # where nothing at all was decided
    leading = [deciding(verdict, cause) for cause in causes]
    reasons = list(dict.fromkeys(_undecided_words(verdict, finding) for finding in leading))
    if not reasons:
        return verdict.reason.rstrip(".")
    more = len(reasons) - _MAX_NAMED
    return ", ".join(reasons[:_MAX_NAMED]) + (f", and {counted(more, 'more reason')}" if more > 0 else "")


def _undecided_words(verdict: Verdict, finding: Finding) -> str:
    """Why a finding is inconclusive. Missing samples do not mean lost polls (a generator may print nothing): polls were
    lost only if a rule that counts them says so."""
    if finding.why is InconclusiveReason.GAP:
        open_ = [f for f in verdict.findings if f.outcome is Outcome.INCONCLUSIVE]
        if polls := [f for f in open_ if traits_of(f.rule).family is Family.POLLS]:
            return _silence(verdict, polls)
    if finding.why is InconclusiveReason.NO_REFERENCE and (thing := thing_of(finding)):
        return f"there is nothing to compare {thing} with"
    return plain_words(finding.rule) if finding.why is None else _REASONS.get(finding.why, plain_words(finding.rule))


def _silence(verdict: Verdict, polls: Sequence[Finding]) -> str:
    """The longest silence that findings on polls point at: who did not answer or was not polled, how long, and when."""
    silent = [(mark, f) for f in polls for mark in f.marks if mark.end_ns is not None]
    if not silent:
        return _LOST_POLLS
    mark, finding = max(silent, key=lambda each: (each[0].end_ns or 0) - each[0].begin_ns)
    end_ns = mark.end_ns or mark.begin_ns
    when = clock(mark.begin_ns, verdict.window).removesuffix(" UTC")
    source = finding.object or finding.target
    lasted = show_seconds((end_ns - mark.begin_ns) * 1e-9)
    own = any(
        monitor_did_not_poll(silence.lost)
        for ledger in verdict.ledgers
        if ledger.target == finding.target
        for silence in ledger.silences
        if silence.window.begin_ns == mark.begin_ns
    )
    did = "was not polled by the monitor" if own else "did not answer"
    return f"{source} {did} for {lasted} ({when} to {clock(end_ns, verdict.window)})"
