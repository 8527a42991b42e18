"""Rule: the contract between whoever gathers readings and whoever judges them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from soakwatch_model.case import Case
from soakwatch_model.finding import Finding


class Input(StrEnum):
    """What a rule reads beside its series, the events and the load; a case has it only for rules that ask."""

    BASELINE = "baseline"  # the readings of the baseline phase (``Before.baseline``)
    EARLIER = "earlier"  # its series in earlier runs: it is not asked where none was named (``Before.earlier``)
    GENERATOR_PORTS = "generator_ports"  # what the machines of the generators counted of the load (``load``)
    EVENTS = "events"  # an event: without one it judges nothing, and those of any kind change what it says
    TENANTS = "tenants"  # those who share the device, and what is theirs (``TargetFacts.tenants``)
    MACHINE = "machine"  # what the target reported of itself, its polling cores and the changes of its set-up
    SHUT_PORTS = "shut_ports"  # which interfaces were administratively down (``TargetFacts.shut``)


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """How a rule wants to be used. ``needs`` tells the least data that lets it decide, in one sentence.

    ``shortest_s``: in a run that is planned shorter than this, and whose plan does not name the rule, its doubt does
    not hold up a pass. ``needs_load``: what it says depends on the load having been what the generator was told: with a
    generator at fault its findings become inconclusive. ``inputs`` are what it reads beside its series. ``live`` says
    what it looks at while the run goes on: "recent" readings (at most the last hour; what it finds there stays found),
    "minutes" (means of one minute since the begin), the "whole" window (for rules that look at events and ledgers
    only), or nothing before the "end". ``objects``: of the series of its metrics it looks only at those whose object
    ends so (``mode=idle``), and the others are not read; empty: at all.
    """

    needs: str
    shortest_s: float = 0.0
    needs_load: bool = False
    inputs: frozenset[Input] = frozenset()
    live: Literal["recent", "minutes", "whole", "end"] = "recent"
    objects: tuple[str, ...] = ()


def wanted(rule: Rule) -> tuple[str, ...]:
    """The metrics that a rule looks at with its parameters: ``metrics``, or fewer if it has a property ``wanted``."""
    chosen: tuple[str, ...] = getattr(rule, "wanted", rule.metrics)
    return chosen


class Rule(Protocol):
    """A rule is a frozen dataclass of parameters (made with ``parameter``) and one method.

    ``metrics`` are names of the catalogue. With ``scope`` "object" it gets one Case per object that has a series
    of one of them; with "metric" one Case per single series; with "target" one Case per target, with all
    series of all its objects, also where there are none. ``phases`` names the phases whose stretch is its window
    (first begin to last end); if the run had none of these, or with (), the window is the whole run. ``TRAITS`` in its
    module tells others more of it (``traits.Traits``).
    """

    name: ClassVar[str]
    version: ClassVar[int]
    summary: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    scope: ClassVar[Literal["object", "metric", "target"]]
    phases: ClassVar[tuple[str, ...]]
    manner: ClassVar[RuleSpec]

    def definition(self) -> str:
        """The exact definition in one sentence, with the parameters filled in."""
        ...

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """What the rule says of the case. Never raises on data; never modifies its input."""
        ...
