"""Parses times in files to ns since 1970 UTC.

Numbers are epoch s, ms, µs or ns by their size, small ones seconds from the start. Texts are ISO 8601, day-first with
points, with slashes if the order is clear, ``hh:mm:ss``, or in a given ``strptime`` format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from soakwatch.sources.tables.cells import MISSING, middle, numbers, whole
from soakwatch.sources.tables.errors import DataError
from soakwatch.sources.tables.plain_lines import Ints, PlainCells, as_texts

NS = 10**9
_WORDS = {"s": NS, "ms": 10**6, "us": 10**3, "ns": 1}
_SIZES = ((1e17, 1), (1e14, 10**3), (1e11, 10**6), (1e8, NS))  # nano- to seconds of any year since 1973
_LATEST_NS = 2**63 - 2**40
_ISO = re.compile(r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]+\d\d:?\d\d(?::?\d\d(?:[.,]\d+)?)?)?\s*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)?")
_ZONE = re.compile(r"(?<=\d)\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)$")
_DATE = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})(?:[T ,]+(\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?))?")
_CLOCK = re.compile(r"(?:(\d+)[d ]\s*)?(\d+):(\d\d):(\d\d(?:[.,]\d+)?)")
_TO_THE_SECOND = "--time-format 's', 'ms', 'us', 'ns', 'elapsed', or a strptime format such as '%d/%m/%Y %H:%M:%S'"


class Moments(NamedTuple):
    """Times in ns, shape (n,), and which cells are not times."""

    time_ns: NDArray[np.int64]
    bad: NDArray[np.bool_]


Read = Callable[[Sequence[str]], Moments]


@dataclass(frozen=True, slots=True)
class TimeReading:
    """A function that parses a column's times, and notes on it."""

    read: Read
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """The user's options on times; ``start_ns`` is the start of those in seconds from the start."""

    form: str | None = None
    zone: str | None = None
    start_ns: int | None = None
    decimal: str = "."


def looks_like_time(cell: str) -> bool:
    """True if a cell is a date or time of day."""
    text = cell.strip()
    return any(form.fullmatch(text) for form in (_ISO, _DATE, _CLOCK))


def time_reading(cells: Sequence[str], options: TimeOptions, who: str) -> TimeReading:
    """How to parse a column's times, from its first cells. Raises DataError if that is unknown."""
    zone = _zone(options.zone)
    if options.form is not None:
        return _as_given(options, zone)
    some = [text for cell in cells if (text := cell.strip()).lower() not in MISSING]
    if not some:
        raise DataError(f"{who} has no times: name the column of times with --time")
    naive = () if options.zone else ("times without a zone were read as UTC (override with --tz)",)
    counted = numbers(some, options.decimal).value
    good = counted[np.isfinite(counted)]
    if 2 * good.size > len(some):
        return _numeric(middle(np.abs(good)), options)
    share = 0.5 * len(some)
    if sum(_ISO.fullmatch(text) is not None for text in some) > share:
        zoned = all(_ZONE.search(text[10:]) for text in some if len(text) > 10)
        return TimeReading(lambda texts: _iso(texts, zone), () if zoned else naive)
    parted = [match for text in some if (match := _DATE.fullmatch(text))]
    if len(parted) > share:
        day_first = _day_first([(match[1], match[2], match[3]) for match in parted], who)
        return TimeReading(lambda texts: _iso(_all_as_iso(texts, day_first), zone), naive)
    if sum(_CLOCK.fullmatch(text) is not None for text in some) > share:
        return TimeReading(_Clock(_start_ns(options)).read, _elapsed_note(options, "hh:mm:ss are counted"))
    raise DataError(f"{who}: {some[0]!r} is not in a known time format: give it with {_TO_THE_SECOND}")


def _as_given(options: TimeOptions, zone: tzinfo) -> TimeReading:
    form = options.form or ""
    if form in _WORDS:
        return TimeReading(lambda texts: _scaled(texts, _WORDS[form], 0, options.decimal))
    if form.startswith("elapsed"):
        word = form.removeprefix("elapsed").lstrip("-") or "s"
        if word not in _WORDS:
            raise DataError(f"--time-format {form}: write elapsed, elapsed-ms, elapsed-us or elapsed-ns")
        start_ns = _start_ns(options)
        return TimeReading(
            lambda texts: _scaled(texts, _WORDS[word], start_ns, options.decimal), _elapsed_note(options)
        )
    if form == "iso":
        return TimeReading(lambda texts: _iso(texts, zone))
    if "%" not in form:
        raise DataError(f"--time-format {form} is not known: use {_TO_THE_SECOND}")
    return TimeReading(lambda texts: _strptime(texts, form, zone))


def _numeric(size: float, options: TimeOptions) -> TimeReading:
    factor = next((factor for lowest, factor in _SIZES if size >= lowest), None)
    if factor is not None:
        return TimeReading(lambda texts: _scaled(texts, factor, 0, options.decimal))
    start_ns = _start_ns(options)
    return TimeReading(lambda texts: _scaled(texts, NS, start_ns, options.decimal), _elapsed_note(options))


def _elapsed_note(options: TimeOptions, what: str = "times are read as seconds") -> tuple[str, ...]:
    if options.start_ns is not None:
        return ()
    return (f"{what} from the start, shown from 1970-01-01 00:00 UTC on (set it with --start)",)


def _start_ns(options: TimeOptions) -> int:
    return options.start_ns or 0


def _zone(name: str | None) -> tzinfo:
    if name is None or name.upper() in {"UTC", "Z"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise DataError(f"--tz {name} is not a time zone: write one such as UTC or Europe/Berlin") from None


def _scaled(texts: Sequence[str], factor: int, start_ns: int, decimal: str) -> Moments:
    """Numbers in units of ``factor`` ns; fractions are exact to the microsecond."""
    exact = whole(texts)
    largest = (_LATEST_NS - start_ns) // factor
    if exact is not None:
        bad = (exact < -(start_ns // factor)) | (exact > largest)
        return Moments(np.where(bad, 0, exact).astype(np.int64) * factor + start_ns, bad)
    value = numbers(texts, decimal).value
    with np.errstate(invalid="ignore"):
        bad = ~((value >= -(start_ns / factor)) & (value <= largest))
    value = np.where(bad, 0.0, value)
    base = np.floor(value)
    fraction = np.round((value - base) * factor / 1e3).astype(np.int64) * 1000 if factor >= 1000 else 0
    return Moments(base.astype(np.int64) * factor + fraction + start_ns, bad)


def _iso(texts: Sequence[str], zone: tzinfo) -> Moments:
    if isinstance(texts, PlainCells) and (read := _alike(texts, zone)) is not None:
        return read
    bare = [text.strip() for text in texts]
    offsets = np.zeros(len(bare), dtype=np.int64)
    zoned = np.zeros(len(bare), dtype=np.bool_)
    if any(
        text[-1:] in "ZC" or text[-6:-5] in "+-" or text[-5:-4] in "+-" or text[-3:-2] in "+-"
        for text in bare
        if len(text) > 10
    ):
        for index, text in enumerate(bare):
            match = _ZONE.search(text, 10)
            if match:
                bare[index], offsets[index], zoned[index] = text[: match.start()], _offset_s(match[1]), True
    micros = _micros(bare)
    bad = (micros < 0) | (micros > _LATEST_NS // 1000)
    return _moments(micros, bad, _rest_ns(bare, bad), offsets, zoned, zone)


def _moments(
    micros: Ints, bad: NDArray[np.bool_], rest_ns: Ints, offsets: Ints, zoned: NDArray[np.bool_], zone: tzinfo
) -> Moments:
    """Moments of microseconds on a clock that is ``offsets`` s east of UTC, or where not ``zoned`` that of the zone."""
    micros = np.where(bad, 0, micros)
    time_ns = micros * 1000 + rest_ns - offsets * NS
    if zone is not UTC and not bool(zoned.all()):
        time_ns = np.where(zoned, time_ns, time_ns - _zone_offsets_s(micros, zone) * NS)
    return Moments(time_ns, bad | (time_ns < 0))


def _alike(cells: PlainCells, zone: tzinfo) -> Moments | None:
    """The moments of times that are written alike and in one zone; None if they are not."""
    first = cells[0] if len(cells) else ""
    sign = _ZONE.search(first, 10)
    bare = first[: sign.start()] if sign else first
    matrix = _written_alike(cells, len(bare)) if _NUMPY_READS(bare) else None
    if matrix is None:
        return None
    end = len(bare)
    try:
        micros = as_texts(matrix[:, :end]).astype("datetime64[us]").astype(np.int64)
    except ValueError:
        return None
    bad = (micros < 0) | (micros > _LATEST_NS // 1000)
    rest = matrix[:, _TO_MICROS : min(end, _TO_MICROS + 3)].astype(np.int64) - ord("0")
    rest_ns = np.where(bad, 0, rest @ 10 ** np.arange(2, 2 - rest.shape[1], -1))
    offset_s = np.full(len(cells), _offset_s(sign[1]) if sign else 0)
    return _moments(micros, bad, rest_ns, offset_s, np.full(len(cells), sign is not None), zone)


def _written_alike(cells: PlainCells, end: int) -> NDArray[np.uint8] | None:
    """The bytes of cells that differ only in digits before ``end``, shape (n, width); None if they do not."""
    matrix, first = cells.matrix(), cells[0]
    if matrix.shape[1] != len(first) or not cells.is_ascii:
        return None
    digits = np.array([place < end and char.isdecimal() for place, char in enumerate(first)])
    varying, same = matrix[:, digits], matrix[:, ~digits]
    alike = ((varying >= ord("0")) & (varying <= ord("9"))).all() and (same == same[0]).all()
    return matrix if bool(alike) else None


def _micros(texts: list[str]) -> NDArray[np.int64]:
    """Microseconds since 1970; negative if it is no date."""
    if any("," in text or "/" in text for text in texts):
        texts = [text.replace(",", ".").replace("/", "-") for text in texts]
    if all(_NUMPY_READS(text) for text in texts):  # numpy also accepts "now", and warns of suspected zones
        try:
            return np.array(texts, dtype="datetime64[us]").astype(np.int64)
        except ValueError:
            pass
    return np.fromiter((_micros_of(text) for text in texts), np.int64, len(texts))


def _rest_ns(texts: Sequence[str], bad: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The nanoseconds after whole microseconds, of times with more than six decimals."""
    rest = np.zeros(len(texts), dtype=np.int64)
    for index, text in enumerate(texts):
        if len(text) > _TO_MICROS and not bad[index] and text[_TO_MICROS:].isdecimal():
            rest[index] = int(text[_TO_MICROS : _TO_MICROS + 3].ljust(3, "0"))
    return rest


def _micros_of(text: str) -> int:
    try:
        if len(text) >= 10 and text[:4].isdecimal():
            moment = datetime.fromisoformat(text)
            # a zone left here is a second one, or misplaced
            return -1 if moment.tzinfo else (moment.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return -1
    return -1


_NUMPY_READS = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?", re.ASCII).fullmatch
_TO_MICROS = len("2026-11-21T20:00:00.123456")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _offset_s(zone: str) -> int:
    if zone in {"Z", "UTC"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    seconds = 3600 * int(digits[:2]) + 60 * int(digits[2:])
    return -seconds if zone[0] == "-" else seconds


def _zone_offsets_s(micros: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Offsets east of UTC, s; looked up per quarter of an hour, since they change only then. Repeated hours: the
    first."""
    quarter = 900 * 10**6
    quarters, where = np.unique(micros // quarter, return_inverse=True)
    known = []
    for number in quarters.tolist():
        offset = (_EPOCH + timedelta(microseconds=number * quarter)).replace(tzinfo=zone).utcoffset()
        known.append(0 if offset is None else round(offset.total_seconds()))
    return np.array(known, dtype=np.int64)[where]


def _day_first(parted: Sequence[tuple[str, str, str]], who: str) -> bool:
    """With points the day comes first; with slashes a number over 12 must show it."""
    if any(sign == "." for _, sign, _ in parted):
        return True
    if any(int(first) > 12 for first, _, _ in parted):
        return True
    if any(int(second) > 12 for _, _, second in parted):
        return False
    raise DataError(f"{who}: day or month first? Give --time-format '%d/%m/%Y %H:%M:%S' or '%m/%d/%Y %H:%M:%S'")


def _all_as_iso(texts: Sequence[str], day_first: bool) -> Sequence[str]:  # noqa: FBT001
    """The dates with the year first; "" for what is none."""
    first = _DATE.fullmatch(texts[0]) if isinstance(texts, PlainCells) and len(texts) else None
    if isinstance(texts, PlainCells) and first is not None and first[5] and first[5][2] == ":":
        spans = [first.span(number) for number in (4, *((3, 1) if day_first else (1, 3)), 5)]
        matrix = (
            _written_alike(texts, len(first[0])) if [end - begin for begin, end in spans[:3]] == [4, 2, 2] else None
        )
        if matrix is not None:
            year, month, day, clock = (matrix[:, begin:end] for begin, end in spans)
            dash, blank = (np.full((len(texts), 1), ord(sign), dtype=np.uint8) for sign in "- ")
            return PlainCells.of(np.hstack([year, dash, month, dash, day, blank, clock]))
    return [_as_iso(text, day_first) for text in texts]


def _as_iso(text: str, day_first: bool) -> str:  # noqa: FBT001
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return ""
    first, _, second, year, clock = match.groups()
    day, month = (first, second) if day_first else (second, first)
    hours, _, rest = (clock or "00:00").partition(":")
    return f"{year}-{month:0>2}-{day:0>2} {hours:0>2}:{rest}"


class _Clock:
    """``hh:mm:ss``; a fall of more than half a day is midnight."""

    def __init__(self, start_ns: int) -> None:
        self._start_ns, self._last_s, self._days = start_ns, -math.inf, 0

    def read(self, texts: Sequence[str]) -> Moments:
        time_ns = np.zeros(len(texts), dtype=np.int64)
        bad = np.zeros(len(texts), dtype=np.bool_)
        for index, text in enumerate(texts):
            match = _CLOCK.fullmatch(text.strip())
            if match is None or len(match[2]) > 9 or len(match[1] or "") > 6:
                bad[index] = True
                continue
            second = float(match[4].replace(",", "."))
            seconds = 86400 * int(match[1] or 0) + 3600 * int(match[2]) + 60 * int(match[3]) + second
            if seconds + 43200 < self._last_s and seconds < 86400 > self._last_s:
                self._days += 1
            self._last_s = seconds
            total = self._start_ns + self._days * 86400 * NS + round(seconds * 1e6) * 1000
            bad[index] = total > _LATEST_NS
            time_ns[index] = min(total, _LATEST_NS)
        return Moments(time_ns, bad)


def _strptime(texts: Sequence[str], form: str, zone: tzinfo) -> Moments:
    time_ns = np.zeros(len(texts), dtype=np.int64)
    bad = np.zeros(len(texts), dtype=np.bool_)
    for index, text in enumerate(texts):
        try:
            read = datetime.strptime(text.strip(), form)  # noqa: DTZ007 - the zone follows
            moment = read if read.tzinfo is not None else read.replace(tzinfo=zone)
            time_ns[index] = (moment - _EPOCH) // timedelta(microseconds=1) * 1000
            bad[index] = time_ns[index] < 0
        except (ValueError, OverflowError):
            bad[index] = True
    return Moments(time_ns, bad)
