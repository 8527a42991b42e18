"""What crosses the wire: an event as JSON, strict on the way in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal, NoReturn

from soakwatch.core.suggest import hint
from soakwatch.core.units import seconds
from soakwatch.record import StoredEvent
from soakwatch.runs.mark_event import EventRefusedError, EventRequest, moment, moment_text

NOW = "now"
_KEYS = frozenset({"kind", "begin", "at", "end", "target", "object", "expect", "within", "labels"})


def ask_of(body: bytes) -> EventRequest:
    """What a request tells of an event. Raises EventRefusedError with one sentence.

    ``at`` (default now) is a moment; ``begin`` leaves it open; ``end`` ends the open one; ``begin`` and ``end``
    together, or ``at`` and ``end``, are a stretch that is over. Times are ISO 8601 with a zone, or "now".
    """
    found = _object(body)
    for key in found:
        if key not in _KEYS:
            raise EventRefusedError(f"unknown key {key[:60]!r}{hint(key[:60], _KEYS)}")
    if "at" in found and "begin" in found:
        raise EventRefusedError("at and begin say the same: give one of them")
    deed: Literal["mark", "begin", "end"] = "mark"
    if "begin" in found and "end" not in found:
        deed = "begin"
    elif "end" in found and "begin" not in found and "at" not in found:
        deed = "end"
    at = _time(found, "begin" if "begin" in found else "end" if deed == "end" else "at")
    until = _time(found, "end") if deed == "mark" else None
    if deed == "mark" and found.get("end") == NOW and at is None:
        until = None  # both are now: a moment
    elif deed == "mark" and found.get("end") == NOW:
        raise EventRefusedError("end: an event that is over has an end: give its time")
    expect, labels = _mapping(found, "expect"), _mapping(found, "labels")
    counts: dict[str, int] = {}
    for key, count in expect.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise EventRefusedError(f"expect: {key[:60]} is a number of times, such as 1")
        counts[key] = count
    texts: dict[str, str] = {}
    for key, text in labels.items():
        if not isinstance(text, str):
            raise EventRefusedError(f"labels: {key[:60]} is a text: put it in quotes")
        texts[key] = text
    return EventRequest(
        deed,
        _text(found, "kind"),
        at,
        until,
        _text(found, "target", ""),
        _text(found, "object", ""),
        counts,
        _within(found.get("within")),
        texts,
    )


def body_of(ask: EventRequest) -> bytes:
    """The request that tells it: what ``ask_of`` reads back."""
    begin = {"mark": "at", "begin": "begin", "end": "end"}[ask.action]
    made: dict[str, object] = {"kind": ask.kind, begin: NOW if ask.at_ns is None else moment_text(ask.at_ns)}
    if ask.until_ns is not None:
        made["end"] = moment_text(ask.until_ns)
    given = {
        "target": ask.target,
        "object": ask.object,
        "expect": dict(ask.expect),
        "labels": dict(ask.labels),
        "within": "" if ask.within_s is None else f"{ask.within_s:.6f}s",
    }
    return json.dumps(made | {key: value for key, value in given.items() if value}).encode()


def event_data(stored: StoredEvent) -> Mapping[str, object]:
    """An event as clients read it; times are ISO 8601 in UTC, an ``end`` of null is open."""
    event = stored.event
    return {
        "id": stored.id,
        "origin": stored.origin,
        "kind": event.kind,
        "target": event.target,
        "object": event.object,
        "begin": moment_text(event.begin_ns),
        "end": None if event.end_ns is None else moment_text(event.end_ns),
        "expect": dict(event.expect),
        "deadline": None if event.deadline_ns is None else moment_text(event.deadline_ns),
        "labels": dict(event.detail),
    }


def _object(body: bytes) -> dict[str, object]:
    try:
        found: object = json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_constant=_constant)
    except EventRefusedError:
        raise
    except (ValueError, RecursionError):
        raise EventRefusedError('this is no JSON: send one object, such as {"kind": "failover"}') from None
    if not isinstance(found, dict):
        raise EventRefusedError('an event is one JSON object, such as {"kind": "failover"}')
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise EventRefusedError("a key is there twice: say it once")
    return made


def _constant(text: str) -> NoReturn:
    raise EventRefusedError(f"{text} is no number of JSON")


def _text(found: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = found.get(key, default)
    if not isinstance(value, str):
        missing = value is None and key not in found
        raise EventRefusedError(
            f"{key} is missing: say what happened" if missing else f"{key} is a text: put it in quotes"
        )
    return value


def _time(found: Mapping[str, object], key: str) -> int | None:
    value = found.get(key, NOW)
    if value == NOW:
        return None
    if not isinstance(value, str):
        raise EventRefusedError(f'{key} is a time as a text, such as "2026-11-21T20:15:00Z", or "now"')
    try:
        return moment(value)
    except ValueError as error:
        raise EventRefusedError(f"{key}: {error}") from None


def _mapping(found: Mapping[str, object], key: str) -> dict[str, object]:
    value = found.get(key, {})
    if not isinstance(value, dict):
        raise EventRefusedError(f"{key} is an object of names and values")
    return value


def _within(value: object) -> float | None:
    if value is None:
        return None
    try:
        return seconds(value)
    except (ValueError, OverflowError) as error:
        raise EventRefusedError(f"within: {str(error)[:200]}") from None
