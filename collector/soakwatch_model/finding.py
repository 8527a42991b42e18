"""Finding: what one rule says of one subject, complete enough to be argued about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from soakwatch_model.window import Window


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
