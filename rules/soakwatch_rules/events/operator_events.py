"""Operator events: what somebody did, planned or reported, as opposed to what probes see and devices complain of."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind

_SAME_NS: Final = 60 * 10**9
"""An event that was reported and also stands in the device's log is one if they begin within this."""
_WORD: Final = "address"
_REPORTED_BY: Final = frozenset({"line", "trap"})
"""Details that the receivers of syslog and traps add."""


def operator_events(events: Iterable[Event]) -> tuple[Event, ...]:
    """Interventions and announced events in time order, several reports of one joined.

    An event with an intent counts whatever its kind; an unannounced reboot is no intervention. Two planned or reported
    events are two, however close. A device's own report (a log line, a trap) joins the nearest planned or reported
    event of its kind within a minute; without one, the device's reports within a minute of each other are one.
    """
    reported: list[Event] = []
    words: list[Event] = []
    for event in sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object)):
        if not event.expect and not event_kind(event.kind).intervention:
            continue
        (words if _by_device(event) else reported).append(event)
    result: dict[str, list[Event]] = {}
    for event in reported:
        result.setdefault(event.kind, []).append(event)
    begins = {kind: [event.begin_ns for event in of] for kind, of in result.items()}
    alone: dict[str, list[Event]] = {}
    for word in words:
        index = _nearest(begins.get(word.kind, []), word.begin_ns)
        if index is not None:
            result[word.kind][index] = _both(result[word.kind][index], word)
        elif (own := alone.setdefault(word.kind, [])) and word.begin_ns - own[-1].begin_ns <= _SAME_NS:
            own[-1] = _both(own[-1], word)
        else:
            own.append(word)
    every = [event for of in (*result.values(), *alone.values()) for event in of]
    return tuple(sorted(every, key=lambda e: (e.begin_ns, e.kind, e.object)))


def _by_device(event: Event) -> bool:
    return not event.expect and _WORD in event.detail and not _REPORTED_BY.isdisjoint(event.detail)


def _nearest(begins: Sequence[int], time_ns: int) -> int | None:
    """The index of the nearest of these sorted times within a minute; None if there is none."""
    after = bisect_left(begins, time_ns)
    near = [i for i in (after - 1, after) if 0 <= i < len(begins) and abs(begins[i] - time_ns) <= _SAME_NS]
    return min(near, key=lambda i: abs(begins[i] - time_ns), default=None)


def _both(first: Event, word: Event) -> Event:
    """Both as one: the earlier begin, the later end, everything else from ``first``."""
    ends = [e.end_ns for e in (first, word) if e.end_ns is not None]
    return replace(first, begin_ns=min(first.begin_ns, word.begin_ns), end_ns=max(ends, default=None))
