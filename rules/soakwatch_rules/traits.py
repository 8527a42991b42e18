"""Traits: what a rule says of itself to those who do not judge but put findings together, rank and word them.

A rule declares them as its class variable ``traits``. A rule that declares none, and a finding whose rule is not
installed here, have the defaults: such a finding is never more than itself.
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

STOPS: Final = "stops"
"""The number under which a finding counts standstills: in them nothing came back, whatever was sent."""
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
    STAGES = "stages"  # by the last third against the first: its rate is the number RISE_PER_HOUR
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
    knob: str = ""
    next_step: str = ""

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The lines that are there, each with its name."""
        named = (("Fails when", self.fails_when), ("Misses", self.misses), ("Change it with", self.knob))
        return tuple((name, text) for name, text in named if text)


@dataclass(frozen=True, slots=True)
class Traits:
    """What others need to know of a rule beside its findings. No rule needs to declare any of it."""

    plain_words: str = ""
    """What its failure means, for a reader who does not know the rule ("it rebooted"); by default its name."""
    effect_words: str = ""
    """Its finding as one of several effects that came at once ("packets lost"); by default it is not listed."""
    rank: int = 500
    """Its place among the findings of one cause: the lowest leads; of causes that began together likewise."""
    crash: Crash | None = None
    """What died, if it tells of deaths: those explain other findings at their moments."""
    standstill: bool = False
    """Its marks are standstills of the whole device, which explain what begins with them or lies in them."""
    whole_device: bool = False
    """What it finds takes the whole device with it, whose effects may begin until it has booted."""
    explains: tuple[str, ...] = ()
    """Rules whose findings may follow from a death of the whole device that it found, whichever process they name."""
    same_death: tuple[str, ...] = ()
    """Rules that see the death of the same process as this one; each of its moments must be one of theirs."""
    event_kinds: tuple[str, ...] = ()
    """Kinds of events that it judges: its finding stands for them in a time line."""
    witness: bool = False
    """Its marks belong into time lines of causes at whose moments some of them lie."""
    trend: bool = False
    """It judges a whole stretch: its marks are where it looked, not when something happened."""
    growth: GrowthMethod | None = None
    """How it judges growth, if it does."""
    fills: bool = False
    """It says that something with a limit runs full, with a forecast."""
    compares_runs: bool = False
    """Its limit comes of other runs: it is no limit of the device or of the plan."""
    availability_only: bool = False
    """It can pass on nothing but polls that were answered: alone it clears no device."""
    generator: bool = False
    """It judges the generators: where it is inconclusive, no finding that rests on their load holds."""
    any_role: bool = False
    """Inconclusive of a generator or the monitor it matters as of a device: nobody knows what the device withstood."""
    of_this_run: bool = False
    """It judges what this very run did (its polls, load, events): inconclusive, it always keeps the run from passing
    unless the plan says that it is not required."""
    by_majority: bool = False
    """Of its cases of one target most speak for the rest: single ones that cannot be compared are not required."""
    of_returned_load: bool = False
    """What it says of the load that came back is no graver than what the account of losses says of the device."""
    needs_limit: bool = False
    """Without a limit in the plan it judges nothing."""
    needs_stated_limit: bool = False
    """It judges by limits that the device states of itself: where there is none it judges nothing."""
    needs_event: bool = False
    """Without an event it judges nothing, and events of any kind change what it says."""
    by_tenant: bool = False
    """It compares those who share a device: its cases hold the tenants and what is theirs."""
    reads_machine: bool = False
    """It looks at what the target reported of itself (``Case.machine``) and at which of its cores poll."""
    reads_shut_ports: bool = False
    """It looks at which interfaces were administratively down (``Case.shut``)."""
    of_setup: bool = False
    """It judges how the target is set up, and nothing that the target did: alone it clears no device."""
    expected_as: str = ""
    """The kind under which a planned event expects what it judges ("core.dump", "outage")."""

    family: Family = Family.OTHER
    guide: Guide = Guide()

    @property
    def leads(self) -> bool:
        """Whether its findings explain others that lie at their moments."""
        return self.crash is not None or self.standstill

    @property
    def clears(self) -> bool:
        """Whether its pass says something of what a device withstood."""
        return not (self.availability_only or self.of_setup)


NO_TRAITS: Final = Traits()


@cache
def traits_of(rule: str) -> Traits:
    """The traits of the rule of this name, imported now; the defaults where it declares none or is not installed.

    >>> traits_of("reboot").crash, traits_of("my_own_rule") == Traits()
    (<Crash.DEVICE: 'device'>, True)
    """
    if not rule.isidentifier():
        return NO_TRAITS
    module = _module(rule)
    name = "".join(part.capitalize() for part in rule.split("_"))
    declared: object = getattr(getattr(module, name, None), "traits", None)
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
    return traits_of(rule).plain_words or rule.replace("_", " ")
