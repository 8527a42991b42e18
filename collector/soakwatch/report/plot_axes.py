"""How far the axes of a plot reach, where a logarithmic one has its ticks, and what its lines are called."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import numpy as np

from soakwatch.core.formatting import printable
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve

_MAX_NAME_LENGTH = 90
_TOP_OF_SHARES = 104.0
_DENSE, _THIN = 1.3, 3.0  # decades
_DECADES = range(-12, 16)
_SAME, _MOSTLY = 0.005, 0.5  # half a pixel of a plot; the share of its times
_LEVELS = frozenset({"By", "Hz", "Cel"})


def shortened(text: str, longest: int = _MAX_NAME_LENGTH) -> str:
    """At most ``longest`` characters; begin and end are kept, because names mostly differ at one of them.

    >>> shortened("GigabitEthernet0/0/0/12", 12)
    'Gigabi…/0/12'
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def names_of(curves: Sequence[Curve]) -> list[str]:
    """The words of a legend: the metric of a single line; numbered objects of several."""
    if len(curves) == 1:
        return [printable(curves[0].key.metric)]
    return numbered([name_of(curve, metric=False) for curve in curves])


def numbered(names: Sequence[str]) -> list[str]:
    """The names with the numbers that their lines carry in the plot."""
    return [f"{number} {name}" for number, name in enumerate(names, 1)] if len(names) > 1 else list(names)


def name_of(curve: Curve, *, metric: bool = True) -> str:
    """Target, metric and object of a line in one text."""
    parts = (curve.key.target, curve.key.metric if metric else "", curve.key.object)
    return printable(shortened(" ".join(part for part in parts if part)))


def source_name(key: SeriesKey) -> str:
    """The name that the points of a series carry in the browser, which can fetch the series by it."""
    return "series:" + json.dumps([key.target, key.metric, key.object], ensure_ascii=False, separators=(",", ":"))


def reach(curves: Sequence[Curve], limit: float | None) -> tuple[float, float]:
    """The ends of the axis of values: from zero for rates and shares; for levels around the readings, but not so close
    that noise fills the plot."""
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    if not lows or not highs:
        return 0.0, 1.0
    low, high = min(lows), max(highs)
    if limit is not None and min(low, 0) <= limit <= 3 * max(abs(high), abs(low)):
        low, high = min(low, limit), max(high, limit)
    level = high > 1 and low > 0.4 * high and (curves[0].source_unit in _LEVELS or curves[0].steps)
    if not level:
        low = min(low, 0.0)
    least = 0.25 * abs(high) if level else 5.0 if curves[0].unit == "%" else 0.0
    if high - low < least:
        high = (high + low + least) / 2 if level else low + least
        low = high - least
    span = high - low or 1.0
    low -= span * (0.05 if level else 0.02)  # a line at the bottom is seen beside the axis
    room = low + span * 1.25  # the phases' names stand above the line
    if curves[0].unit == "%" and high <= 100.0:
        room = min(room, _TOP_OF_SHARES)  # there is no 120 %
    return low, room


def is_steep(curves: Sequence[Curve]) -> bool:
    """Whether several lines of measured times would lie on one another at the bottom of a linear axis."""
    lows = [float(np.nanmedian(c.value)) for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    positive = all(c.low is not None and c.low > 0 for c in curves)
    return len(curves) > 1 and positive and curves[0].source_unit == "s" and max(highs) > 8 * min(lows)


def decades(curves: Sequence[Curve]) -> tuple[float, float]:
    """The reach of a logarithmic axis, with room for the phases' names above."""
    low, high = _ends(curves)
    return low / 1.3, high * (high / low) ** 0.2 * 1.2


def decade_ticks(curves: Sequence[Curve]) -> tuple[float, ...]:
    """Ticks of a logarithmic axis without overlaps: 1, 2 and 5 of each decade if these are few, else only 1. They go on
    beyond the axis, which grows while a run goes on."""
    low, high = _ends(curves)
    shown = math.log10(high / low)
    steps = (1, 2, 5) if shown <= _DENSE else (1, 3) if shown <= _THIN else (1,)
    return tuple(step * 10.0**decade for decade in _DECADES for step in steps)


def _ends(curves: Sequence[Curve]) -> tuple[float, float]:
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    return min(lows), max(highs)


def covers(later: Curve, curve: Curve) -> bool:
    """Whether a line that is drawn ``later`` hides ``curve``: it has the same value at most of its times.

    Lines with other times are taken to differ.
    """
    if later.time_ms.size != curve.time_ms.size or not np.array_equal(later.time_ms, curve.time_ms):
        return False
    near = np.isclose(later.value, curve.value, rtol=_SAME, atol=0.0)
    return bool(near.sum() > _MOSTLY * max(int(np.isfinite(curve.value).sum()), 1))
