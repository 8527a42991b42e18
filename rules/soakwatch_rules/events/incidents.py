"""Incidents: several witnesses of one happening, counted once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from soakwatch_model.event import Event
from soakwatch_model.finding import MarkKind, Victim
from soakwatch_model.series import Series

_MAX_COUNTED = 1000
_TOLD_NS = 60 * 10**9
"""How far apart two sources may date what both of them tell of."""
_KNOWN_NS = 3600 * 10**9
"""... and how far apart where it has a name of its own: a pid may come again, but not to the same program so soon."""


@dataclass(frozen=True, slots=True)
class Witness:
    """One source's word that something happened between two times; ``source`` says which kind of source.

    ``cause`` is the reason that it gives for it, empty where it gives none; ``victim`` what died, where it names that;
    ``kind`` what a mark of it is. ``left`` and ``came`` are the pids of a process that ended and of one that began,
    empty where it names none.
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
    """The reason that an event gives; empty without one."""
    return next((event.detail[name] for name in _CAUSES if event.detail.get(name)), "")


def witnessed(
    event: Event, source: str, text: str, victim: Victim | None = None, kind: MarkKind = MarkKind.MOMENT
) -> Witness:
    """What an event bears witness of; one that ends before it begins is taken at its begin."""
    end_ns = max(event.begin_ns, event.end_ns or event.begin_ns)
    return Witness(source, event.begin_ns, end_ns, text, cause_of(event), victim, kind)


@dataclass(frozen=True, slots=True)
class Incident:
    """One happening, as told by at most one witness of each source."""

    witnesses: tuple[Witness, ...]

    @property
    def begin_ns(self) -> int:
        """The earliest time that a witness gives."""
        return min(w.begin_ns for w in self.witnesses)

    @property
    def end_ns(self) -> int:
        """The latest time that a witness gives."""
        return max(w.end_ns for w in self.witnesses)

    @property
    def when(self) -> tuple[int, int | None]:
        """When it was, as the witness knows that says it best: the others only saw it later. No end for a moment."""
        best = min(self.witnesses, key=lambda w: (w.end_ns - w.begin_ns, w.begin_ns))
        return best.begin_ns, best.end_ns if best.end_ns > best.begin_ns else None

    @property
    def text(self) -> str:
        """What the witnesses say, joined."""
        return "; ".join(dict.fromkeys(w.text for w in self.witnesses))

    @property
    def cause(self) -> str:
        """The reasons that the witnesses give, joined; empty without any."""
        return "; ".join(dict.fromkeys(w.cause for w in self.witnesses if w.cause))

    @property
    def victim(self) -> Victim | None:
        """What died, as the first witness that names it says."""
        return next((w.victim for w in self.witnesses if w.victim is not None), None)


def incidents(witnesses: Iterable[Witness], slack_ns: int) -> tuple[Incident, ...]:
    """Witnesses joined to incidents, in order of time.

    A witness joins the earliest incident that it touches (with ``slack_ns`` to spare) and of which its source has
    not yet spoken, else it begins a new one: five restarts in ten seconds stay five.
    """
    joined: list[list[Witness]] = []
    ends: list[int] = []
    next_of: dict[str, int] = {}  # the first incident that a source may still join: time does not go back
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


def counts(series: Series, text: str) -> list[Witness]:
    """A witness for each happening that a counter counted, at most 1000: nobody reads more.

    A counter that falls began again at 0: what it shows came since then.
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
    """Events in order of time, each happening once though several sources tell of it (agent and ssh, log and syslog).

    The same line of the kernel, the same birth or death of a process is one; so are words of the same within a minute
    that came by different channels, one of each. The kernel's own time stays, else the first.
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
    """What nothing else has: the line's own time, or the pid of a process that was born or died."""
    names = ("uptime_s", "new_pid", *(("pid",) if event.kind == "process.exit" else ()))
    return next(((event.kind, name, event.detail[name]) for name in names if name in event.detail), ())


def _reported_elsewhere(event: Event, kept: list[Event], channels: list[set[str]]) -> int | None:
    """The one of these, not more than a minute before, of which another way told the same."""
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
    """By which way it was told."""
    return next((name for name in ("uptime_s", "address", "last_before_ns") if name in event.detail), "")
