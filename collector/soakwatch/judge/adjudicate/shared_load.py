"""Ruling: where several devices share one load, which of them a loss is held against."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import Lost
from soakwatch_model.finding import Finding, Outcome, Place
from soakwatch_rules.traits import traits_of

_DROPS = "drops"


def shared_load(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """Of several devices behind one load, those that survived only warn of a loss at the time another failed.

    A device that fails ``drops`` keeps its failure. If none failed, it is unknown which one lost it: the loss fails
    all.

    >>> from soakwatch_model.finding import Mark
    >>> from soakwatch_model.window import Window
    >>> def finding(target, rule, *marks):
    ...     facts = (Lost(),) if rule == "loss" else ()
    ...     window = Window(0, 60)
    ...     return Finding(rule, 1, Outcome.FAIL, target, "", "", window, "", "lost", 9, marks=marks, facts=facts)
    >>> both = [finding("a", "loss"), finding("b", "loss")]
    >>> [f.outcome.value for f in shared_load([*both, finding("a", "process_restart", Mark(30, 31, ""))])]
    ['fail', 'warn', 'fail']
    >>> [f.outcome.value for f in shared_load(both)]
    ['fail', 'fail']
    >>> dropped = [finding("a", "process_restart", Mark(30, 31, "")), finding("b", "drops", Mark(40, 50, ""))]
    >>> [f.outcome.value for f in shared_load([*both, *dropped])]
    ['fail', 'fail', 'fail', 'fail']
    """
    hit = {f.target for f in findings if _lost(f)}
    deaths = [
        f for f in findings if traits_of(f.rule).leads is not None and f.outcome is Outcome.FAIL and f.target in hit
    ]
    if len(hit) < 2 or not deaths:
        return list(findings)
    dropping = {f.target for f in findings if f.rule == _DROPS and f.outcome is Outcome.FAIL}
    return [_shared(f, deaths) if _lost(f) and f.target not in dropping else f for f in findings]


def _lost(finding: Finding) -> bool:
    return finding.outcome is Outcome.FAIL and finding.fact(Lost) is not None


def _shared(loss: Finding, deaths: Sequence[Finding]) -> Finding:
    within = [
        death
        for death in deaths
        if any(loss.window.begin_ns <= mark.begin_ns <= loss.window.end_ns for mark in death.marks)
    ]
    if not within or any(death.target == loss.target for death in within):
        return loss
    who = ", ".join(sorted({f"{death.target} ({death.rule})" for death in within}))
    text = f"the load is shared with {who}, which failed at that time"
    return loss.ruled("shared load", Outcome.WARN, text, place=Place.BEHIND, settle=loss.settle)
