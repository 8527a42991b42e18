"""Series of a run: which there are, and their values at the resolution that is asked for."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from soakwatch.record import SeriesKey
from soakwatch.runs.mark_event import moment
from soakwatch.web.endpoint import Endpoint, May, Param, Question, Schema
from soakwatch.web.series_reading import (
    FEWEST_POINTS,
    MOST_POINTS,
    MOST_SERIES,
    READER,
    Ask,
    Line,
    NoSuchSeriesError,
    key_data,
    lines_data,
)

_POINTS = 2000
_MS = 10**6
_LATEST_MS = 2**63 // _MS - 1
_KEY: Schema = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 3,
    "maxItems": 3,
    "description": "target, metric, object (empty where the metric has none)",
}
_TIME: Schema = {"type": ["number", "null"], "description": "ms since 1970 UTC; null is open"}
_UNTIL: Schema = {"type": ["integer", "null"], "description": "how far the record reaches, ms since 1970 UTC"}
_LINE: Schema = {
    "type": "object",
    "properties": {
        "key": _KEY,
        "unit": {"type": "string", "description": "UCUM, of the values; of a rate it ends in /s"},
        "rate": {"type": "boolean", "description": "increments per second of a counter"},
        "steps": {"type": "boolean", "description": "a state: it holds until the next reading"},
        "time": {"type": "array", "items": {"type": "integer"}, "description": "ms since 1970 UTC"},
        "value": {
            "type": "array",
            "items": {"type": ["number", "null"]},
            "description": "null breaks the line: nothing was read there, or a counter began anew",
        },
        "readings": {"type": "integer", "description": "how many there are from begin to end"},
        "whole": {"type": "boolean", "description": "every reading is there; else the line is thinned, no spike lost"},
    },
    "required": ["key", "unit", "rate", "steps", "time", "value", "readings", "whole"],
}
_LINES: Schema = {
    "type": "object",
    "properties": {
        "series": {"type": "array", "items": _LINE},
        "until": _UNTIL,
    },
    "required": ["series", "until"],
}
_ASK: Schema = {
    "type": "object",
    "properties": {
        "series": {"type": "array", "items": _KEY, "minItems": 1, "maxItems": MOST_SERIES},
        "begin": _TIME,
        "end": _TIME,
        "points": {
            "type": "integer",
            "minimum": FEWEST_POINTS,
            "maximum": MOST_POINTS,
            "default": _POINTS,
            "description": "about so many points of each series",
        },
    },
    "required": ["series"],
    "additionalProperties": False,
}
_WORDS = (
    Param("series", 'keys as JSON, such as ["fw","system.uptime",""]', many=True),
    Param("target", "all series of these targets", many=True),
    Param("metric", "all series of these metrics", many=True),
    Param("object", "all series of these objects", many=True),
    Param("begin", "ms since 1970 UTC, or ISO 8601 with a zone"),
    Param("end", "ms since 1970 UTC, or ISO 8601 with a zone; not part of it"),
    Param("points", f"about so many points of each series, {_POINTS} if nothing is said", "whole"),
)


def _list(question: Question) -> Response:
    return JSONResponse({"run": question.folder.name, **READER.listed(question.folder)})


def _data(question: Question) -> Response:
    made, until_ns = _lines(question, _asked(question.json()))
    return JSONResponse(lines_data(made, until_ns))


def _data_by_words(question: Question) -> Response:
    made, until_ns = _lines(question, _worded(question))
    return JSONResponse(lines_data(made, until_ns))


def _csv(question: Question) -> Response:
    ask = _worded(question)
    made, _ = _lines(question, ask)
    begin_ms, end_ms = (ask.begin_ns or 0) / _MS, math.inf if ask.end_ns is None else ask.end_ns / _MS
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["time", "target", "metric", "object", "value", "unit"])
    for line in made:
        key = [line.key.target, line.key.metric, line.key.object]
        for time_ms, value in zip(line.time_ms.tolist(), line.value.tolist(), strict=True):
            if begin_ms <= time_ms < end_ms and not math.isnan(value):  # a gap is no row
                shown = int(value) if line.integers else repr(value)
                rows.writerow([f"{time_ms / 1000:.3f}", *key, shown, line.unit])
    headers = {"content-disposition": 'attachment; filename="series.csv"'}
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _lines(question: Question, ask: Ask) -> tuple[tuple[Line, ...], int | None]:
    try:
        return READER.lines(question.folder, ask)
    except NoSuchSeriesError as error:
        text = json.dumps(key_data(error.key))[:300]
        raise HTTPException(404, f"the record has no series {text}: GET the list of its series") from None


def _asked(body: Mapping[str, object]) -> Ask:
    unknown = sorted(set(body) - {"series", "begin", "end", "points"})
    if unknown:
        raise HTTPException(400, f"{unknown[0][:80]!r} is not known here: send series, begin, end and points")
    keys = body.get("series")
    if not isinstance(keys, list) or not 1 <= len(keys) <= MOST_SERIES:
        raise HTTPException(400, f"series is a list of 1 to {MOST_SERIES} keys")
    points = body.get("points", _POINTS)
    if not _whole(points) or not isinstance(points, int) or not FEWEST_POINTS <= points <= MOST_POINTS:
        raise HTTPException(400, f"points is a whole number from {FEWEST_POINTS} to {MOST_POINTS}")
    return _checked(Ask(tuple(map(_key, keys)), _ms("begin", body), _ms("end", body), points))


def _worded(question: Question) -> Ask:
    keys = [_key(_json(text)) for text in question.words.get("series", ())]
    wanted = [frozenset(question.words.get(name, ())) for name in ("target", "metric", "object")]
    if any(wanted):
        every = READER.keys(question.folder)
        keys += [
            key
            for key in every
            if all(not some or one in some for some, one in zip(wanted, key_data(key), strict=True))
        ]
    if not 1 <= len(keys) <= MOST_SERIES:
        raise HTTPException(
            400, f"{len(keys)} series fit: name 1 to {MOST_SERIES} by series, or by target, metric and object"
        )
    points = question.whole("points", _POINTS, FEWEST_POINTS, MOST_POINTS)
    return _checked(Ask(tuple(keys), _moment(question, "begin"), _moment(question, "end"), points))


def _checked(ask: Ask) -> Ask:
    if ask.begin_ns is not None and ask.end_ns is not None and ask.begin_ns >= ask.end_ns:
        raise HTTPException(400, "begin is not before end")
    return ask


def _key(found: object) -> SeriesKey:
    if not isinstance(found, list) or len(found) != 3 or not all(isinstance(part, str) for part in found):
        raise HTTPException(400, "a series is [target, metric, object]: three texts, the object may be empty")
    return SeriesKey(*found)


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise HTTPException(400, 'series is JSON, such as ["fw","system.uptime",""]') from None
    return found


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ms(name: str, body: Mapping[str, object]) -> int | None:
    """A time of the body in ns; scripts have fractions of ms."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_MS:  # nor NaN
        raise HTTPException(400, f"{name} is a time in ms since 1970, or null")
    return int(value * _MS)


def _moment(question: Question, name: str) -> int | None:
    text = question.text(name)
    if not text or text.isdecimal():
        return None if not text else question.whole(name, 0, 0, _LATEST_MS) * _MS
    try:
        return moment(text)
    except ValueError as error:
        raise HTTPException(400, f"{name}: {error}") from None


ENDPOINTS = (
    Endpoint(
        "GET",
        "/api/runs/{run}/series",
        May.VIEW,
        "Every series of the record, sorted by target, metric and object.",
        _list,
        gives={
            "type": "object",
            "properties": {
                "run": {"type": "string"},
                "series": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "key": _KEY,
                            "unit": {"type": "string", "description": "UCUM, of what is recorded"},
                            "kind": {"enum": ["gauge", "counter", "state"]},
                            "interval": {
                                "type": ["number", "null"],
                                "description": "planned distance of readings in seconds",
                            },
                            "readings": {"type": "integer"},
                        },
                        "required": ["key", "unit", "kind", "interval", "readings"],
                    },
                },
                "until": _UNTIL,
            },
            "required": ["run", "series", "until"],
        },
    ),
    Endpoint(
        "POST",
        "/api/runs/{run}/series/data",
        May.VIEW,
        "Values of some series as they are drawn: counters as rates, gaps as null; thinned to about so many points by"
        " MinMaxLTTB if there are more readings.",
        _data,
        sends=_ASK,
        gives=_LINES,
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/series/data",
        May.VIEW,
        "The same, asked for by words.",
        _data_by_words,
        params=_WORDS,
        gives=_LINES,
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/series/data.csv",
        May.VIEW,
        "The same as CSV: time (seconds since 1970), target, metric, object, value, unit.",
        _csv,
        params=_WORDS,
        gives={"type": "string"},
        media="text/csv",
    ),
)
