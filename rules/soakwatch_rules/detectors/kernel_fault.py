"""Kernel faults: panics, lockups, hung tasks, segfaults, hardware errors and throttling in the kernel log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import ClassVar, Final, Literal

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.crash_kinds import KERNEL
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Outcome, Victim
from soakwatch_model.label import label
from soakwatch_model.series import Series
from soakwatch_rules.events.incidents import Incident, counter_witnesses, deduplicated, incidents, witness_of
from soakwatch_rules.events.intents import Intent, assign_incidents, intents
from soakwatch_rules.finding_draft import draft, faults
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Crash, Family, Guide, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, first_few, moment

_COUNTER = "system.kernel.alarms"
_SEGFAULT = "kernel.segfault"
_COMM = 15  # the kernel cuts process names to this length
_PROGRAM = re.compile(r" in ([^\s\[]+)\[")
_EVENT = "event"
_ALONE = "counted in the kernel log"


@dataclass(frozen=True, slots=True)
class KernelFault(Parameters):
    """Fails if the kernel logged more than ``allowed`` faults of the device itself; other faults warn.

    A fault is an event of a kind in ``crash_kinds.KERNEL`` (from /dev/kmsg, the journal or syslog), or an increment of
    ``system.kernel.alarms`` that no event explains. The device's own faults are panics and oopses, lockups (soft, hard,
    RCU stalls), hung tasks and uncorrected hardware errors (MCE, EDAC UE, AER). A segfault (any fatal trap of a
    program: invalid opcode, general protection, divide error) is the device's if the process, or the program in which
    it crashed, is watched by name or pid; if nothing is watched, if the device's own log reports it. Any other segfault
    warns, since other tenants share the machine. Corrected hardware errors, thermal throttling and complaints of a
    device about its hardware (``hardware.fault``) warn.

    One line reported by several sources is one fault, at the kernel's own time. Planned events with ``kernel.lockup:
    N`` (any of the kinds) allow N; one with ``core.dump`` or ``process.crash`` allows as many segfaults.

    How often wrong: a line of the kernel is a fact; its meaning depends on its wording. Known weaknesses: an unknown
    wording is missed; a segfault names the thread, which may not have its program's name; the counter alone does not
    say which process crashed, so it warns; a log ring that overflows loses lines.

    Neighbours: ``oom_kill`` judges OOM kills, ``core_dump`` core files and crashes that other logs report,
    ``process_restart`` and ``reboot`` the deaths that follow, ``hang`` a silent device.

    Parameters: ``allowed`` (below).

    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.event import Event
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import readings
    >>> log = readings("system.kernel.alarms", np.zeros(60), 10.0, object="kind=segfault")
    >>> pid = readings("process.pid", np.full(60, 77.0), 10.0, object="process=web,instance=0")
    >>> for process in ("", "web", "tenant"):
    ...     fell = Event("kernel.segfault", "dut", "", 5 * 10**9, None, {"process": process, "pid": "9"})
    ...     events = (fell,) if process else ()
    ...     case = Case("dut", "", Window(0, 600 * 10**9), (log, pid), events=events)
    ...     print(KernelFault().judge(case)[0].outcome)
    pass
    fail
    warn

    References: kernel documentation, admin-guide/lockup-watchdogs, RCU/stallwarn, sysctl/kernel (hung_task); Intel SDM
    volume 3, chapter 16 (machine check).
    """

    name: ClassVar[str] = "kernel_fault"
    version: ClassVar[int] = 1
    summary: ClassVar[str] = "the kernel logged a panic, lockup, hung task, segfault or hardware error"
    metrics: ClassVar[tuple[str, ...]] = (_COUNTER, "process.pid", "process.up")
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("two samples of the kernel log, from start to end of the window", live="whole")

    allowed: float = parameter(0.0, "{fault}", "allowed faults of the device itself", "a soak should have none")

    def definition(self) -> str:
        return (
            "a kernel fault is a panic, oops, lockup, hung task, uncorrected hardware error, or the segfault of a "
            f"watched process in the kernel log; more than {self.allowed:g} unplanned ones fail; segfaults of "
            "other processes, corrected hardware errors and thermal throttling warn"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target."""
        window = case.window
        logs = [s.between(window.begin_ns, window.end_ns).finite() for s in case.series if s.metric == _COUNTER]
        reported = deduplicated(
            e
            for e in case.events
            if e.kind in KERNEL and not e.expect and window.begin_ns <= e.begin_ns < window.end_ns
        )
        about = max(logs, key=lambda s: (label(s.object, "kind") != "oom", len(s)), default=None)
        finding = draft(self, case, about)
        if not logs and not reported and not any(key in KERNEL for e in case.events for key in e.expect):
            unread = faults(text for text in case.faults if "kernel log" in text)
            reason = unread or "this target reports no kernel log"
            return (finding.not_applicable(reason),)
        # Log lines and counters report one fault up to two readings apart.
        slack_ns = max(2 * 10**9, *(round(2e9 * (spacing(s) or 0.0)) for s in logs), 0)
        seen = _Watched.of(case)
        own = {(e.kind, _victim(e)) for e in reported if seen.holds(e)}
        grave: list[tuple[Incident, str]] = []
        minor: list[tuple[Incident, str]] = []
        marks: list[Mark] = []
        broken: list[str] = []
        pending: list[str] = []
        planned = 0
        for kind in KERNEL:
            incidents = _incidents(kind, reported, logs, slack_ns)
            assigned = assign_incidents(incidents, _announced(kind, case), window, KERNEL[kind].words, slack_ns)
            broken += assigned.broken
            pending += assigned.open
            planned += len(assigned.planned)
            of = MarkKind.DEVICE if KERNEL[kind].outcome is Outcome.FAIL else MarkKind.MOMENT
            marks += [Mark(*i.when, i.text, of, victim=i.victim) for i in incidents if i not in assigned.planned]
            marks += [Mark(*i.when, f"{i.text} (planned)", of, planned=True, victim=i.victim) for i in assigned.planned]
            for incident in assigned.unplanned:
                # A kind that only warns fails if the log names a watched process.
                held = not _alone(incident) and (kind, incident.victim) in own
                fails = KERNEL[kind].outcome is Outcome.FAIL or held
                (grave if fails else minor).append((incident, kind))
        finding = replace(
            finding,
            measured=float(len(grave)),
            limit=self.allowed,
            unit="{fault}",
            marks=tuple(sorted(marks, key=lambda m: (m.begin_ns, m.text))),
            numbers={"faults": float(len(grave) + len(minor)), "grave": float(len(grave)), "planned": float(planned)},
        )
        faulty = [*_sentences(grave), *broken] if len(grave) > self.allowed else broken
        rest = list(_sentences(minor, note="(not watched)" if seen.names else ""))
        if faulty:
            return (finding.fails("; ".join([*faulty, *rest])),)
        blind = min((unseen(s.time_ns, window) for s in logs), default="")
        if pending or (blind and not rest):
            settle = "needs the kernel log from start to end of the run, and until planned events are over"
            why = InconclusiveReason.PENDING if pending else InconclusiveReason.GAP
            return (finding.undecided(next(iter(pending), blind), why, settle),)
        if rest:
            return (finding.warns("; ".join(rest)),)
        calm = f"{counted(planned, 'planned kernel fault')}" if planned else "no fault in the kernel log"
        return (finding.passes(calm),)


@dataclass(frozen=True, slots=True)
class _Watched:
    """The watched processes: the names of their watches, and the pids that they had."""

    names: frozenset[str]
    pids: frozenset[str]

    @classmethod
    def of(cls, case: Case) -> _Watched:
        own = [s for s in case.series if s.metric != _COUNTER]
        names = {name for s in own if (name := label(s.object, "process"))}
        pids = {f"{pid:.0f}" for s in own if s.metric == "process.pid" for pid in np.unique(s.finite().values)}
        return cls(frozenset(names), frozenset(pids))

    def holds(self, event: Event) -> bool:
        """Whether a watched process crashed; if none is watched, whether the device's own log reports it."""
        if event.kind != _SEGFAULT:
            return False
        if not self.names:
            return "address" in event.detail
        program = _PROGRAM.search(event.detail.get("line", ""))
        shown = {event.detail.get("process", ""), program[1] if program else ""} - {""}
        return event.detail.get("pid") in self.pids or any(_meant(item, name) for item in shown for name in self.names)


def _meant(shown: str, name: str) -> bool:
    cut = len(shown) == _COMM and len(name) > _COMM and name.startswith(shown)
    return cut or shown == name or fnmatchcase(shown, name)


def _incidents(kind: str, reported: Sequence[Event], logs: Sequence[Series], slack_ns: int) -> tuple[Incident, ...]:
    """The faults of one kind: those that events report, and those that only the counter shows."""
    witnesses = [witness_of(e, _EVENT, _text(e), _victim(e)) for e in reported if e.kind == kind]
    words = f"{KERNEL[kind].words}, {_ALONE}"
    for log in logs:
        if f"kernel.{label(log.object, 'kind')}" == kind:
            witnesses += counter_witnesses(log, words)
    return tuple(_known(incident) for incident in incidents(witnesses, slack_ns))


def _known(incident: Incident) -> Incident:
    """The incident, without the counter as witness if an event reports the same."""
    events = tuple(w for w in incident.witnesses if w.source == _EVENT)
    return Incident(events) if events else incident


def _alone(incident: Incident) -> bool:
    """Whether only the counter shows it."""
    return all(w.source != _EVENT for w in incident.witnesses)


def _victim(event: Event) -> Victim | None:
    process = event.detail.get("process", "")
    return Victim(process, event.detail.get("pid", "")) if process else None


def _text(event: Event) -> str:
    process, pid = event.detail.get("process", ""), event.detail.get("pid", "")
    who = f" of {process}" if process else ""
    return f"{KERNEL[event.kind].words}{who}{f' [{pid}]' if process and pid else ''}"


def _announced(kind: str, case: Case) -> tuple[Intent, ...]:
    own = intents(case.events, kind, case.window)
    if kind != _SEGFAULT:
        return own
    also = (intents(case.events, key, case.window, binding=False) for key in ("core.dump", "process.crash"))
    return (*own, *(intent for match in also for intent in match))


def _sentences(matches: Iterable[tuple[Incident, str]], note: str = "") -> Iterator[str]:
    """``3 segfaults of swboomd: 03:27:06, …``: one sentence for each kind and process, with its first times."""
    rows: dict[tuple[str, str], list[Incident]] = {}
    for incident, kind in matches:
        victim = incident.victim
        who = f" of {victim.process}{f' {note}' if kind == _SEGFAULT and note else ''}" if victim else ""
        rows.setdefault((kind, who), []).append(incident)
    for (kind, who), several in rows.items():
        alone = f"{_ALONE} " if all(_alone(i) for i in several) else ""
        times = first_few([moment(i.when[0] if i.when[1] is None else i.when[1]) for i in several])
        yield f"{counted(len(several), KERNEL[kind].words)}{who}: {alone}{times}"


TRAITS: Final = Traits(
    words=RuleWords("the kernel logged a fault", happened="the kernel of {target} logged a fault"),
    rank=20,
    leads=Leads(Crash.KERNEL, whole_device=True, explains=("reboot", "process_restart"), same_death=("core_dump",)),
    event_kinds=tuple(KERNEL),
    family=Family.CRASHES,
    guide=Guide(
        fails_when=(
            "The kernel logs a panic, oops, lockup, hung task or uncorrected hardware error, or a watched process "
            "segfaults."
        ),
        misses="What the monitor is not allowed to read in the kernel's log.",
        change_with="kernel_fault: {allowed: 1}",
        next_step=(
            "Keep the lines of the kernel's log with their call trace, and look the trace up for this kernel version."
        ),
    ),
)
