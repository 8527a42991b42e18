"""How far an axis of values reaches: from zero for rates and shares, around the readings for levels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from bokeh.models import Range1d

from soakwatch.report.curves import Curve

_LEVELS = frozenset({"By", "Hz", "Cel"})


def reach(curves: Sequence[Curve], limit: float | None) -> Range1d:
    """From zero for rates and shares; for levels around the readings, not so close that noise fills the plot."""
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    if not lows or not highs:
        return Range1d(start=0, end=1)
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
    high = low + span * 1.25  # the phases' names stand above the line
    return Range1d(start=low, end=high)


def is_steep(curves: Sequence[Curve]) -> bool:
    """Whether several lines of measured times would lie on one another at the bottom of a linear axis."""
    lows = [float(np.nanmedian(c.value)) for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    positive = all(c.low is not None and c.low > 0 for c in curves)
    return len(curves) > 1 and positive and curves[0].source_unit == "s" and max(highs) > 8 * min(lows)


def decades(curves: Sequence[Curve]) -> Range1d:
    """The reach of a logarithmic axis, with room for the phases' names above."""
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    low, high = min(lows), max(highs)
    return Range1d(start=low / 1.3, end=high * (high / low) ** 0.2 * 1.2)
