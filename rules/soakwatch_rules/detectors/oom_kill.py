"""Out of memory: processes that the kernel killed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, InconclusiveReason, Mark, MarkKind, Victim
from soakwatch_model.label import label
from soakwatch_rules.events.incidents import Incident, counter_witnesses, deduplicated, incidents, witness_of
from soakwatch_rules.events.intents import assign_incidents, intents
from soakwatch_rules.finding_draft import absent, draft, faults
from soakwatch_rules.parameter import Parameters, parameter
from soakwatch_rules.rule import RuleSpec
from soakwatch_rules.sampling import spacing, unseen
from soakwatch_rules.traits import Crash, Family, Guide, Leads, RuleWords, Traits
from soakwatch_rules.wording.quantities import counted, cut_to, first_few, moment

_COUNTER = "system.memory.oom_kills"
_KILLED = re.compile(r"[Kk]ill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)")  # mm/oom_kill.c
_OF_GROUP = "emory cgroup out of memory"


@dataclass(frozen=True, slots=True)
class OomKill(Parameters):
    """Fails if the kernel killed more processes for lack of memory than ``allowed``.

    A kill is an increment of ``system.memory.oom_kills``, a line of ``system.kernel.alarms`` of a kind that starts
    with oom, or an event ``kernel.oom``. Reports within two samples (at least 2 s) are one kill, two from the same
    source are two. Planned events with ``kernel.oom: N`` allow N. After a reboot the kernel counts from 0, and so does
    an agent that restarts and reads its log from there: what a counter shows after a fall happened since and counts.

    How often wrong: the counter is the kernel's own. Known weaknesses: kernels before 4.13 have no counter, and a log
    ring that overflows loses lines; kills by a container's own limit count too; it does not see what a user-space
    killer ends.

    Neighbours: ``memory_growth`` judges what led to it, ``process_restart`` whom it hit.

    Parameters: ``allowed`` (below).

    >>> import numpy as np
    >>> from soakwatch_model.case import Case
    >>> from soakwatch_model.window import Window
    >>> from soakwatch_rules.signals import counter
    >>> none = counter("system.memory.oom_kills", np.zeros(59, np.int64), 10.0, start=3)
    >>> one = counter("system.memory.oom_kills", (np.arange(59) == 30).astype(np.int64), 10.0, start=3)
    >>> for series in (none, one):
    ...     print(OomKill().judge(Case("dut", "", Window(0, 600 * 10**9), (series,)))[0].outcome)
    pass
    fail

    References: proc_vmstat(5), oom_kill (since Linux 4.13).
    """

    name: ClassVar[str] = "oom_kill"
    version: ClassVar[int] = 2
    summary: ClassVar[str] = "the kernel killed a process because memory ran out"
    metrics: ClassVar[tuple[str, ...]] = (_COUNTER, "system.kernel.alarms")
    scope: ClassVar[Literal["object", "metric", "target"]] = "target"
    phases: ClassVar[tuple[str, ...]] = ()
    spec: ClassVar[RuleSpec] = RuleSpec("two samples of the counter, from start to end of the window", live="whole")

    allowed: float = parameter(0.0, "{kill}", "allowed OOM kills", "a soak should have none")

    def definition(self) -> str:
        return (
            "a kill is an increment of the kernel's counter, an OOM line of its log or a kernel.oom event "
            f"(one kill if within two samples); more than {self.allowed:g} unplanned ones fail"
        )

    def judge(self, case: Case) -> tuple[Finding, ...]:
        """One finding a target."""
        counters = [
            s.between(case.window.begin_ns, case.window.end_ns).finite()
            for s in case.series
            if s.metric == _COUNTER or (label(s.object, "kind") or "").startswith("oom")
        ]
        events = [e for e in case.events if e.kind == "kernel.oom" and not e.expect]
        if not counters and not events:
            return (absent(self, case, "count of OOM kills"),)
        about = max(counters, key=lambda s: (s.metric == _COUNTER, len(s)), default=None)
        slack_ns = max(2 * 10**9, *(round(2e9 * (spacing(s) or 0.0)) for s in counters), 0)
        doubts = list(dict.fromkeys(case.faults))[:5]
        witnesses = [
            w for s in counters for w in counter_witnesses(s, "counter" if s.metric == _COUNTER else "kernel log")
        ]
        witnesses += [witness_of(e, "event", _text(e), _victim(e), _kind(e)) for e in deduplicated(events)]
        # The counter, the kernel log and events report one kill up to two readings apart.
        matches = incidents(witnesses, slack_ns)
        assigned = assign_incidents(
            matches, intents(case.events, "kernel.oom", case.window), case.window, "OOM kill", slack_ns
        )
        number, planned = len(assigned.unplanned), len(assigned.planned)
        finding = replace(
            draft(self, case, about),
            measured=float(number),
            limit=self.allowed,
            unit="{kill}",
            doubts=tuple(doubts),
            marks=tuple(_mark(i) for i in matches),
            numbers={"kills": float(len(matches)), "planned": float(planned)},
        )
        faulty = list(assigned.broken)
        if number > self.allowed:
            faulty.insert(0, f"{counted(number, 'OOM kill')}: {first_few([_described(i) for i in assigned.unplanned])}")
        if faulty:
            return (finding.fails("; ".join(faulty)),)
        blind = min(
            (unseen(s.time_ns, case.window) for s in counters), default="neither counter nor kernel log was polled"
        )
        if blind and case.faults:
            blind += f": {faults(case.faults)}"
        unclear = blind or next(iter(assigned.open), "")
        if unclear:
            settle = "needs the kernel's counter or log from start to end of the run"
            return (
                finding.undecided(unclear, InconclusiveReason.GAP if blind else InconclusiveReason.PENDING, settle),
            )
        calm = f"{counted(planned, 'planned OOM kill')}" if matches else "no OOM kill"
        return (finding.passes(calm),)


def _described(incident: Incident) -> str:
    begin_ns, end_ns = incident.when
    return f"{moment(begin_ns if end_ns is None else end_ns)} ({_words(incident)})"


def _mark(incident: Incident) -> Mark:
    kinds = (w.kind for w in incident.witnesses if w.kind is not MarkKind.MOMENT)
    kind, victim = next(kinds, MarkKind.MOMENT), incident.victim
    return Mark(*incident.when, f"OOM kill: {_words(incident)}", kind, victim=victim)


def _kind(event: Event) -> MarkKind:
    """Whether the kernel's line says that a memory cgroup, not the machine, ran out."""
    return MarkKind.GROUP_KILL if _OF_GROUP in _line(event) else MarkKind.MOMENT


def _victim(event: Event) -> Victim | None:
    """What was killed: as in the event's details, else as in the kernel's line."""
    line = _KILLED.search(_line(event))
    process = event.detail.get("process") or (line["process"] if line is not None else "")
    pid = event.detail.get("pid") or (line["pid"] if line is not None else "")
    return Victim(process, pid) if process or pid else None


def _words(incident: Incident) -> str:
    """The kernel's line if there is one; a counter that rose for the same kill adds nothing."""
    lines = [w.text for w in incident.witnesses if w.source == "event"]
    return lines[0] if lines else incident.text


def _line(event: Event) -> str:
    """The kernel's line; empty if the event has none."""
    return event.detail.get("line") or event.detail.get("text") or ""


def _text(event: Event) -> str:
    line = _line(event) or "kernel log"
    return cut_to(line, 160)


TRAITS: Final = Traits(
    words=RuleWords("it ran out of memory", happened="{target} ran out of memory"),
    rank=40,
    leads=Leads(Crash.MEMORY),
    event_kinds=("kernel.oom",),
    expected_as="kernel.oom",
    family=Family.CRASHES,
    guide=Guide(
        fails_when="The kernel kills a process because memory ran out.",
        misses="Kills in a container whose counters cannot be read.",
        change_with="oom_kill: {allowed: 1}",
        next_step="See which process grew before the kill: the victim is often not the one that leaks.",
    ),
)
