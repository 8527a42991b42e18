"""When a finding's trouble began and ended: one answer for every surface."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch_model.fact import Onset
from soakwatch_model.finding import Finding
from soakwatch_rules.traits import Marks, traits_of


def since_ns(finding: Finding) -> int | None:
    """The onset of a finding, else its first mark (planned ones only if all are planned); None if unknown.

    >>> from soakwatch_model.finding import Mark, Outcome
    >>> from soakwatch_model.window import Window
    >>> reboot = Finding("reboot", 1, Outcome.FAIL, "fw", "", "", Window(0, 90), "", "", 9, marks=(Mark(40, 50, ""),))
    >>> since_ns(reboot), until_ns(reboot)
    (40, 50)
    """
    onset = finding.fact(Onset)
    if onset is not None:
        return None if onset.from_first else onset.begin_ns
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return None
    unplanned = [mark for mark in finding.marks if not mark.planned]
    return min((mark.begin_ns for mark in unplanned or finding.marks), default=None)


def until_ns(finding: Finding) -> int | None:
    """The last moment of a finding; None if it went on to the end, or no moment is known."""
    if traits_of(finding.rule).marks is Marks.WHOLE:
        return None
    ends = [mark.begin_ns if mark.end_ns is None else mark.end_ns for mark in finding.marks]
    last_ns = max(ends, default=None)
    return None if last_ns is None or last_ns >= finding.window.end_ns else last_ns


def since_of(findings: Iterable[Finding]) -> int | None:
    """The begin of the first of these findings that knows it."""
    return next((at_ns for finding in findings if (at_ns := since_ns(finding)) is not None), None)
