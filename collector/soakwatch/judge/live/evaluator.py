"""Evaluates the rules again and again while a run goes on: which rule judges what, when, and which findings result.

Each evaluation judges the subjects with news first, then those that have waited longest, within its CPU budget (so
much per hundred series and minute). A subject that is not evaluated keeps its finding and that finding's window.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from soakwatch.judge.adjudicate.context import ALARMS, Context, Stand, Streak
from soakwatch.judge.adjudicate.order import adjudicate
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.decided import Decision
from soakwatch.judge.live.deciding import Deciding
from soakwatch.judge.live.growth_rates import GrowthRates
from soakwatch.judge.live.live_policy import advanced, earliest_s, lasting, lasts
from soakwatch.judge.live.run_follower import HOUR_NS, Fresh, RunFollower
from soakwatch.judge.rates import Rate
from soakwatch.record import SeriesKey
from soakwatch.record.findings import identity_of
from soakwatch.record.minutes import MINUTE_NS
from soakwatch_model.case import Case
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.rule import Rule
from soakwatch_rules.stats.medians import median
from soakwatch_rules.traits import GrowthMethod, traits_of

SHARE_S = 0.016  # CPU seconds a minute per 100 series; the rest of 20 ms is for what cannot be deferred
REJUDGE_AFTER_NS = 600_000_000_000  # a subject without news is judged again after this long
SLACK_NS = MINUTE_NS // 2
_MAX_SHARE_OF_SUBJECT = 0.25  # of one subject; one that costs more is judged less often
_SAVED_MINUTES = 10.0  # of its budget that a quiet run can save up
_LATER = 2  # the rank of subjects without news
_OWED_MINUTES = 5.0  # of its budget that news may exceed it by
_BLOCKS = 96

Name = tuple[str, str, tuple[SeriesKey, ...]]


@dataclass(slots=True, eq=False)
class Subject:
    """What one rule judges (a series, an object or a target), and its findings so far.

    ``written`` are those of the rule, each with its stand; ``reported`` is what was said of them last.
    """

    rule: Rule
    target: str
    keys: tuple[SeriesKey, ...]
    named_ns: int = 0
    evaluated_ns: int | None = None
    news: bool = True  # since it was last judged
    took_s: float = 0.0
    rests_ns: int = 0  # until then news of it waits: it is costly to judge
    written: tuple[tuple[Finding, Stand], ...] = ()
    reported: tuple[Finding, ...] = ()
    streaks: dict[tuple[str, str], Streak] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the run knows it by."""
        which = self.keys[0] if self.keys else None
        metric = which.metric if which is not None and self.rule.scope == "metric" else ""
        object_ = which.object if which is not None and self.rule.scope != "target" else ""
        return " ".join((self.rule.name, self.target, metric, object_))

    @property
    def alarmed(self) -> bool:
        """Whether it has a failure or warning, or may have one after another evaluation."""
        alarmed = any(finding.outcome in ALARMS for finding in self.reported)
        return alarmed or any(streak.times for streak in self.streaks.values())

    def covers(self, finding: Finding) -> bool:
        """Whether a finding of an earlier evaluation is about this subject."""
        if (finding.rule, finding.target) != (self.rule.name, self.target):
            return False
        if self.rule.scope == "target" or not self.keys:
            return True
        same = finding.object == self.keys[0].object
        return same and (self.rule.scope == "object" or finding.metric == self.keys[0].metric)


class LiveEvaluator:
    """Judges one run live. ``evaluate`` returns what changed: the findings of each subject that has new ones."""

    def __init__(
        self,
        following: RunFollower,
        rules: Sequence[Rule],
        cpu_s: Callable[[], float] = time.process_time,
        deciding: Deciding | None = None,
    ) -> None:
        self._following, self._cpu_s, self._deciding = following, cpu_s, deciding
        self._rules = [rule for rule in rules if rule.spec.live != "end"]
        self._every = {rule.name: rule for rule in rules}
        self._subjects: dict[Name, Subject] = {}
        self._reported: dict[str, tuple[Finding, ...]] = {}
        self._remembered: tuple[Finding, ...] = ()
        self._growth_rates = GrowthRates(next((rule for rule in self._rules if _by_shape(rule)), None))
        self._last_ns: int | None = None
        self._left_s = 0.0  # of the share; below 0 it is owed

    def remember(self, findings: Sequence[Finding]) -> None:
        """Take the findings of earlier evaluations of this run: they hold until replaced."""
        self._remembered = tuple(findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All current findings."""
        return tuple(finding for findings in self._reported.values() for finding in findings)

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The growth rates so far."""
        return self._growth_rates.rates

    def decision(self) -> Decision | None:
        """The final answer of the run, if its plan asks for one and there is one. Raises RecordError."""
        if self._deciding is None or self._following.first_ns is None:
            return None
        return self._deciding.look(self._following.window, self.findings)

    @property
    def nbytes(self) -> int:
        """Bytes of readings that are held in memory."""
        return self._following.nbytes

    @property
    def forgot(self) -> str:
        """What it does not remember any more, in a sentence; "" if it remembers all that it needs."""
        return self._following.forgot

    def evaluate(self) -> Mapping[str, tuple[Finding, ...]]:
        """Read what is new and judge. Raises RecordError."""
        began_s, first = self._cpu_s(), self._last_ns is None
        fresh = self._following.read()
        if self._following.first_ns is None:
            return {}
        now_ns = self._following.window.end_ns
        share_s = SHARE_S * max(1.0, len(self._following.known) / 100)
        minutes = _SAVED_MINUTES if self._last_ns is None else max(0, now_ns - self._last_ns) / MINUTE_NS
        self._left_s = min(self._left_s + minutes * share_s, _SAVED_MINUTES * share_s)
        self._last_ns = now_ns
        case_builder = CaseBuilder(self._following.through("whole"))
        builders: dict[str, CaseBuilder] = {"whole": case_builder}
        if fresh.layout:
            self._name_subjects(case_builder, now_ns)
        self._growth_rates.update(case_builder, self._following)
        if not first:  # the first look takes in the past, and imports the rules: once
            self._left_s -= self._cpu_s() - began_s
        for subject, urgent in self._due(case_builder, fresh, now_ns):
            if self._left_s < (-_OWED_MINUTES * share_s if urgent else 0.0):
                break
            began_s = self._cpu_s()
            live = subject.rule.spec.live
            if live not in builders and live != "end":
                builders[live] = case_builder.seeing(self._following.through(live))
            self._judge(builders[live], subject, now_ns)
            took_s = self._cpu_s() - began_s
            self._left_s -= took_s
            rest_s = min(subject.took_s, took_s) / (_MAX_SHARE_OF_SUBJECT * share_s) * 60  # the first look also imports
            subject.rests_ns = now_ns + min(REJUDGE_AFTER_NS, round(rest_s * 1e9)) - SLACK_NS
            subject.took_s = took_s
        news = self._news(case_builder)
        self._following.rest()
        return news

    def _name_subjects(self, case_builder: CaseBuilder, now_ns: int) -> None:
        """Update the subjects; those known before keep their findings."""
        named: dict[Name, Subject] = {}
        for rule in self._rules:
            for target, keys in case_builder.subjects(rule):
                name = rule.name, target, tuple(keys)
                subject = self._subjects.get(name)
                if subject is None:
                    subject = Subject(rule, target, tuple(keys))
                    # as if looked at some minutes ago, so that a hundred series do not fall due together
                    subject.named_ns = now_ns - zlib.crc32(subject.name.encode()) % 10 * MINUTE_NS
                    before = [s for s in self._subjects.values() if s.name == subject.name]  # it has a series more
                    if before:
                        subject.written, subject.streaks = before[0].written, before[0].streaks
                        subject.reported = before[0].reported
                    self._recall(subject)
                named[name] = subject
        self._subjects = named
        self._remembered = ()

    def _recall(self, subject: Subject) -> None:
        mine = tuple(finding for finding in self._remembered if subject.covers(finding))
        if mine:
            subject.written, subject.reported = tuple((f, Stand("recalled")) for f in mine), mine
            subject.streaks = {
                (f.metric, f.object): Streak(2, f.window.end_ns, reported=True)
                for f in mine
                if f.outcome is Outcome.WARN
            }

    def _due(self, case_builder: CaseBuilder, fresh: Fresh, now_ns: int) -> list[tuple[Subject, bool]]:
        """The subjects to judge, the most urgent first."""
        due: list[tuple[int, int, str, Subject]] = []
        for subject in self._subjects.values():
            rule, evaluated_ns = subject.rule, subject.evaluated_ns
            stretch = case_builder.stretch(rule)
            over = evaluated_ns is not None and stretch.end_ns <= evaluated_ns
            if over or not case_builder.begun(rule) or stretch.end_ns <= stretch.begin_ns:
                continue
            if rule.spec.live == "recent" and stretch.end_ns < now_ns - HOUR_NS:
                continue  # nothing of it is kept: what was said of it stands
            subject.news |= fresh.touches(subject.target, subject.keys)
            pressing = subject.target in fresh.struck  # something happened to it: nothing rests now
            news = rule.spec.live != "minutes" and subject.news and (pressing or now_ns >= subject.rests_ns)
            waited_ns = now_ns - (subject.named_ns if evaluated_ns is None else evaluated_ns)
            if news or waited_ns >= REJUDGE_AFTER_NS - SLACK_NS:
                rank = 0 if news and pressing else 1 if news else 2
                due.append((rank, 0 if evaluated_ns is None else evaluated_ns, subject.name, subject))
        due.sort(key=lambda entry: entry[:3])
        return [(subject, rank < _LATER) for rank, _, _, subject in due]

    def _judge(self, case_builder: CaseBuilder, subject: Subject, now_ns: int) -> None:
        rule, stretch = subject.rule, case_builder.stretch(subject.rule)
        subject.evaluated_ns, subject.news = now_ns, False
        if rule.spec.live == "recent":
            stretch = Window(max(stretch.begin_ns, stretch.end_ns - HOUR_NS), stretch.end_ns)
        planned_s = None if case_builder.planned is None else case_builder.planned.duration_s
        if rule.spec.live == "minutes" and stretch.seconds < earliest_s(rule, planned_s):
            return
        case = case_builder.case(rule, subject.target, subject.keys, stretch)
        if rule.spec.live == "minutes" and not subject.alarmed and not _worth_judging(rule, case):
            subject.written = ()  # nothing to tell; what was said before is old
            return
        before = {(f.metric, f.object): (f, stand) for f, stand in subject.written}
        written = []
        for finding in rule.judge(case):
            key = finding.metric, finding.object
            if rule.spec.live == "minutes":
                subject.streaks[key] = advanced(subject.streaks.get(key, Streak()), finding)
                written.append((finding, Stand("minutes", streak=subject.streaks[key])))
            elif rule.spec.live == "recent":
                part = finding.window.begin_ns > case_builder.window.begin_ns
                now = finding, Stand("recent", last_hour=part)
                written.append(lasting(before[key], now) if key in before else now)
            else:
                written.append((finding, Stand("whole")))
        if rule.spec.live == "recent":
            found = {(f.metric, f.object) for f, _ in written}
            gone = [each for key, each in before.items() if key not in found and lasts(each[0])]
            written += gone
        subject.written = tuple(written)

    def _news(self, case_builder: CaseBuilder) -> Mapping[str, tuple[Finding, ...]]:
        """The findings of each subject that changed; none for a subject that is gone."""
        every = [(subject, *each) for subject in self._subjects.values() for each in subject.written]
        stands = [stand for _, _, stand in every]
        context = Context(case_builder, self._every, stands=stands, in_minutes=self._following.in_minutes)
        shown = adjudicate([finding for _, finding, _ in every], context, live=True)
        now: dict[str, list[Finding]] = {}
        for (subject, _, _), finding in zip(every, shown, strict=True):
            now.setdefault(subject.name, []).append(finding)
        reported = {name: tuple(findings) for name, findings in now.items()}
        for subject in self._subjects.values():
            subject.reported = reported.get(subject.name, ())
        changed = {
            name: findings
            for name, findings in reported.items()
            if len(findings) != len(old := self._reported.get(name, ())) or any(map(_differs, findings, old))
        }
        changed |= {name: () for name in self._reported if name not in reported}
        self._reported = reported
        return changed


def _differs(finding: Finding, other: Finding) -> bool:
    return finding is not other and (finding.window != other.window or identity_of(finding) != identity_of(other))


def _by_shape(rule: Rule) -> bool:
    return traits_of(rule.name).growth is GrowthMethod.SHAPE


def _worth_judging(rule: Rule, case: Case) -> bool:
    """A cheap guard for the growth of single series: whether growth beyond the tolerance is possible at all."""
    share: object = getattr(rule, "tolerance", None)
    horizon_s: object = getattr(rule, "horizon", None)
    if not _by_shape(rule) or not isinstance(share, float) or not isinstance(horizon_s, float):
        return True
    from soakwatch_rules.stats.judge_trend import may_grow  # with scipy, which waits until a trend is looked at
    from soakwatch_rules.stats.tolerance import Tolerance

    for series in case.series:
        some = series.finite()
        if len(some) < _BLOCKS:
            continue
        edges = np.linspace(0, len(some), _BLOCKS, endpoint=False).astype(np.int64)
        counts = np.diff(np.append(edges, len(some)))
        with np.errstate(over="ignore", invalid="ignore"):
            times, values = (np.add.reduceat(column, edges) / counts for column in (some.seconds, some.values))
        values = -values if some.trait.growth == "down" else values
        tolerance = Tolerance(share, horizon_s, some.trait.floor)
        if may_grow(times, values, tolerance.per_second(median(values), case.window.seconds)):
            return True
    return False
