"""Intents: what planned events announced, held against what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch_model.event import Event
from soakwatch_model.window import Window
from soakwatch_rules.events.incidents import Incident
from soakwatch_rules.wording.words import counted, moment


@dataclass(frozen=True, slots=True)
class Intent:
    """``number`` happenings announced between two times; ``binding`` if it is a fault that fewer happened.

    ``cause`` is the word that the reason of each has to hold, whatever its case (several with ``|`` between them);
    empty where any will do.
    """

    kind: str
    number: int
    begin_ns: int
    end_ns: int
    binding: bool = True
    cause: str = ""

    def fits(self, incident: Incident) -> bool:
        """Whether the reason told of it is the one announced; where none is told nobody can say otherwise."""
        words = [word.strip().casefold() for word in self.cause.split("|")]
        text = incident.cause.casefold()
        return not self.cause or not text or any(word in text for word in words if word)


@dataclass(frozen=True, slots=True)
class Reckoning:
    """``unplanned`` and ``planned`` incidents; sentences on announcements that are ``broken`` or still ``open``."""

    unplanned: tuple[Incident, ...]
    planned: tuple[Incident, ...]
    broken: tuple[str, ...]
    open: tuple[str, ...]


def intents(events: Iterable[Event], key: str, window: Window, *, binding: bool = True) -> tuple[Intent, ...]:
    """The announcements of ``key`` (``reboot``, ``process.restart`` ...) among the events.

    One holds from the event's begin to its deadline, else to its end, else it stays open to the end of the window.
    What the event has as its ``cause`` (``--label cause=reload``) is asked of what happens.
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


def reckon(
    incidents: Sequence[Incident],
    announced: Sequence[Intent],
    window: Window,
    noun: str,
    slack_ns: int,
    others: Sequence[int] = (),
) -> Reckoning:
    """Gives each incident to the announcement that ends first and has room for it; what is left over is unplanned.

    ``slack_ns`` (the distance of readings) widens an announcement at both ends, since a change is seen only at the
    next reading. An announcement whose end is not before the window's is open, not broken: live judging comes early.
    One that came for another reason than announced is not the one announced. ``others`` are times at which the same
    happened to another object: they keep a binding announcement, but use up no room.
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
    return Reckoning(tuple(unplanned), tuple(planned), tuple(broken), tuple(pending))


def _within(incident: Incident, intent: Intent, slack_ns: int) -> bool:
    return incident.end_ns + slack_ns >= intent.begin_ns and incident.begin_ns <= intent.end_ns + slack_ns
