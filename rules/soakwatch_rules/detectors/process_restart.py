"""Process restarts: a watched process that was replaced by a new one, or is gone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.fact import Fact, Gone, Happened
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, Outcome
from soakwatch_model.label import label
from soakwatch_model.series import Ints, Series
from soakwatch_rules.events.incidents import Incident, incidents
from soakwatch_rules.events.intents import AssignedIncidents, Intent, assign_incidents, intents
from soakwatch_rules.events.process_life import (
    START_TIME,
    down_windows,
    gone_at,
    is_child_replaced,
    reported_restarts,
    restart_words,
    start_changes,
)
from soakwatch_rules.finding_draft import draft, faults
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Crash, Family, Guide, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment


@dataclass(frozen=True, slots=True)
class ProcessRestart(Parameters):
    """Fails if a watched process restarted more than ``allowed`` times, or is gone at the end.

    A restart is a change of the start time by more than 2 s (of the pid if there is no start time), ``process.up`` = 0
    between two readings of 1, or an event ``process.restart``; ``process.exit`` is further evidence. Reports within two
    samples of each other are one restart, two of the same kind are two. Not counted: the first appearance, and
    announced restarts between start and deadline of their event (``process.restart: N``, or those that a planned
    ``reboot`` brings); an announced restart that does not happen fails too. A process that is gone at the end always
    fails unless an announced event is still in progress; a further instance that appeared after the start only warns.

    If a child of a process of the same watch (``process.child``: a session, a worker of a pool) ends and another takes
    its place, that is no restart; one that existed from the start and is replaced once, unannounced, warns.

    Start times are compared across gaps, so a restart while the monitor was away is found.

    How often wrong: every change of start time is found. Known weaknesses: two restarts between two samples count as
    one unless events report both. A step of the device's clock can move a start time: with a ``clock.step`` event
    between the samples and the same pid it is taken for such a step, and noted as uncertain.

    Neighbours: ``reboot`` judges the whole device, ``core_dump`` and ``oom_kill`` the cause, ``event_impact`` the cost
    of an announced restart.

    Parameters: ``allowed`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> starts = np.where(np.arange(60) < 40, 1000.0, 1040.0)
    >>> series = readings("process.start_time", starts, 1.0, object="process=web,instance=0")
    >>> finding = ProcessRestart().judge(Case("dut", series.object, Window(0, 60 * 10**9), (series,)))[0]
    >>> finding.outcome.value, finding.measured
    ('fail', 1.0)

    References: OpenConfig feature profiles SYS-6.1 (pid and start time unchanged).
    """

    name: ClassVar[str] = "process_restart"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "a watched process restarted or exited"
    metrics: ClassVar[tuple[str, ...]] = (
        "process.up",
        "process.start_time",
        "process.pid",
        "process.count",
        "process.child",
    )
    scope: ClassVar[Literal["object", "metric", "target"]] = "object"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec(
        "two samples of the process, from its first to the end of the window", live="whole"
    )

    allowed: float = parameter(0.0, "{restart}", "allowed restarts", "a soak should have none")

    def definition(self) -> str:
        return (
            f"a restart is a new start time, a time down between two up, or a reported restart; more than "
            f"{self.allowed:g} unplanned restarts fail, as do a process that is gone at the end and a planned "
            f"restart that did not happen"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding for each instance; one for the whole watch only if nothing ever matched it."""
        series = {s.metric: s.between(case.window.begin_ns, case.window.end_ns).finite() for s in case.series}
        if label(case.object, "instance") is None:
            count = series.get("process.count")
            if case.series and (count is None or bool(np.any(count.values > 0))):
                return ()
        up, starts = series.get("process.up"), series.get("process.start_time", series.get("process.pid"))
        alive_ns = [s.time_ns for s in (starts,) if s is not None]
        alive_ns += [up.time_ns[up.values > 0]] if up is not None else []
        first_ns = min((int(t[0]) for t in alive_ns if t.size), default=None)
        about = next((s for s in (up, starts, series.get("process.count")) if s is not None), None)
        finding = replace(draft(self, case, about), unit="{restart}", limit=self.allowed)
        if first_ns is None:
            never = "no such process ever ran" if about is not None and len(about) else "no samples of it"
            why = f": {faults(case.faults)}" if case.faults else ""
            return (
                finding.undecided(
                    f"{_name(case)}: {never}{why}",
                    InconclusiveReason.UNREAD,
                    "check the name, glob or pidfile under watch:",
                ),
            )
        return (self._of(case, finding, up, starts, series.get("process.child"), first_ns),)

    def _of(
        self,
        case: Case,
        finding: Finding,
        up: Series | None,
        starts: Series | None,
        child: Series | None,
        first_ns: int,
    ) -> Finding:
        apart_s = min((a for s in (up, starts) if s is not None and (a := spacing(s)) is not None), default=1.0)
        slack_ns = round(2e9 * apart_s)
        happened = _happened(case, up, starts, child, slack_ns)
        back, children, gone_ns = happened.back, happened.children, happened.gone_ns
        # What of it was announced, for this process or any.
        others = [e.begin_ns for e in case.events if _elsewhere(e, case)] + [i.end_ns for i in children]
        announced = _announced(case)
        assigned = assign_incidents(back, announced, case.window, "restart", slack_ns, others)
        number = len(assigned.unplanned)
        marks = [Mark(i.begin_ns, i.end_ns, f"restarted {restart_words(i)}") for i in back]
        marks += [Mark(gone_ns, None, "exited and has not come back")] if gone_ns is not None else []
        finding = replace(
            finding,
            measured=float(number),
            marks=tuple(marks),
            facts=tuple(_facts(case, assigned.unplanned, gone_ns)),
            doubts=tuple(
                f"the start time changed at {moment(i.end_ns)} together with the clock: taken for a clock step"
                for i in happened.stepped
            ),
            numbers={"restarts": float(len(back)), "planned": float(len(assigned.planned))},
        )
        waited = gone_ns is not None and any(
            i.begin_ns - slack_ns <= gone_ns and i.end_ns >= case.window.end_ns for i in announced
        )
        late_s = (first_ns - case.window.begin_ns) * 1e-9
        failed = self._failed(case, finding, assigned, None if waited else gone_ns, late=late_s > 3 * apart_s)
        if failed is not None:
            return failed
        if assigned.open or waited:
            reason = next(iter(assigned.open), "it is down while a planned event is in progress")
            return finding.undecided(
                f"{_name(case)}: {reason}", InconclusiveReason.PENDING, "judge again after the deadline"
            )
        both = _times(up, starts)
        begin_ns = int(both[0]) if both.size else case.window.begin_ns  # a late start is no gap; the reason states it
        blind = unseen(both, replace(case.window, begin_ns=begin_ns))
        if blind:
            return finding.undecided(
                f"{_name(case)}: {blind}", InconclusiveReason.GAP, "needs samples to the end of the run"
            )
        replaced = assign_incidents(children, announced, case.window, "restart", slack_ns).unplanned
        if len(replaced) == 1 and late_s <= 3 * apart_s and up is not None and up.values[-1] > 0:
            return _worker_replaced(case, finding, replaced[0])
        calm = f"{counted(number, 'restart')}, {len(assigned.planned)} planned" if back else "no restart"
        late = (
            f"; it appeared at {moment(first_ns)}, {duration(late_s)} after the start" if late_s > 3 * apart_s else ""
        )
        visits = f"; {counted(len(children), 'change')} of child processes (sessions, workers)" if children else ""
        return finding.passes(f"{_name(case)}: {calm}{visits}{late}")

    def _failed(
        self, case: Case, finding: Finding, assigned: AssignedIncidents, gone_ns: int | None, *, late: bool
    ) -> Finding | None:
        """The failed finding if it is gone, restarted too often, or an announcement was not kept; else None.

        A further instance that appeared ``late`` only warns.
        """
        number = len(assigned.unplanned)
        faulty = [] if gone_ns is None else [f"exited at {moment(gone_ns)} and has not come back"]
        if number > self.allowed:
            times = first_few([f"{moment(i.end_ns)} {restart_words(i)}" for i in assigned.unplanned])
            faulty.insert(0, f"restarted at {times}" if number == 1 else f"restarted {number} times: {times}")
        own_words = bool(faulty)
        faulty += assigned.broken
        if not faulty:
            return None
        if number <= self.allowed:
            finding = replace(finding, measured=None, limit=None)  # what failed is not a number of restarts
        reason = f"{_name(case)}{' ' if own_words else ': '}{'; '.join(faulty)}"
        if late and label(case.object, "instance") != "0" and not assigned.broken:
            return finding.warns(
                f"{reason}; it appeared after the start beside others of that name: whether it should stay is not known"
            )
        return finding.fails(reason)


@dataclass(frozen=True, slots=True)
class _Happened:
    """The restarts that a process came back from (``back``), and when it went for good (None: it lives).

    Not among them: replaced ``children`` (sessions, workers), and clock steps that moved a start time (``stepped``).
    """

    back: list[Incident]
    children: list[Incident]
    stepped: list[Incident]
    gone_ns: int | None


def _happened(case: Case, up: Series | None, starts: Series | None, child: Series | None, slack_ns: int) -> _Happened:
    own = [e for e in case.events if e.object == case.object and not e.expect]
    every = incidents((*start_changes(starts), *down_windows(up), *reported_restarts(own)), slack_ns)
    children = [i for i in every if is_child_replaced(i, child)]
    seen = [i for i in every if i not in children]
    clock_ns = sorted(e.begin_ns for e in case.events if e.kind == "clock.step")
    stepped = [i for i in seen if _clock_step(i, clock_ns, slack_ns)]
    gone_ns = None if child is not None and len(child) and child.values[-1] > 0 else gone_at(up, starts, own)
    back = [i for i in seen if i not in stepped and not _last_exit(i, gone_ns, slack_ns)]
    return _Happened(back, children, stepped, gone_ns)


def _times(*some_series: Series | None) -> Ints:
    """When any of the series was read; only series read at different times need sorting."""
    different: list[Ints] = []
    for series in some_series:
        if series and not any(np.array_equal(series.time_ns, times) for times in different):
            different.append(series.time_ns)
    if len(different) == 1:
        return different[0]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *different]))


def _facts(case: Case, unplanned: Sequence[Incident], gone_ns: int | None) -> Iterator[Fact]:
    """That the process is gone; or, if it was away exactly once and came back, that it exited then."""
    if gone_ns is not None:
        yield Gone(gone_ns)
    elif len(unplanned) == 1 and unplanned[0].end_ns > unplanned[0].begin_ns:
        yield Happened(_name(case), "exited")


def _worker_replaced(case: Case, finding: Finding, child: Incident) -> Finding:
    reason = f"{_name(case)}: a worker was replaced by another at {moment(child.end_ns)}"
    mark = Mark(child.begin_ns, child.end_ns, "worker replaced")
    return replace(finding, outcome=Outcome.WARN, reason=reason, marks=(mark,))


def _name(case: Case) -> str:
    name, instance = label(case.object, "process") or case.object or "process", label(case.object, "instance")
    return name if instance in {None, "0"} else f"{name} #{instance}"


def _elsewhere(event: Event, case: Case) -> bool:
    """Whether another process restarted or a worker was replaced, which may fulfil an announcement for any process."""
    born = event.kind == "process.restart" or (event.kind == "process.start" and "parent" in event.detail)
    return born and not event.expect and event.object != case.object


def _clock_step(incident: Incident, clock_ns: list[int], slack_ns: int) -> bool:
    """Whether only a start time moved while the clock stepped (``clock_ns`` is sorted)."""
    index = bisect_left(clock_ns, incident.begin_ns - slack_ns)
    stepped = index < len(clock_ns) and clock_ns[index] <= incident.end_ns + slack_ns
    return stepped and all(w.source == START_TIME for w in incident.witnesses)


def _last_exit(incident: Incident, gone_ns: int | None, slack_ns: int) -> bool:
    """Whether this is the exit after which the process did not come back."""
    only_exit = all(w.source == "exit" for w in incident.witnesses)
    return gone_ns is not None and only_exit and incident.begin_ns >= gone_ns - slack_ns


def _announced(case: Case) -> tuple[Intent, ...]:
    names = {"", case.object, label(case.object, "process")}
    names.add(case.object.rpartition(",instance=")[0])
    announced = intents((e for e in case.events if e.object in names), "process.restart", case.window)
    return (*announced, *intents(case.events, "reboot", case.window, binding=False))


TRAITS: Final = Traits(
    words=RuleWords("a process restarted", happened="{thing} on {target} restarted"),
    rank=70,
    leads=Leads(Crash.PROCESS, same_death=("core_dump", "kernel_fault", "oom_kill", "process_restart")),
    event_kinds=("process.restart", "process.exit", "process.start"),
    expected_as="process.restart",
    family=Family.CRASHES,
    guide=Guide(
        fails_when="A watched process has a new start time that no event announced, or is gone at the end.",
        misses="Restarts of processes that are not watched.",
        change_with="process_restart: {allowed: 1}",
        next_step=(
            "Read the log of the process and of its supervisor just before it ended, and look for a core file or an "
            "OOM kill at the same time."
        ),
    ),
)
