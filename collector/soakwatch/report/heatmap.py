"""Heatmaps: a row of colours for each series, in bins of time. A bin without samples is a hatched gap, never zero."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import (
    BasicTickFormatter,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Image,
    LinearColorMapper,
    LogColorMapper,
    PlainText,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation, ColorBar
from bokeh.palettes import viridis

from soakwatch.report.heat_cells import MAX_ROWS, Heat
from soakwatch.report.palette import GREY, GROUND, TEXT
from soakwatch.report.plot_style import blank, dress_axis, plain, put, shortened, tip_unit

_ROW, _LOW_ROW, _LABEL, _FRAME, _BAR = 15, 9, 13, 110, 320  # pixels
_MAX_NAME_LENGTH = 15
_DECADES = 1e4  # of a logarithmic scale of colours


def blank_heat(heat: Heat, x_range: Range1d, seconds: float) -> Any:
    """The empty figure, one line of text or less for each row."""
    rows = len(heat.names)
    row = _ROW if rows <= MAX_ROWS // 2 else _LOW_ROW
    y_range = Range1d(start=0, end=rows)
    plot = blank(x_range, y_range, max(rows * row, 60) + _FRAME, "", seconds, log=False, small=False)
    plot.add_layout(
        BoxAnnotation(
            fill_color=GROUND,
            fill_alpha=1.0,
            line_color=None,
            hatch_pattern="/",
            hatch_color=GREY,
            hatch_alpha=0.4,
            hatch_scale=7.0,
            level="underlay",
            left=heat.window.begin_ns / 1e6,  # what is later than the drawing is not drawn yet, and not missing
            right=heat.window.end_ns / 1e6,
        )
    )
    plot.ygrid.visible = plot.xgrid.visible = False
    every = math.ceil(_LABEL / row)
    named = [(rows - row_index - 0.5, heat.names[row_index]) for row_index in range(0, rows, every)]
    plot.yaxis.ticker = FixedTicker(ticks=[position for position, _ in named])
    plot.yaxis.major_label_overrides = {
        position: PlainText(text=plain(shortened(name, _MAX_NAME_LENGTH))) for position, name in named
    }
    return plot


def draw_heat(plot: Any, heat: Heat) -> None:
    """The rows, their tooltip and the scale of colours. The source is named ``heat:`` and the heat's key."""
    rows = len(heat.names)
    begin, end = heat.window.begin_ns / 1e6, heat.window.end_ns / 1e6
    finite = heat.cells[np.isfinite(heat.cells)]
    high = float(finite.max()) if finite.size else 1.0
    low = min(float(finite.min()), 0.0) if finite.size else 0.0
    colours = viridis(128)
    mapper: LinearColorMapper | LogColorMapper
    if heat.log and high > 0:
        positive = finite[finite > 0]
        mapper = LogColorMapper(palette=colours, low=max(float(positive.min()), high / _DECADES), high=high)
    else:
        mapper = LinearColorMapper(palette=colours, low=low, high=high if high > low else low + 1.0)
    mapper.nan_color = (0, 0, 0, 0.0)
    source = ColumnDataSource(
        {
            "image": [heat.cells[row_index : row_index + 1] for row_index in range(rows)],
            "x": [begin] * rows,
            "y": [rows - row_index - 1 for row_index in range(rows)],
            "dw": [end - begin] * rows,
            "name": [plain(name) for name in heat.names],
        },
        name=f"heat:{heat.key}",
    )
    cells = put(plot, source, Image(image="image", x="x", y="y", dw="dw", dh=0.94, color_mapper=mapper))
    tips = [
        ("from (UTC)", "$x{%F %T}"),
        ("series", "@name"),
        (heat.how, f"@image{{0,0.[000]}} {tip_unit(heat.unit)}".rstrip()),
    ]
    plot.add_tools(HoverTool(renderers=[cells], tooltips=tips, formatters={"$x": "datetime"}))
    bar = ColorBar(
        color_mapper=mapper,
        title=PlainText(text=plain(heat.unit)),
        orientation="horizontal",
        width=_BAR,
        height=8,
        location="right",
        padding=2,
        margin=0,
        label_standoff=3,
        title_text_font_size="11px",
        title_text_color=TEXT,
        title_text_font_style="normal",
        title_standoff=2,
        major_label_text_font_size="11px",
        major_label_text_color=TEXT,
        formatter=BasicTickFormatter(use_scientific=False),
        background_fill_color=None,
    )
    plot.add_layout(bar, "below")
    dress_axis(plot.yaxis[0])
