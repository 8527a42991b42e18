"""The closer looks of a run: stretches for which a flight recorder's samples, ten a second, are in the record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from soakwatch.core.event_kinds import WINDOW, of_finding
from soakwatch.core.formatting import utc
from soakwatch.record.source import StoredEvent
from soakwatch_rules.rule import Event, Finding, Mark, Window
from soakwatch_rules.wording.words import counted, some

_SHORT_S = 180.0
_NAMED = 3


@dataclass(frozen=True, slots=True)
class CloserLook:
    """One stretch; ``moments`` are what it was fetched for, ``more`` how many others have no name here."""

    anchor: str
    target: str
    window: Window
    moments: tuple[Mark, ...]
    more: int
    every_s: str

    @property
    def reason(self) -> str:
        """What it was fetched for, in one line."""
        words = "; ".join(mark.text for mark in self.moments) or "something happened"
        return f"{words}; and {self.more} more" if self.more else words

    def shows(self, finding: Finding) -> bool:
        """Whether it has something to say of a finding: it was fetched for it, or holds a moment that it names.

        A short window that it touches is enough; one of hours says nothing of where the finding is.
        """
        if finding.target not in {"", self.target}:
            return False
        why = of_finding(finding)
        if any(mark.text.partition(": ")[2] == why for mark in self.moments):
            return True
        if finding.marks:
            return any(self.window.begin_ns <= mark.begin_ns < self.window.end_ns for mark in finding.marks)
        touches = finding.window.begin_ns < self.window.end_ns and self.window.begin_ns < finding.window.end_ns
        return touches and finding.window.seconds <= _SHORT_S


def closer_looks(events: Iterable[StoredEvent]) -> tuple[CloserLook, ...]:
    """The looks in the order of their time, from the events that tell of them."""
    told = [one.event for one in events if one.event.kind == WINDOW and one.event.end_ns is not None]
    told.sort(key=lambda event: (event.begin_ns, event.target))
    return tuple(_look(number, event) for number, event in enumerate(told, 1))


def closer_text(looks: Iterable[CloserLook]) -> str:
    """One line for those who see no plot; empty where there was none."""
    every = tuple(looks)
    if not every:
        return ""
    told = [(look, some([mark.text for mark in look.moments], 1)) for look in every]
    first = some([f"{look.target} at {utc(look.window.begin_ns)} ({why or 'unnamed'})" for look, why in told], _NAMED)
    return f"{counted(len(every), 'closer look')} of the flight recorder in the report: {first}"


def _look(number: int, event: Event) -> CloserLook:
    times, words = event.detail.get("at_ns", "").split(), event.detail.get("reason", "").split("; ")
    said = [(_whole(at), why) for at, why in zip(times, words, strict=False)]
    moments = [Mark(at_ns, None, why) for at_ns, why in said if at_ns is not None]
    moments.sort(key=lambda mark: mark.begin_ns)
    end_ns = event.begin_ns if event.end_ns is None else event.end_ns
    return CloserLook(
        anchor=f"closer-{number}",
        target=event.target,
        window=Window(event.begin_ns, end_ns + 1),
        moments=tuple(moments) or tuple(Mark(event.begin_ns, None, why) for why in words if why),
        more=_whole(event.detail.get("more", "0")) or 0,
        every_s=event.detail.get("every_s", "0.1"),
    )


def _whole(text: str) -> int | None:
    return int(text) if len(text) < 20 and text.isdecimal() else None
