"""Numbers, sizes, lengths of time and addresses as command lines write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

ADDRESS = r"(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]{1,43})(?:%[\w./-]{1,30})?"
"""An address of IPv4 or IPv6 in a regular expression, with its zone."""

_NUMBER = re.compile(r"[-+]?\d{1,3}(?:,\d{3}){1,6}|[-+]?\d{1,20}")
_DECIMAL = re.compile(r"[-+]?\d{0,20}\.\d{1,20}")
_SIZE = re.compile(r"([\d.,]{1,24})\s*([kKmMgGtT]?)(?:i?[bB](?:ytes?)?)?")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(
    r"(\d{1,6})\s{0,3}(years?|yrs?|y|weeks?|wks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)"
    r"(?![A-Za-z])|(?<![\d:])(\d{1,6}):(\d{2})(?::(\d{2}))?(?![\d:])",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"(\d{1,6})([ywdhms])", re.IGNORECASE)
_RUN = re.compile(r"(?:\d{1,6}[ywdhms]){2,6}", re.IGNORECASE)


def number(text: str) -> float:
    """The number in a text with grouping commas, a per cent sign or a tilde; an int where it is one.

    Raises ValueError for anything else, and for more digits than a counter can have.

    >>> number("1,001,337"), number("~0.5%"), number(" 42 ")
    (1001337, 0.5, 42)
    """
    stripped = text.strip().lstrip("~").rstrip("%").strip()
    if _NUMBER.fullmatch(stripped):
        return int(stripped.replace(",", ""))
    if _DECIMAL.fullmatch(stripped):
        return float(stripped)
    raise ValueError("no number")


def size(text: str, unit: str = "") -> int:
    """Bytes of a size with or without a unit, which is a power of 1024; ``unit`` is that of a bare number.

    >>> size("1.5k"), size("12 MiB"), size("100", "k"), size("2,048 bytes")
    (1536, 12582912, 102400, 2048)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("no size")
    power = _POWER[(match[2] or unit).lower()]
    return int(float(match[1].replace(",", "")) * 1024**power)


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time, and the smallest step in which it was told."""

    seconds: float
    step: float


def length(text: str) -> Length | None:
    """The length of time in a text; None if it has none. A year is 365 days, as network systems count.

    >>> length("1 year, 2 weeks, 3 days, 4 hours, 5 minutes")
    Length(seconds=33019500, step=60)
    >>> length("10 days, 3:14"), length("up 12 mins 5 secs").seconds, length("3w2d10h"), length("never")
    (Length(seconds=875640, step=60), 725, Length(seconds=2023200, step=3600), None)
    """
    cut = text[:200]
    total, step = 0, 0
    run = _RUN.search(cut)
    if run is not None:
        parts = _TOGETHER.findall(run[0])
        total = sum(int(count) * _SECONDS[unit.lower()] for count, unit in parts)
        step = _SECONDS[parts[-1][1].lower()]
        cut = cut[: run.start()] + " " + cut[run.end() :]
    for match in _PART.finditer(cut):
        if match[1] is not None:
            step = _SECONDS[match[2][0].lower()]
            total += int(match[1]) * step
        elif match[5] is not None:
            step = 1
            total += int(match[3]) * 3600 + int(match[4]) * 60 + int(match[5])
        else:
            step = 60
            total += int(match[3]) * 3600 + int(match[4]) * 60
    return Length(total, step) if step else None
