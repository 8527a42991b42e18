"""Whether a run is decided: every required rule has a final answer, with an error that holds at any time of looking.

Growth is decided series by series by its e-value (``soakwatch_rules.growth.sequential``). A *fail* is final where one
series leaks, the rule ``growth`` fails it on the same data, and that was so at the look before too; or where something
died or stood still (a reboot, a crash, a restart, a hang), for that is not undone. A *pass* is final where each series
is still, and the whole judge passes the run as if it had ended now; an answer that is inconclusive is none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from types import MappingProxyType

from soakwatch.core.event_kinds import DECIDED
from soakwatch.core.formatting import quantity
from soakwatch.core.plain_names import plain_name
from soakwatch.core.units import show_seconds
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.judge import RuleUse, judge
from soakwatch.judge.judged_record import JudgeableRecord
from soakwatch.judge.until import Until
from soakwatch.plan.tenant_plan import TenantPlan
from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.series import trait_of
from soakwatch_rules.growth.sequential import (
    RISK_FAIL,
    RISK_PASS,
    Course,
    GrowthEvidence,
    growth_evidence,
    growth_rule,
    needed,
    stretches_of,
)
from soakwatch_rules.rule import Rule
from soakwatch_rules.traits import traits_of
from soakwatch_rules.wording.quantities import counted

LOOK_S = 600.0
"""Least seconds from one look to the next."""
_LOOK_SHARE = 0.03  # of the run so far: the time to the next look of a long run
LEAST_S = 7200.0
_WARM_UP = 2 / 3  # of the run, before which no growth fails without a time in the plan: caches fill for hours
MOST_KEPT = 50
"""Series whose evidence is kept in the record."""
_MOST_LOG = 300.0
_LATER = 1.1  # times the length at which the whole judge is asked again after it left something open

Name = tuple[str, str, str]
"""Target, metric and object of a series."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The final answer of a run: fail or pass, at a moment (UTC ns), in one sentence; and the evidence by series."""

    outcome: Outcome
    at_ns: int
    text: str
    evidence: Mapping[Name, GrowthEvidence] = field(default_factory=dict)

    @property
    def event(self) -> Event:
        """As the record keeps it."""
        return decided_event(self.at_ns, self.outcome, self.text, self.evidence)


def decided_event(
    at_ns: int, outcome: Outcome, text: str, evidence: Mapping[Name, GrowthEvidence] = MappingProxyType({})
) -> Event:
    """The event by which a run that ended early is not one that was broken off; with the evidence of the series that
    are nearest to another answer."""
    rows = [evidence_row(name, evidence[name]) for name in sorted(evidence)]
    rows.sort(key=lambda row: -math.inf if row.course is Course.LEAKS else max(row.leaks, row.still))
    kept = json.dumps([astuple(row) for row in rows[:MOST_KEPT]])
    detail = {"outcome": outcome.value, "text": text, "series": str(len(rows)), "evidence": kept}
    return Event(DECIDED, "", "", at_ns, at_ns, detail)


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """The evidence of one series: rates per hour, e-values as common logarithms of at most 300."""

    target: str
    metric: str
    object: str
    course: Course
    per_hour: float
    allowed_per_hour: float
    leaks: float
    still: float
    watched_s: float


def evidence_row(name: Name, found: GrowthEvidence) -> EvidenceRow:
    """The evidence of one series as it is shown."""
    leaks, still = (
        max(-_MOST_LOG, min(_MOST_LOG, e / math.log(10))) for e in (found.evidence.above, found.evidence.below)
    )
    target, metric, object_ = name
    pace, most = 3600 * found.slope, 3600 * found.allowed
    return EvidenceRow(target, metric, object_, found.course, pace, most, leaks, still, found.watched_s)


EVIDENCE_COLUMNS = ("series", "is", "growth", "allowed", "e-value: grows", "e-value: does not", "over")


def evidence_cells(row: EvidenceRow) -> tuple[str, ...]:
    """A row in words, under ``EVIDENCE_COLUMNS``."""
    unit = f"{trait_of(row.metric).unit}/h"
    return (
        f"{plain_name(row.metric, row.object)} on {row.target}",
        row.course.value,
        quantity(row.per_hour, unit),
        quantity(row.allowed_per_hour, unit),
        e_words(row.leaks),
        e_words(row.still),
        show_seconds(row.watched_s),
    )


def rows_of(event: Event) -> tuple[EvidenceRow, ...]:
    """The evidence that an event keeps; () of one that keeps none or is not understood."""
    try:
        rows = json.loads(event.detail["evidence"])
        return tuple(
            EvidenceRow(str(target), str(metric), str(object_), Course(course), *_numbers(numbers))
            for target, metric, object_, course, *numbers in rows
        )
    except (KeyError, TypeError, ValueError):
        return ()


def _numbers(given: Sequence[float]) -> tuple[float, float, float, float, float]:
    pace, most, leaks, still, watched_s = map(float, given)
    return pace, most, leaks, still, watched_s


class Decider:
    """Looks at one run again and again. ``look`` gives the decision once there is one.

    ``not_before_s`` is the time from the begin of the judged phase for which a device may warm up, None for two
    thirds of ``planned_s``, the length of the run.
    """

    def __init__(
        self, uses: Sequence[RuleUse], tenants: Sequence[TenantPlan], planned_s: float, not_before_s: float | None
    ) -> None:
        self._uses, self._tenants = tuple(uses), tuple(tenants)
        self._warm_up_s = max(LEAST_S, _WARM_UP * planned_s) if not_before_s is None else not_before_s
        self._rule = growth_rule(use.rule for use in uses)
        self._leaking: frozenset[Name] = frozenset()
        self._next_whole_s = 0.0
        self.evidence: Mapping[Name, GrowthEvidence] = {}

    def look(self, record: JudgeableRecord, now_ns: int, alarms: Iterable[Finding] = ()) -> Decision | None:
        """The decision by what the record has before a moment; ``alarms`` are new failures of the live
        judge. Raises RecordError."""
        seen = Until(record, now_ns)
        builder = CaseBuilder(seen, (), self._tenants)
        lasted_s = builder.window.seconds
        if any(map(is_final, alarms)):
            decision = self._whole(record, now_ns, lasted_s)
            if decision is not None:
                return decision
        rule = self._rule
        if lasted_s < LEAST_S or rule is None or not builder.begun(rule):
            return None
        cases = dict(self._cases(builder, rule))
        self.evidence = found = _evidence_of(cases, rule)
        if (leak := self._leak(builder, cases, found, now_ns)) is not None:
            return leak
        if not self._all_still() or lasted_s < self._next_whole_s:
            return None
        return self._whole(record, now_ns, lasted_s)

    def _cases(self, builder: CaseBuilder, rule: Rule) -> Iterator[tuple[Name, Case]]:
        for about in builder.subject_matters(rule):
            if builder.roles.get(about.target) == DUT and about.keys:
                case = builder.case(rule, about.target, about.keys, about.window)
                for series in case.series:
                    yield (about.target, series.metric, series.object), case

    def _leak(
        self, builder: CaseBuilder, cases: Mapping[Name, Case], found: Mapping[Name, GrowthEvidence], now_ns: int
    ) -> Decision | None:
        """A series that leaks now, did so at the look before, and that the rule fails."""
        before, self._leaking = self._leaking, frozenset(n for n, e in found.items() if e.course is Course.LEAKS)
        rule = self._rule
        if rule is None or builder.stretch(rule).seconds < self._warm_up_s:
            return None
        for name in sorted(self._leaking & before):
            failed = [f for f in rule.judge(cases[name]) if f.outcome is Outcome.FAIL and f.subject == name]
            if failed:
                text = _leak_words(name, found[name], cases[name], len(found))
                return Decision(Outcome.FAIL, now_ns, text, found)
        return None

    def _whole(self, record: JudgeableRecord, now_ns: int, lasted_s: float) -> Decision | None:
        """What the whole judge would say if the run ended now, where that is final."""
        self._next_whole_s = lasted_s * _LATER
        ended = Until(record, now_ns, (decided_event(now_ns, Outcome.PASS, ""),))
        verdict = judge(ended, record.meta("run") or "run", self._uses, tenants=self._tenants)
        if verdict.outcome is Outcome.PASS and self._all_still():
            return Decision(Outcome.PASS, now_ns, _still_words(self.evidence, lasted_s), self.evidence)
        final = [f for f in verdict.findings if is_final(f)]
        if verdict.outcome is Outcome.FAIL and final:
            first = final[0]
            text = f"{first.rule} failed on {first.target}: {first.sentence}"
            return Decision(Outcome.FAIL, now_ns, text, self.evidence)
        return None

    def _all_still(self) -> bool:
        return bool(self.evidence) and all(each.course is Course.STILL for each in self.evidence.values())


def looks(record: JudgeableRecord, decider: Decider) -> Decision | None:
    """The decision that a finished run would have had while it went on; None if it would have gone on to its end."""
    window = record.window()
    now_ns = window.begin_ns + round(LEAST_S * 1e9)
    while now_ns < window.end_ns:
        if (decision := decider.look(record, now_ns)) is not None:
            return decision
        now_ns += round(next_look_s((now_ns - window.begin_ns) * 1e-9) * 1e9)
    return None


def next_look_s(lasted_s: float) -> float:
    """Seconds to the next look of a run that has lasted for so long."""
    return max(LOOK_S, _LOOK_SHARE * lasted_s)


def _evidence_of(cases: Mapping[Name, Case], rule: Rule) -> dict[Name, GrowthEvidence]:
    tolerance, horizon_s = getattr(rule, "tolerance", 0.05), getattr(rule, "horizon", 86400.0)
    found = {}
    for name, case in cases.items():
        series = next(each for each in case.series if each.metric == name[1])
        found[name] = growth_evidence(
            stretches_of(series, case.window, case.events), float(tolerance), float(horizon_s), len(cases)
        )
    return found


def is_final(finding: Finding) -> bool:
    """Whether a failure is that something died or stood still, which nothing that comes later undoes; shares (of lost
    packets, of answered polls) may still become better."""
    return finding.outcome is Outcome.FAIL and traits_of(finding.rule).leads is not None


def _leak_words(name: Name, found: GrowthEvidence, case: Case, family: int) -> str:
    target, metric, object_ = name
    unit = f"{case.series[0].trait.unit}/h"
    pace, most = quantity(3600 * found.slope, unit), quantity(3600 * found.allowed, unit)
    least = needed(RISK_FAIL, family)
    return (
        f"{plain_name(metric, object_)} on {target} grows by {pace}, allowed {most}: e-value "
        f"{e_words(found.evidence.above / math.log(10))}, {least:,.0f} needed with {counted(family, 'series')}, over "
        f"{show_seconds(found.watched_s)}"
    )


def _still_words(evidence: Mapping[Name, GrowthEvidence], lasted_s: float) -> str:
    least = min(each.evidence.below for each in evidence.values()) / math.log(10)
    most = needed(RISK_PASS, len(evidence))
    return (
        f"{counted(len(evidence), 'series')} grow less than allowed (least e-value {e_words(least)}, "
        f"{most:,.0f} needed), and no rule failed or was left open, after {show_seconds(lasted_s)}"
    )


def e_words(log: float) -> str:
    """An e-value in words, from its common logarithm.

    >>> e_words(math.log10(420)), e_words(26.0), e_words(300.0), e_words(-300.0)
    ('420', '1e+26', 'beyond all bounds', '0')
    """
    if not log < _MOST_LOG:
        return "beyond all bounds"
    value = 10.0**log
    return f"{value:,.0f}" if value < 1e6 else f"{value:.0e}"
