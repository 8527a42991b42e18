"""The same series of several runs in one plot, each on the time since its run began."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import BasicTicker, ColumnDataSource, HoverTool, Line, PrintfTickFormatter, Range1d, Scatter, VStrip
from bokeh.models.annotations import Legend, LegendItem

from soakwatch.core.drawn import shown
from soakwatch.core.formatting import scale_of
from soakwatch.record import RecordView, SeriesKey
from soakwatch.report.bokeh_embed import Pieces, apart
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.palette import BLACK, DASHES, GREY, LINES, PHASES, TEXT
from soakwatch.report.plot_background import literal
from soakwatch.report.plot_style import blank, plain, put, reach, shortened, tip_unit, words
from soakwatch_rules.rule import Phase
from soakwatch_rules.series import Series

MOST = 16
"""Plots of one page."""
POINTS, HEIGHT, _FEW = 1200, 260, 15
_STEPS = ((3 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A run as it is drawn: its name in legends, its record, when it began (UTC ns) and how long it lasted."""

    name: str
    view: RecordView
    begin_ns: int
    seconds: float
    phases: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the plot of one series goes, and which runs have no reading of it."""

    element: str
    key: SeriesKey
    missing: tuple[str, ...]


def overlays(runs: Sequence[Overlaid], keys: Sequence[SeriesKey]) -> tuple[Pieces, tuple[Overlay, ...]]:
    """Plots of series that at least two of the runs have readings of, in the order of the keys; at most ``MOST``.

    Time is counted from the first poll of each run, in hours, minutes or seconds after the longest. The phases are
    those of the first run in the plot.
    """
    longest_s = max((run.seconds for run in runs), default=0.0)
    _, step_s, unit = next(row for row in _STEPS if longest_s >= row[0])
    x_range = Range1d(start=0, end=max(longest_s, 1.0) / step_s, name="time")
    placed: list[tuple[Any, str]] = []
    told: list[Overlay] = []
    for key in keys:
        if len(placed) == MOST:
            break
        series = [run.view.series(key) for run in runs]
        curves = _curves(series)
        if sum(curve is not None for curve in curves) < 2:
            continue
        element = f"plot-{len(placed) + 1}"
        placed.append((_plot(runs, curves, x_range, step_s, unit, longest_s), element))
        absent = tuple(run.name for run, curve in zip(runs, curves, strict=True) if curve is None)
        told.append(Overlay(element, key, absent))
    return apart(placed), tuple(told)


def _curves(series: Sequence[Series]) -> list[Curve | None]:
    """All in one scale; None for a run without a reading, and for all where nothing ever moved from zero."""
    drawn = [shown(one)[0].finite() for one in series]
    peaks = [float(np.abs(one.values).max()) if len(one) else 0.0 for one in drawn]
    if not max(peaks, default=0.0) > 0:
        return [None] * len(series)
    scale = scale_of(drawn[peaks.index(max(peaks))].trait.unit, max(peaks))
    return [curve_of(one, POINTS, scale) if len(good) else None for one, good in zip(series, drawn, strict=True)]


def _plot(
    runs: Sequence[Overlaid],
    curves: Sequence[Curve | None],
    x_range: Range1d,
    step_s: float,
    unit: str,
    longest_s: float,
) -> Any:
    there = [curve for curve in curves if curve is not None]
    plot = blank(x_range, reach(there, None), HEIGHT, there[0].unit, longest_s, log=False, small=False)
    plot.xaxis[0].formatter = PrintfTickFormatter(format=f"%g {unit}")
    plot.xaxis[0].ticker = BasicTicker(desired_num_ticks=8)
    _shade(plot, next(run for run, curve in zip(runs, curves, strict=True) if curve is not None), step_s)
    items, lines, ends = [], [], []
    for place, (run, curve) in enumerate(zip(runs, curves, strict=True)):
        if curve is None:
            continue
        name = plain(f"{place + 1} {shortened(run.name, 60)}")
        x = (curve.time_ms - run.begin_ns / 1e6) / 1e3 / step_s
        source = ColumnDataSource({"time": x, "value": curve.value}, name=_name(run, curve))
        colour, dash = LINES[place % len(LINES)], DASHES[place % len(DASHES)]
        if x.size < _FEW:
            put(plot, source, Scatter(x="time", y="value", size=4, fill_color=colour, line_color=colour))
        look = Line(x="time", y="value", line_color=colour, line_width=1.5, line_dash=dash)
        lines.append(put(plot, source, look, name=name))
        items.append(LegendItem(label=literal(name), renderers=[lines[-1]]))
        good = np.flatnonzero(np.isfinite(curve.value))
        at = good[int((place + 0.5) / len(curves) * good.size)]
        ends.append((float(x[at]), float(curve.value[at]), str(place + 1)))
    numbers = ColumnDataSource({column: [row[n] for row in ends] for n, column in enumerate(("x", "y", "text"))})
    look_of: dict[str, Any] = {
        "text_font_style": "bold",
        "text_color": BLACK,
        "text_align": "center",
        "text_baseline": "bottom",
    }
    words(plot, numbers, "text", axis="default", on_ground=True, **look_of)
    tips = [
        ("since the begin", f"@time{{0,0.[00]}} {unit}"),
        ("value", f"@value{{0,0.[000]}} {tip_unit(there[0].unit)}".rstrip()),
        ("run", "$name"),
    ]
    plot.add_tools(HoverTool(renderers=lines, tooltips=tips, mode="mouse"))
    legend = Legend(
        items=items,
        orientation="horizontal",
        location="top_left",
        border_line_color=None,
        margin=4,
        spacing=4,
        label_standoff=4,
        label_text_font_size="11px",
        glyph_height=12,
        label_text_color=TEXT,
        ncols=1,
    )
    plot.add_layout(legend, "below")
    return plot


def _shade(plot: Any, run: Overlaid, step_s: float) -> None:
    """The phases of a run behind the lines."""
    if not run.phases:
        return
    edges = [
        [(edge - run.begin_ns) / 1e9 / step_s for edge in (one.window.begin_ns, one.window.end_ns)]
        for one in run.phases
    ]
    strips = ColumnDataSource(
        {
            "x0": [begin for begin, _ in edges],
            "x1": [end for _, end in edges],
            "colour": [PHASES.get(one.name, GREY) for one in run.phases],
            "alpha": [0.13 if one.name in PHASES else 0.0 for one in run.phases],
        }
    )
    look = VStrip(
        x0="x0", x1="x1", fill_color="colour", fill_alpha="alpha", line_color=GREY, line_alpha=0.35, line_dash="dotted"
    )
    put(plot, strips, look).level = "underlay"


def _name(run: Overlaid, curve: Curve) -> str:
    key = [run.name, curve.key.target, curve.key.metric, curve.key.object]
    return "compared:" + json.dumps(key, ensure_ascii=False, separators=(",", ":"))
