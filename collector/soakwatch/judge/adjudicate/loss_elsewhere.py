"""Ruling: findings on the returned load are no graver than ``loss``, where that clears the device."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import Lost
from soakwatch_model.finding import Finding, Outcome, Place
from soakwatch_model.flow import BACK, BITS, BYTES, LOST, PACKETS
from soakwatch_model.metric import flows
from soakwatch_rules.traits import traits_of

_BLAMED = frozenset({Outcome.WARN, Outcome.INCONCLUSIVE})
_METRICS = frozenset((*flows(BACK, PACKETS, BYTES, BITS), *flows(LOST)))


def loss_elsewhere(findings: Sequence[Finding], _: Context | None = None) -> list[Finding]:
    """Where ``loss`` says that the packets were not lost by the device, other findings on the returned load are no
    graver.

    >>> from soakwatch_model.window import Window
    >>> def finding(rule, outcome, *facts):
    ...     metric, window = "load.rx.packets", Window(0, 60)
    ...     return Finding(rule, 1, outcome, "dut", metric, "", window, "", "it fell", 9, facts=facts)
    >>> loss = finding("loss", Outcome.WARN, Lost(by_ports=True))
    >>> [f.outcome.value for f in loss_elsewhere([loss, finding("performance_decline", Outcome.FAIL)])]
    ['warn', 'warn']
    """
    held = ((f, f.fact(Lost)) for f in findings if f.outcome in _BLAMED)
    cleared = {f.target: f for f, lost in held if lost is not None and lost.by_ports}
    text = "but the loss was not caused by the device (see loss)"
    return [
        f.ruled("loss", by.outcome, text, place=Place.BEHIND, why=by.why, settle=by.settle)
        if (by := cleared.get(f.target)) is not None and may_be_elsewhere(f)
        else f
        for f in findings
    ]


def may_be_elsewhere(finding: Finding) -> bool:
    """Whether a failure is about the returned load, which may have been lost outside of the device."""
    judges_it = traits_of(finding.rule).of_returned_load and finding.metric in _METRICS
    return finding.outcome is Outcome.FAIL and judges_it
