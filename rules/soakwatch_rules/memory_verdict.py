"""Two methods, one verdict: what the stage-interval method says literally beside what the shape of the series says.

``memory_growth`` compares the last third with the first and cannot tell a leak from a warm-up, a step or a wave;
``growth`` can, where a life is long enough for it to be asked. Where both judged the same series the shape decides.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_rules.traits import GrowthMethod, traits_of

_NOT_ASKED: Final = frozenset({InconclusiveReason.TOO_SHORT, InconclusiveReason.TOO_FEW, InconclusiveReason.NOT_BEGUN})
_SHAPE_WORDS: Final[Mapping[Outcome, str]] = {
    Outcome.PASS: "it does not grow at the end",
    Outcome.WARN: "it does not grow at the end",
    Outcome.INCONCLUSIVE: "whether it grows at the end is undecided",
}

BOTH: Final = "stages_grow"
"""The number of a doubt of ``growth`` about what the literal method calls growth: it is a doubt of both."""
CUT: Final = "cut_by_restarts"
"""The number of a finding of the literal method on a life that restarts cut out of a longer run."""
LEVELLED: Final = 0.125
"""The share of a rise that is left for the last third of what has levelled off: half of a straight line's."""
Key = tuple[str, str, str]


def one_verdict(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, where the literal method only warns of growth that ``growth`` judged and did not find.

    It stays a failure where ``growth`` finds growth too, was not asked, or could not be (a life too short for it) and
    the last third itself rises by at least half of what a straight line would: a program that starts and is warm by
    then has not grown at the end, and a life that restarts cut out of a run is a part. A doubt of ``growth``
    appears once, as its own: the literal method does not decide what the shape leaves open.
    """
    shapes = {_key(f): f for f in findings if _method(f) is GrowthMethod.SHAPE}
    grown = {_key(f) for f in findings if _method(f) is GrowthMethod.STAGES and f.outcome is Outcome.FAIL}
    agreed = []
    for f in findings:
        if _method(f) is GrowthMethod.STAGES:
            agreed.append(_weighed_by_shape(f, shapes.get(_key(f))))
        elif _method(f) is GrowthMethod.SHAPE and f.outcome is Outcome.INCONCLUSIVE and _key(f) in grown:
            agreed.append(replace(f, numbers=dict(f.numbers) | {BOTH: 1.0}))
        else:
            agreed.append(f)
    return agreed


def of_shared_hosts(findings: Sequence[Finding], shared: Collection[str]) -> list[Finding]:
    """The findings, where growth of a whole machine only warns if that machine is not the device.

    ``shared`` are the targets on which other programs run beside what is watched. What is watched there (processes)
    is judged as everywhere. A machine of which no process is watched is judged by ``growth`` as a device is, but not
    by the literal method alone, which takes every program that starts for growth.
    """
    watched = {f.target for f in findings if f.metric.startswith("process.")}
    return [_of_shared(f, watched=f.target in watched) if f.target in shared else f for f in findings]


def _method(finding: Finding) -> GrowthMethod | None:
    return traits_of(finding.rule).growth


def _key(finding: Finding) -> Key:
    return finding.target, finding.metric, finding.object


def _weighed_by_shape(literal: Finding, shape: Finding | None) -> Finding:
    if literal.outcome is not Outcome.FAIL or (shape is not None and shape.outcome is Outcome.FAIL):
        return literal
    asked = shape is not None and (shape.outcome is not Outcome.INCONCLUSIVE or shape.why not in _NOT_ASKED)
    change = literal.numbers.get("change")
    by = f" ({100 * change:+.1f} %)" if change is not None else ""
    literally = f"{literal.metric} was higher in the last third than in the first{by}, but "
    if shape is not None and asked and shape.outcome in _SHAPE_WORDS:
        why = f"{_SHAPE_WORDS[shape.outcome]} (rule {shape.rule}: {shape.reason})"
    elif literal.numbers.get("lately", math.inf) < LEVELLED:
        why = "within the last third it hardly rises any more: a warm-up or a step (too short for the rule growth)"
    elif literal.numbers.get(CUT, 0.0) > 0:
        why = (
            "this is only the time between two restarts: a warm-up or a part of a sawtooth (too short for the rule "
            "growth)"
        )
    else:
        return literal
    return replace(literal, outcome=Outcome.WARN, reason=literally + why)


def _of_shared(finding: Finding, *, watched: bool) -> Finding:
    method = _method(finding)
    judged = method is GrowthMethod.STAGES or (method is GrowthMethod.SHAPE and watched)
    if not judged or not finding.metric.startswith("system."):
        return finding
    why = "not the device: other programs run on this machine too"
    if finding.outcome is Outcome.FAIL:
        return replace(finding, outcome=Outcome.WARN, reason=f"{finding.reason} ({why})")
    if finding.outcome is Outcome.INCONCLUSIVE:
        return replace(finding, outcome=Outcome.NOT_APPLICABLE, reason=f"{finding.reason} ({why})", why=None, settle="")
    return finding
