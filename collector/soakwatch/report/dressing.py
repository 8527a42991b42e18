"""An empty figure as all plots of ours begin, and how its axes look."""

from __future__ import annotations

from typing import Any

from bokeh.models import BasicTickFormatter, PlainText, Range
from bokeh.plotting import figure

from soakwatch.report.lettering import plain
from soakwatch.report.palette import AXIS, GRID, GROUND, OUTLINE, TEXT

_TOOLS = "xbox_zoom,xpan,xzoom_in,xzoom_out,reset,save"
_BORDERS = 96, 90
_A_DAY = 20 * 3600.0  # from here on a time of day alone would be ambiguous


def blank(x_range: Range, y_range: Range, height: int, unit: str, seconds: float, *, log: bool, small: bool) -> Any:
    """A figure with a time axis of ``seconds`` and an axis of values in ``unit``; a ``small`` one has no tools."""
    plot: Any = figure(
        x_axis_type="datetime",
        x_range=x_range,
        y_range=y_range,
        height=height,
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
    plot.yaxis.axis_label = PlainText(text=plain(unit))
    plot.background_fill_color = plot.border_fill_color = GROUND
    plot.outline_line_color = OUTLINE
    plot.xgrid.grid_line_color = plot.ygrid.grid_line_color = GRID
    plot.xaxis.ticker.desired_num_ticks = 4 if small else 8 if height > 250 else 5
    if small:
        plot.yaxis.ticker.desired_num_ticks = 3
    for axis in (*plot.xaxis, *plot.yaxis):
        dress_axis(axis)
    formatter = plot.xaxis[0].formatter
    formatter.seconds = formatter.minsec = "%H:%M:%S"
    formatter.minutes = formatter.hourmin = formatter.hours = "%d %b %H:%M" if seconds > _A_DAY else "%H:%M"
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
