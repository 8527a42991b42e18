"""What lies behind and over the lines of every plot: phases, load, events, moments and the judged window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    DataRange1d,
    HoverTool,
    Line,
    LinearAxis,
    LinearScale,
    PlainText,
    Range1d,
    Segment,
    VArea,
    VSpan,
    VStrip,
)
from bokeh.models.annotations import LegendItem

from soakwatch.report.curves import Curve
from soakwatch.report.palette import BLACK, DASHES, GREY, HALO, NAME, PHASES, PURPLE, VERMILION
from soakwatch.report.plot_style import dress_axis, name_of, plain, put, shortened, words
from soakwatch_model.event import Event
from soakwatch_model.finding import Mark
from soakwatch_model.window import Phase, Window

_MAX_EVENTS = 200
_MAX_NAMES, _NAMES_APART, _LONGEST_NAME = 12, 25, 22
Row = tuple[int, int | None, str]


def touching(phases: Sequence[Phase], window: Window) -> list[Phase]:
    """The phases that lie in a window, at least in part."""
    return [p for p in phases if p.window.begin_ns < window.end_ns and window.begin_ns < p.window.end_ns]


def phase_rows(phases: Sequence[Phase], window: Window) -> ColumnDataSource:
    """Names of the phases and where they stand, moved down a row where the name before would cover them."""
    span = max(window.seconds, 1e-9)
    rows: list[float] = []  # where each row's last name ends, as a share of the plot's width
    heights = []
    for phase in phases:
        begin = max(phase.window.begin_ns - window.begin_ns, 0) * 1e-9 / span
        width = (len(phase.name) + 2) * 0.009
        row = next((i for i, end in enumerate(rows) if end <= begin), len(rows))
        rows[row : row + 1] = [begin + width]
        heights.append(1 - 0.085 * row)
    begins = [max(phase.window.begin_ns, window.begin_ns) // 10**6 for phase in phases]
    ends = [min(phase.window.end_ns, window.end_ns) // 10**6 for phase in phases]
    return phase_names(begins, ends, [phase.name for phase in phases], heights)


def phase_names(
    begins: Sequence[float], ends: Sequence[float], names: Sequence[str], heights: Sequence[float]
) -> ColumnDataSource:
    """Names of phases, each at its begin; ``plots.js`` moves those that would touch down a row, and lets one that would
    leave its plot end with its phase."""
    rows = {"begin": begins, "end": ends, "align": ["left"] * len(begins), "y": heights}
    return ColumnDataSource({"x": begins, **rows, "text": [plain(name) for name in names]}, name="phase-names")


def name_phases(plot: Any, names: ColumnDataSource) -> None:
    """Write the names of the phases along the top."""
    words(plot, names, "text", text_baseline="top", text_align="align", text_color=NAME, x_offset=3, y_offset=2)


def phase_strips(phases: Sequence[Phase]) -> ColumnDataSource:
    """Where the phases are shaded, in which colour."""
    return ColumnDataSource(
        {
            "x0": [phase.window.begin_ns // 10**6 for phase in phases],
            "x1": [phase.window.end_ns // 10**6 for phase in phases],
            "colour": [PHASES.get(phase.name, GREY) for phase in phases],
            "alpha": [0.13 if phase.name in PHASES else 0.0 for phase in phases],
        },
        name="phases",
    )


def draw_phases(plot: Any, strips: ColumnDataSource | None, names: ColumnDataSource | None) -> None:
    """Shade the phases and name them; the plot gets its axis from 0 to 1 for what has no value, named band."""
    if strips is not None:
        strip = VStrip(
            x0="x0",
            x1="x1",
            fill_color="colour",
            fill_alpha="alpha",
            line_color=GREY,
            line_alpha=0.35,
            line_dash="dotted",
        )
        put(plot, strips, strip).level = "underlay"
    plot.extra_y_ranges = {"band": Range1d(start=0, end=1)}
    plot.extra_y_scales = {"band": LinearScale(), "load": LinearScale()}
    if names is not None:
        name_phases(plot, names)


def draw_judged(plot: Any, judged: Window) -> list[LegendItem]:
    """A bar at the bottom for the window that a finding looked at."""
    ends = ColumnDataSource({"x0": [judged.begin_ns // 10**6], "x1": [judged.end_ns // 10**6], "y": [0.006]})
    bar = Segment(x0="x0", x1="x1", y0="y", y1="y", line_color=BLACK, line_width=4, line_alpha=0.75)
    return [item("judged window", put(plot, ends, bar, axis="band"))]


def draw_load(
    plot: Any,
    load: Sequence[Curve],
    sources: Sequence[ColumnDataSource],
    reach: Range1d | DataRange1d,
    *,
    axis: bool,
    over: bool,
) -> list[LegendItem]:
    """The generators' load in grey with an axis on the right; ``over`` a heat map it has a halo and no area."""
    if not load:
        return []
    plot.extra_y_ranges["load"] = reach
    if axis:
        scale = LinearAxis(y_range_name="load", axis_label=PlainText(text=f"load, {plain(load[0].unit)}"))
        dress_axis(scale)
        scale.axis_label_text_color = scale.major_label_text_color = scale.axis_line_color = GREY
        plot.add_layout(scale, "right")
    items = []
    for index, (curve, source) in enumerate(zip(load, sources, strict=True)):
        if over:
            put(plot, source, Line(x="time", y="value", line_color=HALO, line_width=3.5), axis="load")
        elif index == 0 and not bool(np.isnan(curve.value).any()):
            put(plot, source, VArea(x="time", y1=0, y2="value", fill_color=GREY, fill_alpha=0.14), axis="load")
        stroke = Line(
            x="time",
            y="value",
            line_color=BLACK if over else GREY,
            line_width=1,
            line_alpha=0.9 if over else 0.75,
            line_dash=DASHES[index % len(DASHES)],
        )
        line = put(plot, source, stroke, axis="load")
        items.append(item(f"load: {name_of(curve)}" if len(load) > 1 else "load (right axis)", line))
    return items


def draw_events(plot: Any, events: Sequence[Event], window: Window) -> list[LegendItem]:
    """A dashed vertical for each event, a strip where it lasted; the first two hundred."""
    shown = sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object))[:_MAX_EVENTS]
    rows = [(e.begin_ns, e.end_ns, f"{e.kind} {e.object}".strip()) for e in shown]
    _name_events(plot, shown, window)
    return draw_moments(plot, rows, "event", PURPLE, 0.22, "dashed", window)


def _name_events(plot: Any, events: Sequence[Event], window: Window) -> None:
    """The kind of each event along its line, from the bottom up; of those too near to one another the first."""
    apart = (window.end_ns - window.begin_ns) // _NAMES_APART
    named: list[Event] = []
    for event in events:
        if len(named) < _MAX_NAMES and (not named or event.begin_ns - named[-1].begin_ns >= apart):
            named.append(event)
    if named:
        source = {
            "x": [event.begin_ns // 10**6 for event in named],
            "y": [0.16] * len(named),
            "text": [plain(shortened(event.kind, _LONGEST_NAME)) for event in named],
        }
        style: dict[str, Any] = {"angle": np.pi / 2, "text_baseline": "bottom", "text_color": PURPLE}
        words(plot, ColumnDataSource(source, name="event-names"), "text", x_offset=-2, **style)


def draw_marks(plot: Any, marks: Sequence[Mark], word: str, window: Window, *, numbered: bool) -> list[LegendItem]:
    """A solid vertical for each moment of a finding, with its number where asked."""
    rows: list[Row] = [(mark.begin_ns, mark.end_ns, mark.text) for mark in marks[:_MAX_EVENTS]]
    if numbered and rows:
        source = {
            "x": [x // 10**6 for x, _, _ in rows],
            "text": [str(n) for n, _ in enumerate(rows, 1)],
            "y": [0.89 - 0.09 * (n % 3) for n in range(len(rows))],
        }
        style: dict[str, Any] = {"text_baseline": "top", "text_font_style": "bold", "text_color": BLACK, "x_offset": 3}
        words(plot, ColumnDataSource(source), "text", **style)
    return draw_moments(plot, rows, word, BLACK if numbered else VERMILION, 0.3, "solid", window)


def draw_moments(
    plot: Any,
    rows: Sequence[Row],
    name: str,
    colour: str,
    alpha: float,
    dash: str,
    window: Window,
) -> list[LegendItem]:
    """A vertical for each begin, a strip up to each end; both tell their text."""
    if not rows:
        return []
    points = [(begin // 10**6, text) for begin, _, text in rows]
    spans = [(begin // 10**6, end // 10**6, text) for begin, end, text in rows if end is not None and end > begin]
    source = ColumnDataSource({"x": [x for x, _ in points], "text": [plain(text) for _, text in points]})
    stroke = VSpan(x="x", line_color=colour, line_dash=dash, line_width=1.5, line_alpha=0.85)
    line = put(plot, source, stroke)
    drawn = [line]
    if spans:
        long = (window.end_ns - window.begin_ns) / 10**6 / 20
        strip = ColumnDataSource(
            {
                "x0": [x for x, _, _ in spans],
                "x1": [x for _, x, _ in spans],
                "text": [plain(t) for _, _, t in spans],
                "alpha": [
                    min(0.07, alpha) if end - begin > long else alpha for begin, end, _ in spans
                ],  # hides no phase
            }
        )
        area = VStrip(x0="x0", x1="x1", fill_color=colour, fill_alpha="alpha", line_color=None)
        drawn.append(put(plot, strip, area))
    plot.add_tools(HoverTool(renderers=drawn, tooltips=[(name, "@text")], line_policy="nearest"))
    return [item(name, line)]


def item(text: str, renderer: Any) -> LegendItem:
    """A line of the legend."""
    return LegendItem(label=literal(text), renderers=[renderer])


def literal(text: str) -> Any:
    """A label that is this text, whatever it looks like."""
    return {"value": text}
