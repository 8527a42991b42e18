"""Excuses: what was done to a device, or announced, at the moment of a change."""

from __future__ import annotations

from collections.abc import Iterable

from soakwatch_model.event import Event
from soakwatch_model.event_catalogue import event_kind
from soakwatch_model.series import Series
from soakwatch_rules.wording.words import moment

_AFTERMATH_NS = 600 * 10**9
"""How long after an event without an end what it caused may still happen."""


def excuse(events: Iterable[Event], series: Series, time_ns: int, slack_ns: int) -> str:
    """What was done or announced at a moment, as a sentence names it; empty where nothing was.

    An intervention, whatever was announced (``expect``, a deadline), and a reboot, of which another rule says whether
    it was asked for: from ``slack_ns`` before its begin to its deadline, else its end, else ten minutes after it. What
    merely happened to the device (a log line, a link that it reports down) excuses nothing.
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
