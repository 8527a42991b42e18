"""Case: all that a rule may look at, and the account of how it was watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch_model.event import Event
from soakwatch_model.roles import DUT
from soakwatch_model.series import Series
from soakwatch_model.tree import Tree
from soakwatch_model.window import Phase, Window


@dataclass(frozen=True, slots=True)
class Silence:
    """A stretch without an answer of one source; ``lost`` counts the polls that were due in it by how they ended."""

    window: Window
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The account of one source in one window: polls that were due, and how they ended.

    ``got`` polls brought an answer; ``lost`` counts the others by how they ended. ``longest_gap`` is the longest
    stretch without an answer, None where nothing ever came; an answer in part (``requests lost``) ends it. ``errors``
    are the most frequent error sentences.
    ``silences`` are the stretches without an answer of three intervals and more in order of time, the 1000 longest.
    ``recovered`` of the polls that were got had been lost at first: the source kept its looks and handed them in late.
    ``poller`` is the name of the poller or load that makes them.
    """

    target: str
    source: str
    interval_s: float
    due: int
    got: int
    lost: Mapping[str, int]
    longest_gap: Window | None
    errors: tuple[str, ...] = ()
    required: bool = True  # without enough of a required source there is no pass
    silences: tuple[Silence, ...] = ()
    recovered: int = 0
    poller: str = ""

    @property
    def coverage(self) -> float | None:
        """Share of the due polls that brought an answer; None if none was due."""
        return self.got / self.due if self.due else None


@dataclass(frozen=True, slots=True, eq=False)
class Tenant:
    """One of those who share a device: a customer, virtual system, virtual function, tunnel. ``series`` are the
    readings of what is its own, of the device (interfaces, contexts) and of the generators (ports, flows). ``named``:
    the plan or a label ``tenant`` says so; else the device's own names of its virtual systems do."""

    name: str
    series: tuple[Series, ...]
    named: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """A metric that could not be read though its source answered: of an object, of all that have some labels of it
    (``protocol=ospf``), or of all (""); first and last reported in [begin_ns, end_ns], with the reason. Of a generator
    that reported nothing at all ``metric`` is empty."""

    metric: str
    object: str
    begin_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Before:
    """What a rule compares with; each only for rules whose ``spec`` asks for it.

    ``baseline`` are the readings of the run's baseline phase, if it had one, else of that of an earlier run which was
    named for it (then its times lie before the window). ``earlier`` is the first of the case's series in earlier runs
    that were named for comparison, one series a run, on the times of that run.
    """

    baseline: tuple[Series, ...] = ()
    earlier: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TargetFacts:
    """What is known of the target beside its series.

    ``stated`` are numbers that it stated of itself, by metric name (``system.memory.limit``). ``polling`` are objects
    (``core=2``, "" the total, "*" all) known to poll, each with what says so. The others are only there for rules whose
    ``spec`` asks: ``fingerprint`` is what it reported of itself as the run began, by section; ``shut`` are the windows
    in which an interface was administratively down, by its name; ``tenants`` are those who share it.
    """

    stated: Mapping[str, float] = field(default_factory=dict)
    polling: Mapping[str, str] = field(default_factory=dict)
    fingerprint: Mapping[str, Tree] = field(default_factory=dict)
    shut: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    tenants: tuple[Tenant, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """All that a rule may look at: one subject (an object, or a whole target) in one window.

    ``series`` holds what the rule's ``metrics`` named and the record has, cut to the window, in the order of
    ``metrics``; it may be empty. ``events`` touch the window and belong to the target (or to none). ``load`` is
    what the generators reported. ``unread`` are the metrics that could not be read, and why. ``role`` is the target's
    (dut, generator, monitor); ``devices`` is the number of targets of role dut, which share the load.
    ``family`` is the number of cases that this rule judges in the run, this one among them: with many, some are
    wrong by chance.
    """

    target: str
    object: str
    window: Window
    series: tuple[Series, ...] = ()
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
        """The sentences why something could not be read."""
        return tuple(each.text for each in self.unread)
