"""Finding: what one rule says of one subject, complete enough to be argued about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from soakwatch_model.fact import Fact
from soakwatch_model.window import Window

F = TypeVar("F", bound=Fact)


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


class Place(StrEnum):
    """Where the words of a ruling stand in the sentence that a person reads."""

    BEFORE = "before"  # the ruling, then what was said so far; the text brings its own colon or comma
    NOTE = "note"  # what was said so far, and the ruling in brackets
    BEHIND = "behind"  # what was said so far; the ruling
    INSTEAD = "instead"  # the ruling alone, which says itself what was said so far


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is decided about a finding after its rule wrote it: ``by`` whom, the ``outcome`` from then on, and why.

    ``was`` is the outcome before it; ``text`` stands at its ``place`` in the sentence that is shown. ``why`` is set
    of an inconclusive outcome.
    """

    by: str
    outcome: Outcome
    why: InconclusiveReason | None
    text: str
    was: Outcome
    place: Place = Place.NOTE

    def beside(self, said: str) -> str:
        """The words of the ruling beside what was said so far.

        >>> note = Ruling("role", Outcome.WARN, None, "not the device", Outcome.FAIL)
        >>> note.beside("it fell"), replace(note, text="so far:", place=Place.BEFORE).beside("it fell")
        ('it fell (not the device)', 'so far: it fell')
        """
        # no match statement: the module is parsed on Python 3.9, in the agent
        if self.place is Place.BEFORE:
            return f"{self.text} {said}"
        if self.place is Place.NOTE:
            return f"{said} ({self.text})" if self.text else said
        return self.text if self.place is Place.INSTEAD else f"{said}; {self.text}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule says of one subject in one window, complete enough to be argued about.

    Its rule writes it once; what others decide about it is appended as ``rulings``, and ``outcome``, ``why`` and
    ``settle`` are those of the last one. ``facts`` are what others may know of it; ``numbers`` are only shown.
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
    facts: tuple[Fact, ...] = ()
    rulings: tuple[Ruling, ...] = ()

    @property
    def own_outcome(self) -> Outcome:
        """What the rule itself said, whatever was decided about it since."""
        return self.rulings[0].was if self.rulings else self.outcome

    @property
    def sentence(self) -> str:
        """What a person reads: the reason of the rule, and what was decided about it since."""
        said = self.reason
        for ruling in self.rulings:
            said = ruling.beside(said)
        return said

    def passes(self, reason: str) -> Finding:
        """The same with what its rule says: all is well, and why."""
        return self._decided(Outcome.PASS, reason)

    def fails(self, reason: str) -> Finding:
        """The same with what its rule says: a limit is broken, and how."""
        return self._decided(Outcome.FAIL, reason)

    def warns(self, reason: str) -> Finding:
        """The same with what its rule says: somebody should look."""
        return self._decided(Outcome.WARN, reason)

    def not_applicable(self, reason: str) -> Finding:
        """The same with what its rule says: there is nothing to judge here, and why."""
        return self._decided(Outcome.NOT_APPLICABLE, reason)

    def undecided(self, reason: str, why: InconclusiveReason, settle: str = "") -> Finding:
        """The same as inconclusive, with what would settle it."""
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
        """The finding with one more ruling, by which it has this outcome; its reason stays what the rule said."""
        ruling = Ruling(by, outcome, why, text, self.outcome, place)
        return replace(self, outcome=outcome, why=why, settle=settle, rulings=(*self.rulings, ruling))

    def fact(self, kind: type[F]) -> F | None:
        """The fact of this kind, None where the rule states none."""
        return next((fact for fact in self.facts if isinstance(fact, kind)), None)

    @property
    def coverage(self) -> float | None:
        """Share of the expected readings that were there (at most 1), None if nobody knows what to expect."""
        return min(1.0, self.samples / self.expected) if self.expected else None
