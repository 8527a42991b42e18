"""Growth: findings on one growing object are one cause, which names the process that owns a host's growth."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from soakwatch_model.fact import Growth
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.label import label
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_entry import HELD_MEMORY, HOST_MEMORY
from soakwatch_model.metric_queries import telling
from soakwatch_rules.traits import traits_of

_HELD = tuple(name for name in telling(HOST_MEMORY) if BY_NAME[name].unit == "By")
_HOST = (*_HELD, "system.memory.swap.usage")
_OF_PROCESS = sorted(telling(HELD_MEMORY), key=lambda name: BY_NAME[name].quantum or 0.0)
"""Measures of a process's memory, those with the finest steps first."""
MIN_SHARE = 0.5  # share of the host's growth from which a process owns it

Grown = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """The process (all its instances) that holds most of a host's growth."""

    process: str
    instances: int
    share: float

    @property
    def words(self) -> str:
        """A phrase for the end of the sentence on the host's growth.

        >>> Owner("httpd", 1, 0.92).words, Owner("worker", 8, 1.3).words
        ('process httpd accounts for 92 % of it', 'process worker (8 instances) accounts for all of it')
        """
        many = f" ({self.instances} instances)" if self.instances > 1 else ""
        share = "all" if self.share >= 0.995 else f"{100 * self.share:.0f} %"
        return f"process {self.process}{many} accounts for {share} of it"


def growth_subject(finding: Finding) -> Grown | None:
    """What a finding of growth is about: a process by name, the host's memory, the monitor, or one series; else
    None."""
    if traits_of(finding.rule).growth is None or not finding.metric:
        return None
    family = finding.metric.partition(".")[0]
    if family == "process" and (name := label(finding.object, "process")):
        return ("process", finding.target, name)
    if finding.metric in _HOST:
        return ("memory", finding.target)
    if family == "monitor":
        return ("monitor", finding.target)
    return ("series", *finding.subject)


def by_growth_subject(findings: Sequence[Finding], indexes: Iterable[int]) -> dict[Grown, list[int]]:
    """The findings of growth at these indexes, by what grows."""
    grown: dict[Grown, list[int]] = {}
    for index in indexes:
        grown_object = growth_subject(findings[index])
        if grown_object is not None:
            grown.setdefault(grown_object, []).append(index)
    return grown


def rate_of(finding: Finding) -> float | None:
    """The growth per hour in the unit of the series; None if the finding does not state it."""
    grew = finding.fact(Growth)
    rate = grew.per_hour if grew is not None else finding.measured if finding.unit.endswith("/h") else None
    return rate if rate is not None and math.isfinite(rate) else None


def owners(findings: Sequence[Finding]) -> dict[str, Owner]:
    """By target, the process that owns most of its growth of memory, if one does."""
    rates = {target: rate for target, rate in _host_rates(findings) if rate > 0}
    held: dict[str, dict[str, list[float]]] = {}
    for (target, name, _), rate in _process_rates(findings).items():
        if target in rates and rate > 0:
            held.setdefault(target, {}).setdefault(name, []).append(rate)
    by_target = {}
    for target, by_name in sorted(held.items()):
        name, parts = max(by_name.items(), key=lambda item: (math.fsum(item[1]), item[0]))
        share = math.fsum(parts) / rates[target]
        if share >= MIN_SHARE:
            by_target[target] = Owner(name, len(parts), share)
    return by_target


def _host_rates(findings: Sequence[Finding]) -> Iterator[tuple[str, float]]:
    """For each target, the rate of the preferred measure of its memory that was found to grow."""
    best: dict[str, tuple[tuple[int, int], float]] = {}
    for finding in findings:
        traits = traits_of(finding.rule)
        if finding.metric in _HELD and traits.growth is not None and finding.outcome in _AGAINST:
            rate = rate_of(finding)
            rank = (_HELD.index(finding.metric), traits.rank)
            if rate is not None and (finding.target not in best or rank < best[finding.target][0]):
                best[finding.target] = rank, abs(rate)
    for target, (_, rate) in best.items():
        yield target, rate


def _process_rates(findings: Sequence[Finding]) -> Mapping[tuple[str, str, str], float]:
    """The rate of each instance of each process, by the measure that counts shared pages least."""
    best: dict[tuple[str, str, str], tuple[tuple[int, int], float]] = {}
    for finding in findings:
        traits = traits_of(finding.rule)
        if finding.metric not in _OF_PROCESS or traits.growth is None:
            continue
        name, rate = label(finding.object, "process"), rate_of(finding)
        if not name or rate is None:
            continue
        key = (finding.target, name, finding.object)
        rank = (_OF_PROCESS.index(finding.metric), traits.rank)
        if key not in best or rank < best[key][0]:
            best[key] = rank, rate
    return {key: rate for key, (_, rate) in best.items()}


_AGAINST = frozenset({Outcome.FAIL, Outcome.WARN})
