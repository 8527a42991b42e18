"""The plots of a report, drawn with Bokeh into one document whose text depends on nothing but its input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from bokeh.core.json_encoder import serialize_json
from bokeh.document import Document
from bokeh.models import (
    BasicTickFormatter,
    ColumnDataSource,
    CrosshairTool,
    HoverTool,
    LinearAxis,
    LinearScale,
    PlainText,
    Range1d,
)
from bokeh.models.annotations import BoxAnnotation, Legend, LegendItem
from bokeh.plotting import figure
from bokeh.resources import Resources

from soakwatch.report.curves import Curve
from soakwatch.report.show import printable
from soakwatch_rules.rule import Event, Mark, Phase, Window

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
)  # fmt: skip
LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
DASHES = ("solid", "dashed", "dotted")
_GREY = "#767676"
_PHASES = {
    "baseline": SKY, "ramp": YELLOW, "soak": "#ffffff", "stress": ORANGE, "spike": VERMILION, "recovery": GREEN,
    "cooldown": PURPLE,
}  # fmt: skip
_MOST_EVENTS = 200
_A_DAY = 20 * 3600.0  # from here on a time of day alone would be ambiguous
_LEVELS = frozenset({"By", "Hz", "Cel"})
_ID = re.compile(r'"id":"(p\d+)"')


def javascript() -> str:
    """BokehJS, whole, so that the report opens without a network."""
    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)


class Drawing:
    """All plots of one report: they share the time axis, the phases, the load and every line that is drawn twice."""

    def __init__(self, window: Window, phases: Sequence[Phase], events: Sequence[Event], load: Sequence[Curve]) -> None:
        self._x_range = Range1d(
            start=window.begin_ns // 10**6, end=max(window.end_ns // 10**6, window.begin_ns // 10**6 + 1)
        )
        self._window = window
        self._phases = tuple(phases)
        self._events = tuple(events)
        self._load = tuple(load)
        self._axes: dict[Window, Range1d] = {}
        self._sources: dict[object, ColumnDataSource] = {}
        self._plots: list[tuple[Any, str]] = []

    def draw(
        self,
        curves: Sequence[Curve],
        *,
        marks: Sequence[Mark] = (),
        judged: Window | None = None,
        limit: float | None = None,
        height: int = 260,
        names: Sequence[str] = (),
        load: bool = True,
        everywhere: bool = False,
        window: Window | None = None,
        marked: str = "found here",
    ) -> str:
        """Draw curves of one unit over the load; the id of the element that will hold the plot.

        ``limit`` is in the curves' unit; ``judged`` is the window that a finding looked at. ``names`` stand in the
        legend in place of the curves' own; with ``load`` False there is no load behind them, and with ``everywhere``
        the events of all targets are marked. ``window`` is a time axis of its own, shared by the plots of one stretch;
        ``marked`` is the word for ``marks``, which are numbered there. Curves that are all above zero and far apart get
        a logarithmic axis.
        """
        steep = limit is None and _is_steep(curves)
        plot: Any = figure(
            x_axis_type="datetime", x_range=self._axis(window), height=height, y_axis_type="log" if steep else "linear",
            y_range=_decades(curves) if steep else _reach(curves, limit),
            min_width=280, sizing_mode="stretch_width", tools="xpan,xbox_zoom,xzoom_in,xzoom_out,reset,save",
        )  # fmt: skip
        unit = curves[0].unit or curves[0].key.metric.rpartition(".")[2] if curves else ""
        _dress(plot, unit, days=(window or self._window).seconds > _A_DAY)
        if steep:
            plot.yaxis.formatter = BasicTickFormatter(use_scientific=False)
        items = self._draw_ground(plot, judged, window or self._window)
        items += self._draw_load(plot) if load else []
        targets = {curve.key.target for curve in curves}
        events = [e for e in self._events if everywhere or e.target in {"", *targets}]
        if window is not None:
            events = [e for e in events if window.begin_ns <= (e.end_ns or e.begin_ns) and e.begin_ns < window.end_ns]
        items += self._draw_events(plot, events)
        items += self._draw_marks(plot, marks, marked, numbered=window is not None)
        words = [_plain(name) for name in names] or _names(curves)
        front = [self._draw_curve(plot, place, curve, words) for place, curve in enumerate(curves)]
        if limit is not None:
            line = plot.hspan(y=[limit], line_color=BLACK, line_dash="dashdot", line_width=1.5)
            front.append(LegendItem(label=_value("limit"), renderers=[line]))
        legend = Legend(
            items=front + items, orientation="horizontal", location="top_left", border_line_color=None,
            margin=4, spacing=14 if len(curves) == 1 else 4, label_standoff=4, label_text_font_size="11px",
            glyph_height=12, ncols="auto" if len(curves) == 1 else 3,
        )  # fmt: skip
        plot.add_layout(legend, "below")
        plot.add_tools(CrosshairTool(dimensions="height", line_color=_GREY))
        element = f"plot-{len(self._plots) + 1}"
        self._plots.append((plot, element))
        return element

    @property
    def plots(self) -> int:
        """How many plots there are so far."""
        return len(self._plots)

    def payload(self) -> tuple[str, str]:
        """The document and where its plots go, as two JSON texts that are safe inside a script element.

        Bokeh numbers its models through the life of the process; here they are numbered by first appearance.
        """
        if not self._plots:
            return "{}", "[]"
        document = Document(title="")
        with document.models.freeze():  # one look at all models; one a plot would be quadratic
            for plot, _ in self._plots:
                document.add_root(plot)
        text = serialize_json(document.to_json(deferred=False))
        names: dict[str, str] = {}
        text = _ID.sub(lambda hit: f'"id":"{names.setdefault(hit[1], f"m{len(names) + 1}")}"', text)
        roots = {names[plot.id]: element for plot, element in self._plots}
        items = [{"docid": "report", "roots": roots, "root_ids": list(roots)}]
        return _safe(f'{{"report":{text}}}'), _safe(serialize_json(items))

    def _axis(self, window: Window | None) -> Range1d:
        """The time axis that all plots share, or that of a stretch."""
        if window is None:
            return self._x_range
        if window not in self._axes:
            self._axes[window] = Range1d(start=window.begin_ns // 10**6, end=window.end_ns // 10**6 + 1)
        return self._axes[window]

    def _draw_ground(self, plot: Any, judged: Window | None, window: Window) -> list[LegendItem]:
        for phase in _touching(self._phases, window):
            colour = _PHASES.get(phase.name, "#ffffff")
            plot.add_layout(
                BoxAnnotation(
                    left=phase.window.begin_ns // 10**6, right=phase.window.end_ns // 10**6, fill_color=colour,
                    fill_alpha=0.13, line_color=_GREY, line_alpha=0.35, line_dash="dotted", level="underlay",
                )
            )  # fmt: skip
        plot.extra_y_ranges = {"band": Range1d(start=0, end=1)}
        plot.extra_y_scales = {"band": LinearScale(), "load": LinearScale()}
        if self._phases:
            plot.text(
                x="x", y="y", text="text", source=self._phase_names(window), y_range_name="band", text_baseline="top",
                text_font_size="11px", text_color="#333333", x_offset=3, y_offset=2, level="overlay",
            )  # fmt: skip
        if judged is None or self._is_whole(judged):
            return []
        line = plot.segment(
            x0=[judged.begin_ns // 10**6], x1=[judged.end_ns // 10**6], y0=[0.006], y1=[0.006], y_range_name="band",
            line_color=BLACK, line_width=4, line_alpha=0.75,
        )  # fmt: skip
        return [LegendItem(label=_value("judged window"), renderers=[line])]

    def _is_whole(self, judged: Window) -> bool:
        """Whether a window is the run but for a hundredth at either end."""
        slack = (self._window.end_ns - self._window.begin_ns) // 100
        return judged.begin_ns <= self._window.begin_ns + slack and judged.end_ns >= self._window.end_ns - slack

    def _phase_names(self, window: Window) -> ColumnDataSource:
        """Names of the phases, moved down a row where the name before would cover it."""
        if ("phases", window) not in self._sources:
            phases = _touching(self._phases, window)
            span = max(window.seconds, 1e-9)
            rows: list[float] = []  # where each row's last name ends, as a share of the plot's width
            heights = []
            for phase in phases:
                begin = max(phase.window.begin_ns - window.begin_ns, 0) * 1e-9 / span
                width = (len(phase.name) + 2) * 0.009
                row = next((i for i, end in enumerate(rows) if end <= begin), len(rows))
                rows[row : row + 1] = [begin + width]
                heights.append(1 - 0.085 * row)
            self._sources["phases", window] = ColumnDataSource({
                "x": [max(phase.window.begin_ns, window.begin_ns) // 10**6 for phase in phases],
                "y": heights,
                "text": [_plain(phase.name) for phase in phases],
            })  # fmt: skip
        return self._sources["phases", window]

    def _draw_load(self, plot: Any) -> list[LegendItem]:
        if not self._load:
            return []
        peak = max((curve.high or 0.0 for curve in self._load), default=0.0)
        plot.extra_y_ranges["load"] = Range1d(start=0, end=peak * 1.25 or 1.0)
        axis = LinearAxis(y_range_name="load", axis_label=PlainText(text=f"load, {_plain(self._load[0].unit)}"))
        _dress_axis(axis)
        axis.axis_label_text_color = axis.major_label_text_color = axis.axis_line_color = _GREY
        plot.add_layout(axis, "right")
        items = []
        for place, curve in enumerate(self._load):
            source = self._source(curve)
            if not bool(np.isnan(curve.value).any()) and place == 0:
                plot.varea(
                    x="time", y1=0, y2="value", source=source, y_range_name="load", fill_color=_GREY, fill_alpha=0.14
                )
            line = plot.line(
                "time", "value", source=source, y_range_name="load", line_color=_GREY, line_width=1, line_alpha=0.75,
                line_dash=DASHES[place % len(DASHES)],
            )  # fmt: skip
            name = f"load: {_name(curve)}" if len(self._load) > 1 else "load (right axis)"
            items.append(LegendItem(label=_value(name), renderers=[line]))
        return items

    def _draw_events(self, plot: Any, events: Sequence[Event]) -> list[LegendItem]:
        told = sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object))[:_MOST_EVENTS]
        rows = [(e.begin_ns, e.end_ns, f"{e.kind} {e.object}".strip()) for e in told]
        return self._draw_moments(plot, rows, "event", PURPLE, 0.22, "dashed")

    def _draw_marks(self, plot: Any, marks: Sequence[Mark], word: str, *, numbered: bool) -> list[LegendItem]:
        rows = [(mark.begin_ns, mark.end_ns, mark.text) for mark in marks[:_MOST_EVENTS]]
        if numbered and rows:
            source = {"x": [x // 10**6 for x, _, _ in rows], "text": [str(n) for n, _ in enumerate(rows, 1)],
                      "y": [0.89 - 0.09 * (n % 3) for n in range(len(rows))]}  # fmt: skip
            plot.text(
                x="x", y="y", text="text", source=ColumnDataSource(source), y_range_name="band", text_baseline="top",
                text_font_size="11px", text_font_style="bold", x_offset=3, level="overlay",
            )  # fmt: skip
        return self._draw_moments(plot, rows, word, BLACK if numbered else VERMILION, 0.3, "solid")

    def _draw_moments(
        self, plot: Any, rows: Iterable[tuple[int, int | None, str]], name: str, colour: str, alpha: float, dash: str
    ) -> list[LegendItem]:
        points = [(begin // 10**6, text) for begin, _, text in rows]
        spans = [(begin // 10**6, end // 10**6, text) for begin, end, text in rows if end is not None and end > begin]
        if not points:
            return []
        source = ColumnDataSource({"x": [x for x, _ in points], "text": [_plain(text) for _, text in points]})
        line = plot.vspan(x="x", source=source, line_color=colour, line_dash=dash, line_width=1.5, line_alpha=0.85)
        drawn = [line]
        if spans:
            long = (self._window.end_ns - self._window.begin_ns) / 10**6 / 20
            strip = ColumnDataSource({
                "x0": [x for x, _, _ in spans], "x1": [x for _, x, _ in spans],
                "text": [_plain(t) for _, _, t in spans],
                "alpha": [0.07 if end - begin > long else alpha for begin, end, _ in spans],  # hides no phase
            })  # fmt: skip
            drawn.append(
                plot.vstrip(x0="x0", x1="x1", source=strip, fill_color=colour, fill_alpha="alpha", line_color=None)
            )
        plot.add_tools(HoverTool(renderers=drawn, tooltips=[(name, "@text")], line_policy="nearest"))
        return [LegendItem(label=_value(name), renderers=[line])]

    def _draw_curve(self, plot: Any, place: int, curve: Curve, names: Sequence[str]) -> LegendItem:
        curves = len(names)
        source = self._source(curve)
        colour, dash = LINES[place % len(LINES)], DASHES[place // len(LINES) % len(DASHES)]
        if curve.steps:
            line = plot.step("time", "value", source=source, mode="after", line_color=colour, line_width=1.6)
        else:
            line = plot.line("time", "value", source=source, line_color=colour, line_width=1.4, line_dash=dash)
        if curve.time_ms.size < 60:  # single readings between holes would be invisible as a line
            plot.scatter("time", "value", source=source, size=4, color=colour)
        tips = [("time (UTC)", "@time{%F %T}"), ("value", f"@value{{0,0.[000]}} {_unit(curve.unit)}".rstrip())]
        if curves > 1:
            tips.append(("line", re.sub(r"[@${}]", "", names[place])))
        plot.add_tools(
            HoverTool(
                renderers=[line], tooltips=tips, formatters={"@time": "datetime"},
                mode="mouse" if curves > 1 else "vline", visible=place == 0 or curves <= 3,
            )
        )  # fmt: skip
        return LegendItem(label=_value(names[place]), renderers=[line])

    def _source(self, curve: Curve) -> ColumnDataSource:
        key = (curve.key, curve.value.size, curve.unit, float(curve.time_ms[0]) if curve.time_ms.size else 0.0)
        if key not in self._sources:
            self._sources[key] = ColumnDataSource({"time": curve.time_ms, "value": curve.value})
        return self._sources[key]


def _touching(phases: Sequence[Phase], window: Window) -> list[Phase]:
    return [p for p in phases if p.window.begin_ns < window.end_ns and window.begin_ns < p.window.end_ns]


def _reach(curves: Sequence[Curve], limit: float | None) -> Range1d:
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


def _is_steep(curves: Sequence[Curve]) -> bool:
    """Whether several lines of measured times would lie on one another at the bottom of a linear axis."""
    lows = [float(np.nanmedian(c.value)) for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    positive = all(c.low is not None and c.low > 0 for c in curves)
    return len(curves) > 1 and positive and curves[0].source_unit == "s" and max(highs) > 8 * min(lows)


def _decades(curves: Sequence[Curve]) -> Range1d:
    lows = [c.low for c in curves if c.low is not None]
    highs = [c.high for c in curves if c.high is not None]
    low, high = min(lows), max(highs)
    return Range1d(start=low / 1.3, end=high * (high / low) ** 0.2 * 1.2)


def _dress(plot: Any, unit: str, *, days: bool) -> None:
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.yaxis.axis_label = PlainText(text=_plain(unit))
    plot.background_fill_color = plot.border_fill_color = "#ffffff"
    plot.outline_line_color = "#cccccc"
    plot.xgrid.grid_line_color = plot.ygrid.grid_line_color = "#e6e6e6"
    plot.xaxis.ticker.desired_num_ticks = 8 if plot.height > 250 else 5
    for axis in (*plot.xaxis, *plot.yaxis):
        _dress_axis(axis)
    formatter = plot.xaxis[0].formatter
    formatter.seconds = formatter.minsec = "%H:%M:%S"
    formatter.minutes = formatter.hourmin = formatter.hours = "%d %b %H:%M" if days else "%H:%M"
    formatter.days, formatter.months, formatter.years = "%d %b", "%b %Y", "%Y"
    formatter.strip_leading_zeros = False
    formatter.context = None


def _dress_axis(axis: Any) -> None:
    axis.major_label_text_font_size = axis.axis_label_text_font_size = "11px"
    axis.axis_label_text_font_style = "normal"
    axis.axis_line_color = axis.major_tick_line_color = "#999999"
    axis.minor_tick_line_color = None


def _plain(text: str) -> str:
    """Text that BokehJS takes neither for TeX nor for anything else: delimiters of formulas are taken apart."""
    line = printable(text)
    return line.replace("$$", "$\u200b$").replace("\\(", "\\\u200b(").replace("\\[", "\\\u200b[")


def _names(curves: Sequence[Curve]) -> list[str]:
    """The words of a legend: the metric of one line, numbered objects of several."""
    if len(curves) == 1:
        return [_plain(curves[0].key.metric)]
    return [f"{place} {_name(curve, metric=False)}" for place, curve in enumerate(curves, 1)]


def _name(curve: Curve, *, metric: bool = True) -> str:
    parts = (curve.key.target, curve.key.metric if metric else "", curve.key.object)
    text = " ".join(part for part in parts if part)
    text = text if len(text) <= 90 else text[:89] + "…"
    return _plain(text)


def _unit(unit: str) -> str:
    """A unit inside a tooltip's template, where @, $ and braces would be read as fields."""
    return re.sub(r"[^\w %°µ/.-]", "", unit)


def _value(text: str) -> Any:
    return {"value": text}


def _safe(text: str) -> str:
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
