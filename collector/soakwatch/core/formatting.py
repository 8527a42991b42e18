"""Numbers, units and times as a person reads them in a report; None is always "not known".

The words of a quantity and of a duration are those of the rules (``soakwatch_rules.wording.words``): one and the same
number reads the same in a finding's sentence, on a page and on a terminal. Here is what only the collector needs.
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
from soakwatch_rules.wording import words
from soakwatch_rules.wording.words import percent, plural, three_digits

UNKNOWN = "not known"

SYMBOLS = {
    Outcome.FAIL: "✗",
    Outcome.INCONCLUSIVE: "?",
    Outcome.WARN: "!",
    Outcome.PASS: "✓",
    Outcome.NOT_APPLICABLE: "–",
}
"""A sign for each outcome, so that nobody depends on a colour."""


_FORMULA = "=+-@\t\r"
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")


@dataclass(frozen=True, slots=True)
class Scale:
    """How a unit is shown: shown value = value * factor, with ``label`` behind it."""

    factor: float
    label: str


_IEC = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LONG = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SI = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_MINUTE_S = 60.0  # from here on a duration has two units, such as 1 min 30 s
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
    """A bare number with at most six digits that matter; whole numbers in full.

    >>> number(1234567.0), number(0.1234567), number(None), number(1e-9)
    ('1,234,567', '0.123457', 'not known', '1e-09')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1e5 else f"{value:.6g}"


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit as the rules' sentences say it; what is not a finite number is not known.

    >>> quantity(20 * 2**20, "By"), quantity(0.053, "1"), quantity(0.25, "s"), quantity(3, "{restart}")
    ('20 MiB', '5.3 %', '250 ms', '3 restarts')
    >>> quantity(0, "{restart}"), quantity(7000, "s"), quantity(0.4, "s/s"), quantity(None, "By")
    ('0 restarts', '1 h 57 min', '40 % of a core', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if unit == "s/s":
        return f"{three_digits(100 * value)} % of a core"
    return words.quantity(value, unit).rstrip()  # a bare number has no unit


def extent(low: float | None, high: float | None, unit: str) -> str:
    """From the lowest to the highest value, in one scale and with the unit once.

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
    """Whether a unit is a word in braces, UCUM's way to say what is counted."""
    return len(unit) > 2 and unit[0] == "{" and unit[-1] == "}"


def share_text(value: float | None) -> str:
    """A coverage as a percentage that never rounds up to 100.

    >>> share_text(1.0), share_text(0.99999), share_text(0.5), share_text(None)
    ('100 %', '99.9 %', '50 %', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value >= 1:
        return "100 %"
    percent = 100 * max(value, 0.0)
    if not percent:
        return "0 %"
    step = 10.0 ** (math.floor(math.log10(percent)) - 2)
    return f"{math.floor(percent / step + 1e-6) * step:.3g} %"


def small_share(value: float | None) -> str:
    """A share that ought to be nothing, as a percentage that is "0 %" for nothing only.

    >>> small_share(0.0), small_share(1e-6), small_share(0.00034), small_share(None)
    ('0 %', 'under 0.01 %', '0.034 %', 'not known')
    """
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return "under 0.01 %" if 0 < value < 1e-4 else percent(value)


def utc(time_ns: int | None) -> str:
    """A time in UTC to the second; empty where there is none.

    >>> utc(1_700_000_000_500_000_000)
    '2023-11-14 22:13:20'
    """
    if time_ns is None:
        return ""
    return datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")


def span_text(begin_ns: int, end_ns: int) -> str:
    """A stretch of time in UTC; the day stands once where it is the same.

    >>> span_text(1_700_000_000_000_000_000, 1_700_000_300_000_000_000)
    '2023-11-14 22:13:20 to 22:18:20'
    """
    begin, end = utc(begin_ns), utc(end_ns)
    return f"{begin} to {end[11:] if begin[:10] == end[:10] else end}"


def zoom_of(window: Window) -> str:
    """A stretch of time as the plots of a page are told it: begin and end in milliseconds since 1970.

    >>> zoom_of(Window(1_700_000_000_000_000_000, 1_700_000_300_000_000_000))
    '1700000000000,1700000300000'
    """
    return f"{window.begin_ns // 10**6},{max(window.end_ns // 10**6, window.begin_ns // 10**6 + 1)}"


def isolated(text: str) -> str:
    r"""The text with each stretch of right-to-left letters shut off, so that it turns nothing around it.

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
    """Text that a spreadsheet takes for no formula: with an apostrophe before it, as OWASP advises ("CSV injection").

    >>> no_formula("=1+1"), no_formula("-5"), no_formula("-5%"), no_formula("eth0")
    ("'=1+1", '-5', '-5%', 'eth0')
    """
    return f"'{text}" if text[:1] in _FORMULA and text and _NUMBER.fullmatch(text) is None else text


def subject(metric: str, obj: str) -> str:
    """What a finding or a series is about, in one text.

    >>> subject("process.threads", "process=nginx"), subject("", "local")
    ('process.threads · process=nginx', 'local')
    """
    return " · ".join(part for part in (metric, obj) if part)


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sorting key that puts instance=10 behind instance=9.

    >>> sorted(["a10", "a9", "b1", "a"], key=natural)
    ['a', 'a9', 'a10', 'b1']
    """
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text) if part)


def source_name(ledger: Ledger) -> str:
    """Which source a ledger is of; its label mostly begins with the target."""
    if ledger.source.startswith(f"{ledger.target}/"):
        return ledger.source
    return f"{ledger.target}/{ledger.source}"


def printable(text: str, *, lines: bool = False) -> str:
    r"""The text without control characters, lone surrogates and direction overrides, which break XML and terminals.

    >>> printable("a\x00b\x1b[31mc\n\u202ed")
    'ab[31mc d'
    """
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
