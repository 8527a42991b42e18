"""Excuses: interventions and announced events at the moment of a change."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.series import Series
from soakwatch_rules.wording.quantities import moment

_AFTERMATH_NS = 600 * 10**9
"""An event without an end may cause changes for this long."""


def excuse(events: Iterable[Event], series: Series, time_ns: int, slack_ns: int) -> str:
    """The event that excuses a change at a moment, as named in a sentence; empty if none does.

    Interventions, announced events (``expect`` or a deadline) and reboots (which another rule judges) excuse changes
    from ``slack_ns`` before their start to their deadline, else their end, else ten minutes. What merely happened to
    the device (a log line, a link that it reports down) excuses nothing.
    """
    for event in events:
        if event.target not in {"", series.target} or not _excuses(event):
            continue
        ends = (event.deadline_ns, event.end_ns, event.begin_ns + _AFTERMATH_NS)
        end_ns = next(end for end in ends if end is not None)
        if event.begin_ns - slack_ns <= time_ns <= end_ns + slack_ns:
            return f"{event.kind} of {moment(event.begin_ns)}"
    return ""


def _excuses(event: Event) -> bool:
    announced = bool(event.expect) or event.deadline_ns is not None
    return announced or event.kind == "reboot" or event_kind(event.kind).intervention
