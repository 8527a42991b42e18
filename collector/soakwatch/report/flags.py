"""Findings in a plot: their numbers, a shape for each outcome, and where they lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bokeh.models import ColumnDataSource, HoverTool, Scatter, Segment
from bokeh.models.annotations import LegendItem

from soakwatch.report.palette import BLACK, GROUND, OUTCOMES
from soakwatch.report.plot_background import Row, draw_moments, item
from soakwatch.report.plot_style import plain, put, words
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window

_MAX_NAMED = 4


@dataclass(frozen=True, slots=True)
class Flag:
    """A finding as it is marked in a plot: its number, how bad it is, what it says, and where (UTC ns).

    A ``moment`` is where something happened, with an end if it lasted; else it is the window that was judged.
    """

    number: int
    outcome: Outcome
    text: str
    begin_ns: int
    end_ns: int | None = None
    moment: bool = True


def draw_flags(plot: Any, flags: Sequence[Flag], window: Window) -> list[LegendItem]:
    """The findings with their numbers at the bottom: verticals at their moments, bars along windows without any."""
    items: list[LegendItem] = []
    present = [outcome for outcome in OUTCOMES if any(flag.outcome is outcome for flag in flags)]
    for row, outcome in enumerate(present):
        colour, shape = OUTCOMES[outcome]
        here = [flag for flag in flags if flag.outcome is outcome]
        height = 0.05 + 0.08 * row
        moments: list[Row] = [(f.begin_ns, f.end_ns, f"{f.number} {f.text}") for f in here if f.moment]
        draw_moments(plot, moments, f"finding, {outcome.value}", colour, 0.12, "solid", window)
        _draw_bars(plot, [flag for flag in here if not flag.moment], window, height, colour)
        clusters = _clusters(here, window)
        edge = window.begin_ns + (window.end_ns - window.begin_ns) // 120  # a mark at the very edge would be cut
        source = ColumnDataSource(
            {
                "x": [max(some[0].begin_ns, edge) // 10**6 for some in clusters],
                "y": [height] * len(clusters),
                "number": [_numbers(some) for some in clusters],
                "text": [_texts(some) for some in clusters],
            }
        )
        mark = Scatter(x="x", y="y", marker=shape, size=9, fill_color=GROUND, line_color=colour, line_width=1.8)
        drawn = put(plot, source, mark, axis="band", over=True)
        plot.add_tools(HoverTool(renderers=[drawn], tooltips=[(f"finding, {outcome.value}", "@text")]))
        style: dict[str, Any] = {"text_baseline": "middle", "text_font_style": "bold", "text_color": BLACK}
        words(plot, source, "number", on_ground=True, x_offset=7, **style)
        items.append(item(f"finding: {outcome.value}", drawn))
    return items


def _draw_bars(plot: Any, flags: Sequence[Flag], window: Window, height: float, colour: str) -> None:
    """A dotted bar along each window that is not all there is; equal windows have one."""
    spans = {(flag.begin_ns, flag.end_ns or flag.begin_ns) for flag in flags}
    whole = 0.97 * (window.end_ns - window.begin_ns)
    windows = sorted((begin // 10**6, end // 10**6) for begin, end in spans if end - begin < whole)
    if windows:
        ends = {"x0": [begin for begin, _ in windows], "x1": [end for _, end in windows], "y": [height] * len(windows)}
        bar = Segment(x0="x0", x1="x1", y0="y", y1="y", line_color=colour, line_width=3, line_dash=[2, 3])
        put(plot, ColumnDataSource(ends), bar, axis="band", over=True)


def _clusters(flags: Sequence[Flag], window: Window) -> list[list[Flag]]:
    """Flags so near to one another that their numbers would cover each other, together."""
    near = (window.end_ns - window.begin_ns) // 40
    clusters: list[list[Flag]] = []
    for flag in sorted(flags, key=lambda each: (each.begin_ns, each.number)):
        if clusters and flag.begin_ns - clusters[-1][0].begin_ns < near:
            clusters[-1].append(flag)
        else:
            clusters.append([flag])
    return clusters


def _numbers(flags: Sequence[Flag]) -> str:
    """Their numbers in few characters.

    >>> _numbers([Flag(n, Outcome.FAIL, "", 0) for n in (1, 2, 3, 5, 9, 11)])
    '1-3 5 9 …'
    """
    runs: list[list[int]] = []
    for number in sorted({flag.number for flag in flags}):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return " ".join(texts[:3] + ["…"] * (len(texts) > 3))


def _texts(flags: Sequence[Flag]) -> str:
    texts = [f"{flag.number} {flag.text}" for flag in flags[:_MAX_NAMED]]
    return plain("; ".join(texts + [f"and {len(flags) - _MAX_NAMED} more"] * (len(flags) > _MAX_NAMED)))
