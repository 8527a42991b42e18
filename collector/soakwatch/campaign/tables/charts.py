"""The tables of a campaign as drawings: bars over the values of a word, lines over those of a number, and one drawing
for each value of the other axes. All of them have the numbers of the table, and begin at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from soakwatch.campaign.tables.cell_figures import CellFigure
from soakwatch.campaign.tables.derived import AT_CEILING
from soakwatch.campaign.tables.pivot import View, bounds
from soakwatch.campaign.tables.sheet import Shown, number_text, scales_of
from soakwatch.campaign.tables.spec import FIGURES, VERDICT, TablesSpec, amount
from soakwatch.report.svg import (
    LETTER,
    ROW,
    SvgBox,
    SvgCanvas,
    SvgDot,
    SvgDrawing,
    SvgLabel,
    SvgStroke,
    between,
    tick_texts,
    ticks_between,
)

MOST_PANELS = 12
MOST_SERIES = 7
"""As many colours as tell each other apart."""
_WIDE, _NARROW, _HEIGHT = 760, 372, 230
_TOP, _BOTTOM, _RIGHT = 26, 40, 12
_NUMERIC = 0.6  # share of the values of an axis that are numbers, so that it is drawn as one
_MOST_BAR, _GROUP = 56.0, 0.82  # widest bar, and the share of its place that a group of bars takes
_TICKS = 5
_NEAR = 11.0  # pixels: numbers of lines that end so near to each other stand in one text


@dataclass(frozen=True, slots=True)
class TableChart:
    """The drawings of a view, and the names of what is drawn in each: kind and words. ``left_out`` counts drawings that
    there is no room for."""

    title: str
    panels: tuple[SvgDrawing, ...]
    legend: tuple[tuple[str, str], ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Place:
    """A number of the view, and the values of the axes where it stands."""

    name: str
    at: Mapping[str, str]
    figure: CellFigure


@dataclass(frozen=True, slots=True)
class _Plan:
    """How some figures of one unit are drawn: ``series`` is the axis whose values are the series, FIGURES the figures
    themselves, None one alone; ``panels`` are the axes of which each combination is a drawing."""

    names: tuple[str, ...]
    x: str
    series: str | None
    panels: tuple[str, ...]
    order: Mapping[str, tuple[str, ...]]

    @property
    def lines(self) -> bool:
        """Whether the axis is one of numbers."""
        values = self.order[self.x]
        return sum(_is_number(value) for value in values) >= _NUMERIC * len(values)

    def series_of(self, place: _Place) -> str:
        """The series of a number."""
        return "" if self.series is None else place.name if self.series == FIGURES else place.at[self.series]


def charts_of(views: Sequence[View], spec: TablesSpec) -> tuple[tuple[TableChart, ...], ...]:
    """The charts of each view of a table, those of one unit with one scale in all of them; none of a view without an
    axis of two values."""
    places = [_places(view) for view in views]
    shown = scales_of(views)
    most: dict[str, tuple[float, float]] = {}
    for place in (place for each in places for place in each):
        if place.figure.median is not None:
            low, high = most.get(place.figure.unit + _alone(views, place), (0.0, 0.0))
            least, largest = bounds(place.figure)
            most[place.figure.unit + _alone(views, place)] = min(low, least), max(high, largest)
    return tuple(
        tuple(
            chart
            for names in _by_unit(own)
            if (chart := _chart(view, names, [p for p in own if p.name in names], spec, most, views, shown)) is not None
        )
        for view, own in zip(views, places, strict=True)
    )


def _alone(views: Sequence[View], place: _Place) -> str:
    """What keeps scales apart: figures that have views of their own have scales of their own."""
    return f" {place.name}" if any(view.figure for view in views) else ""


def _places(view: View) -> list[_Place]:
    return [
        _Place(entry.name, entry.data.cell.values, entry.figure)
        for entry in view.entries.values()
        if entry.data is not None and entry.name != VERDICT and entry.figure is not None
    ]


def _by_unit(places: Iterable[_Place]) -> list[tuple[str, ...]]:
    """The figures of a view, those of one unit together."""
    units: dict[str, dict[str, None]] = {}
    for place in places:
        if place.figure.median is not None:
            units.setdefault(place.figure.unit, {})[place.name] = None
    return [tuple(names) for names in units.values()]


def _chart(
    view: View,
    names: tuple[str, ...],
    places: Sequence[_Place],
    spec: TablesSpec,
    most: Mapping[str, tuple[float, float]],
    views: Sequence[View],
    shown: Mapping[str, Shown],
) -> TableChart | None:
    plan = _plan(view, names, places)
    if plan is None:
        return None
    unit = next(place.figure.unit for place in places if place.figure.median is not None)
    low, high = most[unit + _alone(views, places[0])]
    if low == high:
        return None  # nothing but zeros
    series = list(dict.fromkeys(plan.series_of(place) for place in places))
    if plan.series not in {None, FIGURES}:
        series = [value for value in plan.order[str(plan.series)] if value in series]
    panels: dict[tuple[str, ...], list[_Place]] = {}
    for place in places:
        panels.setdefault(tuple(place.at[axis] for axis in plan.panels), []).append(place)
    subject = view.title if view.figure else ", ".join(map(spec.words, names))
    of = [f"{axis} {value}" for axis, value in view.of.items()]
    width = _WIDE if len(panels) == 1 else _NARROW
    drawn = [
        _Panel(plan, series, shown[names[0]], low, high, width).drawn(
            ", ".join(f"{axis} {value}" for axis, value in zip(plan.panels, key, strict=True)), own, spec
        )
        for key, own in panels.items()
    ]
    words = [spec.words(each) if plan.series == FIGURES else each for each in series]
    kind = "line" if plan.lines else "block"
    legend = [(f"{kind} s{index}", f"{index + 1} {word}") for index, word in enumerate(words)]
    legend = legend if len(series) > 1 else []
    if any(place.figure.note == AT_CEILING for place in places):
        legend.append(("ceiling", "at the generator's limit"))
    title = ": ".join(part for part in (subject, ", ".join(of)) if part) or spec.words(names[0])
    return TableChart(title, tuple(drawn[:MOST_PANELS]), tuple(legend), max(0, len(drawn) - MOST_PANELS))


def _plan(view: View, names: tuple[str, ...], places: Sequence[_Place]) -> _Plan | None:
    every = [axis for axis in (*view.row_axes, *view.column_axes) if axis != FIGURES]
    keys = [*view.rows, *view.columns]
    axes_of = [*(view.row_axes for _ in view.rows), *(view.column_axes for _ in view.columns)]
    order: dict[str, dict[str, None]] = {axis: {} for axis in every}
    for key, axes in zip(keys, axes_of, strict=True):
        for axis, value in zip(axes, key, strict=True):
            if axis != FIGURES and any(place.at[axis] == value for place in places):
                order[axis][value] = None
    values = {axis: tuple(found) for axis, found in order.items() if len(found) > 1}
    if not values:
        return None
    numeric = [axis for axis, own in values.items() if sum(map(_is_number, own)) >= _NUMERIC * len(own)]
    x = max(numeric, key=lambda axis: (len(values[axis]), every.index(axis))) if numeric else list(values)[-1]
    rest = [axis for axis in values if axis != x]
    series: str | None = FIGURES if len(names) > 1 else None
    if series is None:
        series = next((axis for axis in reversed(rest) if len(values[axis]) <= MOST_SERIES), None)
    if numeric:  # a list of cells names the values of an axis as its rows come
        values[x] = tuple(sorted(values[x], key=lambda value: (_is_number(value), _size(value))))
    return _Plan(names, x, series, tuple(axis for axis in rest if axis != series), values)


def _is_number(value: str) -> bool:
    try:
        amount(value)
    except ValueError:
        return False
    return True


def _size(value: str) -> float:
    return amount(value) if _is_number(value) else 0.0


@dataclass(frozen=True, slots=True)
class _Panel:
    """One drawing: ``low`` and ``high`` are the ends of the numbers that share its scale."""

    plan: _Plan
    series: Sequence[str]
    shown: Shown
    low: float
    high: float
    width: int

    def drawn(self, title: str, places: Sequence[_Place], spec: TablesSpec) -> SvgDrawing:
        """The drawing of the numbers of one combination."""
        factor, plan = self.shown.scale.factor, self.plan
        here = [value for value in plan.order[plan.x] if any(place.at[plan.x] == value for place in places)]
        low, high = self.low * factor, self.high * factor
        margin = 0.08 * (high - low)
        low, high = low - margin * (low < 0), high + margin
        ticks = ticks_between(low, high, _TICKS)
        texts = tick_texts(ticks)
        left = max(map(len, texts)) * LETTER + 14
        right = self.width - _RIGHT - (2 * LETTER * len(self.series) if plan.lines and len(self.series) > 1 else 0)
        canvas = SvgCanvas(self.width, _HEIGHT, 0.0, len(here), low, high, left, right, _TOP, _HEIGHT - _BOTTOM)
        for tick, text in zip(ticks, texts, strict=True):
            if tick:  # below the bars, which strokes are not
                canvas.boxes.append(SvgBox(left, canvas.y(tick), canvas.right - left, 1, "grid"))
            else:
                canvas.strokes.append(SvgStroke(f"M{left} {canvas.y(tick)}H{canvas.right}", "axis"))
            canvas.labels.append(SvgLabel(left - 6, canvas.y(tick) + 4, text, "tick", "end"))
        canvas.labels.append(SvgLabel(4, 13, self.shown.scale.label or "ratio", "unit"))
        canvas.labels.append(SvgLabel(canvas.right, _HEIGHT - 4, plan.x, "unit", "end"))
        room = (canvas.right - canvas.left) / len(here)
        for index, value in enumerate(here):
            letters = max(1, int(room / LETTER))
            shown = value if len(value) <= letters else value[: letters - 1] + "…"
            low_row = 2 if not plan.lines and len(self.series) > 1 else 1
            canvas.labels.append(
                SvgLabel(canvas.x(index + 0.5), canvas.bottom + low_row * 13 + 1, shown, "tick", "middle")
            )
        by_series = {
            name: {place.at[plan.x]: place for place in places if plan.series_of(place) == name} for name in self.series
        }
        ends: list[tuple[float, float, int]] = []
        own: list[_Place | None] = []
        for number, name in enumerate(self.series):
            own = [by_series[name].get(value) for value in here]
            words = name if plan.series != FIGURES else spec.words(name)
            if not plan.lines:
                self._bars(canvas, number, words, own)
            elif (end := self._line(canvas, number, words, own)) is not None:
                ends.append(end)
        if len(self.series) > 1:
            self._ends(canvas, ends)
        elif plan.lines:
            self._values(canvas, own)
        about = f"{', '.join(map(spec.words, plan.names))} by {plan.x}; the table has the same numbers"
        return canvas.drawn(title, f"{title}: {about}" if title else about)

    def _bars(self, canvas: SvgCanvas, number: int, name: str, own: Sequence[_Place | None]) -> None:
        room = (canvas.right - canvas.left) / len(own)
        width = min(_MOST_BAR, _GROUP * room / len(self.series))
        for index, place in enumerate(own):
            x = canvas.x(index + 0.5) + (number - len(self.series) / 2) * width
            if len(self.series) > 1:
                canvas.labels.append(
                    SvgLabel(round(x + width / 2, 1), canvas.bottom + 14, str(number + 1), f"tick s{number}", "middle")
                )
            if place is None or place.figure.median is None:
                canvas.labels.append(SvgLabel(round(x + width / 2, 1), canvas.bottom - 5, "–", "tick", "middle"))
                continue
            top, base = sorted((canvas.y(place.figure.median * self.shown.scale.factor), canvas.y(0.0)))
            ceiling = " ceiling" if place.figure.note == AT_CEILING else ""
            title = self._words(name, place)
            canvas.boxes.append(
                SvgBox(
                    round(x + 1, 1),
                    top,
                    round(width - 2, 1),
                    round(max(base - top, 0.8), 1),
                    f"bar s{number}{ceiling}",
                    title,
                )
            )
            self._whisker(canvas, round(x + width / 2, 1), place.figure, number)
            text = self._text(place.figure)
            if len(text) * LETTER <= width + 8:
                canvas.put(
                    SvgLabel(round(x + width / 2, 1), self._above(canvas, place.figure), text, "value", "middle")
                )

    def _line(
        self, canvas: SvgCanvas, number: int, name: str, own: Sequence[_Place | None]
    ) -> tuple[float, float, int] | None:
        """Draws a line; returns where it ends, with its number."""
        points: list[tuple[float, float, bool] | None] = []
        for index, place in enumerate(own):
            if place is None or place.figure.median is None:
                points.append(None)
                if place is not None:
                    canvas.labels.append(SvgLabel(canvas.x(index + 0.5), canvas.bottom - 5, "–", "tick", "middle"))
                continue
            x, y = canvas.x(index + 0.5), canvas.y(place.figure.median * self.shown.scale.factor)
            points.append((x, y, _is_number(place.at[self.plan.x])))
            ceiling = " ceiling" if place.figure.note == AT_CEILING else ""
            self._whisker(canvas, x, place.figure, number)
            canvas.dots.append(SvgDot(x, y, 3.4, f"s{number}{ceiling}", self._words(name, place)))
        for one, other in pairwise(points):
            if one is not None and other is not None and one[2] and other[2]:
                canvas.strokes.append(SvgStroke(f"M{one[0]} {one[1]}L{other[0]} {other[1]}", f"curve s{number}"))
                canvas.taken += between(one[:2], other[:2])
        last = next((point for point in reversed(points) if point is not None), None)
        return None if last is None else (last[0], last[1], number)

    def _ends(self, canvas: SvgCanvas, ends: Sequence[tuple[float, float, int]]) -> None:
        """The numbers of the lines at their ends; those that end side by side in one text."""
        groups: list[list[tuple[float, float, int]]] = []
        for end in sorted(ends, key=lambda end: (end[0], end[1])):
            before = groups[-1][-1] if groups else None
            if before is not None and before[0] == end[0] and end[1] - before[1] < _NEAR:
                groups[-1].append(end)
            else:
                groups.append([end])
        for group in groups:
            text = ",".join(str(number + 1) for number in sorted(number for _, _, number in group))
            y = sum(end[1] for end in group) / len(group)
            canvas.put(SvgLabel(group[0][0] + 7, round(y + 4, 1), text, "tick"))

    def _values(self, canvas: SvgCanvas, own: Sequence[_Place | None]) -> None:
        """The numbers of the only line, clear of it."""
        for index, place in enumerate(own):
            if place is not None and place.figure.median is not None:
                x, text = canvas.x(index + 0.5), self._text(place.figure)
                high = self._above(canvas, place.figure)
                low = round(canvas.y(bounds(place.figure)[0] * self.shown.scale.factor) + 16, 1)
                canvas.put(
                    SvgLabel(x, high, text, "value", "middle"),
                    SvgLabel(x - 4, high, text, "value", "end"),
                    SvgLabel(x, low, text, "value", "middle"),
                )

    def _text(self, figure: CellFigure) -> str:
        assert figure.median is not None
        return number_text(figure.median * self.shown.scale.factor, self.shown.decimals)

    def _above(self, canvas: SvgCanvas, figure: CellFigure) -> float:
        """The height of a text above a number and its interval."""
        assert figure.median is not None
        top = max(bounds(figure)[1], figure.median) * self.shown.scale.factor
        return round(max(canvas.y(top) - 6, ROW), 1)

    def _whisker(self, canvas: SvgCanvas, x: float, figure: CellFigure, number: int) -> None:
        low, high = (canvas.y(end * self.shown.scale.factor) for end in bounds(figure))
        if low - high >= 1:
            canvas.strokes.append(SvgStroke(f"M{x - 3} {high}h6m-3 0V{low}m-3 0h6", f"whisker s{number}"))

    def _words(self, name: str, place: _Place) -> str:
        assert place.figure.median is not None
        at = ", ".join(f"{axis} {value}" for axis, value in place.at.items())
        low, high = bounds(place.figure)
        factor, label = self.shown.scale.factor, self.shown.scale.label
        span = f" ({number_text(low * factor, 4)} to {number_text(high * factor, 4)})" if low != high else ""
        note = f"; {place.figure.note}" if place.figure.note else ""
        value = number_text(place.figure.median * factor, 4)
        return f"{name or place.name}, {at}: {value} {label}{span}{note}"
