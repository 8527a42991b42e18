"""Numbers as people read them in a finding's sentences."""

from __future__ import annotations

from datetime import UTC, datetime

_IEC = ("KiB", "MiB", "GiB", "TiB")
_LARGE = ((1e12, "T "), (1e9, "G "), (1e6, "M "))
_SPANS = ((86400, "d"), (3600, "h"), (60, "min"))


def quantity(value: float, unit: str) -> str:
    """A value with its unit: bytes in powers of 1024, ratios in percent, everything else to four digits.

    >>> quantity(20 * 2**20, "By"), quantity(0.953, "1"), quantity(-1536, "By/h"), quantity(3, "{file}")
    ('20.00 MiB', '95.3 %', '-1.50 KiB/h', '3 file')
    >>> quantity(7_489_000, "{packet}/s"), quantity(12_345.6, "{packet}/s"), quantity(0.0205, "s")
    ('7.489 M packet/s', '12346 packet/s', '20.5 ms')
    >>> quantity(0.00124, "1/h"), quantity(0.0004, "1")
    ('0.124 %/h', '0.04 %')
    """
    bare, slash, per = unit.partition("/")
    if bare == "1":
        percent = 100 * value
        # a rate of some thousandths an hour is much in a day, and a small spread is not none
        shown = f"{percent:.3g}" if per else f"{percent:.1f}" if abs(percent) >= 1 or not percent else f"{percent:.2g}"
        return f"{shown} %{slash}{per}"
    if unit == "s" and 1e-9 < abs(value) < 1:
        return f"{1e3 * value:.4g} ms" if abs(value) >= 1e-3 else f"{1e6 * value:.4g} µs"
    if bare != "By" or abs(value) < 1024:
        name = "B" if bare == "By" else bare.strip("{}")
        per = per.strip("{}")
        if 1e6 <= abs(value) < 1e15:
            factor, prefix = next((f, p) for f, p in _LARGE if abs(value) >= f)
            return f"{value / factor:.4g} {prefix}{name}{slash}{per}"
        if 1e4 <= abs(value) < 1e6:
            return f"{value:.0f} {name}{slash}{per}"
        return f"{value:.4g} {name}{slash}{per}"
    size = value
    for name in _IEC:
        size /= 1024
        if abs(size) < 1024 or name == _IEC[-1]:
            break
    return f"{size:.2f} {name}{slash}{per}"


def moment(time_ns: int) -> str:
    """A time in UTC, to the second.

    >>> moment(1_700_000_000_000_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    return datetime.fromtimestamp(time_ns // 10**9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def lasting(seconds: float) -> str:
    """A duration, in two units at most.

    >>> lasting(0.2), lasting(75), lasting(5400), lasting(90000), lasting(3599.7)
    ('200 ms', '1 min 15 s', '1 h 30 min', '1 d 1 h', '1 h')
    """
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if round(seconds, 1) < 60:
        return f"{seconds:.3g} s"
    parts, left = [], round(seconds)
    for length, name in _SPANS:
        if left >= length:
            parts.append(f"{left // length} {name}")
            left %= length
    if left:
        parts.append(f"{left} s")
    return " ".join(parts[:2])


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is one.

    >>> counted(1, "restart"), counted(3, "restart")
    ('1 restart', '3 restarts')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def some(times: list[str], most: int = 3) -> str:
    """The first few of a list, and how many there are beyond them.

    >>> some(["a", "b"]), some(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(times) - most
    return ", ".join(times[:most]) + (f" and {more} more" if more > 0 else "")
