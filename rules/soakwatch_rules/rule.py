"""Rule, Case, Finding: the contract between whoever gathers readings and whoever judges them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Literal, Protocol

from soakwatch_rules.series import Series

Tree = str | int | float | bool | None | list["Tree"] | dict[str, "Tree"]
"""What a machine reported of itself: data of JSON."""


class Outcome(StrEnum):
    """What a rule says, worst first. ``not applicable`` always comes with its reason."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    WARN = "warn"
    PASS = "pass"  # noqa: S105 - an outcome, not a password
    NOT_APPLICABLE = "not applicable"


class InconclusiveReason(StrEnum):
    """Why a finding is inconclusive: the word by which such findings are grouped; the sentence is in ``reason``."""

    TOO_SHORT = "too short"
    TOO_FEW = "too few readings"
    CADENCE = "cadence too coarse"
    RESOLUTION = "resolution of the reading"
    GAP = "gap"
    GENERATOR = "generator at fault"
    CYCLE = "cycle longer than the run"
    RELEASE = "after a release"
    NOISE = "noise"
    UNREAD = "could not be read"
    PENDING = "not over yet"
    NO_REFERENCE = "nothing to compare with"
    NOT_BEGUN = "phase never began"


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, begin <= t < end, in nanoseconds since 1970 UTC."""

    begin_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length in seconds."""
        return (self.end_ns - self.begin_ns) * 1e-9


@dataclass(frozen=True, slots=True)
class Phase:
    """A named stretch of the run: baseline, ramp, soak, stress, spike, recovery, cooldown."""

    name: str
    window: Window


@dataclass(frozen=True, slots=True)
class Event:
    """Something with a begin and mostly an end. ``expect`` is the intent of a planned event (``{"reboot": 1}``),
    ``deadline_ns`` the time by which it must be over; both are empty for what merely happened."""

    kind: str
    target: str
    object: str
    begin_ns: int
    end_ns: int | None
    detail: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, int] = field(default_factory=dict)
    deadline_ns: int | None = None


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
    (``protocol=ospf``), or of all (""); first and last told in [begin_ns, end_ns], with the reason."""

    metric: str
    object: str
    begin_ns: int
    end_ns: int
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """All that a rule may look at: one subject (an object, or a whole target) in one window.

    ``series`` holds what the rule's ``metrics`` named and the record has, cut to the window, in the order of
    ``metrics``; it may be empty. ``events`` touch the window and belong to the target (or to none). ``load`` is
    what the generators reported. ``baseline`` is the run's baseline phase, if it had one, else that of an earlier run
    which was named for it (then its times lie before the window), for rules whose manner asks for it. ``facts`` are
    numbers that the device stated of itself, by metric name (``system.memory.limit``). ``faults`` are the sentences why
    a named metric could not be read. ``role`` is the target's (dut, generator, monitor); ``devices`` is the number
    of targets of role dut, among which the load cannot be told apart. ``earlier`` is the first of ``series`` in
    earlier runs that were named for comparison, one series a run, on the times of that run. ``polling`` are objects
    (``core=2``, "" the total, "*" all) known to poll, each with what says so. ``family`` is the number of cases
    that this rule judges in the run, this one among them: with many, some are wrong by chance. ``tenants`` are those
    who share the device, and ``machine`` is what the target reported of itself as the run began (its fingerprint, by
    section), each for rules whose traits ask for it. ``shut`` are the stretches in which an interface was
    administratively down, by its name, for rules whose traits ask; ``unread`` has the faults with object and time.
    """

    target: str
    object: str
    window: Window
    series: tuple[Series, ...] = ()
    phases: tuple[Phase, ...] = ()
    events: tuple[Event, ...] = ()
    ledgers: tuple[Ledger, ...] = ()
    load: tuple[Series, ...] = ()
    baseline: tuple[Series, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    role: str = "dut"
    devices: int = 1
    earlier: tuple[Series, ...] = ()
    polling: Mapping[str, str] = field(default_factory=dict)
    family: int = 1
    tenants: tuple[Tenant, ...] = ()
    machine: Mapping[str, Tree] = field(default_factory=dict)
    shut: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True)
class Forecast:
    """When something is reached if it goes on like this, in seconds from the end of the finding's window.

    ``low_s`` <= ``after_s`` <= ``high_s`` is the interval that holds the truth with probability ``confidence``.
    """

    what: str  # "system.memory.limit (3.80 GiB)"
    after_s: float
    low_s: float
    high_s: float
    confidence: float = 0.9


class MarkKind(StrEnum):
    """What a mark points at, where that decides what belongs together."""

    MOMENT = "moment"  # something happened; no more is known of it
    SILENCE = "silence"  # a source, or the whole management, did not answer
    DEVICE = "device"  # what died took the whole device with it
    GROUP_KILL = "group kill"  # a kill for want of memory within a control group: the host had some left


@dataclass(frozen=True, slots=True)
class Victim:
    """What died at a mark, as its source names it: a process with its pid, and the core file; empty what is not known.

    A process name may be cut to 15 characters, as the kernel does.
    """

    process: str = ""
    pid: str = ""
    core_file: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment or stretch that a finding points at: drawn in the plot, listed under the finding.

    ``planned``: an event or a phase had asked for it. ``outcome`` is set in the time line of a cause only: the worst of
    the findings whose moment it is, None of an event, which no rule judged. ``victim`` is what died at it, where a rule
    on deaths knows that: causes are told apart by it.
    """

    begin_ns: int
    end_ns: int | None
    text: str
    kind: MarkKind = MarkKind.MOMENT
    planned: bool = False
    outcome: Outcome | None = None
    victim: Victim | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says of one subject in one window, complete enough to be argued about.

    ``definition`` is one sentence with the parameters filled in; ``reason`` one sentence a person understands.
    ``measured``, ``limit`` and ``interval`` (95 % unless the definition says otherwise) are in ``unit``;
    ``smallest_detectable`` is the smallest effect that this window could have shown with 80 % power, in
    ``detectable_unit``. ``coverage`` is the share of expected readings that were there. What is not known is None.
    """

    rule: str
    version: int
    outcome: Outcome
    target: str
    metric: str
    object: str
    window: Window
    definition: str
    reason: str
    samples: int
    expected: int | None = None
    measured: float | None = None
    limit: float | None = None
    interval: tuple[float, float] | None = None
    unit: str = ""
    smallest_detectable: float | None = None
    detectable_unit: str = ""
    settle: str = ""  # what would settle an inconclusive finding ("needs 5 more minutes")
    marks: tuple[Mark, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)  # the rule's own arithmetic, by name
    doubts: tuple[str, ...] = ()  # known weaknesses of the method that matter here
    why: InconclusiveReason | None = None  # what makes an inconclusive finding so
    forecast: Forecast | None = None

    @property
    def coverage(self) -> float | None:
        """Share of the expected readings that were there (at most 1), None if nobody knows what to expect."""
        return min(1.0, self.samples / self.expected) if self.expected else None


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """How a rule wants to be used. ``needs`` tells the least data that lets it decide, in one sentence.

    ``shortest_s``: in a run that is planned shorter than this, and whose plan does not name the rule, its doubt does
    not hold up a pass. ``needs_load``: what it says depends on the load having been what the generator was told: with a
    generator at fault its findings become inconclusive. ``needs_earlier``: it compares with earlier runs, and is not
    asked where none was named. ``baseline``: it looks at the readings of the baseline phase, which are not read for
    other rules. ``live`` says what it looks at while the run goes on: "recent" readings (at most the last hour; what it
    finds there stays found), "minutes" (means of one minute since the begin), the "whole" window (for rules that look
    at events and ledgers only), or nothing before the "end". ``objects``: of the series of its metrics it looks only at
    those whose object ends so (``mode=idle``), and the others are not read; empty: at all.
    """

    needs: str
    shortest_s: float = 0.0
    needs_load: bool = False
    needs_earlier: bool = False
    live: Literal["recent", "minutes", "whole", "end"] = "recent"
    baseline: bool = False
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
    (first begin to last end); if the run had none of these, or with (), the window is the whole run. A class variable
    ``traits`` tells others more of it (``traits.Traits``); a rule without one has the defaults.
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
