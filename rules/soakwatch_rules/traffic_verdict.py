"""What the findings on the load of one run say together: of a loss that is not the device's no other rule blames it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from soakwatch_rules.rule import Finding, Outcome

_LOSS = "loss"
_CLEARED = "device_out"  # a loss that was held against the device's own interfaces has this number
_BLAMED = frozenset({Outcome.WARN, Outcome.INCONCLUSIVE})
_RULES = frozenset({"performance_decline", "periodic_pause", "step_change", "recovery", "level"})
_METRICS = frozenset({
    "load.rx.packets", "load.rx.packet.rate", "load.rx.bytes", "load.rx.bit.rate", "load.lost.packets", "load.loss",
})  # fmt: skip


def agreed(findings: Sequence[Finding]) -> list[Finding]:
    """The findings; where ``loss`` says that the packets were lost behind or before a device, and not by it, those of
    other rules on what came back are no graver.

    >>> from soakwatch_rules.rule import Window
    >>> def finding(rule, outcome, **numbers):
    ...     metric, window = "load.rx.packets", Window(0, 60)
    ...     return Finding(rule, 1, outcome, "dut", metric, "", window, "", "it fell", 9, numbers=numbers)
    >>> loss = finding("loss", Outcome.WARN, device_out=5.0)
    >>> [f.outcome.value for f in agreed([loss, finding("performance_decline", Outcome.FAIL)])]
    ['warn', 'warn']
    """
    cleared = {f.target: f for f in findings if f.rule == _LOSS and f.outcome in _BLAMED and _CLEARED in f.numbers}
    made = []
    for one in findings:
        by = cleared.get(one.target)
        if by is None or one.outcome is not Outcome.FAIL or one.rule not in _RULES or one.metric not in _METRICS:
            made.append(one)
            continue
        reason = f"{one.reason}; but what was lost was not lost by the device (see loss)"
        made.append(replace(one, outcome=by.outcome, reason=reason, why=by.why, settle=by.settle))
    return made
