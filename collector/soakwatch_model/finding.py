"""Finding: what one rule says of one subject, complete enough to be checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from soakwatch_model.fact import Fact
from soakwatch_model.window import Window

F = TypeVar("F", bound=Fact)


FindingName = tuple[str, str, str, str]
"""Rule, target, metric and object of a finding."""


class Outcome(StrEnum):
    """A rule's result, worst first. ``not applicable`` always has a reason."""

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    WARN = "warn"
    PASS = "pass"  # noqa: S105 - an outcome, not a password
    NOT_APPLICABLE = "not applicable"

    @property
    def rank(self) -> int:
        """Its place among the outcomes, 0 for the worst."""
        return _RANKS[self]


_RANKS = {outcome: rank for rank, outcome in enumerate(Outcome)}


class InconclusiveReason(StrEnum):
    """Why a finding is inconclusive, as a word to group by; the sentence is in ``reason``."""

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
    """When a value reaches something at the current rate, in seconds after the finding's window.

    The truth is between ``low_s`` and ``high_s`` with probability ``confidence``.
    """

    what: str  # "system.memory.limit (3.80 GiB)"
    after_s: float
    low_s: float
    high_s: float
    confidence: float = 0.9


class MarkKind(StrEnum):
    """What a mark is, where that decides which marks belong together."""

    MOMENT = "moment"  # something happened, of unknown nature
    SILENCE = "silence"  # a source, or all of the management, did not answer
    DEVICE = "device"  # the whole device died with it
    GROUP_KILL = "group kill"  # an OOM kill within a control group: the host had memory left


@dataclass(frozen=True, slots=True)
class Victim:
    """What died at a mark, as its source names it: process, pid and core file; empty if unknown.

    A process name may be cut to 15 characters by the kernel.
    """

    process: str = ""
    pid: str = ""
    core_file: str = ""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment or time span of a finding: drawn in the plot, listed with the finding.

    ``planned``: an event or phase asked for it. ``outcome`` is only set in the time line of a cause: the worst of the
    findings of that moment, None for an event. ``victim`` is what died then, if a rule on deaths knows; it
    distinguishes causes.
    """

    begin_ns: int
    end_ns: int | None
    text: str
    kind: MarkKind = MarkKind.MOMENT
    planned: bool = False
    outcome: Outcome | None = None
    victim: Victim | None = None


class Place(StrEnum):
    """Where a ruling's text goes in the finding's sentence."""

    BEFORE = "before"  # first the ruling, whose text ends in its own colon or comma
    NOTE = "note"  # last, the ruling in brackets
    BEHIND = "behind"  # last, the ruling after a semicolon
    INSTEAD = "instead"  # the ruling alone, which repeats what matters


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision about a finding after its rule wrote it: ``by`` whom, the new ``outcome``, and why.

    ``was`` is the outcome before; ``text`` goes to its ``place`` in the sentence. ``why`` is set if the outcome is
    inconclusive.
    """

    by: str
    outcome: Outcome
    why: InconclusiveReason | None
    text: str
    was: Outcome
    place: Place = Place.NOTE

    def beside(self, said: str) -> str:
        """Adds the ruling's text to the sentence so far.

        >>> note = Ruling("role", Outcome.WARN, None, "not the device", Outcome.FAIL)
        >>> note.beside("it fell"), replace(note, text="so far:", place=Place.BEFORE).beside("it fell")
        ('it fell (not the device)', 'so far: it fell')
        """
        # no match statement: the agent parses this module on Python 3.9
        if self.place is Place.BEFORE:
            return f"{self.text} {said}"
        if self.place is Place.NOTE:
            return f"{said} ({self.text})" if self.text else said
        return self.text if self.place is Place.INSTEAD else f"{said}; {self.text}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says of one subject in one window, complete enough to be checked.

    Its rule writes it once; later decisions are appended as ``rulings``, and ``outcome``, ``why`` and ``settle`` are
    those of the last one. ``facts`` are for other code; ``numbers`` are only shown. ``definition`` is one sentence with
    the rule's parameters; ``reason`` one sentence for people. ``measured``, ``limit`` and ``interval`` (95 % unless the
    definition says otherwise) are in ``unit``; ``smallest_detectable`` is the smallest effect that this window shows
    with 80 % power, in ``detectable_unit``. ``coverage`` is the share of expected readings that exist. None is unknown.
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
    settle: str = ""  # what would decide an inconclusive finding ("needs 5 more minutes")
    marks: tuple[Mark, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)  # the rule's arithmetic, by name
    doubts: tuple[str, ...] = ()  # known weaknesses of the method that matter here
    why: InconclusiveReason | None = None  # only of an inconclusive finding
    forecast: Forecast | None = None
    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()

    @property
    def own_outcome(self) -> Outcome:
        """The outcome of the rule itself, before any ruling."""
        return self.rulings[0].was if self.rulings else self.outcome

    @property
    def sentence(self) -> str:
        """The sentence for people: the rule's reason with all rulings."""
        said = self.reason
        for ruling in self.rulings:
            said = ruling.beside(said)
        return said

    def passes(self, reason: str) -> Finding:
        """This finding as a pass, with the reason."""
        return self._decided(Outcome.PASS, reason)

    def fails(self, reason: str) -> Finding:
        """This finding as a fail, with the reason."""
        return self._decided(Outcome.FAIL, reason)

    def warns(self, reason: str) -> Finding:
        """This finding as a warning, with the reason."""
        return self._decided(Outcome.WARN, reason)

    def not_applicable(self, reason: str) -> Finding:
        """This finding as not applicable, with the reason."""
        return self._decided(Outcome.NOT_APPLICABLE, reason)

    def undecided(self, reason: str, why: InconclusiveReason, settle: str = "") -> Finding:
        """This finding as inconclusive, with what would decide it."""
        return replace(self, outcome=Outcome.INCONCLUSIVE, reason=reason, why=why, settle=settle)

    def _decided(self, outcome: Outcome, reason: str) -> Finding:
        return replace(self, outcome=outcome, reason=reason, why=None, settle="")

    def ruled(
        self,
        by: str,
        outcome: Outcome,
        text: str,
        *,
        place: Place = Place.NOTE,
        why: InconclusiveReason | None = None,
        settle: str = "",
    ) -> Finding:
        """The finding with one more ruling and its outcome; ``reason`` stays the rule's."""
        ruling = Ruling(by, outcome, why, text, self.outcome, place)
        return replace(self, outcome=outcome, why=why, settle=settle, rulings=(*self.rulings, ruling))

    def fact(self, kind: type[F]) -> F | None:
        """The fact of this kind; None if there is none."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    @property
    def name(self) -> FindingName:
        """Its rule and its subject: what stays the same while its outcome changes, and from run to run."""
        return self.rule, *self.subject

    @property
    def subject(self) -> tuple[str, str, str]:
        """Target, metric and object."""
        return self.target, self.metric, self.object

    @property
    def coverage(self) -> float | None:
        """Share of the expected readings that exist (at most 1); None if the expectation is unknown."""
        return min(1.0, self.samples / self.expected) if self.expected else None
