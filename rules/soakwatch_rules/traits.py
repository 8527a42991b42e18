"""Traits: what a rule states about itself for the code that groups, ranks and words findings.

A rule's module declares them as ``TRAITS``, below its code. A module without it, and a finding whose rule is not
installed here, have the defaults: such a finding explains no other.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Final

RISE_PER_HOUR: Final = "rise_per_hour"
"""The key in ``numbers`` of a finding of growth whose ``measured`` is not its rate."""
ENTRY_POINTS: Final = "soakwatch.rules"
"""The group of entry points by which other distributions add rules."""
_DETECTORS: Final = "soakwatch_rules.detectors"


class Crash(StrEnum):
    """What died, by the trace that it left."""

    KERNEL = "kernel"  # a line of the kernel's log; a warning is about another tenant of the machine
    DEVICE = "device"  # the whole device restarted
    MEMORY = "memory"  # the kernel killed a process for lack of memory
    CORE = "core"  # a core file or a crash log
    PROCESS = "process"  # the process that ``object`` names was replaced by a new one, or is gone


class GrowthMethod(StrEnum):
    """How a rule judges growth; if two methods judged one series, the shape takes precedence over the stages."""

    SHAPE = "shape"  # by the shape of the whole series, which takes hours
    STAGES = "stages"  # by comparing the last third with the first
    QUEUE = "queue"  # of a queue that fills up


class Family(StrEnum):
    """The kind of trouble that a rule looks for, a column in the table of many devices."""

    MEMORY = "memory"  # and whatever else fills up
    CPU = "CPU"
    CRASHES = "crashes"  # and restarts, hangs, reboots
    TRAFFIC = "traffic"
    SESSIONS = "sessions"
    HARDWARE = "hardware"  # and how the machine is set up
    POLLS = "polls"  # whether it answered its polls
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Guide:
    """A rule for the reader of a finding: when it fails, what it misses, which parameter to change, what to do next."""

    fails_when: str = ""
    misses: str = ""
    change_with: str = ""
    next_step: str = ""

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The non-empty lines, each with its title."""
        named = (("Fails when", self.fails_when), ("Misses", self.misses), ("Change it with", self.change_with))
        return tuple((name, text) for name, text in named if text)


class Judges(StrEnum):
    """What a rule judges. Only a pass about the device shows what that withstood."""

    DEVICE = "device"  # what the device did
    GENERATOR = "generator"  # whether the load was as commanded, on which other findings rest
    ANSWERS = "answers"  # whether the target answered: polls alone can pass it
    SETUP = "setup"  # how the target is set up, not what it did


class Limit(StrEnum):
    """The origin of the limit that a rule judges by."""

    RULE = "rule"  # its parameters, or what is usual in the run
    PLAN = "plan"  # the plan; without a limit there it judges nothing
    DEVICE = "device"  # the device; without a stated limit it judges nothing
    ROOM = "room"  # a size that runs full; the rule forecasts when
    RUNS = "runs"  # other runs


class Marks(StrEnum):
    """What the marks of a rule's findings are."""

    MOMENTS = "moments"  # when something happened
    WITNESSES = "witnesses"  # the same; those at the moments of a cause are shown in its time line
    WHOLE = "whole"  # the stretch that was measured, not when something happened


@dataclass(frozen=True, slots=True)
class RuleWords:
    """Words for a reader who does not know the rule.

    ``plain`` is the meaning of its failure ("it rebooted"); empty: its name. ``effect`` names its finding among several
    simultaneous effects ("packets lost"); empty: not listed. ``happened`` is a sentence about ``{thing}`` (the process
    or port that the object names) on ``{target}``; empty: the target, then ``plain``.
    """

    plain: str = ""
    effect: str = ""
    happened: str = ""


@dataclass(frozen=True, slots=True)
class Leads:
    """How a rule's findings explain other findings at their moments.

    ``crash`` is what died; None: the whole device only stood still. ``whole_device``: the whole device goes down, so
    effects may begin until it has booted. ``explains`` are rules whose findings may follow from the death of the whole
    device, whichever process they name. ``same_death`` are rules that see the same death of a process; each moment of
    this rule must be one of theirs.
    """

    crash: Crash | None = None
    whole_device: bool = False
    explains: tuple[str, ...] = ()
    same_death: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """What an undecided finding of a rule means for the run.

    ``any_role``: it matters for a generator or the monitor as for a device, since it leaves open what the device
    withstood. ``required``: the rule judges the run itself (its polls, load, events), so it keeps the run from passing
    unless the plan says that it is not required. ``by_majority``: the majority of a target's cases decides; single ones
    that cannot be compared are not required.
    """

    any_role: bool = False
    required: bool = False
    by_majority: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """What other code needs to know of a rule beside its findings; all of it is optional."""

    words: RuleWords = RuleWords()
    rank: int = 500
    """The lowest rank leads the findings of one cause, and comes first of causes that began together."""
    leads: Leads | None = None
    """None: its findings explain no others."""
    event_kinds: tuple[str, ...] = ()
    """Kinds of events that it judges; a time line shows its finding in their place."""
    expected_as: str = ""
    """The key of ``expect`` by which a planned event announces what it judges ("core.dump", "outage")."""
    marks: Marks = Marks.MOMENTS
    growth: GrowthMethod | None = None
    """None: it does not judge growth."""
    limit: Limit = Limit.RULE
    judges: Judges = Judges.DEVICE
    inconclusive: Inconclusive = Inconclusive()
    of_returned_load: bool = False
    """Its findings on returned load are no graver than what the loss account says about the device."""
    family: Family = Family.OTHER
    only_warns: frozenset[str] = frozenset()
    """Metrics that never fail."""
    guide: Guide = Guide()

    @property
    def crash(self) -> Crash | None:
        """What died, if it finds deaths."""
        return None if self.leads is None else self.leads.crash

    @property
    def standstill(self) -> bool:
        """Whether it marks standstills of the whole device, which explain what begins with them or lies in them."""
        return self.leads is not None and self.leads.crash is None


NO_TRAITS: Final = Traits()


@cache
def traits_of(rule: str) -> Traits:
    """The traits of a rule, whose module is imported now; the defaults if it declares none or is not installed.

    >>> traits_of("reboot").crash, traits_of("my_own_rule") == Traits()
    (<Crash.DEVICE: 'device'>, True)
    """
    if not rule.isidentifier():
        return NO_TRAITS
    declared: object = getattr(_module(rule), "TRAITS", None)
    return declared if isinstance(declared, Traits) else NO_TRAITS


def _module(rule: str) -> ModuleType | None:
    """The module of a rule: a shipped one, or one that an entry point of another distribution names."""
    for name in _names(rule):
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


def _names(rule: str) -> Iterator[str]:
    yield f"{_DETECTORS}.{rule}"
    # Last, because finding entry points reads a file of every installed distribution.
    yield from (point.module for point in entry_points(group=ENTRY_POINTS, name=rule))


def plain_words(rule: str) -> str:
    """What a finding of a rule means, for a reader who does not know it; the rule's name if it declares no words.

    >>> plain_words("reboot"), plain_words("my_own_rule")
    ('it rebooted', 'my own rule')
    """
    return traits_of(rule).words.plain or rule.replace("_", " ")


def happened_words(rule: str, thing: str, target: str, *, where: bool = True) -> str:
    """What happened by a rule's finding, to a thing of a target or to the target; without ``where`` the target of a
    thing is left out.

    >>> happened_words("reboot", "", "fw"), happened_words("my_own_rule", "eth1", "fw")
    ('fw rebooted', 'my own rule on fw (eth1)')
    """
    said = traits_of(rule).words.happened
    said = said if where else said.replace(" on {target}", "")
    if said and (thing or "{thing}" not in said):
        return said.format(thing=thing, target=target)
    return plain_words(rule) + (f" on {target}" if where else "") + (f" ({thing})" if thing else "")
