"""Rule: the contract between the code that gathers readings and the rules that judge them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding


class Input(StrEnum):
    """What a rule reads beside its series, the events and the load; a case holds it only for rules that declare it."""

    BASELINE = "baseline"  # the readings of the baseline phase (``Before.baseline``)
    EARLIER = "earlier"  # its series in earlier runs (``Before.earlier``); if none is named the rule is not run
    GENERATOR_PORTS = "generator_ports"  # counters of the generators' machines (``load``)
    EVENTS = "events"  # events of any kind change its findings; without one it judges nothing
    TENANTS = "tenants"  # who shares the device, and what belongs to each (``TargetFacts.tenants``)
    MACHINE = "machine"  # the target's fingerprint, its polling cores, and changes of its set-up
    ONE_BY_ONE = "one_by_one"  # its series are read when it looks at them, each time: it has many and keeps few
    SHUT_PORTS = "shut_ports"  # which interfaces were administratively down (``TargetFacts.shut``)


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """How a rule is used. ``needs`` is the least data that lets it decide, in one sentence.

    ``shortest_s``: in a run planned shorter than this, whose plan does not name the rule, its doubt does not prevent a
    pass. ``needs_load``: its findings assume that the load was as commanded, and become inconclusive with a generator
    at fault. ``live`` is what it judges during the run: "recent" readings (at most the last hour; what it finds there
    stays found), "minutes" (means of one minute since the start), the "whole" window (for rules on events and poll
    statistics only), or nothing before the "end". ``objects``: only series whose object ends so (``mode=idle``) are
    read; empty: all.
    """

    needs: str
    shortest_s: float = 0.0
    needs_load: bool = False
    inputs: frozenset[Input] = frozenset()
    live: Literal["recent", "minutes", "whole", "end"] = "recent"
    objects: tuple[str, ...] = ()


def metrics_read(rule: Rule) -> tuple[str, ...]:
    """The metrics that a rule reads with its parameters: its property ``metrics_read``, else ``metrics``."""
    chosen: tuple[str, ...] = getattr(rule, "metrics_read", rule.metrics)
    return chosen


class Rule(Protocol):
    """A rule is a frozen dataclass of parameters (made with ``parameter``) with one method.

    ``metrics`` are names of the catalogue. With ``scope`` "object" it gets one Case for each object with a series of
    one of them; with "metric" one for each series; with "target" one for each target, with all series of all its
    objects, even if there are none. ``phases`` are those whose stretch (first begin to last end) is its window; without
    them, or if the run had none of them, the window is the whole run. ``TRAITS`` in its module describe it to other
    code (``traits.Traits``).
    """

    name: ClassVar[str]
    version: ClassVar[int]
    summary: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    scope: ClassVar[Literal["object", "metric", "target"]]
    phases: ClassVar[tuple[str, ...]]
    spec: ClassVar[RuleSpec]

    def definition(self) -> str:
        """The exact definition in one sentence, with the parameters filled in."""
        ...

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """The findings on a case. Never raises on data; never modifies its input."""
        ...
