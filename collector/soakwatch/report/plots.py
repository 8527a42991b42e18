"""The plots of a report, drawn with Bokeh into documents whose text depends on nothing but its input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    CrosshairTool,
    DataRange1d,
    HoverTool,
    HSpan,
    Line,
    Range1d,
    Scatter,
    Step,
)
from bokeh.models.annotations import Legend, LegendItem, Span
from bokeh.resources import Resources

from soakwatch.report.bokeh_embed import Pieces, apart, whole
from soakwatch.report.curves import Curve
from soakwatch.report.flags import Flag, draw_flags
from soakwatch.report.heat_cells import Heat
from soakwatch.report.heatmap import blank_heat, draw_heat
from soakwatch.report.palette import BLACK, DASHES, GREY, LINES, NAME, TEXT
from soakwatch.report.plot_background import (
    draw_events,
    draw_judged,
    draw_load,
    draw_marks,
    draw_phases,
    literal,
    phase_rows,
    phase_strips,
    touching,
)
from soakwatch.report.plot_style import (
    NARROW_BORDER,
    blank,
    covers,
    decade_ticks,
    decades,
    is_steep,
    names_of,
    numbered,
    plain,
    put,
    reach,
    source_name,
    tip_unit,
    words,
)
from soakwatch_model.event import Event
from soakwatch_model.finding import Mark
from soakwatch_model.window import Phase, Window

_WIDE = 4.5  # pixels
_FEW_POINTS = 60  # single readings between holes would be invisible as a line


def javascript() -> str:
    """BokehJS without its widgets, tables and WebGL, so that the report opens without a network."""
    return "\n".join(Resources(mode="inline", components=["bokeh"], minified=True).js_raw)


@dataclass(frozen=True, slots=True)
class Trend:
    """A straight line between two points (ms, and the unit of the curves), and its words in the legend."""

    begin_ms: float
    end_ms: float
    begin: float
    end: float
    words: str


class Drawing:
    """All plots of one report: they share the time axis, the phases, the load and every line that is drawn twice.

    Each source of a series is named ``series:[target,metric,object]`` (JSON) and tagged with the factor and unit of its
    values and whether they are a counter's rate, so that a page can refill it; the shared time axis is named ``time``.
    ``prefix`` begins the names of the elements; where the plots of a run are ``growing``, the axes of values follow.
    """

    def __init__(
        self,
        window: Window,
        phases: Sequence[Phase],
        events: Sequence[Event],
        load: Sequence[Curve],
        *,
        prefix: str = "plot",
        growing: bool = False,
    ) -> None:
        begin, end = window.begin_ns // 10**6, window.end_ns // 10**6
        self._x_range = Range1d(start=begin, end=max(end, begin + 1), name="time")
        self._window = window
        self._phases = tuple(phases)
        self._events = tuple(events)
        self._load = tuple(load)
        self._prefix = prefix
        self._growing = growing
        self._axes: dict[Window, Range1d] = {}
        self._sources: dict[object, ColumnDataSource] = {}
        self._pointer = Span(
            dimension="height", line_color=GREY, line_width=1, level="overlay", name="pointer", location=float("nan")
        )
        self._plots: list[tuple[Any, str]] = []

    def draw(
        self,
        curves: Sequence[Curve],
        *,
        marks: Sequence[Mark] = (),
        flags: Sequence[Flag] = (),
        judged: Window | None = None,
        limit: float | None = None,
        height: int = 260,
        names: Sequence[str] = (),
        load: bool = True,
        everywhere: bool = False,
        window: Window | None = None,
        marked: str = "finding",
        small: bool = False,
        scale_with: Sequence[Curve] = (),
        trends: Sequence[Trend] = (),
    ) -> str:
        """Draw curves of one unit over the load; the id of the element that will hold the plot.

        ``limit`` is in the curves' unit; ``judged`` is the window that a finding looked at. ``names`` stand in the
        legend in place of the curves' own; with ``load`` False there is no load behind them, and with ``everywhere``
        the events of all targets are marked. ``window`` is a time axis of its own, shared by the plots of one stretch;
        ``marked`` is the word for ``marks``, which are numbered there. Curves that are all above zero and far apart get
        a logarithmic axis. A ``small`` plot has neither legend nor tools; its scale is that of all curves in
        ``scale_with``. ``trends`` are dashed lines with their own words in the legend.
        """
        steep = limit is None and not small and is_steep(curves)
        now = decades(curves) if steep else reach(scale_with or curves, limit)
        y_range = DataRange1d(range_padding=0.02) if self._growing else now
        unit = curves[0].unit or curves[0].key.metric.rpartition(".")[2] if curves else ""
        shown = window or self._window
        axis = self._x_range if window is None else self._axis(window)
        plot = blank(axis, y_range, height, unit, shown.seconds, log=steep, small=small)
        if steep:
            plot.yaxis.ticker = decade_ticks(curves)
        items = self._ground(plot, judged, shown, named=not small)
        items += self._loaded(plot, axis=not small, fixed=steep) if load else []
        targets = {curve.key.target for curve in curves}
        events = self._happened(targets, everywhere=everywhere, window=window)
        items += draw_events(plot, events, self._window)
        items += draw_marks(plot, marks, marked, self._window, numbered=window is not None)
        items += draw_flags(plot, flags, self._window)
        words = numbered([plain(name) for name in names]) or names_of(curves)
        front = self._lines(plot, curves, words)
        if isinstance(y_range, DataRange1d):
            lines = [renderer for item in front for renderer in item.renderers]
            y_range.renderers = [*lines, _at_least(plot, shown, now)]
        if limit is not None:
            stroke = HSpan(y="y", line_color=BLACK, line_dash="dashdot", line_width=1.5)
            line = put(plot, ColumnDataSource({"y": [limit]}), stroke)
            front.append(LegendItem(label=literal("limit"), renderers=[line]))
        for trend in trends:
            ends = {"x": [trend.begin_ms, trend.end_ms], "y": [trend.begin, trend.end]}
            straight = Line(x="x", y="y", line_color=BLACK, line_width=1.5, line_dash="dashed")
            drawn = put(plot, ColumnDataSource(ends), straight)
            front.append(LegendItem(label=literal(plain(trend.words)), renderers=[drawn]))
        if not small:
            _explain(plot, front + items, ncols="auto" if len(curves) == 1 else _columns(words))
            if not self._load:
                plot.min_border_right = NARROW_BORDER  # no second axis anywhere
        return self._placed(plot)

    def draw_heat(self, heat: Heat, *, flags: Sequence[Flag] = (), load: bool = True) -> str:
        """Draw many series as rows of colours over the same time axis; the id of the element that will hold it."""
        plot = blank_heat(heat, self._x_range, self._window.seconds)
        items = self._ground(plot, None, self._window, named=False)
        draw_heat(plot, heat)
        if load:
            items += self._loaded(plot, axis=True, over=True)
        items += draw_events(plot, self._happened({heat.target}), self._window)
        items += draw_flags(plot, flags, self._window)
        _explain(plot, items, ncols="auto")
        if not self._load:
            plot.min_border_right = NARROW_BORDER
        return self._placed(plot)

    @property
    def plots(self) -> int:
        """How many plots there are so far."""
        return len(self._plots)

    @property
    def heights(self) -> Mapping[str, int]:
        """How high the plot in each element is, in pixels."""
        return {element: plot.height for plot, element in self._plots}

    def payload(self) -> tuple[str, str]:
        """The document of all plots and where they go, as two JSON texts that are safe inside a script element."""
        return whole(self._plots)

    def pieces(self) -> Pieces:
        """The same plots as documents of their own, for a page that draws what is looked at; see ``plots.js``."""
        return apart(self._plots)

    def _placed(self, plot: Any) -> str:
        plot.add_tools(CrosshairTool(overlay=self._pointer))
        element = f"{self._prefix}-{len(self._plots) + 1}"
        self._plots.append((plot, element))
        return element

    def _axis(self, window: Window) -> Range1d:
        """The time axis of a stretch."""
        if window not in self._axes:
            begin, end = window.begin_ns // 10**6, window.end_ns // 10**6 + 1
            self._axes[window] = Range1d(start=begin, end=end, name=f"time:{begin}-{end}")
        return self._axes[window]

    def _ground(self, plot: Any, judged: Window | None, window: Window, *, named: bool) -> list[LegendItem]:
        phases = touching(self._phases, window)
        if ("phases", window) not in self._sources:
            self._sources["phases", window] = phase_rows(phases, window)
            self._sources["strips", window] = phase_strips(phases)
        strips, names = (self._sources[what, window] if phases else None for what in ("strips", "phases"))
        draw_phases(plot, strips, names if named else None)
        return [] if judged is None or self._is_whole(judged) else draw_judged(plot, judged)

    def _is_whole(self, judged: Window) -> bool:
        """Whether a window is the run but for a hundredth at either end."""
        slack = (self._window.end_ns - self._window.begin_ns) // 100
        return judged.begin_ns <= self._window.begin_ns + slack and judged.end_ns >= self._window.end_ns - slack

    def _loaded(self, plot: Any, *, axis: bool, over: bool = False, fixed: bool = False) -> list[LegendItem]:
        peak = max((curve.high or 0.0 for curve in self._load), default=0.0)
        height: Range1d | DataRange1d = Range1d(start=0, end=peak * 1.25 or 1.0)
        if self._growing and not fixed:  # beside a logarithmic axis it would be taken for one
            height = DataRange1d(start=0, range_padding=0.25)
        items = draw_load(plot, self._load, [self._source(each) for each in self._load], height, axis=axis, over=over)
        if isinstance(height, DataRange1d):  # without names of its own it would reach to the device's lines as well
            height.renderers = [line for item in items for line in item.renderers]
        return items

    def _happened(self, targets: set[str], *, everywhere: bool = False, window: Window | None = None) -> list[Event]:
        events = [e for e in self._events if everywhere or e.target in {"", *targets}]
        if window is None:
            return events
        return [e for e in events if window.begin_ns <= (e.end_ns or e.begin_ns) and e.begin_ns < window.end_ns]

    def _lines(self, plot: Any, curves: Sequence[Curve], names: Sequence[str]) -> list[LegendItem]:
        """The lines, each with its number at a place of its own, and one tooltip for all."""
        drawn = [
            self._line(plot, index, curve, name, wide=any(covers(later, curve) for later in curves[index + 1 :]))
            for index, (curve, name) in enumerate(zip(curves, names, strict=True))
        ]
        if not curves:
            return []
        if len(curves) > 1:
            _number(plot, curves)
        tips = [("time (UTC)", "@time{%F %T}"), ("value", f"@value{{0,0.[000]}} {tip_unit(curves[0].unit)}".rstrip())]
        if len(curves) > 1:
            tips.append(("line", "$name"))
        plot.add_tools(
            HoverTool(
                renderers=drawn,
                tooltips=tips,
                formatters={"@time": "datetime"},
                mode="mouse" if len(curves) > 1 else "vline",
            )
        )
        return [LegendItem(label=literal(name), renderers=[line]) for name, line in zip(names, drawn, strict=True)]

    def _line(self, plot: Any, index: int, curve: Curve, name: str, *, wide: bool) -> Any:
        """One line; a ``wide`` one is seen on both sides of what is drawn over it."""
        width, alpha = (_WIDE, 0.45) if wide else (1.6 if curve.steps else 1.4, 1.0)
        source = self._source(curve)
        colour, dash = LINES[index % len(LINES)], DASHES[index // len(LINES) % len(DASHES)]
        if curve.time_ms.size < _FEW_POINTS:
            put(plot, source, Scatter(x="time", y="value", size=4, fill_color=colour, line_color=colour))
        style: dict[str, Any] = {"line_color": colour, "line_width": width, "line_alpha": alpha}
        line = (
            Step(x="time", y="value", mode="after", **style)
            if curve.steps
            else Line(x="time", y="value", line_dash=dash, **style)
        )
        return put(plot, source, line, name=name)

    def _source(self, curve: Curve) -> ColumnDataSource:
        first = float(curve.time_ms[0]) if curve.time_ms.size else 0.0
        key = (curve.key, curve.value.size, curve.scale, curve.rate, first)
        if key not in self._sources:
            self._sources[key] = ColumnDataSource(
                {"time": curve.time_ms, "value": curve.value},
                name=source_name(curve.key),
                tags=[{"factor": curve.scale.factor, "unit": curve.unit, "rate": curve.rate}],
            )
        return self._sources[key]


def _number(plot: Any, curves: Sequence[Curve]) -> None:
    """Each line's number on it, further right for the next line: they are told apart without their colours."""
    rows: list[tuple[float, float, str]] = []
    for number, curve in enumerate(curves):
        good = np.flatnonzero(np.isfinite(curve.value))
        if good.size:
            index = good[min(int((number + 0.5) / len(curves) * good.size), good.size - 1)]
            rows.append((float(curve.time_ms[index]), float(curve.value[index]), str(number + 1)))
    source = ColumnDataSource({name: [row[index] for row in rows] for index, name in enumerate(("x", "y", "text"))})
    style = {"text_font_style": "italic", "text_color": NAME, "text_align": "center", "text_baseline": "bottom"}
    words(plot, source, "text", axis="default", on_ground=True, **style)


def _at_least(plot: Any, window: Window, reach_now: Range1d) -> Any:
    """Something that is not seen, from end to end of what the axis shall reach before there is more."""
    time_ms = window.begin_ns // 10**6
    ends = ColumnDataSource({"x": [time_ms, time_ms], "y": [reach_now.start, reach_now.end]})
    return put(plot, ends, Scatter(x="x", y="y", size=1, fill_alpha=0.0, line_alpha=0.0))


def _columns(names: Sequence[str]) -> int:
    longest = max(len(name) for name in names)
    return 5 if longest <= 24 else 3 if longest <= 48 else 2


def _explain(plot: Any, items: Sequence[LegendItem], ncols: int | Literal["auto"]) -> None:
    if not items:
        return
    legend = Legend(
        items=list(items),
        orientation="horizontal",
        location="top_left",
        border_line_color=None,
        margin=4,
        spacing=14 if ncols == "auto" else 4,
        label_standoff=4,
        label_text_font_size="11px",
        glyph_height=12,
        label_text_color=TEXT,
        ncols=ncols,
        click_policy="hide",
    )
    plot.add_layout(legend, "below")
