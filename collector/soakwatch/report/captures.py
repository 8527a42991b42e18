"""Flight-recorder captures: windows of which the record has ten samples a second."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from soakwatch.core.event_kinds import WINDOW, FindingKey, key_of
from soakwatch.core.formatting import utc
from soakwatch.record.source import StoredEvent
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Mark
from soakwatch_model.window import Window
from soakwatch_rules.wording.quantities import counted, first_few

_MAX_RELATED_S = 180.0  # a longer window does not say where in it the trouble was
_MAX_NAMES = 3


@dataclass(frozen=True, slots=True)
class Capture:
    """One captured window. ``moments`` are the reasons for it, ``more`` counts further reasons that are not listed, and
    ``findings`` are those reasons that are findings."""

    anchor: str
    target: str
    window: Window
    moments: tuple[Mark, ...]
    more: int
    findings: frozenset[FindingKey]

    @property
    def reason(self) -> str:
        """Why it was captured, in one line."""
        words = "; ".join(mark.text for mark in self.moments) or "something happened"
        return f"{words}; and {self.more} more" if self.more else words

    def shows(self, finding: Finding) -> bool:
        """Whether it is evidence of a finding: it was captured because of the finding, or holds one of its moments.

        A finding without moments must overlap it with a short window: a window of hours does not say where the trouble
        was.
        """
        if finding.target not in {"", self.target}:
            return False
        if key_of(finding) in self.findings:
            return True
        if finding.marks:
            return any(self.window.begin_ns <= mark.begin_ns < self.window.end_ns for mark in finding.marks)
        touches = finding.window.begin_ns < self.window.end_ns and self.window.begin_ns < finding.window.end_ns
        return touches and finding.window.seconds <= _MAX_RELATED_S


def captures_of(events: Iterable[StoredEvent]) -> tuple[Capture, ...]:
    """The captures in order of time, from the events that announce them."""
    windows = [stored.event for stored in events if stored.event.kind == WINDOW and stored.event.end_ns is not None]
    windows.sort(key=lambda event: (event.begin_ns, event.target))
    return tuple(_capture(number, event) for number, event in enumerate(windows, 1))


def captures_text(captures: Sequence[Capture]) -> str:
    """The captures in one line, for formats without plots; empty if there is none."""
    if not captures:
        return ""
    reasons = [(capture, first_few([mark.text for mark in capture.moments], 1)) for capture in captures]
    first = first_few(
        [f"{capture.target} at {utc(capture.window.begin_ns)} ({why or 'unnamed'})" for capture, why in reasons],
        _MAX_NAMES,
    )
    return f"{counted(len(captures), 'flight-recorder capture')} in the report: {first}"


def _capture(number: int, event: Event) -> Capture:
    times, reasons = event.detail.get("at_ns", "").split(), event.detail.get("reason", "").split("; ")
    known = [(_whole(text), why) for text, why in zip(times, reasons, strict=False)]
    moments = [Mark(time_ns, None, why) for time_ns, why in known if time_ns is not None]
    moments.sort(key=lambda mark: mark.begin_ns)
    end_ns = event.begin_ns if event.end_ns is None else event.end_ns
    return Capture(
        anchor=f"capture-{number}",
        target=event.target,
        window=Window(event.begin_ns, end_ns + 1),
        moments=tuple(moments) or tuple(Mark(event.begin_ns, None, why) for why in reasons if why),
        more=_whole(event.detail.get("more", "0")) or 0,
        findings=_findings(event),
    )


def _findings(event: Event) -> frozenset[FindingKey]:
    """The findings for which the capture was made; empty if the event does not list them."""
    try:
        listed: object = json.loads(event.detail["findings"])
    except (KeyError, ValueError, RecursionError):
        return frozenset()
    known: set[FindingKey] = set()
    for item in listed if isinstance(listed, list) else ():
        match item:
            case [str(rule), str(metric), str(name)]:
                known.add((rule, metric, name))
    return frozenset(known)


def _whole(text: str) -> int | None:
    return int(text) if len(text) < 20 and text.isdecimal() else None
