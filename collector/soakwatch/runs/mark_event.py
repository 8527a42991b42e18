"""Marking: reporting an event to a run. The one place where it is checked, whoever reports it: command line, web,
Python, pytest, Robot Framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.event_kinds import ACKNOWLEDGED, STOP, is_internal
from soakwatch.core.suggest import hint
from soakwatch.core.units import show_seconds
from soakwatch.plan.expected import slip
from soakwatch.plan.parts import EVENT_KIND
from soakwatch.record.external_events import ExternalEvents, external_events
from soakwatch.record.model import USER_ORIGIN as ORIGIN
from soakwatch.record.model import StoredEvent
from soakwatch_model.event import Event

SLACK_NS = 60_000_000_000
"""So far the clocks of who reports and of the run may be apart."""
MAX_LABELS = 32
"""Labels, and expectations, of one event."""
MAX_EVENTS = 10_000
"""External events of one run: a script that runs wild fills no record."""
_MAX_KIND, _MAX_KEY, _MAX_TEXT = 64, 64, 1000
_MAX_COUNT = 1_000_000
_MAX_WITHIN_S = 366 * 86400.0
_OWN = ("phase.",)  # how the run went through its plan


class EventRefusedError(SoakwatchError):
    """What was reported of an event makes no sense, by itself or for this run."""


class EventConflictError(EventRefusedError):
    """It contradicts what was reported before."""


@dataclass(frozen=True, slots=True)
class EventRequest:
    """What is reported of an event.

    ``action``: "mark" is a moment, or a stretch if ``until_ns`` is given; "begin" leaves it open; "end" ends the open
    one of the same kind, target and object, or the only open one of the kind that fits what is given. ``at_ns`` and
    ``until_ns`` are UTC ns, None is now. ``expect`` and ``within_s`` (seconds from its begin) are the intent; with
    "end" there is none. ``labels`` are anything worth knowing; those of the end are added to those of the begin.
    """

    action: Literal["mark", "begin", "end"]
    kind: str
    at_ns: int | None = None
    until_ns: int | None = None
    target: str = ""
    object: str = ""
    expect: Mapping[str, int] = field(default_factory=dict)
    within_s: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def record_event(run: Path, ask: EventRequest, now_ns: int, *, own: bool = False) -> StoredEvent:
    """Record an event in a run: its folder, or its file.

    ``now_ns`` is what the clock of the run says, or the wall clock. ``own``: a server records what it knows by itself,
    which may be of a kind that nobody else may record, and of a run that waits. Raises EventRefusedError
    (EventConflictError for an event that overlaps with one of its kind, or an end without a begin), and RecordError.
    """
    check_ask(ask, own=own)
    at_ns = now_ns if ask.at_ns is None else ask.at_ns
    last_ns = at_ns if ask.until_ns is None else ask.until_ns
    if last_ns < at_ns:
        raise EventRefusedError(
            f"the {ask.kind} would end {_apart(last_ns, at_ns)} before it starts: correct one of the two times"
        )
    if last_ns > now_ns + SLACK_NS:
        raise EventRefusedError(
            f"{moment_text(last_ns)} is {_apart(now_ns, last_ns)} in the future: report it when it happens, or write"
            " it into the plan's events"
        )
    with external_events(run) as kept:
        targets = kept.targets()
        if ask.target and ask.target not in targets:
            raise EventRefusedError(f"the run has no target {ask.target!r}{hint(ask.target, targets)}")
        if ask.action == "end":
            return _end(kept, ask, at_ns)
        _within_the_run(kept, ask, at_ns, own=own)
        end_ns = None if ask.action == "begin" else last_ns
        deadline_ns = None if ask.within_s is None else at_ns + round(ask.within_s * 1e9)
        event = Event(ask.kind, ask.target, ask.object, at_ns, end_ns, dict(ask.labels), dict(ask.expect), deadline_ns)
        _alone(kept.events(ask.kind, ask.target, ask.object), event)
        if kept.number() >= MAX_EVENTS:
            raise EventRefusedError(f"event limit ({MAX_EVENTS}) reached")
        return kept.add(event)


def moment(text: str) -> int:
    """A time in UTC ns, of an ISO 8601 text with a zone; ValueError with the remedy if it is none.

    >>> moment("1970-01-01T00:00:01.5Z")
    1500000000
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is not ISO 8601, such as 2026-11-21T20:15:00Z") from None
    if time.tzinfo is None:
        raise ValueError(f"{text[:60]!r} has no zone: write {text[:60]}Z for UTC")
    try:
        since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        raise ValueError(f"{text[:60]!r} is outside the calendar") from None
    time_ns = ((since.days * 86400 + since.seconds) * 10**6 + since.microseconds) * 1000
    if not 0 <= time_ns < 2**63:
        raise ValueError(f"{text[:60]!r} is not a valid time: it lies before 1970 or after 2262")
    return time_ns


def moment_text(time_ns: int) -> str:
    """A time as ISO 8601 in UTC, to the microsecond.

    >>> moment_text(1_500_000_000)
    '1970-01-01T00:00:01.500000Z'
    """
    whole, rest = divmod(time_ns, 10**9)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def check_ask(ask: EventRequest, *, own: bool = False) -> None:
    """Refuse what makes no sense whatever the run is, and what only a server may record. Raises EventRefusedError."""
    if len(ask.kind) > _MAX_KIND or EVENT_KIND.fullmatch(ask.kind) is None:
        raise EventRefusedError(f"{ask.kind[:60]!r} is not a kind of event: write a lower-case word such as failover")
    reserved = is_internal(ask.kind) and ask.kind not in {STOP, ACKNOWLEDGED} and not own
    if reserved or ask.kind.startswith(_OWN):
        raise EventRefusedError(f"{ask.kind} is reserved for the run itself: choose another kind")
    if ask.action == "end" and (ask.expect or ask.within_s is not None):
        raise EventRefusedError("expect and within belong to the start of an event: leave them out at its end")
    _check_text("object", ask.object)
    for what, given in (("label", ask.labels), ("expectation", ask.expect)):
        if len(given) > MAX_LABELS:
            raise EventRefusedError(f"{len(given)} {what}s are too many: {MAX_LABELS} at most")
        for key in given:
            if not 0 < len(key) <= _MAX_KEY or not key.isprintable():
                raise EventRefusedError(f"{key[:60]!r} cannot name a {what}: 1 to {_MAX_KEY} printable characters")
    for key, value in ask.labels.items():
        _check_text(key, value)
    for key, count in ask.expect.items():
        if EVENT_KIND.fullmatch(key) is None:
            raise EventRefusedError(f"expect: {key!r} is not a kind of event: write a lower-case word such as reboot")
        if problem := slip(key):
            raise EventRefusedError(problem)
        if not 0 <= count <= _MAX_COUNT:
            raise EventRefusedError(f"expect: {key} is a number of times from 0 to {_MAX_COUNT}, such as {key}=1")
    if ask.within_s is not None and not 0 < ask.within_s <= _MAX_WITHIN_S:
        raise EventRefusedError("within is the time from its start until all is over: more than 0 s, 366 d at most")


def _check_text(name: str, text: str) -> None:
    if len(text) > _MAX_TEXT or not text.isprintable():
        raise EventRefusedError(f"{name} is one line of printable text, {_MAX_TEXT} characters at most")


def _within_the_run(kept: ExternalEvents, ask: EventRequest, at_ns: int, *, own: bool) -> None:
    start, ended = kept.meta("start_ns"), kept.meta("ended_ns")
    waits = own or ask.kind == STOP  # a run that waits can be stopped
    if start is not None and at_ns < int(start) - SLACK_NS and not waits:
        raise EventRefusedError(
            f"{moment_text(at_ns)} is {_apart(at_ns, int(start))} before the run started,"
            f" {moment_text(int(start))}: it is not part of the run"
        )
    if ended is not None and at_ns > int(ended) + SLACK_NS:
        raise EventRefusedError(
            f"the run ended at {moment_text(int(ended))}, {_apart(int(ended), at_ns)} before:"
            f" say when the {ask.kind} happened"
        )


def _alone(others: Iterable[StoredEvent], event: Event) -> None:
    """Whether it overlaps with one that was reported before, or with a planned one whose intent it would double."""
    for other in others:
        before = other.event
        if other.origin == ORIGIN:
            ends_ns = before.end_ns
        elif other.origin == "plan" and before.expect and event.expect:
            ends_ns = max(before.begin_ns, before.end_ns or 0, before.deadline_ns or 0)
        else:
            continue
        if not _overlap(event.begin_ns, event.end_ns, before.begin_ns, ends_ns):
            continue
        where = f" on {before.target}" if before.target else ""
        began = f"{before.kind}{where} that started at {moment_text(before.begin_ns)}"
        if other.origin == "plan":
            raise EventConflictError(f"it overlaps with the planned {began}, which expects the same: leave expect out")
        if ends_ns is None:
            raise EventConflictError(f"it overlaps with the {began} and is still open: end that one first")
        raise EventConflictError(
            f"it overlaps with the {began} and ended at {moment_text(ends_ns)}: one of the two is wrong"
        )


def _overlap(begin_ns: int, end_ns: int | None, begun_ns: int, ended_ns: int | None) -> bool:
    """Two stretches that share more than an edge, or are the same; None is open."""
    if (begin_ns, end_ns) == (begun_ns, ended_ns):
        return True
    return (ended_ns is None or begin_ns < ended_ns) and (end_ns is None or begun_ns < end_ns)


def _end(kept: ExternalEvents, ask: EventRequest, at_ns: int) -> StoredEvent:
    opened = _open_event(kept.opened(), ask)
    begin_ns = opened.event.begin_ns
    if at_ns < begin_ns and ask.at_ns is not None:
        raise EventRefusedError(
            f"the {ask.kind} started at {moment_text(begin_ns)}: it cannot end before that: correct its end"
        )
    return kept.end(opened, max(at_ns, begin_ns), ask.labels)


def _open_event(opened: Iterable[StoredEvent], ask: EventRequest) -> StoredEvent:
    """The open event that an end means: of exactly its target and object, else the only one that fits what it names."""
    every = tuple(opened)
    fit = [
        stored
        for stored in every
        if stored.event.kind == ask.kind
        and ask.target in {"", stored.event.target}
        and ask.object in {"", stored.event.object}
    ]
    exact = [stored for stored in fit if (stored.event.target, stored.event.object) == (ask.target, ask.object)]
    if exact or len(fit) == 1:
        return (exact or fit)[-1]
    if fit:
        which = ", ".join(f"{_options(s.event)} (started at {moment_text(s.event.begin_ns)})" for s in fit[:MAX_LABELS])
        raise EventConflictError(f"{len(fit)} events {ask.kind!r} are open: {which}: name target and object")
    where = f" on {ask.target}" if ask.target else ""
    others = [" ".join([s.event.kind, _options(s.event)]).rstrip() for s in every[:MAX_LABELS]]
    remedy = f"; open: {', '.join(others)}" if others else ": start one first"
    raise EventConflictError(f"there is no open event {ask.kind!r}{where}{remedy}")


def _options(event: Event) -> str:
    """The options of ``soakwatch event`` that name an event's target and object."""
    return " ".join(
        f"--{name} {value}" for name, value in (("target", event.target), ("object", event.object)) if value
    )


def _apart(earlier_ns: int, later_ns: int) -> str:
    return show_seconds(abs(later_ns - earlier_ns) * 1e-9)
