"""Expectations: what planned events announced, other than crashes, compared with what was reported and measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from soakwatch_model.case import Case, Ledger
from soakwatch_model.crash_kinds import KERNEL
from soakwatch_rules.events.impact import Impact
from soakwatch_rules.wording.quantities import counted, moment

OUTAGE = "outage"
"""The key of ``expect`` for the number of stretches in which traffic stops."""
_JUDGED_ELSEWHERE = frozenset(
    {"reboot", "process.restart", "process.exit", "core.dump", "kernel.oom", "session.down", *KERNEL}
)
_APART_S = 5.0
_READINGS = 3.0
_LISTENING = frozenset({"syslog", "traps"})


@dataclass(frozen=True, slots=True)
class UnmetAnnouncement:
    """One announcement that was not kept; ``open``: still in progress; ``blind``: nothing could observe it."""

    text: str
    open: bool = False
    blind: bool = False


def unmet_announcements(case: Case, event_impact: Impact) -> Iterator[UnmetAnnouncement]:
    """The announcements of an event that happened less, or more often, than announced.

    ``outage`` counts the stretches in which traffic stopped; any other key counts reported events of that kind between
    the event's start and its deadline. If nothing ever reported that kind, and no source listens, it is unknown.
    """
    event = event_impact.event
    ends_ns = next((t for t in (event.deadline_ns, event.end_ns) if t is not None), case.window.end_ns)
    over = ends_ns < case.window.end_ns
    what = f"the planned {event.kind} of {moment(event.begin_ns)}"
    for key, number in sorted(event.expect.items()):
        if key in _JUDGED_ELSEWHERE:
            continue
        text = f"{what} announced {counted(number, key)}"
        if key == OUTAGE:
            if event_impact.seconds is None:
                yield UnmetAnnouncement(f"{text}, but outages were not measured", blind=True)
                continue
            came = _pieces(event_impact)
        else:
            seen = [e for e in case.events if e.kind == key and e is not event and not e.expect]
            came = sum(event.begin_ns <= e.begin_ns <= ends_ns for e in seen)
            if not came and number and not seen and not any(_listens(x) for x in case.ledgers):
                yield UnmetAnnouncement(f"{text}, but no source reports this kind", blind=True)
                continue
        if came > number:
            yield UnmetAnnouncement(f"{text}, but {came} happened")
        elif came < number:
            yield UnmetAnnouncement(f"{text}, but {came} happened{'' if over else ' so far'}", open=not over)


def _pieces(event_impact: Impact) -> int:
    """The number of stretches in which traffic was down, joined if within five seconds or three readings."""
    apart_s = max(_APART_S, _READINGS * max((span.error_s for span in event_impact.spans), default=0.0))
    number, last_ns = 0, 0
    for span in sorted(event_impact.spans, key=lambda s: s.window.begin_ns):
        number += not number or (span.window.begin_ns - last_ns) * 1e-9 > apart_s
        last_ns = max(last_ns, span.window.end_ns)
    return number


def _listens(ledger: Ledger) -> bool:
    return ledger.source.rpartition("/")[2].partition(" ")[0] in _LISTENING
