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
"""The number under which a finding of growth keeps its rate where ``measured`` is another figure."""
ENTRY_POINTS: Final = "soakwatch.rules"
"""The group of entry points by which other distributions add rules."""
_DETECTORS: Final = "soakwatch_rules.detectors"


class Crash(StrEnum):
    """What died, by the trace that it left."""

    KERNEL = "kernel"  # a line of the kernel's log; a warning is about another tenant of the machine
    DEVICE = "device"  # the whole device started again
    MEMORY = "memory"  # the kernel killed a process for want of memory
    CORE = "core"  # a core file or a crash log
    PROCESS = "process"  # a process that is another one now, or gone: its ``object`` names it


class GrowthMethod(StrEnum):
    """How a rule judges growth; where two judged one series the shape decides over the stages."""

    SHAPE = "shape"  # by the shape of the whole series, which takes hours
    STAGES = "stages"  # by the last third against the first
    QUEUE = "queue"  # of what fills up


class Family(StrEnum):
    """What kind of trouble a rule looks for: the columns of a table of many devices."""

    MEMORY = "memory"  # and whatever else fills up
    CPU = "CPU"
    CRASHES = "crashes"  # and restarts, hangs, reboots
    TRAFFIC = "traffic"
    SESSIONS = "sessions"
    HARDWARE = "hardware"  # and how the machine is set up
    POLLS = "polls"  # whether it could be looked at
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Guide:
    """A rule in plain lines for whoever reads a finding: when it fails, what it does not see, which parameter to turn,
    and what to do about a finding."""

    fails_when: str = ""
    misses: str = ""
    change_with: str = ""
    next_step: str = ""

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines that are there, each with its name."""
        named = (("Fails when", self.fails_when), ("Misses", self.misses), ("Change it with", self.change_with))
        return tuple((name, text) for name, text in named if text)


class Judges(StrEnum):
    """What a rule judges. Of nothing but a device does its pass say what that withstood."""

    DEVICE = "device"  # what it did
    GENERATOR = "generator"  # whether the load was what it was to be: findings rest on it
    ANSWERS = "answers"  # whether the target answered: it can pass on nothing but polls
    SETUP = "setup"  # how the target is set up, and nothing that it did


class Limit(StrEnum):
    """Where the limit comes from that a rule judges by."""

    RULE = "rule"  # its own parameters, or what is usual in the run
    PLAN = "plan"  # the plan: without a limit there it judges nothing
    DEVICE = "device"  # what the device states of itself: where there is none it judges nothing
    ROOM = "room"  # how much there is room for: it says when that runs full
    RUNS = "runs"  # other runs: it is no limit of the device or of the plan


class Marks(StrEnum):
    """What the marks of a rule's findings are."""

    MOMENTS = "moments"  # when something happened
    WITNESSES = "witnesses"  # the same, and they belong into time lines of causes at whose moments some of them lie
    WHOLE = "whole"  # where it measured a whole stretch, not when something happened


@dataclass(frozen=True, slots=True)
class Words:
    """A rule for a reader who does not know it.

    ``plain`` is what its failure means ("it rebooted"); empty: its name. ``effect`` is its finding as one of several
    effects that came at once ("packets lost"); empty: it is not listed. ``happened`` is what happened as a sentence
    about ``{thing}`` (a process, a port; what the object names) on ``{target}``; empty: the target, then ``plain``.
    """

    plain: str = ""
    effect: str = ""
    happened: str = ""


@dataclass(frozen=True, slots=True)
class Leads:
    """What a rule finds explains other findings at its moments.

    ``crash`` is what died; None: the whole device only stood still. ``whole_device``: it takes the whole device with
    it, whose effects may begin until it has booted. ``explains`` are rules whose findings may follow from a death of
    the whole device that it found, whichever process they name. ``same_death`` are rules that see the death of the
    same process as this one; each of its moments must be one of theirs.
    """

    crash: Crash | None = None
    whole_device: bool = False
    explains: tuple[str, ...] = ()
    same_death: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """What it means for a run that a rule could not decide.

    ``any_role``: of a generator or the monitor it matters as of a device, for what the device withstood is not known.
    ``required``: the rule judges what this very run did (its polls, load, events); it always keeps the run from
    passing unless the plan says that it is not required. ``by_majority``: of its cases of one target most speak for
    the rest; single ones that cannot be compared are not required.
    """

    any_role: bool = False
    required: bool = False
    by_majority: bool = False


@dataclass(frozen=True, slots=True)
class Traits:
    """What others need to know of a rule beside its findings. No rule needs to declare any of it."""

    words: Words = Words()
    rank: int = 500
    """Its place among the findings of one cause: the lowest leads; of causes that began together likewise."""
    leads: Leads | None = None
    """How its findings explain others, if they do."""
    event_kinds: tuple[str, ...] = ()
    """Kinds of events that it judges: its finding stands for them in a time line."""
    expected_as: str = ""
    """The kind under which a planned event expects what it judges ("core.dump", "outage")."""
    marks: Marks = Marks.MOMENTS
    growth: GrowthMethod | None = None
    """How it judges growth, if it does."""
    limit: Limit = Limit.RULE
    judges: Judges = Judges.DEVICE
    inconclusive: Inconclusive = Inconclusive()
    of_returned_load: bool = False
    """What it says of the load that came back is no graver than what the account of losses says of the device."""
    family: Family = Family.OTHER
    only_warns: frozenset[str] = frozenset()
    """Metrics of which it only warns, whatever it finds."""
    guide: Guide = Guide()

    @property
    def crash(self) -> Crash | None:
        """What died, if it finds deaths."""
        return None if self.leads is None else self.leads.crash

    @property
    def standstill(self) -> bool:
        """Whether its marks are standstills of the whole device, which explain what begins or lies in them."""
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
    """The module of a rule: in the folder of the shipped ones, or named by an entry point of another distribution."""
    for name in _names(rule):
        with suppress(ImportError):
            return importlib.import_module(name)
    return None


def _names(rule: str) -> Iterator[str]:
    yield f"{_DETECTORS}.{rule}"
    # Only now, for to find them reads a file of every distribution that is installed.
    yield from (point.module for point in entry_points(group=ENTRY_POINTS, name=rule))


def plain_words(rule: str) -> str:
    """What a finding of a rule means, for a reader who does not know the rule; of one without words its name.

    >>> plain_words("reboot"), plain_words("my_own_rule")
    ('it rebooted', 'my own rule')
    """
    return traits_of(rule).words.plain or rule.replace("_", " ")


def happened_words(rule: str, thing: str, target: str, *, where: bool = True) -> str:
    """What a finding of a rule says happened: to a thing of a target, or to the target itself; without ``where`` it is
    not said on which target the thing is.

    >>> happened_words("reboot", "", "fw"), happened_words("my_own_rule", "eth1", "fw")
    ('fw rebooted', 'my own rule on fw (eth1)')
    """
    said = traits_of(rule).words.happened
    said = said if where else said.replace(" on {target}", "")
    if said and (thing or "{thing}" not in said):
        return said.format(thing=thing, target=target)
    return plain_words(rule) + (f" on {target}" if where else "") + (f" ({thing})" if thing else "")
