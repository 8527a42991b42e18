"""Rulings on a loss: of one that is not the device's no rule blames it."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.finding import Finding, Mark, Outcome, Place
from soakwatch_model.flow import BACK, BITS, BYTES, LOST, PACKETS
from soakwatch_model.metric import flows
from soakwatch_rules.traits import traits_of

_LOSS = "loss"
_DROPS = "drops"
_CLEARED = "device_out"  # a loss that was held against the device's own interfaces has this number
_BLAMED = frozenset({Outcome.WARN, Outcome.INCONCLUSIVE})
_METRICS = frozenset((*flows(BACK, PACKETS, BYTES, BITS), *flows(LOST)))


def loss_elsewhere(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """What other rules say of what came back is no graver than ``loss``, where that clears the device.

    It does where the packets were lost behind or before the device, and not by it.

    >>> from soakwatch_model.window import Window
    >>> def finding(rule, outcome, **numbers):
    ...     metric, window = "load.rx.packets", Window(0, 60)
    ...     return Finding(rule, 1, outcome, "dut", metric, "", window, "", "it fell", 9, numbers=numbers)
    >>> loss = finding("loss", Outcome.WARN, device_out=5.0)
    >>> [f.outcome.value for f in loss_elsewhere([loss, finding("performance_decline", Outcome.FAIL)])]
    ['warn', 'warn']
    """
    cleared = {f.target: f for f in findings if f.rule == _LOSS and f.outcome in _BLAMED and _CLEARED in f.numbers}
    text = "but the loss was not caused by the device (see loss)"
    return [
        f.ruled("loss", by.outcome, text, place=Place.BEHIND, why=by.why, settle=by.settle)
        if (by := cleared.get(f.target)) is not None
        and f.outcome is Outcome.FAIL
        and traits_of(f.rule).of_returned_load
        and f.metric in _METRICS
        else f
        for f in findings
    ]


def shared_load(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """Of several devices behind one load, those that stayed alive are only warned of what was lost while another died.

    Unless their own counters fail ``drops``. Where none died, which of them lost it is not known, and the loss fails
    all of them.

    >>> from soakwatch_model.finding import Mark
    >>> from soakwatch_model.window import Window
    >>> def finding(target, rule, *marks):
    ...     return Finding(rule, 1, Outcome.FAIL, target, "", "", Window(0, 60), "", "lost", 9, marks=marks)
    >>> both = [finding("a", "loss"), finding("b", "loss")]
    >>> [f.outcome.value for f in shared_load([*both, finding("a", "process_restart", Mark(30, 31, ""))])]
    ['fail', 'warn', 'fail']
    >>> [f.outcome.value for f in shared_load(both)]
    ['fail', 'fail']
    >>> dropped = [finding("a", "process_restart", Mark(30, 31, "")), finding("b", "drops", Mark(40, 50, ""))]
    >>> [f.outcome.value for f in shared_load([*both, *dropped])]
    ['fail', 'fail', 'fail', 'fail']
    """
    hit = {f.target for f in findings if f.rule == _LOSS and f.outcome is Outcome.FAIL}
    deaths = [
        f for f in findings if traits_of(f.rule).leads is not None and f.outcome is Outcome.FAIL and f.target in hit
    ]
    if len(hit) < 2 or not deaths:
        return list(findings)
    dropping = {f.target for f in findings if f.rule == _DROPS and f.outcome is Outcome.FAIL}
    return [
        _shared(f, deaths) if f.rule == _LOSS and f.outcome is Outcome.FAIL and f.target not in dropping else f
        for f in findings
    ]


def management_path(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """Pings that stopped while all management was silent and the load went through only warn.

    They were lost on the way to the management address; ``gap`` says where the load went through. Every stop of them
    must lie in such a silence.

    >>> from soakwatch_model.finding import Mark
    >>> from soakwatch_model.window import Window
    >>> def finding(rule, outcome, metric, **numbers):
    ...     marks = (Mark(10, 20, "no answer"),)
    ...     return Finding(rule, 1, outcome, "a", metric, "", Window(0, 60), "", "", 9, marks=marks, numbers=numbers)
    >>> pings, cut = finding("loss", Outcome.FAIL, "reach.lost"), {"path_s": 10.0, "unseen_s": 10.0}
    >>> [f.outcome.value for f in management_path([pings, finding("gap", Outcome.PASS, "", **cut)])]
    ['warn', 'pass']
    >>> [f.outcome.value for f in management_path([pings, finding("gap", Outcome.PASS, "", unseen_s=10.0)])]
    ['fail', 'pass']
    """
    cuts: dict[str, list[Mark]] = {}
    for f in findings:
        if (
            f.rule == "gap"
            and f.numbers.get("path_s", 0.0) > 0
            and f.numbers.get("path_s") == f.numbers.get("unseen_s")
        ):
            cuts.setdefault(f.target, []).extend(f.marks)
    return [_on_the_path(f, cuts[f.target]) if f.target in cuts and f.rule == _LOSS else f for f in findings]


def _on_the_path(loss: Finding, cuts: Sequence[Mark]) -> Finding:
    if loss.outcome is not Outcome.FAIL or not loss.metric.startswith("reach.") or not loss.marks:
        return loss
    if not all(any(_mostly_within(stop, cut) for cut in cuts) for stop in loss.marks):
        return loss
    text = "no management answered then but traffic was forwarded: caused by the path, not the device"
    return loss.ruled("management path", Outcome.WARN, text, place=Place.BEHIND, settle=loss.settle)


def _mostly_within(stop: Mark, cut: Mark) -> bool:
    end, until = stop.end_ns or stop.begin_ns, cut.end_ns or cut.begin_ns
    return 2 * (min(end, until) - max(stop.begin_ns, cut.begin_ns)) > end - stop.begin_ns


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
