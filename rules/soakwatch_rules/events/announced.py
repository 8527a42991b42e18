"""Announced downtimes of sessions: which planned event excuses which, and by when all must be back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.window import Window
from soakwatch_rules.events.session_outages import TimeDown
from soakwatch_rules.wording.quantities import counted, duration, moment

KEY = "session.down"


@dataclass(frozen=True, slots=True)
class Announcement:
    """A planned event in which sessions may go down: exactly ``number`` if given, else any.

    They must be back at ``end_ns``: its deadline, else its end, else the end of the run.
    """

    kind: str
    begin_ns: int
    end_ns: int
    number: int | None

    @property
    def words(self) -> str:
        """Its name in a sentence."""
        return f"the planned {self.kind} of {moment(self.begin_ns)}"


def announcements(events: Iterable[Event], window: Window) -> tuple[Announcement, ...]:
    """The planned events that excuse sessions: interventions with an intent (``expect``) or a deadline, and whatever
    expects ``session.down``. Unannounced events excuse nothing."""
    found = []
    for event in events:
        number = event.expect.get(KEY)
        planned = bool(event.expect) or event.deadline_ns is not None
        done = event_kind(event.kind).intervention or event.expect.get("reboot", 0) > 0
        if number is None and not (planned and done):
            continue
        ends = (event.deadline_ns, event.end_ns, window.end_ns)
        end_ns = next(end for end in ends if end is not None)
        found.append(Announcement(event.kind, event.begin_ns, end_ns, number))
    return tuple(sorted(found, key=lambda a: (a.end_ns, a.begin_ns, a.kind)))


class AnnouncementAccount:
    """The announcements of a target, and how many sessions each has excused so far."""

    def __init__(self, announced: Sequence[Announcement], window: Window, slack_ns: int) -> None:
        self._announced, self._window, self._slack_ns = announced, window, slack_ns
        self._used = [0] * len(announced)

    def covers(self, after_ns: int, begin_ns: int) -> bool:
        """Whether a change between two readings lies in an announced event."""
        return any(self._within(a, after_ns, begin_ns) for a in self._announced)

    def settle(self, down: TimeDown) -> tuple[str, str]:
        """What is wrong with a time down ("" if excused), and what is still pending; an excuse is used up."""
        late = ""
        for index, each in enumerate(self._announced):
            if not self._within(each, down.after_ns, down.begin_ns):
                continue
            if each.number is not None and self._used[index] >= each.number:
                late = late or f"more than the {each.number} that {each.words} announced"
                continue
            back = down.end_ns is not None and down.end_ns <= each.end_ns + self._slack_ns
            if not back and not (down.end_ns is None and each.end_ns >= self._window.end_ns):
                over_s = ((down.end_ns or self._window.end_ns) - each.end_ns) * 1e-9
                state = "came back" if down.end_ns is not None else "was still down"
                late = f"{state} {duration(over_s)} after the deadline of {each.words}"
                continue
            self._used[index] += 1
            return "", "" if back else f"down while {each.words} is in progress"
        return late or "unannounced", ""

    def broken(self) -> list[tuple[str, bool]]:
        """Announcements that got fewer sessions than they announced, and whether they are still in progress."""
        result = []
        for used, each in zip(self._used, self._announced, strict=True):
            if each.number is not None and used < each.number:
                text = f"{each.words} announced {counted(each.number, 'lost session')}, but {used} went down"
                result.append((text, each.end_ns >= self._window.end_ns))
        return result

    def _within(self, each: Announcement, after_ns: int, begin_ns: int) -> bool:
        return begin_ns + self._slack_ns >= each.begin_ns and after_ns <= each.end_ns + self._slack_ns
