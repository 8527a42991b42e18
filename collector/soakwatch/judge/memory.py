"""The step of judging that makes one verdict of all findings on memory; its arithmetic is in the rules."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.growth.memory_sums import PARTS, SUMS, weighed_by_parts
from soakwatch_rules.memory_verdict import of_shared_hosts, one_verdict
from soakwatch_rules.rule import Rule
from soakwatch_rules.traits import GrowthMethod, traits_of

if TYPE_CHECKING:
    from soakwatch.judge.cases import CaseBuilder
    from soakwatch.judge.judged_record import JudgeableRecord

SHARED_KEY: Final = "shared"
"""Under which a record keeps the targets on which other programs run beside what is watched."""
_OPEN: Final = frozenset({Outcome.FAIL, Outcome.INCONCLUSIVE})


def shared_text(targets: Iterable[str]) -> str:
    """How the record keeps them."""
    return json.dumps(sorted(targets))


def shared_of(record: JudgeableRecord) -> frozenset[str]:
    """The targets that are no device by themselves."""
    return frozenset(map(str, json.loads(record.meta(SHARED_KEY) or "[]")))


def of_memory(
    findings: Sequence[Finding], case_builder: CaseBuilder, record: JudgeableRecord, rules: Iterable[Rule]
) -> list[Finding]:
    """The findings with one verdict on memory: sums weighed against parts, the literal method against the shape."""
    every = tuple(rules)
    by_shape = {rule.name: rule for rule in every if _method(rule.name) is GrowthMethod.SHAPE}
    by_stages = {rule.name: rule for rule in every if _method(rule.name) is GrowthMethod.STAGES}
    alone = not by_shape or any(getattr(rule, "decides", 0.0) > 0 for rule in by_stages.values())
    corrected = _weighed_against_parts(findings, case_builder, by_shape if alone else by_shape | by_stages)
    return of_shared_hosts(corrected if alone else one_verdict(corrected), shared_of(record))


def _method(rule: str) -> GrowthMethod | None:
    return traits_of(rule).growth


def _weighed_against_parts(
    findings: Sequence[Finding], case_builder: CaseBuilder, rules: Mapping[str, Rule]
) -> list[Finding]:
    failed: dict[str, frozenset[str]] = {}
    for finding in findings:
        if _method(finding.rule) is GrowthMethod.SHAPE and finding.metric in PARTS and finding.outcome is Outcome.FAIL:
            failed[finding.target] = failed.get(finding.target, frozenset()) | {finding.object}
    return [
        _weighed_against_failed(finding, case_builder, rules[finding.rule], failed.get(finding.target, frozenset()))
        if finding.rule in rules and finding.metric in SUMS and finding.outcome in _OPEN and finding.samples
        else finding
        for finding in findings
    ]


def _weighed_against_failed(finding: Finding, case_builder: CaseBuilder, rule: Rule, failed: frozenset[str]) -> Finding:
    keys = [
        key
        for target, keys in case_builder.subjects(rule)
        if target == finding.target
        for key in keys
        if (key.metric, key.object) == (finding.metric, finding.object)
    ]
    window = next((w for w in case_builder.stretches(rule) if w.begin_ns <= finding.window.begin_ns < w.end_ns), None)
    if window is None:
        return finding
    parts = case_builder.parts(finding.target, PARTS, window)
    return (
        weighed_by_parts(finding, rule, case_builder.case(rule, finding.target, keys, window), parts, failed)
        if parts
        else finding
    )
