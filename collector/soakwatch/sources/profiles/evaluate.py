"""The value of one line of a profile in one row: what is not there is missing, what makes no sense is a fault."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from soakwatch.sources.profiles.device_survey import WantedSeries
from soakwatch.sources.profiles.expression import SECONDS, MissingError, UndefinedError
from soakwatch.sources.profiles.profile_model import MetricLine, TableColumn
from soakwatch.sources.profiles.value import Number, Value, number, text
from soakwatch_model.metric import BY_NAME, clipped, fault_of

Raw = Mapping[str, Number | None]
NEAR = 1.0
"""In the unit of a series: an answer that is no further from the last reading may be one."""
_HALF = {32: 2**31, 64: 2**63}


class FaultError(Exception):
    """The device answered, but not with a value of this metric: a sentence."""


def level(want: WantedSeries, values: Mapping[str, Value]) -> Number:
    """The value of a series now. Raises MissingError, and FaultError or UndefinedError with a sentence.

    Counters stay whole numbers unless their line has a scale.
    """
    line = want.line
    if line.match is not None or line.values is not None:
        return _finish(line, _read_as(line, want, values))
    return _finish(line, want.value.run(raw(want, values)))


def possible(metric: str, value: int) -> bool:
    """Whether an integer is a reading of a metric as it is: within its range, and no more than a counter can hold."""
    low, high = _range(metric)
    return low <= value <= high and value < 2**64


@cache
def _range(metric: str) -> tuple[float, float]:
    """The least and the greatest reading; of a metric that the catalogue does not have there is none."""
    known = BY_NAME.get(metric)
    if known is None:
        return math.inf, -math.inf
    return -(2.0**63) if known.low is None else known.low, math.inf if known.high is None else known.high


def lost(want: WantedSeries, values: Mapping[str, Value], last: Number | None) -> Number:
    """The value of a series whose device now says that it has no reading, where it had ``last`` before (the light of an
    optic that went dark).

    An answer that could also be the next reading (0, where the last one was about 0 dBm) tells nothing. Raises
    MissingError for that, for a series that was never read or is not answered, and for a line that has no such value.
    """
    if want.line.lost is None or last is None or any(values.get(cell.oid) is None for cell in want.cells):
        raise MissingError(want.line.value.text)
    taken: dict[str, Number | None] = {}
    for cell in want.cells:
        try:
            taken[cell.name] = number(values[cell.oid])
        except ValueError:
            return want.line.lost
    with suppress(FaultError, UndefinedError):
        if abs(_finish(want.line, want.value.run(taken)) - last) < NEAR:
            raise MissingError(want.line.value.text)
    return want.line.lost


def change(want: WantedSeries, before: Raw, now: Raw, seconds: float) -> Number:
    """The value of a series over the increments since the poll before.

    Raises MissingError if a counter began anew, and UndefinedError if the increments make no value (nothing moved).
    """
    grown: dict[str, Number | None] = {SECONDS: seconds}
    for cell in want.cells:
        first, last = before.get(cell.name), now.get(cell.name)
        grown[cell.name] = None if first is None or last is None else increment(first, last, cell.column.bits)
    return _finish(want.line, want.value.run(grown))


def increment(first: Number, last: Number, bits: int | None) -> Number | None:
    """How far a counter went; None if it began anew rather than wrapped.

    A fall is a wrap only if the way over the end is less than half of the counter's range (32 bits where nothing else
    is known and both readings fit); a counter that really ran farther between two polls is taken for a restart.

    >>> increment(2**32 - 5, 5, 32), increment(1000, 5, 32), increment(5, 9, None)
    (10, None, 4)
    """
    if last >= first:
        return last - first
    width = bits or (32 if first < 2**32 else 64)
    forward = last - first + 2**width
    return forward if 0 <= forward < _HALF[width] and first < 2**width else None


def raw(want: WantedSeries, values: Mapping[str, Value]) -> Raw:
    """The number of each name of a series; None where it is not there. Raises FaultError for what is no number."""
    cells: dict[str, Number | None] = {}
    for cell in want.cells:
        value = values.get(cell.oid)
        if value == 0 and cell.twin is not None:
            value = values.get(cell.twin, value)
        if value is None or not valid(cell.column, value):
            cells[cell.name] = None
            continue
        try:
            cells[cell.name] = value if type(value) is int and -(2**64) < value < 2**64 else number(value)
        except ValueError as error:
            raise FaultError(f"{cell.name} ({cell.oid}): {error}") from None
    return cells


def valid(column: TableColumn, value: Value) -> bool:
    """Whether a reading is one, and not the device's way to say that there is none: an empty text, a set number."""
    if isinstance(value, bytes) and not value.strip(b" \0"):
        return False
    return not column.invalid or text(value, column.form) not in column.invalid


def _read_as(line: MetricLine, want: WantedSeries, values: Mapping[str, Value]) -> Number:
    cell = want.cells[0] if want.cells else None
    value = values.get(cell.oid) if cell is not None else None
    if cell is None or value is None or not valid(cell.column, value):
        raise MissingError(line.value.text)
    words = text(value, cell.column.form)
    if line.match is not None:
        match = line.match.search(words)
        if match is None or match[1] is None:
            raise FaultError(f"{cell.name} ({cell.oid}): {words!r} does not hold a number where one is expected")
        words = match[1]
    if line.values is not None:
        meant = line.values.get(words, line.default)
        if meant is None:
            raise FaultError(f"{cell.name} ({cell.oid}): the profile does not say what {words!r} means")
        return meant
    try:
        return number(words.encode())
    except ValueError as error:
        raise FaultError(f"{cell.name} ({cell.oid}): {error}") from None


def _finish(line: MetricLine, value: Number) -> Number:
    if line.scale is not None:
        value = scale(value, line.scale)
    value = clipped(line.metric, value)
    fault = fault_of(line.metric, value)
    if fault is not None:
        raise FaultError(fault)
    return value


def scale(value: Number, factor: float) -> Number:
    """A value times a factor; a whole divisor divides, so that 57 times 0.01 is 0.57.

    >>> scale(57, 0.01), scale(3, 1024), scale(5, 1000000.0)
    (0.57, 3072, 5000000)
    """
    if 0 < abs(factor) < 1:
        divisor = round(1 / factor)
        if abs(divisor * factor - 1) < 1e-12:
            return value / divisor
    return value * int(factor) if factor == int(factor) else value * factor
