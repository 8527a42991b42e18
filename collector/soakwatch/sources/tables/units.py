"""Converts units in files to the catalogue's: ``MB`` is 1e6 ``By``, ``%`` is 0.01 of ``1``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from soakwatch.sources.tables.errors import DataError

_PERCENT = "1", 0.01
_FIXED: Mapping[str, tuple[str, float]] = {
    "1": ("1", 1.0),
    "%": _PERCENT,
    "pct": _PERCENT,
    "percent": _PERCENT,
    "share": ("1", 1.0),
    "ratio": ("1", 1.0),
    "s": ("s", 1.0),
    "sec": ("s", 1.0),
    "secs": ("s", 1.0),
    "second": ("s", 1.0),
    "seconds": ("s", 1.0),
    "ms": ("s", 1e-3),
    "msec": ("s", 1e-3),
    "us": ("s", 1e-6),
    "µs": ("s", 1e-6),
    "usec": ("s", 1e-6),
    "ns": ("s", 1e-9),
    "min": ("s", 60.0),
    "h": ("s", 3600.0),
    "pps": ("{packet}/s", 1.0),
    "kpps": ("{packet}/s", 1e3),
    "mpps": ("{packet}/s", 1e6),
    "fps": ("{packet}/s", 1.0),
    "kfps": ("{packet}/s", 1e3),
    "mfps": ("{packet}/s", 1e6),
    "frames/s": ("{packet}/s", 1.0),
    "packets/s": ("{packet}/s", 1.0),
    "rps": ("{request}/s", 1.0),
    "tps": ("{request}/s", 1.0),
    "qps": ("{request}/s", 1.0),
    "hz": ("Hz", 1.0),
    "khz": ("Hz", 1e3),
    "mhz": ("Hz", 1e6),
    "ghz": ("Hz", 1e9),
    "cel": ("Cel", 1.0),
    "°c": ("Cel", 1.0),
    "celsius": ("Cel", 1.0),
    "w": ("W", 1.0),
    "watt": ("W", 1.0),
    "watts": ("W", 1.0),
}
_PREFIXES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "pi": 2**50}
_BYTES = re.compile(r"(?P<many>[kmgtp]i?|)(?:b|by|byte|bytes)(?P<per>/s|ps|)", re.IGNORECASE)
_BITS = re.compile(r"(?P<many>[kmgtKMGT]|)(?:[Bb]its?|b)(?:/s|ps)")  # a small b in a rate is bit: Kbps, not KBps
_BRACKETS = re.compile(r"(.*?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]\s*")
_TAIL = re.compile(
    r"(.+?)(?:_per_(?P<per>s|sec|second)|[_\s.-](?P<unit>ms|us|ns|sec|seconds|bytes|[kmg]i?b|pct|percent|[km]?pps))",
    re.IGNORECASE,
)
_PERCENT_TAIL = re.compile(r"(.*[^\W\d_])\s+%")
_GLUED = re.compile(r"(.*[A-Za-z0-9])(Bytes|Percent|Seconds)")
EXAMPLES = "%, KB, KiB, MB, GB, ms, s, pps"


class Unit(NamedTuple):
    """A catalogue unit, and the factor to convert readings to it."""

    name: str
    scale: float


def unit(text: str) -> Unit:
    """Parses a unit of a file. Bytes follow SI (``KB`` = 1000, ``KiB`` = 1024); an unknown word counts objects.

    >>> unit("MB"), unit("KiB"), unit("%"), unit("ms"), unit("Mpps")
    (Unit(name='By', scale=1000000.0), Unit(name='By', scale=1024.0), Unit(name='1', scale=0.01), \
Unit(name='s', scale=0.001), Unit(name='{packet}/s', scale=1000000.0))
    >>> unit("widgets"), unit("{thread}"), unit("Gbit/s")
    (Unit(name='{widgets}', scale=1.0), Unit(name='{thread}', scale=1.0), Unit(name='bit/s', scale=1000000000.0))
    """
    bare = text.strip()
    fixed = _FIXED.get(bare.lower())
    if fixed is not None:
        return Unit(*fixed)
    match = _BITS.fullmatch(bare)
    if match:
        return Unit("bit/s", float(_PREFIXES[match["many"].lower()]))
    match = _BYTES.fullmatch(bare)
    if match:
        many = match["many"].lower()
        return Unit("By/s" if match["per"] else "By", float({**_PREFIXES, **_BINARY}[many]))
    if not bare:
        raise DataError(f"an empty text is not a unit: write one such as {EXAMPLES}")
    if bare.startswith("{") or "/" in bare:
        return Unit(bare, 1.0)
    return Unit("{" + re.sub(r"[{}]", "", bare) + "}", 1.0)


def into(text: str, wanted: str, who: str) -> float:
    """The factor from a file's unit to the catalogue's. Raises DataError if they do not match."""
    given = unit(text)
    if fits(text, wanted):  # packets or requests: the metric decides what is counted
        return given.scale
    example = {"By": "MB", "1": "%", "s": "ms"}.get(wanted, wanted)
    raise DataError(f"{who}: the unit {text} does not fit {wanted}: write one such as {example}, or map it elsewhere")


def fits(text: str, wanted: str) -> bool:
    """True if a file's unit can be converted to the catalogue's.

    >>> fits("MB", "By"), fits("millicores", "1"), fits("/s", "{request}/s")
    (True, False, True)
    """
    given = unit(text).name
    return given == wanted or (wanted.startswith("{") and given.startswith("{")) or wanted.endswith(f"}}{given}")


def split_header(header: str) -> tuple[str, str | None]:
    """Splits a header into the column's name and its unit.

    >>> split_header("usedMemory (MB)"), split_header("latency_ms"), split_header("VmRSSBytes")
    (('usedMemory', 'MB'), ('latency', 'ms'), ('VmRSS', 'Bytes'))
    >>> split_header("writes_per_s"), split_header("threads")
    (('writes', '/s'), ('threads', None))
    """
    bare = header.strip()
    match = _BRACKETS.fullmatch(bare)
    if match and match[1]:
        return match[1], match[2]
    match = _PERCENT_TAIL.fullmatch(bare)
    if match:
        return match[1], "%"
    match = _TAIL.fullmatch(bare)
    if match:
        return match[1], match["unit"] or "/s"
    match = _GLUED.fullmatch(bare)
    return (match[1], match[2]) if match else (bare, None)
