"""Impossible readings: values that a counter, a clock or a gauge cannot have had, found in a series and set aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.series import Floats, Ints, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.stats.medians import median

LEAST_S: Final = 0.1
"""The least time in seconds taken between two readings; readings at one moment did not count anything in between."""
_LONGEST = 3  # wrong readings in a row; what lasts longer is believed
_SLACK = 2.0  # times the fastest pace elsewhere that a counter may have across the readings set aside
_FEW = 4  # a counter below this may well have counted that much since a reset
_FAR = 20.0  # times what may have been counted: a larger step is none of the usual ones
_STILL = 1e-3  # share of 2**32 by which a gauge's neighbours may differ around a reading that is 2**32 too high
_BIG = 2.0**31
_MARKS: Final = (2.0**31, 2.0**32, 2.0**63, 2.0**64)
_ONES: Final = (2.0**31 - 1, 2.0**32 - 1, 2.0**63, 2.0**64)  # all bits set (large floats cannot represent the - 1)
_PER_S: Final = {"{packet}": 1e10, "By": 1e13, "s": 1e5}
_MOST_PER_S = 1e10  # for anything else that is counted: events, requests, errors
_AMOUNTS: Final = {"By": 1e16, "bit/s": 1e15, "By/s": 1e14, "{packet}/s": 1e11, "{packet}": 1e16}
_ROOM = 0.5  # share of a gauge's range by which a reading may lie outside: rounding, averages over two ticks


class Way(StrEnum):
    """How readings are impossible, as a phrase with a place for the amount."""

    UP = "jumped by {} and was back at the next reading"
    DOWN = "fell to {} and was back at the next reading"
    UP_AT_END = "jumped by {} at the last reading"
    DOWN_AT_END = "fell to {} at the last reading"
    STAYED = "jumped by {}, which cannot be, and went on from there"
    FELL = "fell by {} and went on from there"
    SHOWN = "showed {}, which cannot be"


@dataclass(frozen=True, slots=True)
class ImpossibleReadings:
    """``count`` impossible readings from ``begin_ns`` to ``end_ns``: in which way and by how much (in the series'
    unit).

    ``sure``: what was really counted is known from the readings around them; else something may be hidden there.
    """

    begin_ns: int
    end_ns: int
    count: int
    way: Way
    amount: float
    sure: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class PlausibleSeries:
    """A series without its impossible readings, and these in time order."""

    series: Series
    impossible: tuple[ImpossibleReadings, ...] = ()


def is_clock(metric: str) -> bool:
    """Whether a metric is a gauge that only grows, by a second a second, until what it times restarts.

    >>> is_clock("system.uptime"), is_clock("system.cpu.utilization")
    (True, False)
    """
    return metric.endswith(".uptime")


def without_impossible(series: Series, most: Floats | None = None, restarts: Sequence[Window] = ()) -> PlausibleSeries:
    """The series without impossible readings. ``most`` is the most that can have been counted since the previous
    reading (inf if unknown; one for each reading); ``restarts`` are stretches in which the device restarted: a counter
    that falls in one was reset.

    Counters and clocks (``is_clock``) never fall and come back. Set aside are:

    * up and back: one to three readings above those that follow, which continue where those before ended, at no more
      than twice the fastest pace seen elsewhere;
    * all bits set (2**31 - 1, 2**32 - 1, 2**64) at the first or the last reading;
    * down and back up: one to three readings (0, or anything) below those before, after which it continues; for a clock
      also exactly 0 at the last reading (no device that has just restarted is read that quickly), and a first reading
      from which it gains more than the time that passed;
    * a step of 2**31, 2**32, 2**63 or 2**64 within the usual pace, or above ``most`` or what any device counts, that is
      taken back, is the last reading, or stays. A step that stays is subtracted from all later readings; if it is no
      power of two, a traffic counter has NaN there (in ``increments``), since what it counted then is unknown.

    A burst of real drops is a possible step that stays and is never set aside. Nor is a burst after which the counter
    falls to a value that it can have reached since a reset (0 -> 1000 -> 0): that was a burst and a reset. For gauges:
    up to three readings far outside of the metric's range or larger than any machine has, and readings above both
    neighbours by exactly 2**31 ... 2**64.

    What it gets wrong: a counter at 1 to 3 that falls to 0 and is back at once was misread, or was reset and counted
    the same number again; it is set aside as unsure. A first reading of 0 cannot be told from a counter that began
    then, so what follows counts. A wrong reading of possible size before a fall to 0 counts as a burst.

    >>> from soakwatch_rules.signals import counter
    >>> drops = counter("queue.dropped", np.zeros(9, dtype=np.int64), 60.0, start=100)
    >>> drops.value[4] += 2**32
    >>> found = without_impossible(drops)
    >>> first = found.impossible[0]
    >>> len(drops) - len(found.series), first.count, first.way.format(first.amount)
    (1, 1, 'jumped by 4294967296.0 and was back at the next reading')
    >>> drops.value[4:] = 5000
    >>> without_impossible(drops).impossible
    ()
    """
    if len(series) < 2:
        return PlausibleSeries(series)
    if series.trait.kind == "counter" or is_clock(series.metric):
        return _of_counter(series, most, restarts)
    return _of_gauge(series) if series.trait.kind == "gauge" else PlausibleSeries(series)


# --- counters ------------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Counter:
    """A counter during the check: finite readings, the steps between them, the pace, and which readings are bad."""

    clock: bool
    traffic: bool  # forwarded traffic: a step counted as zero would be as wrong as one that is too large
    at: Floats
    value: Floats
    most: Floats
    again: Mask  # at the later reading of a step during which the device restarted
    pace: float
    bad: Mask
    impossible: list[ImpossibleReadings]
    shift: Floats
    time_ns: Ints

    def allowed(self, first: int, last: int) -> float:
        """The most that may have been counted between two readings."""
        return _SLACK * self.pace * float(self.at[last] - self.at[first]) + 1.0

    def could_be_reset(self, last: int) -> bool:
        """Whether the value at ``last`` can have been counted since a reset after the previous reading, or from 0."""
        high = float(self.value[last])
        return high < _FEW or high <= self.allowed(last - 1, last)

    def begun_anew(self, first: int, last: int) -> bool:
        """Whether the device is known to have restarted between two readings."""
        return bool(self.again[first + 1 : last + 1].any())


def _of_counter(series: Series, most: Floats | None, restarts: Sequence[Window]) -> PlausibleSeries:
    good = np.isfinite(series.values) if series.value.dtype.kind == "f" else np.ones(len(series), np.bool_)
    value, time_ns = series.values[good], series.time_ns[good]
    if value.size < 2:
        return PlausibleSeries(series)
    seconds = np.maximum(np.diff(time_ns) * 1e-9, LEAST_S)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(value)
    bound = np.minimum(np.inf if most is None else most[good][1:], _most_per_s(series) * seconds)
    falls, clock = steps < 0, is_clock(series.metric)
    gained = clock and float(steps[0]) > _SLACK * float(seconds[0]) + 1.0
    filled = any(float(value[end]) in _ONES and value[end] != value[by] for end, by in ((0, 1), (-1, -2)))
    far = gained or filled or bool(falls.any())
    if not far and not bool((steps > np.minimum(bound, _BIG - 1)).any()):
        return PlausibleSeries(series)
    again = np.zeros(value.size, np.bool_)
    for restart in restarts:
        again[1:] |= (time_ns[1:] >= restart.begin_ns) & (time_ns[:-1] <= restart.end_ns)
    near = np.convolve(falls, np.ones(2 * _LONGEST + 1), "full")[_LONGEST : _LONGEST + falls.size] > 0
    if int(((steps > bound) & ~near).sum()) > _LONGEST:  # this source really counts faster than the bound
        bound = np.full(bound.size, np.inf)
    pace = 1.0 if clock else _pace(steps, seconds, near)
    sifted = _Counter(
        clock,
        not clock and series.trait.growth is None,
        (time_ns - time_ns[0]) * 1e-9,
        value,
        np.append(np.inf, bound),
        again,
        pace,
        np.zeros(value.size, np.bool_),
        [],
        np.zeros(value.size),
        time_ns,
    )
    for place in _suspects(sifted, steps, falls):
        _judge_fall(sifted, place)
    if clock:
        _judge_start(sifted)
    _judge_rises(sifted)
    if not sifted.impossible:
        return PlausibleSeries(series)
    kept = np.flatnonzero(good)[~sifted.bad]
    readings = series.value[kept]
    if sifted.shift.any():
        readings = _shifted(readings, sifted.shift[~sifted.bad])
    impossible = tuple(sorted(sifted.impossible, key=lambda each: each.begin_ns))
    return PlausibleSeries(replace(series, time_ns=series.time_ns[kept], value=readings), impossible)


def _most_per_s(series: Series) -> float:
    return _PER_S.get(series.trait.unit, _MOST_PER_S)


def _pace(steps: Floats, seconds: Floats, near: Mask) -> float:
    """The fastest pace of the counter away from falls; for a counter that falls all the time, twice its median pace."""
    calm = ~near & (steps < _BIG)
    rates = steps[calm] / seconds[calm]
    if rates.size >= 0.5 * steps.size:
        return float(rates.max(initial=0.0))
    risen = steps >= 0
    return float(_SLACK * median(steps[risen] / seconds[risen])) if risen.any() else 0.0


def _suspects(sifted: _Counter, steps: Floats, falls: Mask) -> list[int]:
    """The readings at which the counter fell, without wraps at 2**32 at the usual pace."""
    at = np.flatnonzero(falls) + 1
    before, after = sifted.value[at - 1], sifted.value[at]
    room = _SLACK * sifted.pace * (sifted.at[at] - sifted.at[at - 1]) + 1.0
    wraps = (before >= _BIG) & (before < 2 * _BIG) & (after < _BIG) & (after - before + 2 * _BIG <= room)
    wraps &= before != 2 * _BIG - 1  # all bits set: no counter that wraps was read just there
    rose = np.where(at >= 2, steps[np.maximum(at - 2, 0)], 0.0)
    return [int(place) for place in at[~(wraps & (rose <= room))]]


def _judge_fall(sifted: _Counter, place: int) -> None:
    """Sets aside the readings before a fall if they were too high, or those after it if too low; else it was a
    reset."""
    if sifted.bad[place] or sifted.bad[place - 1]:
        return
    value = sifted.value
    # All bits set at the last reading.
    if place == value.size - 1 and float(value[place]) in _ONES:
        _set_aside(sifted, place, place + 1, Way.DOWN_AT_END, float(value[place]), sure=False)
        return
    # Up and back: up to three readings before the fall were too high.
    for length in range(1, _LONGEST + 1):
        first, base = place - length, place - length - 1
        if base < 0 or sifted.begun_anew(base, place) or bool(sifted.bad[base:place].any()):
            break
        if not (value[base] <= value[place] and bool((value[first:place] > value[place]).all())):
            continue
        rise, fall = float(value[first] - value[base]), float(value[place - 1] - value[place])
        too_much = (
            _too_much(sifted, base, first)
            or float(value[first]) in _ONES
            or _beyond(fall, sifted.allowed(place - 1, place), np.inf)
        )
        back = float(value[place] - value[base]) <= sifted.allowed(base, place)
        far = rise >= _FAR * sifted.allowed(base, first) and value[base] > 0
        went_on = not sifted.could_be_reset(place)
        if too_much or (back and (far or went_on or value[place] == value[base] > 0)):
            _set_aside(sifted, first, place, Way.UP, rise, sure=too_much or went_on)
            return
    # Down and back: up to three readings from the fall on were too low.
    for length in range(1, _LONGEST + 1):
        close = place + length
        if close >= value.size or sifted.begun_anew(place - 1, close):
            break
        if not (value[close] >= value[place - 1] and bool((value[place:close] < value[place - 1]).all())):
            continue
        back = float(value[close] - value[place - 1]) <= sifted.allowed(place - 1, close)
        same = value[close] == value[place - 1]
        went_on = not sifted.could_be_reset(close)
        if back and (same or went_on):
            _set_aside(sifted, place, close, Way.DOWN, float(value[place]), sure=went_on)
            return
    # Left are the ends, which have no reading beside them, and steps by a power of two that stay.
    lost = float(value[place - 1] - value[place])
    if sifted.clock and place == value.size - 1 and value[place] == 0 and not sifted.begun_anew(place - 1, place):
        _set_aside(sifted, place, place + 1, Way.DOWN_AT_END, 0.0, sure=False)
        return
    if place == 1 and float(value[0]) in _ONES and not sifted.begun_anew(0, 1):
        _set_aside(sifted, 0, 1, Way.UP, lost, sure=False)
        return
    for mark in _MARKS:
        if 0 <= mark - lost <= sifted.allowed(place - 1, place) and not sifted.begun_anew(place - 1, place):
            _take_out(sifted, place, mark, Way.FELL, sure=True)
            return
    if place == 1 and _beyond(lost, sifted.allowed(0, 1), float(sifted.most[1])):
        _set_aside(sifted, 0, 1, Way.UP, lost, sure=False)


def _judge_start(sifted: _Counter) -> None:
    """Sets aside a clock's first reading if the clock then gains more than the time that passes."""
    kept = np.flatnonzero(~sifted.bad)
    if kept.size < 2:
        return
    first, second = int(kept[0]), int(kept[1])
    if float(sifted.value[second] - sifted.value[first]) > sifted.allowed(first, second):
        _set_aside(sifted, first, first + 1, Way.SHOWN, float(sifted.value[first]), sure=True)


def _judge_rises(sifted: _Counter) -> None:
    """Sets aside or subtracts steps that stayed and that no device can have counted."""
    kept = np.flatnonzero(~sifted.bad)
    steps = np.diff(sifted.value[kept])
    if kept.size > 1 and float(sifted.value[kept[-1]]) in _ONES and float(steps[-1]) > 0:
        last = int(kept[-1])
        _set_aside(sifted, last, last + 1, Way.UP_AT_END, float(steps[-1]), sure=False)
        kept, steps = kept[:-1], steps[:-1]
    if kept.size > 1 and kept[0] == 0 and float(sifted.value[0]) in _ONES and float(steps[0]) > 0:
        _set_aside(sifted, 0, 1, Way.SHOWN, float(sifted.value[0]), sure=False)
        kept, steps = kept[1:], steps[1:]
    for index in np.flatnonzero(steps > np.minimum(sifted.most[kept[1:]], _BIG - 1)).tolist():
        before, place = int(kept[index]), int(kept[index + 1])
        if not _too_much(sifted, before, place):
            continue
        rise = float(steps[index])
        if place == int(kept[-1]):
            _set_aside(sifted, place, place + 1, Way.UP_AT_END, rise, sure=False)
            continue
        mark = _mark_of(rise, sifted.allowed(before, place))
        amount = rise if mark is None else mark
        _take_out(sifted, place, -amount, Way.STAYED, sure=mark is not None)
        if mark is None and sifted.traffic and sifted.value[before] > _FEW:
            sifted.shift[place:] -= 1.0  # a fall by 1 is no count, so this step becomes unknown instead of zero


def _too_much(sifted: _Counter, before: int, place: int) -> bool:
    """Whether a rise exceeds what can have been counted, or is a power of two such as 2**32."""
    rise = float(sifted.value[place] - sifted.value[before])
    bound = float(sifted.most[before + 1 : place + 1].sum())
    return _beyond(rise, sifted.allowed(before, place), bound)


def _beyond(rise: float, allowed: float, most: float) -> bool:
    return rise > most or _mark_of(rise, allowed) is not None


def _mark_of(rise: float, allowed: float) -> float | None:
    """The power of two that a rise equals, up to the usual count; None for other rises."""
    return next((mark for mark in _MARKS if abs(rise - mark) <= allowed and rise >= _FAR * allowed), None)


def _set_aside(sifted: _Counter, first: int, close: int, way: Way, amount: float, *, sure: bool) -> None:
    sifted.bad[first:close] = True
    begin_ns, end_ns = int(sifted.time_ns[first]), int(sifted.time_ns[close - 1])
    sifted.impossible.append(ImpossibleReadings(begin_ns, end_ns, close - first, way, amount, sure))


def _take_out(sifted: _Counter, place: int, amount: float, way: Way, *, sure: bool) -> None:
    """Subtracts a step that stays: moves all later readings by ``amount``."""
    sifted.shift[place:] += amount
    at_ns = int(sifted.time_ns[place])
    sifted.impossible.append(ImpossibleReadings(at_ns, at_ns, 1, way, abs(amount), sure))


def _shifted(value: Floats | Ints | NDArray[np.uint64], by: Floats) -> Floats | Ints:
    """The readings moved; whole numbers stay whole if they fit."""
    moved: Floats = value.astype(np.float64) + by
    if value.dtype.kind == "f" or bool((np.abs(moved) >= 2.0**53).any()) or bool((value > 2**62).any()):
        return moved
    return np.round(value.astype(np.int64) + by.astype(np.int64)).astype(np.int64)


# --- gauges --------------------------------------------------------------------------------------------------------


def _of_gauge(series: Series) -> PlausibleSeries:
    value = series.values
    trait = series.trait
    finite = np.isfinite(value)
    high = _AMOUNTS.get(trait.unit, np.inf)
    low = -np.inf
    if trait.high is not None:
        high = min(high, trait.high + _ROOM * abs(trait.high - (trait.low or 0.0)))
    if trait.low is not None:
        low = trait.low - (_ROOM * abs(trait.high - trait.low) if trait.high is not None else 0.0)
    with np.errstate(invalid="ignore", over="ignore"):
        outside = finite & ((value > high) | (value < low))
        big = finite & (np.abs(value) >= _BIG - 1)
    if not bool(outside.any()) and not bool(big.any()):
        return PlausibleSeries(series)
    impossible = [*_stretches(series, outside), *_marked(series, big & ~outside)]
    if not impossible:
        return PlausibleSeries(series)
    taken = np.zeros(len(series), np.bool_)
    for found in impossible:
        first, close = np.searchsorted(series.time_ns, [found.begin_ns, found.end_ns + 1])
        taken[first:close] = True
    kept = replace(series, time_ns=series.time_ns[~taken], value=series.value[~taken])
    return PlausibleSeries(kept, tuple(sorted(impossible, key=lambda each: each.begin_ns)))


def _stretches(series: Series, outside: Mask) -> Iterator[ImpossibleReadings]:
    """Short stretches outside of the range; longer ones are how this source counts."""
    for first, close in true_runs(outside).tolist():
        if close - first <= _LONGEST:
            begin_ns, end_ns = int(series.time_ns[first]), int(series.time_ns[close - 1])
            yield ImpossibleReadings(
                begin_ns, end_ns, close - first, Way.SHOWN, float(series.value[first]), close < len(series)
            )


def _marked(series: Series, big: Mask) -> Iterator[ImpossibleReadings]:
    """Single readings that exceed both neighbours by 2**32, 2**63 or 2**64."""
    value = series.values
    with np.errstate(invalid="ignore", over="ignore"):
        rise, apart = value[1:-1] - (value[:-2] + value[2:]) / 2, np.abs(value[2:] - value[:-2])
        found = np.zeros(rise.size, np.bool_)
        for mark in _MARKS[1:]:
            found |= (np.abs(rise - mark) <= _SLACK * apart + 1e-6 * mark) & (apart <= _STILL * mark)
    for place in np.flatnonzero(found & big[1:-1]).tolist():
        at_ns = int(series.time_ns[place + 1])
        yield ImpossibleReadings(at_ns, at_ns, 1, Way.UP, float(rise[place]))
