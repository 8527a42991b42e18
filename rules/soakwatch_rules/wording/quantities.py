"""Numbers, times and nouns in the sentences of findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

_IEC = ("KiB", "MiB", "GiB", "TiB")
_LARGE = ((1e12, "T"), (1e9, "G"), (1e6, "M"))
_SMALL = ((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_SMALL_OF = frozenset({"J", "A"})  # energy of a packet, current of a laser
_SPANS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_SYMBOLS = {"By": "B", "Cel": "°C"}
_IRREGULAR = {"life": "lives"}


def quantity(value: float, unit: str) -> str:
    """A value with its UCUM unit, to three significant digits: bytes in powers of 1024, ratios in percent.

    Whole numbers of countable things (units in braces) are exact below 100,000.

    >>> quantity(20 * 2**20, "By"), quantity(0.953, "1"), quantity(-1536, "By/h"), quantity(3, "{file}")
    ('20 MiB', '95.3 %', '-1.5 KiB/h', '3 files')
    >>> quantity(7_489_000, "{packet}/s"), quantity(12_345.6, "{packet}/s"), quantity(0.0205, "s")
    ('7.49 M packets/s', '12,300 packets/s', '20.5 ms')
    >>> quantity(0.00124, "1/h"), quantity(0.0004, "1"), quantity(2.5e9, "bit/s"), quantity(40, "Cel")
    ('0.124 %/h', '0.04 %', '2.5 Gbit/s', '40 °C')
    >>> quantity(3.2e-5, "J/{packet}"), quantity(0.0125, "A"), quantity(0, "A")
    ('32 µJ/packet', '12.5 mA', '0 A')
    >>> quantity(90, "s"), quantity(4321, "{session}")
    ('1 min 30 s', '4,321 sessions')
    """
    if unit == "s":
        return f"{'-' * (value < 0)}{duration(abs(value))}"
    number, name = _scaled(value, unit)
    return f"{number}{name}"


def percent(share: float, *, sign: bool = False) -> str:
    """A share in percent as ``quantity`` writes it, with its sign if asked for.

    >>> percent(0.125), percent(-1.0, sign=True), percent(12.345, sign=True)
    ('12.5 %', '-100 %', '+1,230 %')
    """
    return f"{'+' if sign and share > 0 else ''}{quantity(share, '1')}"


def plus_minus(value: float, error: float, unit: str) -> str:
    """A value with its error, both in the unit that suits the value.

    >>> plus_minus(24_799_846, 828_098, "By"), plus_minus(0.5, 0.01, "1"), plus_minus(-40.0, 2.0, "{packet}")
    ('23.7 ± 0.79 MiB', '50 ± 1 %', '-40 ± 2 packets')
    """
    number, name = _scaled(value, unit)
    if unit == "s" or not value or not error or not math.isfinite(value):
        return f"{quantity(value, unit)} ± {quantity(error, unit)}"
    factor = abs(float(number.replace(",", "")) / value)
    share = error * factor
    shown = f"{share:.2g}" if 1e-3 <= share < 100 else three_digits(share)
    return f"{number} ± {shown}{name}"


def _scaled(value: float, unit: str) -> tuple[str, str]:
    """The number, and the unit's name with the space or prefix before it."""
    bare, slash, per = unit.partition("/")
    tail = slash + per.strip("{}")
    if bare == "1":
        return three_digits(100 * value), f" %{tail}"
    if bare == "By" and abs(value) >= 1024:
        size, name = value, _IEC[-1]
        for name in _IEC:
            size /= 1024
            if abs(size) < 1023.5 or name == _IEC[-1]:
                break
        return three_digits(size), f" {name}{tail}"
    if bare in _SMALL_OF and 0 < abs(value) < 1:
        factor, prefix = next((f, p) for f, p in _SMALL if abs(value) >= f or f == _SMALL[-1][0])
        return three_digits(value / factor), f" {prefix}{bare}{tail}"
    counted_in = bare.strip("{}") if bare.startswith("{") else ""
    name = _SYMBOLS.get(bare, bare)
    if counted_in:
        name = counted_in if value == 1 and not per else plural(counted_in)
    if 1e6 <= abs(value) < 1e15:
        factor, prefix = next((f, p) for f, p in _LARGE if abs(value) >= f)
        return three_digits(value / factor), f" {prefix}{' ' * bool(counted_in)}{name}{tail}"
    exact = counted_in and value == round(value) and abs(value) < 1e5
    return (f"{value:,.0f}" if exact else three_digits(value)), f" {name}{tail}"


def three_digits(value: float) -> str:
    """A number to three significant digits, without an exponent if that is readable.

    >>> three_digits(0.012345), three_digits(99.96), three_digits(12345.6), three_digits(0.0)
    ('0.0123', '100', '12,300', '0')
    """
    if not math.isfinite(value) or not 99.95 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{float(f'{value:.3g}'):,.0f}"


def digits(number: float) -> str:
    """A count with all digits, in groups of three, below 10¹².

    >>> digits(1234567.0), digits(2.5e15)
    ('1,234,567', '2.5e+15')
    """
    return f"{number:,.0f}" if abs(number) < 1e12 else f"{number:.3g}"


def moment(time_ns: int) -> str:
    """A time in UTC, to the second.

    >>> moment(1_700_000_000_000_000_000)
    '2023-11-14 22:13:20 UTC'
    """
    return datetime.fromtimestamp(time_ns // 10**9, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


_DAYS_FROM_S = 4 * 86_400


def duration(seconds: float) -> str:
    """A duration in at most two neighbouring units; days begin at four, because a soak of 72 h is called that.

    >>> duration(0.2), duration(75), duration(5400), duration(3599.7), duration(0.0000421)
    ('200 ms', '1 min 15 s', '1 h 30 min', '1 h', '42.1 µs')
    >>> duration(86400), duration(259200), duration(349200)
    ('24 h', '72 h', '4 d 1 h')
    """
    if not math.isfinite(seconds) or seconds <= 1e-9:
        return f"{max(seconds, 0.0):.3g} s"
    if seconds < 0.9995e-3:
        return f"{1e6 * seconds:.3g} µs"
    if seconds < 0.9995:
        return f"{1e3 * seconds:.3g} ms"
    if seconds < 59.95:
        return f"{seconds:.3g} s"
    for (length, name), (step, lesser) in pairwise(_SPANS):
        steps = round(seconds / step)
        if steps * step >= (_DAYS_FROM_S if name == "d" else length):
            large, small = divmod(steps, length // step)
            return f"{large} {name} {small} {lesser}" if small else f"{large} {name}"
    return f"{seconds:.3g} s"


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural.

    >>> counted(1, "restart"), counted(3, "restart"), counted(2, "life"), counted(12_345, "poll")
    ('1 restart', '3 restarts', '2 lives', '12,345 polls')
    """
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun.

    >>> plural("process"), plural("switch"), plural("entry"), plural("series"), plural("day")
    ('processes', 'switches', 'entries', 'series', 'days')
    """
    if noun in _IRREGULAR or noun.endswith("series"):
        return _IRREGULAR.get(noun, noun)
    if noun.endswith(("s", "x", "ch", "sh")):
        return f"{noun}es"
    if noun.endswith("y") and noun[-2:-1] not in tuple("aeiou"):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def first_few(texts: Sequence[str], most: int = 3) -> str:
    """The first few of a list, and the number of the others.

    >>> first_few(["a", "b"]), first_few(["a", "b", "c", "d"], 2)
    ('a, b', 'a, b and 2 more')
    """
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def cut_to(text: str, most: int) -> str:
    """The text in at most so many characters; an ellipsis ends one that was longer.

    >>> cut_to("forwarding", 10), cut_to("forwarding", 8)
    ('forwarding', 'forward…')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"
