"""Ruling: pings lost on the path to the management address are no failure of the device."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import Lost, PathCut
from soakwatch_model.finding import Finding, Mark, Outcome, Place


def management_path(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """Lost pings only warn if every stop lies in a silence of all management during which the load went through.

    They were lost on the path to the management address; ``gap`` reports those silences as ``PathCut``.

    >>> from soakwatch_model.finding import Mark
    >>> from soakwatch_model.window import Window
    >>> def finding(rule, outcome, metric, *facts):
    ...     marks = (Mark(10, 20, "no answer"),)
    ...     return Finding(rule, 1, outcome, "a", metric, "", Window(0, 60), "", "", 9, marks=marks, facts=facts)
    >>> pings = finding("loss", Outcome.FAIL, "reach.lost", Lost(stops=1))
    >>> [f.outcome.value for f in management_path([pings, finding("gap", Outcome.PASS, "", PathCut())])]
    ['warn', 'pass']
    >>> [f.outcome.value for f in management_path([pings, finding("gap", Outcome.PASS, "")])]
    ['fail', 'pass']
    """
    cuts: dict[str, list[Mark]] = {}
    for f in findings:
        if f.fact(PathCut) is not None:
            cuts.setdefault(f.target, []).extend(f.marks)
    return [_on_the_path(f, cuts[f.target]) if f.target in cuts else f for f in findings]


def _on_the_path(loss: Finding, cuts: Sequence[Mark]) -> Finding:
    pings = loss.fact(Lost) is not None and loss.metric.startswith("reach.")
    if not pings or loss.outcome is not Outcome.FAIL or not loss.marks:
        return loss
    if not all(any(_mostly_within(stop, cut) for cut in cuts) for stop in loss.marks):
        return loss
    text = "no management answered then but traffic was forwarded: caused by the path, not the device"
    return loss.ruled("management path", Outcome.WARN, text, place=Place.BEHIND, settle=loss.settle)


def _mostly_within(stop: Mark, cut: Mark) -> bool:
    end, until = stop.end_ns or stop.begin_ns, cut.end_ns or cut.begin_ns
    return 2 * (min(end, until) - max(stop.begin_ns, cut.begin_ns)) > end - stop.begin_ns
