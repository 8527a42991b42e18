"""Case: everything a rule may look at, and how well the target was polled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from soakwatch_model.event import Event
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_model.tree import Tree
from soakwatch_model.window import Phase, Window


@dataclass(frozen=True, slots=True)
class Silence:
    """A time span without an answer of one source; ``lost`` counts the polls due in it by outcome."""

    window: Window
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The polls of one source in one window: how many were due, and how they ended.

    ``got`` polls were answered; ``lost`` counts the others by outcome. ``longest_gap`` is the longest span without an
    answer, None if there never was one; a partial answer (``requests lost``) ends a gap. ``errors`` are the most
    frequent error sentences. ``silences`` are spans of at least three intervals without an answer, in order of time,
    the 1000 longest. ``recovered`` of the ``got`` polls were lost at first and backfilled later. ``poller`` names the
    poller or load that polls.
    """

    target: str
    source: str
    interval_s: float
    due: int
    got: int
    lost: Mapping[str, int]
    longest_gap: Window | None
    errors: tuple[str, ...] = ()
    required: bool = True  # no pass without enough polls of a required source
    silences: tuple[Silence, ...] = ()
    recovered: int = 0
    poller: str = ""

    @property
    def coverage(self) -> float | None:
        """Share of the due polls that were answered; None if none was due."""
        return self.got / self.due if self.due else None


@dataclass(frozen=True, slots=True, eq=False)
class Tenant:
    """One tenant of a shared device: a customer, virtual system, virtual function, tunnel. ``series`` are its own
    readings, of the device (interfaces, contexts) and of generators (ports, flows). ``named``: by the plan or a label
    ``tenant``; else by the device's names of its virtual systems."""

    name: str
    series: tuple[Series, ...]
    named: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """A metric that could not be read although its source answered: of an object, of all objects with some labels
    (``protocol=ospf``), or of all (""); reported first and last in [begin_ns, end_ns], with the reason. ``metric`` is
    empty for a generator that reported nothing at all."""

    metric: str
    object: str
    begin_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What a rule compares with; each only for rules whose ``spec`` asks for it.

    ``baseline`` are the readings of the run's baseline phase, else of the one of an earlier run named for it (at times
    before the window). ``earlier`` is the first of the case's series in the earlier runs named for comparison, one per
    run, at that run's times.
    """

    baseline: tuple[Series, ...] = ()
    earlier: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TargetFacts:
    """What is known of the target besides its series.

    ``stated`` are numbers it stated, by metric (``system.memory.limit``). ``polling`` are objects (``core=2``, "" the
    total, "*" all) known to busy-poll, each with who says so. The rest only for rules whose ``spec`` asks:
    ``fingerprint`` by section at the begin of the run; ``shut``, by interface, the windows in which it was
    administratively down; ``tenants`` of the device.
    """

    stated: Mapping[str, float] = field(default_factory=dict)
    polling: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, Tree] = field(default_factory=dict)
    shut: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    tenants: tuple[Tenant, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Everything a rule may look at: one subject (an object or a whole target) in one window.

    ``series`` are those the rule's ``metrics`` name and the record has, in that order, cut to the window; may be empty.
    ``events`` overlap the window and are of the target or of none. ``load`` is what the generators reported, ``unread``
    what could not be read, ``role`` the target's role. ``devices`` is the number of targets of role dut, which share
    the load. ``family`` is the number of cases of this rule in the run, to correct for chance.
    """

    target: str
    object: str
    window: Window
    series: Sequence[Series] = ()
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    load: tuple[Series, ...] = ()
    before: Before = Before()
    facts: TargetFacts = TargetFacts()
    unread: tuple[Unread, ...] = ()
    role: str = DUT
    devices: int = 1
    family: int = 1

    @property
    def faults(self) -> tuple[str, ...]:
        """Why something could not be read, in sentences."""
        return tuple(each.text for each in self.unread)
