"""Rulings on memory: several findings about the same memory become one verdict.

* A machine's total that grows is weighed against the processes that make it up.
* Where two methods judged one series the shape decides, unless the plan says ``method: stages``: ``memory_growth``
  compares the last third with the first and cannot tell a leak from a warm-up, a step or a wave; ``growth`` can, if the
  process lives long enough.
* A shared machine is no device.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from soakwatch.judge.adjudicate.context import Context
from soakwatch_model.fact import CERTAIN, Certainty, Growth
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome, Place
from soakwatch_rules.growth.memory_sums import PARTS, SUMS, by_parts
from soakwatch_rules.rule import Rule
from soakwatch_rules.stats.rises import DOUBLED
from soakwatch_rules.traits import GrowthMethod, traits_of

_DECIDED: Final = frozenset({Outcome.PASS, Outcome.FAIL})
_OPEN: Final = frozenset({Outcome.FAIL, Outcome.INCONCLUSIVE})
_GROWN: Final = frozenset({Outcome.FAIL, Outcome.WARN})
_NOT_ASKED: Final = frozenset({InconclusiveReason.TOO_SHORT, InconclusiveReason.TOO_FEW, InconclusiveReason.NOT_BEGUN})
_SHAPE_WORDS: Final[Mapping[Outcome, str]] = {
    Outcome.PASS: "it does not grow at the end",
    Outcome.WARN: "it does not grow at the end",
    Outcome.INCONCLUSIVE: "whether it grows at the end is undecided",
}


def memory_parts(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """A total that fails or is inconclusive is judged again without the part that its processes explain."""
    rules = _by_method(context, GrowthMethod.SHAPE)
    if not _stages_decide(context):
        rules |= _by_method(context, GrowthMethod.STAGES)
    failed: dict[str, frozenset[str]] = {}
    for finding in findings:
        if _method(finding) is GrowthMethod.SHAPE and finding.metric in PARTS and finding.outcome is Outcome.FAIL:
            failed[finding.target] = failed.get(finding.target, frozenset()) | {finding.object}
    return [
        _without_parts(finding, context, rules[finding.rule], failed.get(finding.target, frozenset()))
        if finding.rule in rules and finding.metric in SUMS and finding.outcome in _OPEN and finding.samples
        else finding
        for finding in findings
    ]


def memory_shape(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """Of two methods that judged one series one decides: the shape, or the stages if the plan says ``method: stages``.

    Stages decide: ``growth`` at most warns of a series that they decided. Shape decides: ``memory_growth`` only warns
    of growth that ``growth`` judged and did not find. It stays a failure where ``growth`` also fails, or could not
    judge (too short a life) while the last third itself rises by at least half of what a straight line would, or faster
    than any start-up. A life that restarts cut short only warns then. Where ``growth`` is in doubt, that doubt is the
    one inconclusive finding.
    """
    if _stages_decide(context):
        return by_stages_alone(findings)
    return one_verdict(findings)


def one_verdict(findings: Sequence[Finding]) -> list[Finding]:
    """Weigh each ``memory_growth`` finding by the shape of the same series."""
    shapes = {f.subject: f for f in findings if _method(f) is GrowthMethod.SHAPE}
    return [_weighed_by_shape(f, shapes.get(f.subject)) if _method(f) is GrowthMethod.STAGES else f for f in findings]


def by_stages_alone(findings: Sequence[Finding]) -> list[Finding]:
    """Weigh each ``growth`` finding by what the stages decided of the same series."""
    decided = {f.subject: f for f in findings if _method(f) is GrowthMethod.STAGES and f.outcome in _DECIDED}
    return [_weighed_by_stages(f, decided.get(f.subject)) if _method(f) is GrowthMethod.SHAPE else f for f in findings]


def memory_of_shared_hosts(findings: Sequence[Finding], context: Context) -> list[Finding]:
    """Growth of a whole machine only warns where unwatched programs run on it."""
    return of_shared_hosts(findings, context.shared)


def of_shared_hosts(findings: Sequence[Finding], shared: Collection[str]) -> list[Finding]:
    """Weigh the findings on the ``shared`` machines, on which unwatched programs run.

    Watched processes there are judged as everywhere. A machine without any is judged by ``growth`` as a device is, but
    not by ``memory_growth`` alone, which takes every program that starts for growth: where ``growth`` had too little
    time, that finding is not applicable unless the memory nearly doubled.
    """
    watched = {f.target for f in findings if f.metric.startswith("process.")}
    short = {f.subject for f in findings if _method(f) is GrowthMethod.SHAPE and _not_asked(f)}
    return [
        _of_shared(f, watched=f.target in watched, short=f.subject in short) if f.target in shared else f
        for f in findings
    ]


def _method(finding: Finding) -> GrowthMethod | None:
    return traits_of(finding.rule).growth


def _by_method(context: Context, method: GrowthMethod) -> dict[str, Rule]:
    return {name: rule for name, rule in context.rules.items() if traits_of(name).growth is method}


def _stages_decide(context: Context) -> bool:
    """Whether the stages decide: no rule judges the shape, or the plan says ``method: stages``."""
    by_stages = _by_method(context, GrowthMethod.STAGES).values()
    return not _by_method(context, GrowthMethod.SHAPE) or any(getattr(rule, "alone", False) for rule in by_stages)


def _without_parts(finding: Finding, context: Context, rule: Rule, failed: frozenset[str]) -> Finding:
    cases = context.cases
    keys = [
        key
        for target, keys in cases.subjects(rule)
        if target == finding.target
        for key in keys
        if (key.metric, key.object) == (finding.metric, finding.object)
    ]
    window = next((w for w in cases.stretches(rule) if w.begin_ns <= finding.window.begin_ns < w.end_ns), None)
    parts = cases.parts(finding.target, PARTS, window) if window is not None else ()
    weighed = (
        by_parts(rule, cases.case(rule, finding.target, keys, window), parts, failed)
        if parts and window is not None
        else None
    )
    if weighed is None:
        return finding
    left, text = weighed.finding, f"{weighed.text}:"
    return left.ruled("memory parts", weighed.outcome, text, place=Place.BEFORE, why=left.why, settle=left.settle)


def _weighed_by_shape(literal: Finding, shape: Finding | None) -> Finding:
    if literal.outcome is not Outcome.FAIL or (shape is not None and shape.outcome is Outcome.FAIL):
        return literal
    asked = shape is not None and not _not_asked(shape)
    grew = literal.fact(Growth)
    by = "" if grew is None or grew.change is None else f" ({100 * grew.change:+.1f} %)"
    literally = f"{literal.metric} was higher in the last third than in the first{by}, but "
    if shape is not None and asked and shape.outcome in _SHAPE_WORDS:
        why = f"{_SHAPE_WORDS[shape.outcome]} (rule {shape.rule}: {shape.sentence})"
    elif grew is not None and grew.levelled:
        why = "within the last third it hardly rises any more: a warm-up or a step (too short for the rule growth)"
    elif grew is not None and grew.cut_by_restarts:
        why = (
            "this is only the time between two restarts: a warm-up or a part of a sawtooth (too short for the rule "
            "growth)"
        )
    else:
        return literal
    return literal.ruled("memory shape", Outcome.WARN, literally + why, place=Place.INSTEAD, settle=literal.settle)


def _weighed_by_stages(shape: Finding, literal: Finding | None) -> Finding:
    if literal is None or shape.outcome not in _OPEN or literal.outcome is shape.outcome:
        return shape
    text = f"memory is judged by its stages here (rule {literal.rule}, method: stages), which decided"
    certainty = shape.fact(Certainty)
    suspected = shape.outcome is Outcome.FAIL or (certainty is not None and certainty.probability >= CERTAIN)
    outcome = Outcome.WARN if suspected else Outcome.NOT_APPLICABLE
    return shape.ruled("memory shape", outcome, text, settle=shape.settle)


def _not_asked(shape: Finding) -> bool:
    """Whether the shape had too little data to judge."""
    return shape.outcome is Outcome.INCONCLUSIVE and shape.why in _NOT_ASKED


def _manifold(finding: Finding) -> bool:
    """Whether memory use nearly doubled (available memory: halved), which no starting program explains."""
    grew = finding.fact(Growth)
    ratio = 1.0 if grew is None or grew.change is None else 1.0 + grew.change
    return ratio >= DOUBLED or ratio <= 1 / DOUBLED


def _of_shared(finding: Finding, *, watched: bool, short: bool) -> Finding:
    method = _method(finding)
    judged = method is GrowthMethod.STAGES or (method is GrowthMethod.SHAPE and watched)
    if not judged or not finding.metric.startswith("system."):
        return finding
    text = "not the device: other programs run on this machine too"
    if method is GrowthMethod.STAGES and short and finding.outcome in _GROWN and not _manifold(finding):
        text += ", and a program that starts there looks like a leak in so short a time"
        return finding.ruled("shared host", Outcome.NOT_APPLICABLE, text)
    if finding.outcome is Outcome.FAIL:
        return finding.ruled("shared host", Outcome.WARN, text, settle=finding.settle)
    if finding.outcome is Outcome.INCONCLUSIVE:
        return finding.ruled("shared host", Outcome.NOT_APPLICABLE, text)
    return finding
