"""Numbers, units and times as reports show them; None is always "not known".

Quantities and durations use the rules' words (``soakwatch_rules.wording.quantities``), so that a number reads the same
in a sentence, on a page and on a terminal. Here is what only the collector needs.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime

from soakwatch_model.case import Ledger
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window
from soakwatch_rules.wording import quantities
from soakwatch_rules.wording.quantities import percent, plural, three_digits

UNKNOWN = "not known"

SYMBOLS = {
    Outcome.FAIL: "✗",
    Outcome.INCONCLUSIVE: "?",
    Outcome.WARN: "!",
    Outcome.PASS: "✓",
    Outcome.NOT_APPLICABLE: "–",
}
"""A sign for each outcome, so that colour is not needed."""


_FORMULA = "=+-@\t\r"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


@dataclass(frozen=True, slots=True)
class Scale:
    """How a unit is shown: value * factor, followed by ``label``."""

    factor: float
    label: str


_IEC = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LONG = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MINUTE_S = 60.0  # longer durations have two units, such as 1 min 30 s
_NAMES = {"Cel": "°C", "": ""}


def scale_of(unit: str, peak: float) -> Scale:
    """The scale that shows values of UCUM ``unit`` up to ``peak`` with few digits.

    >>> scale_of("By", 21e6)
    Scale(factor=9.5367431640625e-07, label='MiB')
    >>> scale_of("1", 0.4), scale_of("s/s", 0.4)
    (Scale(factor=100.0, label='%'), Scale(factor=100.0, label='% of a core'))
    >>> scale_of("{packet}/s", 2e6)
    Scale(factor=1e-06, label='M packets/s')
    """
    peak = abs(peak) if math.isfinite(peak) else 0.0
    base, slash, per = unit.partition("/")
    per = per[1:-1] if _is_annotation(per) else per
    if unit == "1":
        return Scale(100.0, "%")
    if unit == "s/s":
        return Scale(100.0, "% of a core")
    suffix = slash + per
    if base == "1":
        return Scale(100.0, "%" + suffix)
    if base == "By":
        size, name = next(((s, n) for s, n in _IEC if peak >= s), _IEC[-1])
        return Scale(1 / size, name + suffix)
    if base == "s" and not suffix:
        steps = _LONG if peak >= 180 else _TIME
        length, name = next(((s, n) for s, n in steps if peak >= s), steps[-1])
        return Scale(1 / length, name) if peak else Scale(1.0, "s")
    word = plural(base[1:-1]) if _is_annotation(base) else _NAMES.get(base, base)
    if base == "Cel" or not word:
        return Scale(1.0, word + suffix)
    power, prefix = next(((p, n) for p, n in _SI if peak >= p), _SI[-1])
    if base == "Hz":
        return Scale(1 / power, prefix + word + suffix)
    if peak < 10_000:
        power, prefix = 1.0, ""
    return Scale(1 / power, f"{prefix} {word}{suffix}" if prefix else word + suffix)


def number(value: float | None) -> str:
    """A bare number with at most six significant digits; whole numbers in full.

    >>> number(1234567.0), number(0.1234567), number(None), number(1e-9)
    ('1,234,567', '0.123457', 'not known', '1e-09')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1e5 else f"{value:.6g}"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit, in the words of the rules; "not known" unless finite.

    >>> quantity(20 * 2**20, "By"), quantity(0.053, "1"), quantity(0.25, "s"), quantity(3, "{restart}")
    ('20 MiB', '5.3 %', '250 ms', '3 restarts')
    >>> quantity(0, "{restart}"), quantity(7000, "s"), quantity(0.4, "s/s"), quantity(None, "By")
    ('0 restarts', '1 h 57 min', '40 % of a core', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if unit == "s/s":
        return f"{three_digits(100 * value)} % of a core"
    return quantities.quantity(value, unit).rstrip()  # a bare number has no unit


def extent(low: float | None, high: float | None, unit: str) -> str:
    """A range of values in one scale, with the unit once.

    >>> extent(20, 300, "{request}/s"), extent(0.0015, 0.107, "s"), extent(5, 5, "By"), extent(None, 1, "s")
    ('20 to 300 requests/s', '1.5 to 107 ms', '5 B', 'not known')
    """
    if low is None or high is None or not math.isfinite(low) or not math.isfinite(high):
        return UNKNOWN
    if quantity(low, unit) == quantity(high, unit):
        return quantity(low, unit)
    peak = max(abs(low), abs(high))
    if (unit == "s" and peak >= _MINUTE_S) or not math.isfinite(100 * peak):
        return f"{quantity(low, unit)} to {quantity(high, unit)}"
    scale = scale_of(unit, peak)
    return f"{three_digits(low * scale.factor)} to {three_digits(high * scale.factor)} {scale.label}".rstrip()


def _is_annotation(unit: str) -> bool:
    """True for a word in braces, UCUM's way to name what is counted."""
    return len(unit) > 2 and unit[0] == "{" and unit[-1] == "}"


_LEAST = 1e-9
"""Per cent below which a share is none: its steps could be too small for a float."""


def share_text(value: float | None) -> str:
    """A coverage as a percentage, rounded down, so that only a full one is 100 %.

    >>> share_text(1.0), share_text(0.99999), share_text(0.5), share_text(None)
    ('100 %', '99.9 %', '50 %', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value >= 1:
        return "100 %"
    percent = 100 * max(value, 0.0)
    if percent < _LEAST:
        return "0 %"
    step = 10.0 ** (math.floor(math.log10(percent)) - 2)
    return f"{math.floor(percent / step + 1e-6) * step:.3g} %"


def small_share(value: float | None) -> str:
    """A share that should be zero, as a percentage; only zero is "0 %".

    >>> small_share(0.0), small_share(1e-6), small_share(0.00034), small_share(None)
    ('0 %', 'under 0.01 %', '0.034 %', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return "under 0.01 %" if 0 < value < 1e-4 else percent(value)


def utc(time_ns: int | None) -> str:
    """A time in UTC to the second; "" for None.

    >>> utc(1_700_000_000_500_000_000)
    '2023-11-14 22:13:20'
    """
    if time_ns is None:
        return ""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def span_text(begin_ns: int, end_ns: int) -> str:
    """A time span in UTC; the second date is left out if equal.

    >>> span_text(1_700_000_000_000_000_000, 1_700_000_300_000_000_000)
    '2023-11-14 22:13:20 to 22:18:20'
    """
    begin, end = utc(begin_ns), utc(end_ns)
    return f"{begin} to {end[11:] if begin[:10] == end[:10] else end}"


def zoom_of(window: Window) -> str:
    """A time span for the plots of a page: begin and end in ms since 1970.

    >>> zoom_of(Window(1_700_000_000_000_000_000, 1_700_000_300_000_000_000))
    '1700000000000,1700000300000'
    """
    return f"{window.begin_ns // 10**6},{max(window.end_ns // 10**6, window.begin_ns // 10**6 + 1)}"


def isolated(text: str) -> str:
    r"""Isolates right-to-left text, so that it does not reorder the text around it.

    >>> isolated("memory of خدمة rose by 49 %") == "memory of \u2068خدمة\u2069 rose by 49 %", isolated("plain")
    (True, 'plain')
    """
    return text if text.isascii() else _LEFTWARD.sub("\u2068\\g<0>\u2069", text)


def iso(time_ns: int) -> str:
    """A time as ISO 8601 with milliseconds and Z.

    >>> iso(1_700_000_000_500_000_000)
    '2023-11-14T22:13:20.500Z'
    """
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{moment}.{time_ns % 10**9 // 10**6:03d}Z"


def no_formula(text: str) -> str:
    """Prefixes text that a spreadsheet would run as a formula with an apostrophe, as OWASP advises ("CSV injection").

    >>> no_formula("=1+1"), no_formula("-5"), no_formula("-5%"), no_formula("eth0")
    ("'=1+1", '-5', '-5%', 'eth0')
    """
    return f"'{text}" if text[:1] in _FORMULA and text and _NUMBER.fullmatch(text) is None else text


def subject(metric: str, obj: str) -> str:
    """What a finding or series is about: metric and object in one text.

    >>> subject("process.threads", "process=nginx"), subject("", "local")
    ('process.threads · process=nginx', 'local')
    """
    return " · ".join(part for part in (metric, obj) if part)


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key that puts instance=10 after instance=9.

    >>> sorted(["a10", "a9", "b1", "a"], key=natural)
    ['a', 'a9', 'a10', 'b1']
    """
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text) if part)


def source_name(ledger: Ledger) -> str:
    """The source of a ledger as TARGET/LABEL; most labels begin with the target already."""
    if ledger.source.startswith(f"{ledger.target}/"):
        return ledger.source
    return f"{ledger.target}/{ledger.source}"


def printable(text: str, *, lines: bool = False) -> str:
    r"""Removes control characters, lone surrogates and direction overrides, which break XML and terminals.

    >>> printable("a\x00b\x1b[31mc\n\u202ed")
    'ab[31mc d'
    """
    if text.replace("\n", "").replace("\t", "").isprintable():  # nearly all; none of what goes counts as printable
        return text if lines else text.replace("\n", " ").replace("\t", " ")
    kept = []
    for char in text:
        if char in "\n\t":
            kept.append(char if lines else " ")
        elif unicodedata.category(char) not in {"Cc", "Cs", "Cn"} and char not in _TURNS:
            kept.append(char)
    return "".join(kept)


_LEFTWARD = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+(?:[ _.-]+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+)*"
)
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
