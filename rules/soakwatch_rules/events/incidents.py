"""Incidents: several reports of one happening, counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from soakwatch_model.event import Event
from soakwatch_model.finding import MarkKind, Victim
from soakwatch_model.series import Series

_MAX_COUNTED = 1000
_TOLD_NS = 60 * 10**9
"""Two sources may date the same happening this far apart."""
_KNOWN_NS = 3600 * 10**9
"""The same if it has an identity, such as a pid, which is not reused by the same program so soon."""


@dataclass(frozen=True, slots=True)
class Witness:
    """One source's report that something happened between two times; ``source`` is the kind of source.

    ``cause`` is the reported reason ("" without one), ``victim`` what died (None if not named), ``kind`` that of its
    mark. ``left`` and ``came`` are the pids of a process that ended and of one that started ("" if not named).
    """

    source: str
    begin_ns: int
    end_ns: int
    text: str
    cause: str = ""
    victim: Victim | None = None
    kind: MarkKind = MarkKind.MOMENT
    left: str = ""
    came: str = ""


_CAUSES = ("reboot_reason", "cause", "reason")


def cause_of(event: Event) -> str:
    """The reason in an event; empty without one."""
    return next((event.detail[name] for name in _CAUSES if event.detail.get(name)), "")


def witness_of(
    event: Event, source: str, text: str, victim: Victim | None = None, kind: MarkKind = MarkKind.MOMENT
) -> Witness:
    """The report in an event; an end before its begin is taken for the begin."""
    end_ns = max(event.begin_ns, event.end_ns or event.begin_ns)
    return Witness(source, event.begin_ns, end_ns, text, cause_of(event), victim, kind)


@dataclass(frozen=True, slots=True)
class Incident:
    """One happening, with at most one report from each source."""

    witnesses: tuple[Witness, ...]

    @property
    def begin_ns(self) -> int:
        """The earliest reported time."""
        return min(w.begin_ns for w in self.witnesses)

    @property
    def end_ns(self) -> int:
        """The latest reported time."""
        return max(w.end_ns for w in self.witnesses)

    @property
    def when(self) -> tuple[int, int | None]:
        """Begin and end (None for a moment) from the report with the shortest interval, the most exact one."""
        best = min(self.witnesses, key=lambda w: (w.end_ns - w.begin_ns, w.begin_ns))
        return best.begin_ns, best.end_ns if best.end_ns > best.begin_ns else None

    @property
    def text(self) -> str:
        """The texts of all reports, joined."""
        return "; ".join(dict.fromkeys(w.text for w in self.witnesses))

    @property
    def cause(self) -> str:
        """The reported reasons, joined; empty without any."""
        return "; ".join(dict.fromkeys(w.cause for w in self.witnesses if w.cause))

    @property
    def victim(self) -> Victim | None:
        """What died, by the first report that names it."""
        return next((w.victim for w in self.witnesses if w.victim is not None), None)


def incidents(witnesses: Iterable[Witness], slack_ns: int) -> tuple[Incident, ...]:
    """Reports joined to incidents, in time order.

    A report joins the earliest incident that it touches within ``slack_ns`` and that has none from its source, else it
    starts a new one: five restarts in ten seconds stay five.
    """
    joined: list[list[Witness]] = []
    ends: list[int] = []
    next_of: dict[str, int] = {}  # by source, the first incident that it may still join: reports are in time order
    for witness in sorted(witnesses, key=lambda w: (w.begin_ns, w.end_ns, w.source)):
        index = next_of.get(witness.source, 0)
        while index < len(joined) and ends[index] + slack_ns < witness.begin_ns:
            index += 1
        if index == len(joined):
            joined.append([])
            ends.append(witness.end_ns)
        joined[index].append(witness)
        ends[index] = max(ends[index], witness.end_ns)
        next_of[witness.source] = index + 1
    return tuple(Incident(tuple(group)) for group in joined)


def counter_witnesses(series: Series, text: str) -> list[Witness]:
    """A report for each count of a counter, at most 1000.

    A counter that fell restarted at 0; what it shows then happened since.
    """
    if len(series) < 2:
        return []
    with np.errstate(over="ignore"):
        steps = series.increments().values
    steps = np.where(np.isnan(steps), series.values[1:], steps)
    witnesses: list[Witness] = []
    for i in np.flatnonzero(np.nan_to_num(steps) >= 1).tolist():
        begin, end = int(series.time_ns[i]), int(series.time_ns[i + 1])
        number = int(min(steps[i], _MAX_COUNTED - len(witnesses)))
        witnesses += [Witness(series.metric + series.object, begin, end, text) for _ in range(number)]
    return witnesses


def deduplicated(events: Iterable[Event]) -> list[Event]:
    """Events in time order, each happening once though several sources report it (agent and ssh, log and syslog).

    The same line of the kernel, or the same start or death of a process, is one; so are like events within a minute
    that came by different channels. The one with the kernel's own time is kept, else the first.
    """
    kept: list[Event] = []
    channels: list[set[str]] = []
    known: dict[tuple[str, ...], int] = {}
    for event in sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object)):
        own = _identity(event)
        index = known.get(own) if own else None
        if index is None or event.begin_ns - kept[index].begin_ns > _KNOWN_NS:
            index = _reported_elsewhere(event, kept, channels)
        if index is None:
            index = len(kept)
            kept.append(event)
            channels.append(set())
        elif "uptime_s" in event.detail and "uptime_s" not in kept[index].detail:
            kept[index] = event
        channels[index].add(_channel(event))
        if own:
            known[own] = index
    return sorted(kept, key=lambda e: (e.begin_ns, e.kind, e.object))


def _identity(event: Event) -> tuple[str, ...]:
    """What identifies a happening: the line's own time, or the pid of a process that started or died; else ()."""
    names = ("uptime_s", "new_pid", *(("pid",) if event.kind == "process.exit" else ()))
    return next(((event.kind, name, event.detail[name]) for name in names if name in event.detail), ())


def _reported_elsewhere(event: Event, kept: list[Event], channels: list[set[str]]) -> int | None:
    """The index of a like event within the minute before that came by another channel; None if there is none."""
    for index in range(len(kept) - 1, -1, -1):
        other = kept[index]
        if event.begin_ns - other.begin_ns > _TOLD_NS:
            return None
        both = [name for name in ("pid", "process", "new_pid") if name in event.detail and name in other.detail]
        alike = event.kind == other.kind and all(event.detail[name] == other.detail[name] for name in both)
        if alike and _channel(event) not in channels[index]:
            return index
    return None


def _channel(event: Event) -> str:
    """The channel of an event, known by a detail that only it fills in."""
    return next((name for name in ("uptime_s", "address", "last_before_ns") if name in event.detail), "")
