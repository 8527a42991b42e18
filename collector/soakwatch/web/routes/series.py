"""Series of a run: the list, and values at the requested resolution."""

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
from soakwatch.web.endpoint import Endpoint, EndpointRequest, May, Param, Schema
from soakwatch.web.series_reader import (
    MAX_POINTS,
    MAX_SERIES,
    MIN_POINTS,
    READER,
    NoSuchSeriesError,
    PlottedSeries,
    SeriesQuery,
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
_TIME: Schema = {"type": ["number", "null"], "description": "ms since 1970 UTC; null: no bound"}
_UNTIL: Schema = {"type": ["integer", "null"], "description": "time of the last recorded sample, ms since 1970 UTC"}
_LINE: Schema = {
    "type": "object",
    "properties": {
        "key": _KEY,
        "unit": {"type": "string", "description": "UCUM, of the values; of a rate it ends in /s"},
        "rate": {"type": "boolean", "description": "increments per second of a counter"},
        "steps": {"type": "boolean", "description": "a state: it holds until the next sample"},
        "time": {"type": "array", "items": {"type": "integer"}, "description": "ms since 1970 UTC"},
        "value": {
            "type": "array",
            "items": {"type": ["number", "null"]},
            "description": "null breaks the line: a gap, or a counter was reset",
        },
        "readings": {"type": "integer", "description": "number of samples from begin to end"},
        "whole": {
            "type": "boolean",
            "description": "every sample is included; else the line is thinned without losing spikes",
        },
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
_QUERY: Schema = {
    "type": "object",
    "properties": {
        "series": {"type": "array", "items": _KEY, "minItems": 1, "maxItems": MAX_SERIES},
        "begin": _TIME,
        "end": _TIME,
        "points": {
            "type": "integer",
            "minimum": MIN_POINTS,
            "maximum": MAX_POINTS,
            "default": _POINTS,
            "description": "approximate number of points per series",
        },
    },
    "required": ["series"],
    "additionalProperties": False,
}
_PARAMS = (
    Param("series", 'keys as JSON, such as ["fw","system.uptime",""]', many=True),
    Param("target", "all series of these targets", many=True),
    Param("metric", "all series of these metrics", many=True),
    Param("object", "all series of these objects", many=True),
    Param("begin", "ms since 1970 UTC, or ISO 8601 with a zone"),
    Param("end", "ms since 1970 UTC, or ISO 8601 with a zone; exclusive"),
    Param("points", f"approximate number of points per series, by default {_POINTS}", "whole"),
)


def _list(request: EndpointRequest) -> Response:
    return JSONResponse({"run": request.folder.name, **READER.listed(request.folder)})


def _data(request: EndpointRequest) -> Response:
    lines, until_ns = _lines(request, _query_from_body(request.json()))
    return JSONResponse(lines_data(lines, until_ns))


def _data_by_params(request: EndpointRequest) -> Response:
    lines, until_ns = _lines(request, _query_from_params(request))
    return JSONResponse(lines_data(lines, until_ns))


def _csv(request: EndpointRequest) -> Response:
    query = _query_from_params(request)
    lines, _ = _lines(request, query)
    begin_ms, end_ms = (query.begin_ns or 0) / _MS, math.inf if query.end_ns is None else query.end_ns / _MS
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(["time", "target", "metric", "object", "value", "unit"])
    for line in lines:
        key = [line.key.target, line.key.metric, line.key.object]
        for time_ms, value in zip(line.time_ms.tolist(), line.value.tolist(), strict=True):
            if begin_ms <= time_ms < end_ms and not math.isnan(value):  # a gap has no row
                shown = int(value) if line.integers else repr(value)
                rows.writerow([f"{time_ms / 1000:.3f}", *key, shown, line.unit])
    headers = {"content-disposition": 'attachment; filename="series.csv"'}
    return Response(out.getvalue(), media_type="text/csv; charset=utf-8", headers=headers)


def _lines(request: EndpointRequest, query: SeriesQuery) -> tuple[tuple[PlottedSeries, ...], int | None]:
    try:
        return READER.lines(request.folder, query)
    except NoSuchSeriesError as error:
        text = json.dumps(key_data(error.key))[:300]
        raise HTTPException(404, f"the record has no series {text}: GET the list of its series") from None


def _query_from_body(body: Mapping[str, object]) -> SeriesQuery:
    unknown = sorted(set(body) - {"series", "begin", "end", "points"})
    if unknown:
        raise HTTPException(400, f"{unknown[0][:80]!r} is not a known key: send series, begin, end and points")
    keys = body.get("series")
    if not isinstance(keys, list) or not 1 <= len(keys) <= MAX_SERIES:
        raise HTTPException(400, f"series must be a list of 1 to {MAX_SERIES} keys")
    points = body.get("points", _POINTS)
    if not _whole(points) or not isinstance(points, int) or not MIN_POINTS <= points <= MAX_POINTS:
        raise HTTPException(400, f"points must be an integer from {MIN_POINTS} to {MAX_POINTS}")
    return _checked(SeriesQuery(tuple(map(_key, keys)), _ms("begin", body), _ms("end", body), points))


def _query_from_params(request: EndpointRequest) -> SeriesQuery:
    keys = [_key(_json(text)) for text in request.words.get("series", ())]
    wanted = [frozenset(request.words.get(name, ())) for name in ("target", "metric", "object")]
    if any(wanted):
        every = READER.keys(request.folder)
        keys += [
            key
            for key in every
            if all(
                not wanted_parts or part in wanted_parts
                for wanted_parts, part in zip(wanted, key_data(key), strict=True)
            )
        ]
    if not 1 <= len(keys) <= MAX_SERIES:
        raise HTTPException(
            400, f"{len(keys)} series match: select 1 to {MAX_SERIES} by series, or by target, metric and object"
        )
    points = request.whole("points", _POINTS, MIN_POINTS, MAX_POINTS)
    return _checked(SeriesQuery(tuple(keys), _moment(request, "begin"), _moment(request, "end"), points))


def _checked(query: SeriesQuery) -> SeriesQuery:
    if query.begin_ns is not None and query.end_ns is not None and query.begin_ns >= query.end_ns:
        raise HTTPException(400, "begin must be before end")
    return query


def _key(data: object) -> SeriesKey:
    if not isinstance(data, list) or len(data) != 3 or not all(isinstance(part, str) for part in data):
        raise HTTPException(400, "a series must be [target, metric, object]: three texts, the object may be empty")
    return SeriesKey(*data)


def _json(text: str) -> object:
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):
        raise HTTPException(400, 'series must be JSON, such as ["fw","system.uptime",""]') from None
    return data


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _ms(name: str, body: Mapping[str, object]) -> int | None:
    """A time from the body in ns; scripts may send fractions of ms."""
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LATEST_MS:  # nor NaN
        raise HTTPException(400, f"{name} must be a time in ms since 1970, or null")
    return int(value * _MS)


def _moment(request: EndpointRequest, name: str) -> int | None:
    text = request.text(name)
    if not text or text.isdecimal():
        return None if not text else request.whole(name, 0, 0, _LATEST_MS) * _MS
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
                                "description": "planned time between samples in seconds",
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
        "Values of some series as in plots: counters as rates, gaps as null; thinned to about the requested number of"
        " points by MinMaxLTTB if there are more samples.",
        _data,
        sends=_QUERY,
        gives=_LINES,
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/series/data",
        May.VIEW,
        "The same, by query parameters.",
        _data_by_params,
        params=_PARAMS,
        gives=_LINES,
    ),
    Endpoint(
        "GET",
        "/api/runs/{run}/series/data.csv",
        May.VIEW,
        "The same as CSV: time (seconds since 1970), target, metric, object, value, unit.",
        _csv,
        params=_PARAMS,
        gives={"type": "string"},
        media="text/csv",
    ),
)
