"""Events as JSON: strict parsing of requests to the event API, and stored events."""

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


def request_from_json(body: bytes) -> EventRequest:
    """Parse a request. Raises EventRefusedError with one sentence.

    ``at`` (default now) is one point in time; ``begin`` alone opens an event, ``end`` alone ends the open one;
    ``begin`` and ``end`` together, or ``at`` and ``end``, are an event that is over. Times are ISO 8601 with a zone,
    or "now".
    """
    data = _object(body)
    for key in data:
        if key not in _KEYS:
            raise EventRefusedError(f"unknown key {key[:60]!r}{hint(key[:60], _KEYS)}")
    if "at" in data and "begin" in data:
        raise EventRefusedError("at and begin mean the same: give only one of them")
    action: Literal["mark", "begin", "end"] = "mark"
    if "begin" in data and "end" not in data:
        action = "begin"
    elif "end" in data and "begin" not in data and "at" not in data:
        action = "end"
    time_ns = _time(data, "begin" if "begin" in data else "end" if action == "end" else "at")
    until_ns = _time(data, "end") if action == "mark" else None
    if action == "mark" and data.get("end") == NOW and time_ns is None:
        until_ns = None  # both are now: no duration
    elif action == "mark" and data.get("end") == NOW:
        raise EventRefusedError('end: an event that is over needs the time of its end, not "now"')
    expect, labels = _mapping(data, "expect"), _mapping(data, "labels")
    counts: dict[str, int] = {}
    for key, count in expect.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise EventRefusedError(f"expect: {key[:60]} must be a count, such as 1")
        counts[key] = count
    texts: dict[str, str] = {}
    for key, text in labels.items():
        if not isinstance(text, str):
            raise EventRefusedError(f"labels: {key[:60]} must be a text: put it in quotes")
        texts[key] = text
    return EventRequest(
        action,
        _text(data, "kind"),
        time_ns,
        until_ns,
        _text(data, "target", ""),
        _text(data, "object", ""),
        counts,
        _within(data.get("within")),
        texts,
    )


def request_to_json(request: EventRequest) -> bytes:
    """The body of a request, as ``request_from_json`` reads it."""
    begin = {"mark": "at", "begin": "begin", "end": "end"}[request.action]
    data: dict[str, object] = {
        "kind": request.kind,
        begin: NOW if request.at_ns is None else moment_text(request.at_ns),
    }
    if request.until_ns is not None:
        data["end"] = moment_text(request.until_ns)
    given = {
        "target": request.target,
        "object": request.object,
        "expect": dict(request.expect),
        "labels": dict(request.labels),
        "within": "" if request.within_s is None else f"{request.within_s:.6f}s",
    }
    return json.dumps(data | {key: value for key, value in given.items() if value}).encode()


def event_data(stored: StoredEvent) -> Mapping[str, object]:
    """An event as clients read it; times are ISO 8601 in UTC, ``end`` is null while it is open."""
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
        data: object = json.loads(body.decode("utf-8"), object_pairs_hook=_once, parse_constant=_constant)
    except EventRefusedError:
        raise
    except (ValueError, RecursionError):
        raise EventRefusedError('invalid JSON: send one object, such as {"kind": "failover"}') from None
    if not isinstance(data, dict):
        raise EventRefusedError('an event is one JSON object, such as {"kind": "failover"}')
    return data


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise EventRefusedError("a key is given twice: give it once")
    return data


def _constant(text: str) -> NoReturn:
    raise EventRefusedError(f"{text} is not a JSON number")


def _text(data: Mapping[str, object], key: str, default: str | None = None) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        missing = value is None and key not in data
        raise EventRefusedError(
            f"{key} is missing: name what happened" if missing else f"{key} must be a text: put it in quotes"
        )
    return value


def _time(data: Mapping[str, object], key: str) -> int | None:
    value = data.get(key, NOW)
    if value == NOW:
        return None
    if not isinstance(value, str):
        raise EventRefusedError(f'{key} must be a time as text, such as "2026-11-21T20:15:00Z", or "now"')
    try:
        return moment(value)
    except ValueError as error:
        raise EventRefusedError(f"{key}: {error}") from None


def _mapping(data: Mapping[str, object], key: str) -> dict[str, object]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise EventRefusedError(f"{key} must be an object of names and values")
    return value


def _within(value: object) -> float | None:
    if value is None:
        return None
    try:
        return seconds(value)
    except (ValueError, OverflowError) as error:
        raise EventRefusedError(f"within: {str(error)[:200]}") from None
