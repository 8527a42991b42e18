"""The start of every finding: inconclusive until its rule decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_rules.rule import Rule
from soakwatch_rules.sampling import cadence, expected


def draft(rule: Rule, case: Case, series: Series | None = None) -> Finding:
    """An inconclusive finding with everything known before judging; ``series`` is its subject."""
    samples = 0 if series is None else len(series.finite())
    due = None if series is None else expected(case.window.seconds, cadence(series))
    if due is not None and samples == due + 1:
        due = samples  # readings at both ends of the window are one more than intervals
    return Finding(
        rule=rule.name,
        version=rule.version,
        outcome=Outcome.INCONCLUSIVE,
        target=case.target,
        metric=series.metric if series is not None else "",
        object=series.object if series is not None else case.object,
        window=case.window,
        definition=rule.definition(),
        reason="not judged",
        samples=samples,
        expected=due,
    )


def absent(rule: Rule, case: Case, what: str) -> Finding:
    """The finding without anything to judge: inconclusive if ``what`` could not be read (with the faults), else not
    applicable."""
    finding = draft(rule, case)
    if case.faults:
        reason, outcome = f"{what} could not be read:  {faults(case.faults)}", Outcome.INCONCLUSIVE
    else:
        reason, outcome = f"this target reports no {what}", Outcome.NOT_APPLICABLE
    settle = "make it readable (see the error), then run again" if case.faults else ""
    why = InconclusiveReason.UNREAD if outcome is Outcome.INCONCLUSIVE else None
    return replace(finding, outcome=outcome, reason=reason, settle=settle, why=why)


def each_series(rule: Rule, case: Case, what: str, judge: Callable[[Case, Series], Finding]) -> tuple[Finding, ...]:
    """One finding a series, made by ``judge``; without a series the finding that ``what`` is absent."""
    return tuple(judge(case, series) for series in case.series) or (absent(rule, case, what),)


def half_unread(
    finding: Finding, read: int, risk: str = "", *, of: str = "samples", within: str = "", said: str = ""
) -> Finding | None:
    """The undecided finding if fewer than half of the expected samples were read; None if enough were.

    ``risk`` says what may have been missed, ``within`` where samples had to lie; ``said`` replaces the sentence.

    >>> from soakwatch_model.window import Window
    >>> open_ = Finding("level", 1, Outcome.PASS, "fw", "", "", Window(0, 9), "", "", 12, expected=60)
    >>> half_unread(open_, 12, "a spike may have been missed").reason, half_unread(open_, 30)
    ('only 12 of 60 expected samples were read: a spike may have been missed', None)
    """
    if finding.expected is None or 2 * read >= finding.expected:
        return None
    reason = f"only {read:,} of {finding.expected:,} expected {of} were read{within}" + (f": {risk}" if risk else "")
    return finding.undecided(
        said or reason, InconclusiveReason.GAP, f"needs at least half of the expected {of}{within}"
    )


def faults(sentences: Iterable[str], most: int = 2) -> str:
    """The first few different sentences, and the number of others."""
    different = list(dict.fromkeys(sentences))
    more = f"; and {len(different) - most} more" if len(different) > most else ""
    return "; ".join(different[:most]) + more
