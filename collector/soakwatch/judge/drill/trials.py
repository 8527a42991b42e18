"""The trials of a drill: each size of each fault at each place, judged as the run was judged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from soakwatch.judge.drill.kinds import KINDS, Ground, Kind, Subject, level
from soakwatch.judge.drill.overlay import Fault, Overlay, ReadOnce
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.record_verdict import recorded_tenants, rules_for
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch.record import RecordView, SeriesKey
from soakwatch_model.finding import Finding, FindingName, Outcome
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_rules.rule import Rule
from soakwatch_rules.stats.medians import median
from soakwatch_rules.traits import Judges, traits_of

ENOUGH: Final = 0.9
"""In this share of the places a fault must be found for its size to count as seen."""
_REDRAWN: Final = 5  # draw at most this many times the places asked for, since some are unusable
_ALARMS: Final = frozenset({Outcome.FAIL, Outcome.WARN})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fault is put: its subject and a share of the stretch, which the kind of fault turns into a time."""

    subject: Subject
    at: float
    before: Mapping[FindingName, Finding]  # findings there without the fault


@dataclass(frozen=True, slots=True)
class SizeTried:
    """The results of one size: in how many of ``places`` a rule ``failed``, ``found`` it (failed or warned; for a
    silence also inconclusive), or was only ``undecided``. ``rules`` counts those that found it."""

    size: float
    places: int
    found: int
    failed: int
    undecided: int
    rules: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KindTried:
    """The results of one kind of fault. ``stated`` is the smallest effect that each rule which found it states for the
    unchanged run, in the unit of the sizes (median over the places). ``note`` says why not all was tried."""

    kind: Kind
    subjects: tuple[str, ...]
    tried: tuple[SizeTried, ...]
    stated: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def smallest_found(self) -> float | None:
        """The smallest size such that it and all larger ones are found in nine of ten places; None if none is."""
        return _smallest([(t.size, t.found, t.places) for t in self.tried])

    @property
    def smallest_failed(self) -> float | None:
        """The same for what fails the run."""
        return _smallest([(t.size, t.failed, t.places) for t in self.tried])


def _smallest(tried: Sequence[tuple[float, int, int]]) -> float | None:
    """The smallest size that is found often enough, together with all larger ones.

    >>> _smallest([(1, 0, 10), (2, 9, 10), (5, 8, 10), (10, 9, 10), (20, 10, 10)]), _smallest([(1, 0, 10)])
    (10, None)
    """
    smallest = None
    for size, found, places in reversed(tried):
        if not places or found < ENOUGH * places:
            break
        smallest = size
    return smallest


@dataclass(frozen=True, slots=True)
class Estimate:
    """How many copies are judged at most, and how many CPU seconds that takes."""

    copies: int
    seconds: float


class Drill:
    """A drill on one record. The same record, seed and number of places give the same table.

    Place ``i`` of a kind is drawn from the seed, the kind and ``i``: asking for more places keeps the first ones.
    """

    def __init__(self, view: RecordView, seed: int, places: int, kinds: Sequence[str] = ()) -> None:
        self._record = ReadOnce(view)
        self._run = view.meta("run") or "run"
        self._uses: list[RuleUse] = rules_for(view)
        self._tenants: tuple[TenantPlan, ...] = recorded_tenants(view)
        self._ground = Ground.of(self._record)
        self._seed, self._places = seed, places
        self._before: dict[tuple[str, Subject], Mapping[FindingName, Finding]] = {}
        self.kinds = tuple(kind for kind in KINDS if not kinds or kind.name in kinds)
        self._drawn: dict[str, list[Place]] = {}
        self._failing: dict[str, dict[str, frozenset[str]]] = {}  # kind, subject, the rules that fail
        self._took_s: dict[str, float] = {}

    @property
    def ground(self) -> Ground:
        return self._ground

    def prepare(self) -> Estimate:
        """Draw the places and judge them without a fault, which also measures the time a copy takes."""
        copies, seconds = 0, 0.0
        for kind in self.kinds:
            places = self._draw(kind)
            number = len(places) * len(kind.sizes_in(self._ground))
            copies += number
            seconds += number * self._took_s.get(kind.name, 0.0)
        return Estimate(copies, seconds)

    def run(self, one_more: Callable[[], None]) -> Iterator[KindTried]:
        """Try one kind after the other; ``one_more`` is called for each copy that was judged or skipped."""
        for kind in self.kinds:
            yield self._try(kind, one_more)

    def _draw(self, kind: Kind) -> list[Place]:
        """The places of a kind. A subject that fails without a fault is left out: nothing more could be seen."""
        subjects = kind.subjects(self._ground)
        drawn = self._drawn.setdefault(kind.name, [])
        failing = self._failing.setdefault(kind.name, {})
        sizes = kind.sizes_in(self._ground)
        if not subjects or not sizes:
            return drawn
        number = list(KINDS).index(kind)
        for index in range(_REDRAWN * self._places):
            rng = np.random.default_rng([self._seed, number, index])
            subject, at = subjects[int(rng.integers(len(subjects)))], float(rng.random())
            before = self._unharmed(kind, subject, at, sizes[-1])
            if fails := frozenset(f.rule for f in before.values() if f.outcome is Outcome.FAIL):
                failing[subject.name] = failing.get(subject.name, frozenset()) | fails
                continue
            drawn.append(Place(subject, at, before))
            if len(drawn) == self._places:
                break
        return drawn

    def _unharmed(self, kind: Kind, subject: Subject, at: float, size: float) -> Mapping[FindingName, Finding]:
        """The findings without a fault, of the rules that it concerns."""
        name = kind.name, subject
        if name not in self._before:
            changed = kind.fault(self._ground, subject, at, size)
            self._judged(subject, Fault({}), changed)  # load readings and rules before measuring the time
            began_s = time.process_time()
            self._before[name] = self._judged(subject, Fault({}), changed)
            self._took_s[kind.name] = max(self._took_s.get(kind.name, 0.0), time.process_time() - began_s)
        return self._before[name]

    def _judged(self, subject: Subject, fault: Fault, concerns: Fault) -> Mapping[FindingName, Finding]:
        """The findings of the record with ``fault`` laid over it, in the cases that ``concerns`` touches."""
        verdict = judge(
            Overlay(self._record, fault),
            self._run,
            self._uses,
            tenants=self._tenants,
            concerned=concerned_by(concerns, subject.target),
        )
        return {f.name: f for f in verdict.findings}

    def _try(self, kind: Kind, one_more: Callable[[], None]) -> KindTried:
        places = self._drawn[kind.name] if kind.name in self._drawn else self._draw(kind)
        failing = self._failing.get(kind.name, {})
        if not places:
            note = f"no {kind.lacking} was recorded for the whole run"
            if failing:
                note = f"not tried: {_already(frozenset().union(*failing.values()))} in this run"
            elif not kind.sizes_in(self._ground):
                note = "the run is too short"
            return KindTried(kind, (), (), note=note)
        tried: list[SizeTried] = []
        sizes = kind.sizes_in(self._ground)
        for number, size in enumerate(sizes):
            tried.append(self._size(kind, size, places, one_more))
            if len(tried) > 1 and all(each.failed == each.places for each in tried[-2:]):
                for _ in range(len(places) * (len(sizes) - number - 1)):
                    one_more()
                break
        subjects = tuple(dict.fromkeys(place.subject.name for place in places))
        notes = [f"not tried on {name}: {_already(rules)} in this run" for name, rules in failing.items()]
        doubts = {(place.subject.name, rule) for place in places for rule in _undecided(place)}
        notes += [
            f"{name} is inconclusive by {rule} without any fault, which adds to it" for name, rule in sorted(doubts)
        ]
        if len(places) < self._places:
            notes.append(f"{len(places)} of {self._places} places")
        return KindTried(kind, subjects, tuple(tried), self._stated(kind, tried, places), "; ".join(notes))

    def _size(self, kind: Kind, size: float, places: Sequence[Place], one_more: Callable[[], None]) -> SizeTried:
        found = failed = undecided = 0
        rules: Counter[str] = Counter()
        for place in places:
            fault = kind.fault(self._ground, place.subject, place.at, size)
            worse = worse_than(place.before, self._judged(place.subject, fault, fault))
            outcomes = {finding.outcome for finding in worse}
            seen = _ALARMS | {Outcome.INCONCLUSIVE} if kind.doubt else _ALARMS
            found += bool(outcomes & seen)
            failed += Outcome.FAIL in outcomes
            undecided += outcomes == {Outcome.INCONCLUSIVE}
            rules.update({finding.rule for finding in worse if finding.outcome in seen})
            one_more()
        return SizeTried(size, len(places), found, failed, undecided, dict(sorted(rules.items())))

    def _stated(self, kind: Kind, tried: Sequence[SizeTried], places: Sequence[Place]) -> Mapping[str, float]:
        """The smallest detectable effect, as stated by the rules that found the fault."""
        seen = {rule for each in tried for rule in each.rules}
        stated: dict[str, list[float]] = {}
        for place in places:
            first = place.subject.keys[0]
            for finding in place.before.values():
                own = finding.metric in {"", first.metric} or finding.metric not in {
                    k.metric for k in place.subject.keys
                }
                value = finding.smallest_detectable
                if finding.rule not in seen or value is None or not own:
                    continue
                if kind.name == "leak":
                    value = self._as_growth(finding, first, value)
                elif finding.detectable_unit != kind.unit:
                    value = None
                if value is not None:
                    stated.setdefault(finding.rule, []).append(value)
        return {rule: median(values) for rule, values in sorted(stated.items())}

    def _as_growth(self, finding: Finding, key: SeriesKey, value: float) -> float | None:
        """Convert a rate per hour to growth over the finding's window as a share of the series' level."""
        series = self._record.series(key)
        high = level(series)
        if finding.detectable_unit != f"{series.trait.unit}/h" or not high:
            return None
        return value * finding.window.seconds / 3600 / high


def _undecided(place: Place) -> list[str]:
    """The rules that are inconclusive on the very series that the fault changes."""
    own = place.subject.keys[0]
    return [
        finding.rule
        for finding in place.before.values()
        if finding.outcome is Outcome.INCONCLUSIVE and (finding.metric, finding.object) == (own.metric, own.object)
    ]


def concerned_by(fault: Fault, target: str) -> Callable[[Rule, str, Sequence[SeriesKey]], bool]:
    """Which cases a fault can change: those with a changed series and, if it changes the load, those that judge the
    load; for a silent source those that count its polls."""
    load = any(key.metric in WHOLE_LOAD for key in fault.series)

    def concerned(rule: Rule, of: str, keys: Sequence[SeriesKey]) -> bool:
        traits = traits_of(rule.name)
        if fault.silent is not None:
            return traits.judges in {Judges.ANSWERS, Judges.GENERATOR} and of == target
        if any(key in fault.series for key in keys):
            return True
        return (
            load
            and rule.scope == "target"
            and (rule.spec.needs_load or traits.judges is Judges.GENERATOR or traits.standstill)
        )

    return concerned


def worse_than(before: Mapping[FindingName, Finding], now: Mapping[FindingName, Finding]) -> list[Finding]:
    """The findings that are graver than before: a new failure, warning or doubt."""
    order = [Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE]

    def grave(finding: Finding | None) -> int:
        return order.index(finding.outcome) if finding is not None and finding.outcome in order else len(order)

    return [finding for name, finding in now.items() if grave(finding) < grave(before.get(name))]


def _already(rules: frozenset[str]) -> str:
    """Which rules fail without a fault, so that none could be seen.

    >>> _already(frozenset({"loss"})), _already(frozenset({"loss", "drops"}))
    ('loss already fails', 'drops and loss already fail')
    """
    names = sorted(rules)
    return f"{' and '.join(names)} already fail{'s' if len(names) == 1 else ''}"
