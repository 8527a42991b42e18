"""The events of a run that goes on, as far as the live judge remembers them: all, or the newest of what is frequent.

Processes that come and go may bring an event with every poll. Beyond ``MAX_EVENTS`` the oldest events of the things
that have the most are forgotten; what happened seldom stays. Of a process whose events are forgotten, readings before
that moment must not be judged either: they would show restarts that were reported as starts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from soakwatch.record import SeriesKey, StoredEvent

MAX_EVENTS = 10_000
"""Events that are remembered, some 1 kB each; beyond, half as many are left."""
_PROCESS = "process."
_BIRTHS = frozenset({"process.start", "process.restart"})
_Group = tuple[str, str, str]  # kind, or all of a process; target; object


class KeptEvents:
    """The events that are remembered, by their number in the record."""

    def __init__(self) -> None:
        self._kept: dict[int, StoredEvent] = {}
        self._begins: dict[tuple[str, str], int] = {}  # by target and object of a process
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, stored: StoredEvent) -> None:
        """Remember an event, in place of what was known of it before it had an end."""
        self._kept[stored.id] = stored
        if len(self._kept) > MAX_EVENTS:
            self._forget()

    def in_order(self) -> tuple[StoredEvent, ...]:
        """All that are remembered, by their begin."""
        return tuple(sorted(self._kept.values(), key=_place))

    def begin_ns(self, key: SeriesKey) -> int:
        """From when on readings of a series may be judged: 0, or when the first event of its process that is
        remembered began."""
        return self._begins.get((key.target, key.object), 0) if key.metric.startswith(_PROCESS) else 0

    def _forget(self) -> None:
        groups: defaultdict[_Group, list[StoredEvent]] = defaultdict(list)
        for stored in self._kept.values():
            event = stored.event
            kind = _PROCESS if event.kind.startswith(_PROCESS) else event.kind
            groups[kind, event.target, event.object].append(stored)
        most = level([len(group) for group in groups.values()], MAX_EVENTS // 2)
        for (kind, target, object_), group in groups.items():
            if len(group) <= most:
                continue
            group.sort(key=_place)
            first = len(group) - most
            if kind == _PROCESS:  # what was before a birth is known to be another life, or none
                first = next((n for n in range(first, len(group)) if group[n].event.kind in _BIRTHS), first)
                self._begins[target, object_] = group[first].event.begin_ns
            for stored in group[:first]:
                del self._kept[stored.id]
            self.forgotten += first


def level(counts: Sequence[int], total: int) -> int:
    """How many of each may stay, at least 1, so that about ``total`` stay and the small ones whole.

    >>> level([1, 2, 50, 100], 43)
    20
    """
    left, many = total, len(counts)
    for count in sorted(counts):
        if count * many > left:
            return max(1, left // many)
        left, many = left - count, many - 1
    return max(counts, default=1)


def _place(stored: StoredEvent) -> tuple[int, int]:
    return stored.event.begin_ns, stored.id
