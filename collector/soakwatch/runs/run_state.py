"""The state of a run, from its record alone: for the page, for another terminal, for whoever asks.

Nothing here talks to the run: a record that is still being written is all there is to read, and reading it costs the
run nothing. What a run knows of itself and keeps nowhere is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import ACKNOWLEDGED, STOP
from soakwatch.core.labels import LABELS_KEY, labels_in
from soakwatch.judge.rates import META as SO_FAR
from soakwatch.judge.rates import Rate, snapshot_of
from soakwatch.judge.record_verdict import recorded_plan
from soakwatch.plan import Plan
from soakwatch.plan.phase import Load
from soakwatch.plan.planned_phases import PlannedPhase, shifted, stretches
from soakwatch.record import RecordView, SeriesKey, StoredEvent
from soakwatch.record.lifecycle import Lifecycle, lifecycle_of
from soakwatch.record.model import Source, source_label
from soakwatch.runs.load_figures import METRICS
from soakwatch_model.finding import Finding
from soakwatch_model.roles import GENERATOR, MONITOR

RECOUNT_NS = 60 * 10**9
"""Polls that came late take the place of lost ones: how all polls ended is counted anew so often."""
_FRESH_NS = 180 * 10**9  # what the monitor said of itself longer ago than this is not how it is
_LOAD_NS = 30 * 10**9  # nor is a load that nobody reported for so long
_MAX_LOAD_SERIES, _MAX_EVENTS = 100, 64


@dataclass(frozen=True, slots=True)
class SourceState:
    """The account of one source: polls by how they ended, and when the last one was answered (due time, UTC ns)."""

    target: str
    source: str
    label: str
    role: str
    interval_s: float
    outcomes: Mapping[str, int]
    last_ok_ns: int | None
    failing_since_ns: int | None  # the first due time of the polls since then, none of which was answered

    @property
    def due(self) -> int:
        """Polls that were due."""
        return sum(self.outcomes.values())

    @property
    def got(self) -> int:
        """Polls that were answered."""
        return self.outcomes.get("ok", 0)


@dataclass(frozen=True, slots=True)
class PhaseState:
    """One phase as it was run, or will be as far as is known: begin and end in UTC ns."""

    name: str
    begin_ns: int
    end_ns: int
    state: Literal["over", "now", "planned"]
    load: Load | None = None
    until: str = ""


@dataclass(frozen=True, slots=True)
class NextPlanned:
    """What is planned next: a phase or an event, and when (UTC ns)."""

    kind: Literal["phase", "event", "end"]
    what: str
    at_ns: int


@dataclass(frozen=True, slots=True)
class RunState:
    """One moment of a run. ``now_ns`` is the clock of who asks; ``last_ns`` is how far the record reaches, None if it
    is empty. ``own`` holds the newest figures of the monitor itself by metric and object, of the last minutes only, and
    ``own_cpu`` its seconds of CPU a second there; ``load`` those of the generators by target, metric and object.
    ``judged_ns`` is when the rules judged last, ``rates`` how fast things grow so far; ``events`` are the newest, and
    all that people said of the run itself, in order of their numbers.
    """

    run: str
    name: str
    standing: Lifecycle
    now_ns: int
    begin_ns: int | None
    end_ns: int | None  # planned, or as it was
    last_ns: int | None
    phases: tuple[PhaseState, ...]
    coming: NextPlanned | None
    sources: tuple[SourceState, ...]
    own: Mapping[tuple[str, str], float]
    verdict: str | None
    reason: str | None
    findings: tuple[Finding, ...]
    last_event: int
    targets: tuple[str, ...] = ()
    own_cpu: float | None = None
    load: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    judged_ns: int | None = None
    events: tuple[StoredEvent, ...] = ()
    series: int = 0
    rates: tuple[Rate, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def elapsed_s(self) -> float:
        """How long it has lasted; of a run that is over, how long it did."""
        end_ns = {"running": self.now_ns, "waiting": self.begin_ns}.get(self.standing, self.last_ns)
        return 0.0 if self.begin_ns is None or end_ns is None else max(0, end_ns - self.begin_ns) * 1e-9

    @property
    def left_s(self) -> float:
        """How long it has still to go as far as is planned; 0 for one that is over."""
        if self.end_ns is None or self.standing in {"ended", "broken off"}:
            return 0.0
        return max(0, self.end_ns - max(self.now_ns, self.begin_ns or 0)) * 1e-9

    @property
    def phase(self) -> PhaseState | None:
        """The phase that goes on."""
        return next((phase for phase in self.phases if phase.state == "now"), None)


@dataclass(slots=True)
class _Count:
    """How the polls of a source ended up to a time; what is later is counted each time."""

    until_ns: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    last_ok_ns: int | None = None
    lost_ns: int | None = None
    counted_ns: int = 0


class StateReader:
    """Reads the state of one run, as often as it is asked. It remembers what it counted: ask one again, not a new one.

    Not for several threads at a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[int, _Count] = {}
        self._plan: Plan | None = None
        self._planless = False
        self._judged: tuple[bool, int | None, tuple[Finding, ...]] = False, None, ()
        self._events: dict[int, StoredEvent] = {}

    def read(self, now_ns: int) -> RunState:
        """Its state now. Raises RecordError for a record that cannot be read."""
        with RecordView.open(self._folder) as view:
            return self._of(view, now_ns)

    def _of(self, view: RecordView, now_ns: int) -> RunState:
        metas = view.metas()
        ended = metas.get("ended_ns")
        standing = lifecycle_of(metas, self._folder, now_ns)
        begin_ns = int(metas["start_ns"]) if metas.get("start_ns", "").isdecimal() else None
        plan, last_ns = self._planned(view), view.last_ns
        planned = () if plan is None or begin_ns is None else self._stretches(view, plan, begin_ns)
        phases = _phases(view, planned, standing, now_ns)
        end_ns = int(ended) if ended else planned[-1].window.end_ns if planned else None
        roles, sources, keys = view.roles(), view.sources(), view.keys()
        recounted = self._stalest(now_ns)
        own, own_cpu = _own(view, keys, last_ns)
        live = "verdict" not in metas
        findings = self._findings(view, live=live)
        newest = snapshot_of(metas.get(SO_FAR)) if live else None
        events = self._newest_events(view)
        return RunState(
            run=self._folder.name,
            name=metas.get("run", self._folder.name),
            standing=standing,
            now_ns=now_ns,
            begin_ns=begin_ns,
            end_ns=end_ns,
            last_ns=last_ns,
            phases=phases,
            coming=what_comes(phases, plan, begin_ns, end_ns, now_ns) if standing in {"waiting", "running"} else None,
            sources=tuple(self._source(view, source, sources, roles, now_ns, recounted) for source in sources),
            own=own,
            verdict=metas.get("verdict"),
            reason=metas.get("reason"),
            findings=findings,
            last_event=events[-1].id if events else 0,
            targets=tuple(roles),
            own_cpu=own_cpu,
            load=_load(view, keys, roles, last_ns),
            # findings are written when they say something else: a judging that found nothing new is later
            judged_ns=self._judged[1] if newest is None else max(newest.judged_ns, self._judged[1] or 0),
            rates=() if newest is None or standing != "running" else newest.rates,
            events=events,
            series=len(keys),
            labels=labels_in(metas.get(LABELS_KEY)),
        )

    def _findings(self, view: RecordView, *, live: bool) -> tuple[Finding, ...]:
        """The findings; they are read again when there was a judging since."""
        judged_ns = view.judged_ns(live)
        if (live, judged_ns) != self._judged[:2]:
            self._judged = live, judged_ns, view.findings(live=live)
        return self._judged[2]

    def _newest_events(self, view: RecordView) -> tuple[StoredEvent, ...]:
        """The newest events: of those that are known, the last ones may have ended since."""
        known = self._events
        for stored in view.events(max(known, default=0) - _MAX_EVENTS):
            known[stored.id] = stored
        for number in sorted(known)[:-_MAX_EVENTS]:
            if known[number].event.kind not in {STOP, ACKNOWLEDGED}:
                del known[number]
        return tuple(known[number] for number in sorted(known))

    def _planned(self, view: RecordView) -> Plan | None:
        if self._plan is None and not self._planless:
            try:
                self._plan = recorded_plan(view)
            except SoakwatchError:  # imported series, or a plan for what is not installed here
                self._planless = True
        return self._plan

    @staticmethod
    def _stretches(view: RecordView, plan: Plan, start_ns: int) -> tuple[PlannedPhase, ...]:
        begun = [phase.window.begin_ns for phase in view.phases()]
        return shifted(stretches(plan.phases, start_ns), begun)

    def _stalest(self, now_ns: int) -> int | None:
        """The source to be counted anew, one at a time: to count a long run takes a while."""
        stale = min(self._counts, key=lambda source: self._counts[source].counted_ns, default=None)
        return stale if stale is not None and now_ns - self._counts[stale].counted_ns > RECOUNT_NS else None

    def _source(
        self,
        view: RecordView,
        source: Source,
        sources: Sequence[Source],
        roles: Mapping[str, str],
        now_ns: int,
        recounted: int | None,
    ) -> SourceState:
        count = self._counts.get(source.id)
        if count is None or source.id == recounted:
            count = self._counts[source.id] = _Count(counted_ns=now_ns)
        polls = view.poll_outcomes(source.id, count.until_ns)
        total = _counted(count, polls.due_ns, polls.outcome, polls.words)
        if polls.due_ns.size > 1:  # the newest may still be joined by a late one
            settled = slice(0, -1)
            settled_count = _counted(count, polls.due_ns[settled], polls.outcome[settled], polls.words)
            settled_count.until_ns = int(polls.due_ns[-1])
            self._counts[source.id] = settled_count
        return SourceState(
            target=source.target,
            source=source.name,
            label=source_label(source, sources),
            role=source.role or roles.get(source.target, ""),
            interval_s=source.interval_ns * 1e-9,
            outcomes=dict(total.outcomes),
            last_ok_ns=total.last_ok_ns,
            failing_since_ns=total.lost_ns,
        )


def _counted(count: _Count, due_ns: NDArray[np.int64], outcome: NDArray[np.int64], words: Sequence[str]) -> _Count:
    numbers, times = np.unique(outcome, return_counts=True)
    outcomes = count.outcomes + Counter({words[int(n)]: int(t) for n, t in zip(numbers, times, strict=True)})
    well = np.flatnonzero(outcome == 0)
    last_ok_ns = int(due_ns[well[-1]]) if well.size else count.last_ok_ns
    lost = due_ns[well[-1] + 1 :] if well.size else due_ns
    first_lost_ns = int(lost[0]) if lost.size else None
    lost_ns = first_lost_ns if well.size else count.lost_ns if count.lost_ns is not None else first_lost_ns
    return _Count(count.until_ns, outcomes, last_ok_ns, lost_ns, count.counted_ns)


def _phases(
    view: RecordView, planned: Sequence[PlannedPhase], standing: Lifecycle, now_ns: int
) -> tuple[PhaseState, ...]:
    """The phases as they were, then those to come."""
    been = view.phases()
    states: list[PhaseState] = []
    for index, phase in enumerate(been):
        goes_on = index == len(been) - 1 and standing == "running"
        stretch = planned[index] if index < len(planned) else None
        end_ns = stretch.window.end_ns if goes_on and stretch is not None else phase.window.end_ns
        states.append(
            PhaseState(
                phase.name,
                phase.window.begin_ns,
                max(end_ns, now_ns) if goes_on else end_ns,
                "now" if goes_on else "over",
                None if stretch is None else stretch.load,
                "" if stretch is None else stretch.until,
            )
        )
    if standing in {"waiting", "running"}:
        states += [
            PhaseState(s.name, s.window.begin_ns, s.window.end_ns, "planned", s.load, s.until)
            for s in planned[len(been) :]
        ]
    return tuple(states)


def what_comes(
    phases: Sequence[PhaseState], plan: Plan | None, begin_ns: int | None, end_ns: int | None, now_ns: int
) -> NextPlanned | None:
    """What is planned next: a phase, an event of the plan, or the end; None where nothing is."""
    coming = [NextPlanned("phase", phase.name, phase.begin_ns) for phase in phases if phase.state == "planned"][:1]
    if end_ns is not None:
        coming.append(NextPlanned("end", "end of the run", end_ns))
    if plan is not None and begin_ns is not None:
        for event in plan.events:
            bases = [begin_ns] if event.phase is None else [p.begin_ns for p in phases if p.name == event.phase]
            for base_ns in bases:
                at_ns = base_ns + round(event.at_s * 1e9)
                if event.every_s and at_ns < now_ns:
                    every_ns = round(event.every_s * 1e9)
                    at_ns += -(-(now_ns - at_ns) // every_ns) * every_ns
                if at_ns >= now_ns and (end_ns is None or at_ns < end_ns):
                    coming.append(NextPlanned("event", event.kind, at_ns))
    later = [item for item in coming if item.at_ns >= now_ns]
    return min(later, key=lambda item: item.at_ns, default=None)


def _own(
    view: RecordView, keys: Sequence[SeriesKey], last_ns: int | None
) -> tuple[Mapping[tuple[str, str], float], float | None]:
    """What the monitor last said of itself, and its seconds of CPU a second."""
    newest: dict[tuple[str, str], float] = {}
    cpu: float | None = None
    for key in keys if last_ns is not None else ():
        if key.target != MONITOR:
            continue
        assert last_ns is not None
        series = view.series(key, last_ns - _FRESH_NS)
        if series.value.size:
            newest[key.metric, key.object] = float(series.value[-1])
        if key.metric == "monitor.cpu.time" and series.value.size > 1:
            grown, passed_s = float(series.value[-1] - series.value[0]), (series.time_ns[-1] - series.time_ns[0]) * 1e-9
            cpu = grown / passed_s if grown >= 0 and passed_s > 0 else None  # a resumed monitor counts anew
    return newest, cpu


def _load(
    view: RecordView, keys: Sequence[SeriesKey], roles: Mapping[str, str], last_ns: int | None
) -> Mapping[tuple[str, str, str], float]:
    """What the generators last said of their load, those that fell silent excepted."""
    newest: dict[tuple[str, str, str], float] = {}
    if last_ns is None:
        return newest
    shown = [key for key in keys if key.metric in METRICS and roles.get(key.target) == GENERATOR]
    for key in shown[:_MAX_LOAD_SERIES]:
        series = view.series(key, last_ns - _LOAD_NS)
        if series.value.size:
            newest[key.target, key.metric, key.object] = float(series.value[-1])
    return newest
