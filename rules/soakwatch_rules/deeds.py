"""Deeds: the events that somebody did, planned or told of, apart from what probes see and devices complain of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from soakwatch_rules.rule import Event

_SEEN: Final = (
    "process.", "kernel.", "core.", "clock.", "device.", "snmp.", "link.", "log.", "hardware.", "memory.", "cpu.",
    "recorder.", "source.", "phase.", "generator.", "load.", "module.", "reboot.unexpected",
)  # fmt: skip
"""What is seen, not done; and the book-keeping of the run."""
_KINDS: Final = frozenset({"gap", "pause", "stress", "spike", "watchdog", "license", "reboot"})
_SAME_NS: Final = 60 * 10**9
"""A failover that was told and that the device's log tells as well is one, if they begin so close together."""


_NEAR: Final = 20  # of the last ones, among which the same is looked for


def deeds(events: Iterable[Event]) -> tuple[Event, ...]:
    """What was done on purpose or announced, in order of time; several words of one happening made one.

    An event with an intent counts whatever its kind; a reboot that nobody announced was done by nobody.
    """
    made: list[Event] = []
    for event in sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object)):
        if not event.expect and (event.kind in _KINDS or event.kind.startswith(_SEEN)):
            continue
        near = range(max(0, len(made) - _NEAR), len(made))
        same = next((i for i in near if _one(made[i], event)), None)
        if same is None:
            made.append(event)
        else:
            made[same] = _both(made[same], event)
    return tuple(made)


def _one(first: Event, other: Event) -> bool:
    return (
        first.kind == other.kind and other.begin_ns - first.begin_ns <= _SAME_NS and not (first.expect and other.expect)
    )


def _both(first: Event, other: Event) -> Event:
    """The earlier begin, the later end, and whatever one of them announced."""
    planned = first if first.expect or first.deadline_ns is not None else other
    ends = [e.end_ns for e in (first, other) if e.end_ns is not None]
    return replace(planned, begin_ns=first.begin_ns, end_ns=max(ends, default=None))
