"""Intents: what planned events announced, compared with what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch_model.event import Event
from soakwatch_model.window import Window
from soakwatch_rules.events.incidents import Incident
from soakwatch_rules.wording.quantities import counted, moment


@dataclass(frozen=True, slots=True)
class Intent:
    """``number`` happenings announced for a time; ``binding``: fewer are a fault.

    ``cause`` is a word that the reported reason of each must contain, ignoring case (``|`` separates alternatives);
    empty: any reason.
    """

    kind: str
    number: int
    begin_ns: int
    end_ns: int
    binding: bool = True
    cause: str = ""

    def fits(self, incident: Incident) -> bool:
        """Whether the reported reason is the announced one; without a reported reason it is assumed to be."""
        words = [word.strip().casefold() for word in self.cause.split("|")]
        text = incident.cause.casefold()
        return not self.cause or not text or any(word in text for word in words if word)


@dataclass(frozen=True, slots=True)
class AssignedIncidents:
    """``unplanned`` and ``planned`` incidents; sentences on announcements that are ``broken``, or ``open``
    (pending)."""

    unplanned: tuple[Incident, ...]
    planned: tuple[Incident, ...]
    broken: tuple[str, ...]
    open: tuple[str, ...]


def intents(events: Iterable[Event], key: str, window: Window, *, binding: bool = True) -> tuple[Intent, ...]:
    """The announcements of ``key`` (``reboot``, ``process.restart`` ...) among the events.

    Each holds from its event's begin to its deadline, else its end, else the end of the window. The ``cause`` of a
    planned reboot (``--label cause=reload``) must be the reported reason.
    """
    result = []
    for event in events:
        number = event.expect.get(key, 0)
        if number > 0:
            cause = event.detail.get("cause", "") if key == "reboot" and binding else ""
            ends = (event.deadline_ns, event.end_ns, window.end_ns)
            end_ns = next(end for end in ends if end is not None)
            result.append(Intent(event.kind, number, event.begin_ns, end_ns, binding, cause))
    return tuple(sorted(result, key=lambda i: (i.end_ns, i.begin_ns, i.kind)))


def assign_incidents(
    incidents: Sequence[Incident],
    announced: Sequence[Intent],
    window: Window,
    noun: str,
    slack_ns: int,
    others: Sequence[int] = (),
) -> AssignedIncidents:
    """Assigns each incident to the announcement that ends first and has room for it; the rest are unplanned.

    ``slack_ns`` (the distance of readings) extends announcements at both ends, since a change is seen only at the next
    reading. An announcement whose end is not before the window's is open, not broken. An incident with another reason
    than announced is unplanned. ``others`` are times at which the same happened to another object: they fulfil a
    binding announcement without using up room.
    """
    room = [intent.number for intent in announced]
    unplanned, planned = [], []
    for incident in incidents:
        fitting = (i for i, n in enumerate(announced) if n.fits(incident) and _within(incident, n, slack_ns))
        index = next((i for i in fitting if room[i]), None)
        if index is None:
            unplanned.append(incident)
        else:
            room[index] -= 1
            planned.append(incident)
    broken, pending = [], []
    for left, intent in zip(room, announced, strict=True):
        elsewhere = sum(intent.begin_ns <= time <= intent.end_ns + slack_ns for time in others)
        if left - elsewhere <= 0 or not intent.binding:
            continue
        text = f"the planned {intent.kind} of {moment(intent.begin_ns)} announced {counted(intent.number, noun)}"
        text += f" with cause {intent.cause}" if intent.cause else ""
        seen = f"{intent.number - left} happened"
        if intent.end_ns >= window.end_ns:
            pending.append(f"{text}, {seen} so far; the deadline has not passed yet")
        else:
            broken.append(f"{text} until {moment(intent.end_ns)}, but {seen}")
    return AssignedIncidents(tuple(unplanned), tuple(planned), tuple(broken), tuple(pending))


def _within(incident: Incident, intent: Intent, slack_ns: int) -> bool:
    return incident.end_ns + slack_ns >= intent.begin_ns and incident.begin_ns <= intent.end_ns + slack_ns
