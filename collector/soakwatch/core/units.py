"""Durations, shares and sizes in plans: ``200ms``, ``1h30m``, ``5%``, ``10MiB``."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from soakwatch_rules.wording.quantities import duration, quantity

_SECONDS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SPELLED = {
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("day", "days"), 86400.0),
}
_OVERNIGHT_S = 12 * 3600.0
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)[\s,]*")
_NUMBER_UNIT = re.compile(r"(-?\d+(?:\.\d+)?)\s*([A-Za-z%]*)")


def seconds(text: object) -> float:
    """Parses a duration such as ``90s``, ``1h30m``, ``200ms``, ``2 days`` or ``overnight`` (12 h) to seconds.

    Raises ValueError, with an example, for a number without unit and for unknown units.
    >>> seconds("1h30m"), seconds("200ms"), seconds("12 hours"), seconds("overnight")
    (5400.0, 0.2, 43200.0, 43200.0)
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError("a duration is a number with a unit: 200ms, 10s, 30m, 24h")
    if not isinstance(text, str):
        raise ValueError(f"the duration {text} has no unit: write {text}s, {text}m or {text}h")
    total, position = 0.0, 0
    stripped = text.strip()
    if stripped.lower() == "overnight":
        return _OVERNIGHT_S
    while position < len(stripped):
        match = _DURATION.match(stripped, position)
        if match is None:
            raise ValueError(f"{text!r} is not a duration: write a number with a unit, such as 200ms, 10s, 30m, 24h")
        unit = _SECONDS.get(match[2], _SPELLED.get(match[2].lower()))
        if unit is None:
            raise ValueError(f"{match[2]!r} in {text!r} is not a unit of time: use {', '.join(_SECONDS)}")
        total += float(match[1]) * unit
        position = match.end()
    if not stripped:
        raise ValueError("an empty text is not a duration: write 10s, 30m, 24h")
    return total


def share(text: object) -> float:
    """Parses a share such as ``5%`` or ``0.05``. Raises ValueError.

    >>> share("5%"), share(0.05)
    (0.05, 0.05)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    match = _NUMBER_UNIT.fullmatch(str(text).strip())
    if match is None or match[2] not in {"", "%"}:
        raise ValueError(f"{text!r} is not a share: write 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)


def size(text: object) -> float:
    """Parses a size such as ``10MiB``, ``1GB`` or a number of bytes. Raises ValueError.

    >>> size("10MiB")
    10485760.0
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return float(text)
    match = _NUMBER_UNIT.fullmatch(str(text).strip())
    if match is None or (match[2] and match[2] not in _BYTES):
        raise ValueError(f"{text!r} is not a size: write a number with one of {', '.join(_BYTES)}")
    return float(match[1]) * (_BYTES[match[2]] if match[2] else 1)


def show_seconds(value: float) -> str:
    """A duration for people, in the words of the rules.

    >>> show_seconds(5400), show_seconds(0.25), show_seconds(59), show_seconds(90061)
    ('1 h 30 min', '250 ms', '59 s', '25 h 1 min')
    """
    return duration(value)


def plan_seconds(value: float) -> str:
    """A duration written as a plan or option takes it, so that it can be copied from a sentence.

    >>> plan_seconds(5400), plan_seconds(0.25), plan_seconds(59), plan_seconds(90061), plan_seconds(5401)
    ('1h30m', '250ms', '59s', '1d1h1m', '1h30m')
    """
    if value < 1:
        return f"{value * 1000:.0f}ms"
    if value < 60:
        return f"{value:.3g}s"
    left, text = round(value), ""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= length and not (unit == "s" and value >= 3600):
            text += f"{left // length}{unit}"
            left %= length
    return text


def show_bytes(value: float) -> str:
    """Bytes for people.

    >>> show_bytes(20 * 2**20), show_bytes(512), show_bytes(-1536)
    ('20 MiB', '512 B', '-1.5 KiB')
    """
    return quantity(value, "By")


DURATION_PATTERN = rf"^(overnight|(\d+(\.\d+)?\s*({'|'.join((*_SECONDS, *_SPELLED))})[\s,]*)+)$"
"""The pattern of a duration in a JSON schema."""
_DURATION_SCHEMA = {
    "type": "string",
    "pattern": DURATION_PATTERN,
    "examples": ["10s", "24h"],
}
Seconds = Annotated[float, BeforeValidator(seconds), WithJsonSchema(_DURATION_SCHEMA)]
"""A duration in a plan, in seconds once parsed."""
Share = Annotated[float, BeforeValidator(share), WithJsonSchema({"type": ["string", "number"], "examples": ["5%"]})]
"""A ratio in a plan."""
