"""Two methods, one verdict: what the stage-interval method says literally beside what the shape of the series says.

``memory_growth`` compares the last third with the first and cannot tell a leak from a warm-up, a step or a wave;
``growth`` can, where a life is long enough for it to be asked. Where both judged the same series the shape decides.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from soakwatch_rules.rule import Finding, Outcome, Why

_LITERAL: Final = "memory_growth"
_BY_SHAPE: Final = "growth"
_NOT_ASKED: Final = frozenset({Why.TOO_SHORT, Why.TOO_FEW, Why.NOT_BEGUN})
_SAID: Final[Mapping[Outcome, str]] = {
    Outcome.PASS: "it does not grow at the end",
    Outcome.WARN: "it does not grow at the end",
    Outcome.INCONCLUSIVE: "whether it grows at the end cannot be told",
}

Key = tuple[str, str, str]


def one_verdict(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, where the literal method only warns of growth that ``growth`` judged and did not find.

    It stays a failure where ``growth`` finds growth too, was not asked, or could not be (a life too short for it). A
    doubt of ``growth`` is told once, by ``growth``: the literal method does not decide what the shape leaves open.
    """
    shapes = {_key(f): f for f in findings if f.rule == _BY_SHAPE}
    return [_beside(f, shapes.get(_key(f))) if f.rule == _LITERAL else f for f in findings]


def of_shared_hosts(findings: Sequence[Finding], shared: Collection[str]) -> list[Finding]:
    """The findings, where growth of a whole machine only warns if that machine is not the device.

    ``shared`` are the targets on which other programs run beside what is watched. What is watched there (processes)
    is judged as everywhere. A machine of which no process is watched is judged by ``growth`` as a device is, but not
    by the literal method alone, which takes every program that starts for growth.
    """
    watched = {f.target for f in findings if f.metric.startswith("process.")}
    return [_of_shared(f, watched=f.target in watched) if f.target in shared else f for f in findings]


def _key(finding: Finding) -> Key:
    return finding.target, finding.metric, finding.object


def _beside(literal: Finding, shape: Finding | None) -> Finding:
    if literal.outcome is not Outcome.FAIL or shape is None:
        return literal
    if shape.outcome not in _SAID or (shape.outcome is Outcome.INCONCLUSIVE and shape.why in _NOT_ASKED):
        return literal
    change = literal.numbers.get("change")
    by = f" ({100 * change:+.1f} %)" if change is not None else ""
    said = (
        f"{literal.metric}: the last third lies beyond the first{by}, which read literally is growth, but "
        f"{_SAID[shape.outcome]} (rule {_BY_SHAPE}: {shape.reason})"
    )
    return replace(literal, outcome=Outcome.WARN, reason=said)


def _of_shared(finding: Finding, *, watched: bool) -> Finding:
    literal = finding.rule == _LITERAL
    if not (literal or (finding.rule == _BY_SHAPE and watched)) or not finding.metric.startswith("system."):
        return finding
    why = "not the device: other programs run on this machine too"
    if finding.outcome is Outcome.FAIL:
        return replace(finding, outcome=Outcome.WARN, reason=f"{finding.reason} ({why})")
    if finding.outcome is Outcome.INCONCLUSIVE:
        return replace(finding, outcome=Outcome.NOT_APPLICABLE, reason=f"{finding.reason} ({why})", why=None, settle="")
    return finding
