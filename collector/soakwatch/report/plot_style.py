"""How every plot of a report looks: names and units in it, its glyphs, the empty figure, and how far its axes reach."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from bokeh.models import BasicTickFormatter, ColumnDataSource, FixedTicker, PlainText, Range, Range1d, Text
from bokeh.models.glyph import Glyph
from bokeh.models.renderers import GlyphRenderer
from bokeh.plotting import figure

from soakwatch.core.formatting import printable
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve
from soakwatch.report.palette import AXIS, GRID, GROUND, OUTLINE, TEXT
from soakwatch.report.plot_copy import twin

_MAX_NAME_LENGTH = 90


def plain(text: str) -> str:
    """Text that BokehJS takes neither for TeX nor for anything else: delimiters of formulas are taken apart."""
    line = printable(text)
    return line.replace("$$", "$\u200b$").replace("\\(", "\\\u200b(").replace("\\[", "\\\u200b[")


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
    """The words of a legend: the metric of one line, numbered objects of several."""
    if len(curves) == 1:
        return [plain(curves[0].key.metric)]
    return numbered([name_of(curve, metric=False) for curve in curves])


def numbered(names: Sequence[str]) -> list[str]:
    """The names with the numbers that their lines carry in the plot."""
    return [f"{number} {name}" for number, name in enumerate(names, 1)] if len(names) > 1 else list(names)


def name_of(curve: Curve, *, metric: bool = True) -> str:
    """Target, metric and object of a line in one text."""
    parts = (curve.key.target, curve.key.metric if metric else "", curve.key.object)
    return plain(shortened(" ".join(part for part in parts if part)))


def tip_unit(unit: str) -> str:
    """A unit inside a tooltip's template, where @, $ and braces would be read as fields."""
    return re.sub(r"[^\w %°µ/.-]", "", unit)


def source_name(key: SeriesKey) -> str:
    """The name that a data source of a series carries in the browser, which can fetch the series by it."""
    return "series:" + json.dumps([key.target, key.metric, key.object], ensure_ascii=False, separators=(",", ":"))


def put(
    plot: Any, source: ColumnDataSource, glyph: Glyph, *, axis: str = "default", over: bool = False, name: str = ""
) -> Any:
    """Draw a glyph on the axis of values of this name, ``over`` the others if asked; the renderer, for legends."""
    renderer: Any = GlyphRenderer(
        data_source=source,
        glyph=glyph,
        nonselection_glyph=None,
        muted_glyph=None,
        y_range_name=axis,
        level="overlay" if over else "glyph",
    )
    if name:
        renderer.name = name
    plot.renderers.append(renderer)
    return renderer


def words(
    plot: Any, source: ColumnDataSource, column: str, *, axis: str = "band", on_ground: bool = False, **style: Any
) -> Any:
    """Small words at x and y, over everything else; ``on_ground`` they can be read over lines too."""
    if on_ground:
        style |= {"background_fill_color": GROUND, "background_fill_alpha": 0.7}
    glyph = Text(x="x", y="y", text=column, text_font_size="11px", **style)
    return put(plot, source, glyph, axis=axis, over=True)


_TOOLS = "xbox_zoom,xpan,xzoom_in,xzoom_out,reset,save"
WIDE_BORDER = 90
"""The room right of a plot, in pixels, for the axis of the load."""
_BORDERS = 96, WIDE_BORDER
NARROW_BORDER = 24
"""The room right of a plot, in pixels, where no plot has a second axis."""
_TOP_OF_SHARES = 104.0
_A_DAY = 20 * 3600.0  # from here on a time of day alone would be ambiguous


def blank(x_range: Range, y_range: Range, height: int, unit: str, seconds: float, *, log: bool, small: bool) -> Any:
    """A figure with a time axis of ``seconds`` and an axis of values in ``unit``; a ``small`` one has no tools."""
    plot: Any = twin(_blank(log=log, small=small, days=seconds > _A_DAY))
    plot.x_range, plot.y_range, plot.height = x_range, y_range, height
    plot.yaxis.axis_label.text = plain(unit)
    if not small:
        plot.xaxis.ticker.desired_num_ticks = 8 if height > 250 else 5
    return plot


@cache
def _blank(*, log: bool, small: bool, days: bool) -> Any:
    """The figure that is copied; ``days``: its times are more than a day apart."""
    plot: Any = figure(
        x_axis_type="datetime",
        x_range=Range1d(),
        y_range=Range1d(),
        y_axis_type="log" if log else "linear",
        min_width=160 if small else 280,
        sizing_mode="stretch_width",
        tools="" if small else _TOOLS,
        toolbar_location=None if small else "right",
    )
    if not small:  # the same for all, so that moments stand below one another
        plot.min_border_left, plot.min_border_right = _BORDERS
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.yaxis.axis_label = PlainText()
    plot.background_fill_color = plot.border_fill_color = GROUND
    plot.outline_line_color = OUTLINE
    plot.xgrid.grid_line_color = plot.ygrid.grid_line_color = GRID
    if small:
        plot.xaxis.ticker.desired_num_ticks, plot.yaxis.ticker.desired_num_ticks = 4, 3
    for axis in (*plot.xaxis, *plot.yaxis):
        dress_axis(axis)
    formatter = plot.xaxis[0].formatter
    formatter.seconds = formatter.minsec = "%H:%M:%S"
    formatter.minutes = formatter.hourmin = formatter.hours = "%d %b %H:%M" if days else "%H:%M"
    formatter.days, formatter.months, formatter.years = "%d %b", "%b %Y", "%Y"
    formatter.strip_leading_zeros = False
    formatter.context = None
    if log:
        plot.yaxis.formatter = BasicTickFormatter(use_scientific=False)
    return plot


def dress_axis(axis: Any) -> None:
    """Small, upright and quiet."""
    axis.major_label_text_font_size = axis.axis_label_text_font_size = "11px"
    axis.major_label_text_color = axis.axis_label_text_color = TEXT
    axis.axis_label_text_font_style = "normal"
    axis.axis_line_color = axis.major_tick_line_color = AXIS
    axis.minor_tick_line_color = None


_DENSE, _THIN = 1.3, 3.0  # decades
_DECADES = range(-12, 16)
_SAME, _MOSTLY = 0.005, 0.5  # half a pixel of a plot; the share of its times
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
    room = low + span * 1.25  # the phases' names stand above the line
    if curves[0].unit == "%" and high <= 100.0:
        room = min(room, _TOP_OF_SHARES)  # there is no 120 %
    return Range1d(start=low, end=room)


def is_steep(curves: Sequence[Curve]) -> bool:
    """Whether several lines of measured times would lie on one another at the bottom of a linear axis."""
    lows = [float(np.nanmedian(c.value)) for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    positive = all(c.low is not None and c.low > 0 for c in curves)
    return len(curves) > 1 and positive and curves[0].source_unit == "s" and max(highs) > 8 * min(lows)


def decades(curves: Sequence[Curve]) -> Range1d:
    """The reach of a logarithmic axis, with room for the phases' names above."""
    low, high = _ends(curves)
    return Range1d(start=low / 1.3, end=high * (high / low) ** 0.2 * 1.2)


def decade_ticks(curves: Sequence[Curve]) -> FixedTicker:
    """Ticks of a logarithmic axis that do not lie on one another: 1, 2 and 5 of a few decades, 1 of many. They go on
    beyond what is shown, for the axis of a run that goes on grows."""
    low, high = _ends(curves)
    shown = math.log10(high / low)
    steps = (1, 2, 5) if shown <= _DENSE else (1, 3) if shown <= _THIN else (1,)
    return FixedTicker(ticks=[step * 10.0**decade for decade in _DECADES for step in steps])


def _ends(curves: Sequence[Curve]) -> tuple[float, float]:
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    return min(lows), max(highs)


def covers(later: Curve, curve: Curve) -> bool:
    """Whether a line that is drawn later hides one: it has the same value at most of its times.

    Lines of other times are taken for different ones.
    """
    if later.time_ms.size != curve.time_ms.size or not np.array_equal(later.time_ms, curve.time_ms):
        return False
    near = np.isclose(later.value, curve.value, rtol=_SAME, atol=0.0)
    return bool(near.sum() > _MOSTLY * max(int(np.isfinite(curve.value).sum()), 1))
