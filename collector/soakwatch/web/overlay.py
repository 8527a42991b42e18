"""The same series of several runs in one plot, phase by phase over one another, or from the start of each run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from bokeh.models import (
    BasicTicker,
    ColumnDataSource,
    HoverTool,
    Line,
    LinearAxis,
    LinearScale,
    PlainText,
    PrintfTickFormatter,
    Range1d,
    Scatter,
    VStrip,
)
from bokeh.models.annotations import Legend, LegendItem
from numpy.typing import NDArray

from soakwatch.core.formatting import scale_of
from soakwatch.core.plotted import as_plotted
from soakwatch.record import RecordView, SeriesKey
from soakwatch.report.bokeh_embed import Pieces, apart
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import generators
from soakwatch.report.palette import BLACK, DASHES, GREY, LINES, PHASES, TEXT
from soakwatch.report.plot_background import literal, name_phases, phase_names
from soakwatch.report.plot_style import (
    NARROW_BORDER,
    WIDE_BORDER,
    blank,
    dress_axis,
    plain,
    put,
    reach,
    shortened,
    tip_unit,
    words,
)
from soakwatch.runs.compare.phases import Slot
from soakwatch.runs.compare.targets import TargetMap
from soakwatch_model.series import Series
from soakwatch_model.window import Window

Floats = NDArray[np.floating[Any]]
MAX_PLOTS = 16
"""Maximum number of plots on one page."""
POINTS, HEIGHT, _MIN_POINTS_FOR_LINE = 1200, 260, 15
_GAP = 0.02
"""From this share of the width on a hole in a line is one."""
_STEPS = ((3 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A run to draw: its name in legends, its record, its window, and its targets beside those of the reference."""

    name: str
    view: RecordView
    window: Window
    targets: TargetMap


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the plot of one series goes, and which runs have no sample of it."""

    element: str
    key: SeriesKey
    missing: tuple[str, ...]


def overlays(
    runs: Sequence[Overlaid], keys: Sequence[SeriesKey], slots: Sequence[Slot]
) -> tuple[Pieces, tuple[Overlay, ...]]:
    """Plots of series (by the names of the reference's targets) that at least two of the runs have samples of, in the
    order of the keys; at most ``MAX_PLOTS``.

    The phases of ``slots`` stand one behind the other, and each run's readings in a phase begin where it begins; in
    hours, minutes or seconds depending on the length. What a run has of a phase beyond the others is not drawn.
    """
    span_s = sum(slot.seconds for slot in slots)
    _, step_s, unit = next(row for row in _STEPS if span_s >= row[0])
    x_range = Range1d(start=0, end=max(span_s, 1.0) / step_s, name="time")
    drawn = _Axis(slots, step_s, unit, span_s)
    load = _loads(runs)
    right = NARROW_BORDER if load.count(None) == len(load) else WIDE_BORDER  # the same for all: times stand in line
    plots: list[tuple[Any, str]] = []
    shown_plots: list[Overlay] = []
    for key in keys:
        if len(plots) == MAX_PLOTS:
            break
        series = [run.view.series(replace(key, target=run.targets.own(key.target))) for run in runs]
        curves = _curves(series)
        if sum(curve is not None for curve in curves) < 2:
            continue
        element = f"plot-{len(plots) + 1}"
        own = [] if key.metric.startswith("load.") else load
        plot = _plot(runs, curves, own, x_range, drawn)
        plot.min_border_right = right
        plots.append((plot, element))
        absent = tuple(run.name for run, curve in zip(runs, curves, strict=True) if curve is None)
        shown_plots.append(Overlay(element, key, absent))
    return apart(plots), tuple(shown_plots)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The time of the plots: phases behind one another, in units of ``step_s`` seconds."""

    slots: Sequence[Slot]
    step_s: float
    unit: str
    span_s: float

    def laid(self, number: int, curve: Curve) -> tuple[Floats, Floats]:
        """Places and values of a run's curve; NaN breaks the line where its next phase does not follow."""
        begin_s, times, values = 0.0, list[Floats](), list[Floats]()
        for slot in self.slots:
            window = slot.windows[number]
            if window is not None:
                since_s = curve.time_ms / 1e3 - window.begin_ns / 1e9
                longest_s = min(slot.seconds, window.seconds)
                inside = (since_s >= 0) & ((since_s < longest_s) | (slot is self.slots[-1]) & (since_s <= longest_s))
                times += [(begin_s + since_s[inside]) / self.step_s, np.array([np.nan])]
                values += [curve.value[inside], np.array([np.nan])]
            begin_s += slot.seconds
        if not times:
            return np.empty(0), np.empty(0)
        return _without_needless_breaks(np.concatenate(times), np.concatenate(values), self.span_s / self.step_s)


def _without_needless_breaks(x: Floats, y: Floats, span: float) -> tuple[Floats, Floats]:
    """A break is kept only where the line would otherwise run over a phase that the run does not have."""
    keep = np.ones(x.size, dtype=bool)
    for place in np.flatnonzero(np.isnan(x)):
        before, after = x[place - 1] if place else np.nan, x[place + 1] if place + 1 < x.size else np.nan
        keep[place] = np.isfinite(after) and np.isfinite(before) and after - before > _GAP * span
    x, y = x[keep], y[keep]
    x = np.where(np.isnan(x), np.roll(x, 1), x)  # a place of its own, where nothing is drawn
    return x, y


def _curves(series: Sequence[Series]) -> list[Curve | None]:
    """All in one scale; None for a run without samples, and for all runs if the series is always zero."""
    drawn = [as_plotted(unscaled)[0].finite() for unscaled in series]
    peaks = [float(np.abs(unscaled.values).max()) if len(unscaled) else 0.0 for unscaled in drawn]
    if not max(peaks, default=0.0) > 0:
        return [None] * len(series)
    scale = scale_of(drawn[peaks.index(max(peaks))].trait.unit, max(peaks))
    return [
        curve_of(unscaled, POINTS, scale) if len(good) else None for unscaled, good in zip(series, drawn, strict=True)
    ]


def _loads(runs: Sequence[Overlaid]) -> list[Curve | None]:
    """The load of each run, that of its first generator, in the unit and scale of the first run that has one."""
    rates = [next((part.rate.series for part in generators(run.view) if part.rate is not None), None) for run in runs]
    some = [rate for rate in rates if rate is not None and len(rate.finite())]
    if not some:
        return [None] * len(runs)
    unit = some[0].trait.unit
    scale = scale_of(unit, max(float(rate.finite().values.max()) for rate in some if rate.trait.unit == unit))
    return [
        curve_of(rate, POINTS, scale) if rate is not None and len(rate.finite()) and rate.trait.unit == unit else None
        for rate in rates
    ]


def _draw_load(plot: Any, load: Sequence[Curve | None], axis: _Axis) -> list[LegendItem]:
    """The load of each run in grey with the dashes of the run, on an axis of its own on the right."""
    there = [(number, curve) for number, curve in enumerate(load) if curve is not None]
    if not there:
        return []
    plot.extra_y_ranges["load"] = Range1d(start=0, end=1.25 * max(curve.high or 0.0 for _, curve in there) or 1.0)
    plot.extra_y_scales["load"] = LinearScale()
    scale = LinearAxis(y_range_name="load", axis_label=PlainText(text=f"load, {plain(there[0][1].unit)}"))
    dress_axis(scale)
    scale.axis_label_text_color = scale.major_label_text_color = scale.axis_line_color = GREY
    plot.add_layout(scale, "right")
    lines = []
    for number, curve in there:
        x, y = axis.laid(number, curve)
        style = Line(
            x="time", y="value", line_color=GREY, line_alpha=0.75, line_dash=DASHES[number % len(DASHES)], line_width=1
        )
        lines.append(put(plot, ColumnDataSource({"time": x, "value": y}, name="load"), style, axis="load"))
    return [LegendItem(label=literal("load (right axis)"), renderers=lines)]


def _plot(
    runs: Sequence[Overlaid],
    curves: Sequence[Curve | None],
    load: Sequence[Curve | None],
    x_range: Range1d,
    axis: _Axis,
) -> Any:
    there = [curve for curve in curves if curve is not None]
    plot = blank(x_range, reach(there, None), HEIGHT, there[0].unit, axis.span_s, log=False, small=False)
    plot.xaxis[0].formatter = PrintfTickFormatter(format=f"%g {axis.unit}")
    plot.xaxis[0].ticker = BasicTicker(desired_num_ticks=8)
    _shade(plot, axis)
    behind = _draw_load(plot, load, axis)
    items, lines, ends = list[LegendItem](), [], []
    for index, (run, curve) in enumerate(zip(runs, curves, strict=True)):
        if curve is None:
            continue
        name = plain(f"{index + 1} {shortened(run.name, 60)}")
        x, y = axis.laid(index, curve)
        if not np.isfinite(y).any():
            continue
        source = ColumnDataSource({"time": x, "value": y}, name=_name(run, curve))
        colour, dash = LINES[index % len(LINES)], DASHES[index % len(DASHES)]
        if x.size < _MIN_POINTS_FOR_LINE:
            put(plot, source, Scatter(x="time", y="value", size=4, fill_color=colour, line_color=colour))
        style = Line(x="time", y="value", line_color=colour, line_width=1.5, line_dash=dash)
        lines.append(put(plot, source, style, name=name))
        items.append(LegendItem(label=literal(name), renderers=[lines[-1]]))
        good = np.flatnonzero(np.isfinite(y))
        middle = good[int((index + 0.5) / len(curves) * good.size)]
        ends.append((float(x[middle]), float(y[middle]), str(index + 1)))
    numbers = ColumnDataSource({column: [row[n] for row in ends] for n, column in enumerate(("x", "y", "text"))})
    text_style: dict[str, Any] = {
        "text_font_style": "bold",
        "text_color": BLACK,
        "text_align": "center",
        "text_baseline": "bottom",
    }
    words(plot, numbers, "text", axis="default", on_ground=True, **text_style)
    tips = [
        ("time", f"@time{{0,0.[00]}} {axis.unit}"),
        ("value", f"@value{{0,0.[000]}} {tip_unit(there[0].unit)}".rstrip()),
        ("run", "$name"),
    ]
    plot.add_tools(HoverTool(renderers=lines, tooltips=tips, mode="mouse"))
    legend = Legend(
        items=[*items, *behind],
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


def _shade(plot: Any, axis: _Axis) -> None:
    """The phases behind the lines, with their names."""
    edges = np.concatenate([[0.0], np.cumsum([slot.seconds for slot in axis.slots])]) / axis.step_s
    named = [(slot, edges[n], edges[n + 1]) for n, slot in enumerate(axis.slots) if slot.name]
    if not named:
        return
    strips = ColumnDataSource(
        {
            "x0": [begin for _, begin, _ in named],
            "x1": [end for _, _, end in named],
            "colour": [PHASES.get(slot.name, GREY) for slot, _, _ in named],
            "alpha": [0.13 if slot.name in PHASES else 0.0 for slot, _, _ in named],
        }
    )
    style = VStrip(
        x0="x0", x1="x1", fill_color="colour", fill_alpha="alpha", line_color=GREY, line_alpha=0.35, line_dash="dotted"
    )
    put(plot, strips, style).level = "underlay"
    plot.extra_y_ranges["band"] = Range1d(start=0, end=1)
    plot.extra_y_scales["band"] = LinearScale()
    begins, ends = [float(begin) for _, begin, _ in named], [float(end) for _, _, end in named]
    name_phases(plot, phase_names(begins, ends, [slot.name for slot, _, _ in named], [1.0] * len(named)))


def _name(run: Overlaid, curve: Curve) -> str:
    key = [run.name, curve.key.target, curve.key.metric, curve.key.object]
    return "compared:" + json.dumps(key, ensure_ascii=False, separators=(",", ":"))
