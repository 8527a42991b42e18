"""Proof that two deaths are one happening: the same process, or something that takes the whole device with it.

Closeness in time is no proof: the kernel killing one process and another crashing by itself half a minute before are
two incidents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark, MarkKind
from soakwatch_model.label import label
from soakwatch_rules.causes.moments import marks_of
from soakwatch_rules.traits import Crash, traits_of

_COMM = 15  # the kernel cuts process names to this length
_WRITING_NS = 30 * 10**9  # a process dies when its core has been written
_OF_DEVICE = frozenset({Crash.DEVICE, Crash.CORE})  # each of these may be the death of the whole device
Pids = Mapping[tuple[str, str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Death:
    """One moment of a finding on a death: when, the names of the process if known, and whether it was the device's."""

    begin_ns: int
    end_ns: int
    names: frozenset[str]
    file: str = ""
    device: bool = False

    def near(self, other: Death, slack_ns: int) -> bool:
        """Whether both lie within ``slack_ns`` of each other."""
        return self.begin_ns <= other.end_ns + slack_ns and other.begin_ns <= self.end_ns + slack_ns

    def before(self, other: Death, early_ns: int) -> bool:
        """Whether it was over before the other began (for two stretches: they may touch)."""
        stretches = self.end_ns > self.begin_ns and other.end_ns > other.begin_ns
        return self.end_ns <= other.begin_ns if stretches else self.end_ns + early_ns < other.begin_ns

    def together(self, other: Death, early_ns: int) -> bool:
        """Whether they may have happened at the same time, as exactly as the times are known."""
        return not self.before(other, early_ns) and not other.before(self, early_ns)

    def same(self, other: Death) -> bool | None:
        """Whether both are of one process; None if one of them does not name it."""
        if self.names and other.names:
            return any(_alike(own, two) for own in self.names for two in other.names)
        files = [(self.file, other.names), (other.file, self.names)]
        return True if any(_within(name, file) for file, names in files if file for name in names) else None


def pids_of(events: Iterable[Event]) -> Pids:
    """By target and pid, the watches that the pid belonged to, from events of exits and restarts."""
    watches: dict[tuple[str, str], set[str]] = {}
    for event in events:
        name = label(event.object, "process")
        pid = event.detail.get("pid" if event.kind == "process.exit" else "old_pid")
        if name and pid and event.kind in {"process.exit", "process.restart"}:
            watches.setdefault((event.target, pid), set()).add(name)
    return {key: frozenset(names) for key, names in watches.items()}


def proven(first: Finding, other: Finding, pids: Pids, slack_ns: int, early_ns: int) -> bool:
    """Whether two findings on deaths are proven to be one happening: every moment of one of them, or, if both are from
    one rule (processes restarting together), of both."""
    explained = (
        _explained(effect, cause, pids, slack_ns, early_ns) for effect, cause in ((first, other), (other, first))
    )
    return all(explained) if first.rule == other.rule else any(explained)


def _explained(effect: Finding, cause: Finding, pids: Pids, slack_ns: int, early_ns: int) -> bool:
    """Whether each moment of the effect is one of the cause's, or follows from one."""
    of_effect, of_cause = traits_of(effect.rule), traits_of(cause.rule)
    follows = of_cause.leads is not None and effect.rule in of_cause.leads.explains
    same = of_effect.leads is not None and cause.rule in of_effect.leads.same_death
    if not (follows or same) or not effect.marks:
        return False
    causes = list(_deaths(cause, pids))
    killed = Crash.MEMORY in {of_effect.crash, of_cause.crash}

    def fits(death: Death, first: Death) -> bool:
        known = death.same(first)
        if follows and first.device and first.near(death, slack_ns) and not death.before(first, early_ns):
            return True
        if same and (known is not False or effect.rule == cause.rule) and first.together(death, early_ns):
            return True  # of one process, or of several that restart at once
        return same and known is True and not killed and first.near(death, min(slack_ns, _WRITING_NS))

    for death in _deaths(effect, pids):
        match = next((position for position, first in enumerate(causes) if fits(death, first)), None)
        if match is None:
            return False
        if of_effect.crash is Crash.PROCESS:
            del causes[match]  # each death of a process is matched once
    return True


def _deaths(finding: Finding, pids: Pids) -> Iterator[Death]:
    for mark in marks_of(finding):
        names, file = _names(finding, mark)
        if mark.victim is not None and mark.victim.pid:
            names |= pids.get((finding.target, mark.victim.pid), frozenset())
        end_ns = mark.begin_ns if mark.end_ns is None else max(mark.begin_ns, mark.end_ns)
        device = traits_of(finding.rule).crash in _OF_DEVICE or mark.kind is MarkKind.DEVICE
        yield Death(mark.begin_ns, end_ns, names, file, device)


def _names(finding: Finding, mark: Mark) -> tuple[frozenset[str], str]:
    """The name of the process that a mark is about, and the core file."""
    if traits_of(finding.rule).crash is Crash.PROCESS:
        name = label(finding.object, "process")
        return frozenset({name} if name else ()), ""
    if mark.victim is None:
        return frozenset(), ""
    name = mark.victim.process.removesuffix(".service")
    return frozenset({name} if name else ()), mark.victim.core_file


def _alike(first: str, other: str) -> bool:
    short, long = sorted((first, other), key=len)
    return (
        first == other
        or (len(short) == _COMM and long.startswith(short))
        or fnmatchcase(first, other)
        or fnmatchcase(other, first)
    )


def _within(name: str, file: str) -> bool:
    return re.search(rf"(?<![a-zA-Z0-9]){re.escape(name[:_COMM])}(?![a-zA-Z0-9])", file) is not None
