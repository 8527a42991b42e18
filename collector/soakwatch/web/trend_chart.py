"""The chart of a trend: one point a run, groups side by side with medians, change points as lines."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from soakwatch.core.formatting import quantity, utc
from soakwatch.runs.figure_trend import FigureTrend, PlanTrend
from soakwatch.runs.key_figures import FigureValue, figure_text
from soakwatch.runs.trend_words import change_text, reach
from soakwatch_model.flow import BACK, BITS, OFFERED, PACKETS, REQUESTS, SENT
from soakwatch_model.metric import flows

WIDTH, HEIGHT = 760, 190
"""Size of a chart in its own units."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 118, 8, 18, 24
_LETTER = 6.4  # width of a letter in units
_MARGIN = 0.08  # share of the range added above and below
_FULL = 0.85 * (HEIGHT - _TOP - _BOTTOM)  # height of the highest load
_CARRIED = tuple(
    name for what in (REQUESTS, PACKETS, BITS) for side in (OFFERED, SENT, BACK) for name in flows(side, what)
)
"""Metrics of the load, best first: offered before sent before returned."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run: position, link and tooltip. ``there`` is False if it lacks the figure."""

    x: float
    y: float
    there: bool
    verdict: str
    href: str
    tip: str


@dataclass(frozen=True, slots=True)
class Band:
    """A group: its extent, its name as far as it fits, and the height of its median, if any."""

    begin: float
    end: float
    name: str
    median: float | None


@dataclass(frozen=True, slots=True)
class TurnLine:
    """A change point: position, and change in words; ``kind`` is its class: ``worse``, ``better`` or ""."""

    x: float
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Chart:
    """The chart of a figure. ``ticks`` are heights with values in words. ``bars`` are the load of each run (left, top,
    width, height) on their own axis, from 0 to ``load`` at height ``_FULL``."""

    points: tuple[Point, ...]
    bands: tuple[Band, ...]
    turns: tuple[TurnLine, ...]
    ticks: tuple[tuple[float, str], ...]
    bars: tuple[tuple[float, float, float, float], ...] = ()
    load: str = ""


def chart_of(plan: PlanTrend, figure: FigureTrend) -> Chart | None:
    """The chart of a figure; None if no run has it."""
    there = [value.value for value in figure.values if value.value is not None]
    if not there:
        return None
    low, high = reach(there)
    span = (high / 2 - low / 2) * 2
    low, high = low - _MARGIN * span, high + _MARGIN * span
    step = (WIDTH - _LEFT - _RIGHT) / len(plan.runs)

    def y(value: float) -> float:
        share = (value / 2 - low / 2) / (high / 2 - low / 2)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)

    def x(index: float) -> float:
        return round(_LEFT + index * step, 1)

    points = []
    for index, (run, value) in enumerate(zip(plan.runs, figure.values, strict=True)):
        shown = figure_text(figure.spec, value) if value.value is not None else value.reason
        tip = f"{run.folder.name}: {shown}; {run.verdict}, {utc(run.begin_ns)} UTC"
        height = HEIGHT - _BOTTOM - 4 if value.value is None else y(value.value)
        href = f"/runs/{quote(run.folder.name, safe='')}/"
        points.append(Point(x(index + 0.5), height, value.value is not None, run.verdict, href, tip))
    bands, first = [], 0
    for group, line in zip(plan.groups, figure.groups, strict=True):
        end = first + len(group.runs)
        letters = int((end - first) * step / _LETTER)
        name = (
            group.name if len(group.name) <= letters else group.name[: max(letters - 1, 0)] + "…" if letters > 2 else ""
        )
        bands.append(Band(x(first), x(end), name, None if line.level.median is None else y(line.level.median)))
        first = end
    places = {run.folder: index for index, run in enumerate(plan.runs)}
    turns = tuple(
        TurnLine(
            x(places[turn.run.folder]),
            change_text(turn.change),
            "" if turn.worse is None else "worse" if turn.worse else "better",
        )
        for turn in figure.turns
    )
    ticks = tuple((y(v), figure_text(figure.spec, FigureValue(v, figure.unit))) for v in (min(there), max(there)))
    apart = ticks if ticks[0][1] != ticks[1][1] else ticks[:1]
    loads, words = load_of(plan)
    bars = tuple(
        (x(index + 0.15), round(HEIGHT - _BOTTOM - share * _FULL, 1), round(0.7 * step, 1), round(share * _FULL, 1))
        for index, share in enumerate(loads)
        if share is not None and figure.spec.metric not in _CARRIED
    )
    return Chart(tuple(points), tuple(bands), turns, apart, bars, words if bars else "")


def load_of(plan: PlanTrend) -> tuple[tuple[float | None, ...], str]:
    """The mean load of each run as a share of the highest, and the highest in words; empty if no figure shows a
    load."""
    rates = [
        spec
        for run in plan.runs
        for spec in run.specs
        if spec.metric in _CARRIED and spec.statistic in {"mean", "rate"} and spec.text in run.values
    ]
    if not rates:
        return (), ""
    chosen = min(rates, key=lambda spec: _CARRIED.index(spec.metric))
    found = [run.values.get(chosen.text) for run in plan.runs]
    values = [None if value is None else value.value for value in found]
    most = max((value for value in values if value is not None), default=0.0)
    if most <= 0:
        return (), ""
    unit = next(value.unit for value in found if value is not None and value.value is not None)
    shares = tuple(None if value is None else max(value, 0.0) / most for value in values)
    return shares, f"bars: load, up to {quantity(most, unit)}"
