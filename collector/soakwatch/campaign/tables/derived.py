"""Figures made of those of several cells: scale-up, shares, ratios, and the loss that an overload explains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product

from soakwatch.campaign.campaign_model import Cell
from soakwatch.campaign.tables.cell_figures import EXCLUDED, NO_READING, CellData, CellFigure
from soakwatch.campaign.tables.parse import number_of
from soakwatch.campaign.tables.spec import (
    Ceiling,
    Derived,
    ExpectedLoss,
    Figure,
    Measured,
    Overload,
    Per,
    ScaleUp,
    Share,
)
from soakwatch.runs.figure_frame import CONFIDENCE, level_of
from soakwatch.runs.key_figures import Better
from soakwatch_rules.stats.repetitions import median_interval

AT_CEILING, ABOVE = "at the generator's limit", "above expected"


def with_derived(cells: Sequence[CellData], figures: Sequence[Figure]) -> tuple[CellData, ...]:
    """Adds the derived figures to the cells, and a note where a figure is the generator's own limit."""
    known = {data.cell.id: dict(data.figures) for data in cells}
    every = [data.cell for data in cells]
    for figure in figures:
        if isinstance(figure, Measured):
            if figure.ceiling is not None:
                _note_ceiling(figure.name, figure.ceiling, every, known)
            continue
        for cell in every:
            known[cell.id][figure.name] = _derived(figure, cell, every, known)
    return tuple(replace(data, figures=known[data.cell.id]) for data in cells)


Known = Mapping[str, Mapping[str, CellFigure]]
_OVER_ZERO, _NO_BASE = "over zero", "no base"
_OPPOSITE: Mapping[Better, Better] = {"higher": "lower", "lower": "higher", "": ""}


def _derived(figure: Derived, cell: Cell, every: Sequence[Cell], known: Known) -> CellFigure:
    if isinstance(figure, ScaleUp):
        return _scale_up(figure, cell, every, known)
    if isinstance(figure, Share):
        return _share(figure, cell, every, known)
    if isinstance(figure, Per):
        return _per(known[cell.id], figure)
    return _expected(figure, cell, every, known)


def combined(parts: Sequence[CellFigure], function: Callable[..., float], unit: str) -> CellFigure:
    """A function of the medians of several cells, monotone in each of them.

    The interval is the range of the function over all corners of the medians' intervals. Each of these is wide enough
    for all of them to hold together with 95 % (Bonferroni), so the interval is too wide rather than too narrow. Two
    cells need seven runs each.
    """
    lacking = next((part for part in parts if part.median is None), None)
    if lacking is not None:
        return CellFigure(unit, reason=lacking.reason, short=lacking.short)
    try:
        value = function(*(part.median for part in parts))
    except ZeroDivisionError:
        return CellFigure(unit, reason="it would be a division by 0", short=_OVER_ZERO)
    n = min(part.n for part in parts)
    low, high = _corners(parts, function)
    reason, short = _lacks(parts)
    return CellFigure(unit, "", value, low, high, {}, n, reason, short=short)


def _lacks(parts: Sequence[CellFigure]) -> tuple[str, str]:
    """What the parts of a derived figure lack, in full and (of the first) in a word or two."""
    lacking = [part for part in parts if part.reason]
    return "; ".join(dict.fromkeys(part.reason for part in lacking)), lacking[0].short if lacking else ""


def _corners(parts: Sequence[CellFigure], function: Callable[..., float]) -> tuple[float | None, float | None]:
    ends: list[tuple[float, float]] = []
    for part in parts:
        if not part.by_run:
            return None, None
        interval = median_interval(part.values, 1 - (1 - CONFIDENCE) / len(parts))
        if interval.low is None or interval.high is None:
            return None, None
        ends.append((interval.low, interval.high))
    try:
        values = [function(*corner) for corner in product(*ends)]
    except ZeroDivisionError:
        return None, None
    return min(values), max(values)


def neighbours(cell: Cell, axis: str, every: Iterable[Cell]) -> list[Cell]:
    """The cells that differ from this one in the value of one axis at most, itself among them."""
    same = {name: value for name, value in cell.values.items() if name != axis}
    return [other for other in every if {n: v for n, v in other.values.items() if n != axis} == same]


def _at(cell: Cell, axis: str, value: str, every: Sequence[Cell]) -> Cell | None:
    return next((other for other in neighbours(cell, axis, every) if other.values[axis] == value), None)


def _scale_up(figure: ScaleUp, cell: Cell, every: Sequence[Cell], known: Known) -> CellFigure:
    base = min(neighbours(cell, figure.along, every), key=lambda other: _number(other, figure.along))
    here, one = _number(cell, figure.along), _number(base, figure.along)
    of, start = known[cell.id][figure.of], known[base.id][figure.of]
    if base.id == cell.id:
        return _fixed("", 1.0 if of.n else None, of)
    at = f"{figure.along} {base.values[figure.along]}"
    return replace(_relative((of, start), lambda now, then: now / (here / one * then), "", at), better="higher")


def _share(figure: Share, cell: Cell, every: Sequence[Cell], known: Known) -> CellFigure:
    base, at = _at(cell, figure.along, figure.to, every), f"{figure.along} {figure.to}"
    of = known[cell.id][figure.of]
    if base is None:
        return CellFigure("1", reason=f"{at} is excluded here", short=EXCLUDED)
    if base.id == cell.id:
        return _fixed("1", None if of.median is None else 1.0 - figure.cost, of)
    share = (lambda a, b: 1 - a / b) if figure.cost else (lambda a, b: a / b)
    made = _relative((of, known[base.id][figure.of]), share, "1", at)
    return replace(made, better=_OPPOSITE[of.better] if figure.cost else of.better)


def _fixed(unit: str, value: float | None, of: CellFigure) -> CellFigure:
    """A number that needs no measurement, for as many runs as the figure has that it is made of."""
    return CellFigure(unit, "", value, n=of.n, reason=of.reason, short=of.short)


def _relative(parts: tuple[CellFigure, CellFigure], function: Callable[..., float], unit: str, at: str) -> CellFigure:
    """A figure relative to what it is in the cell ``at`` a value of an axis."""
    of, start = parts
    made = replace(combined(parts, function, unit), ranked=of.ranked)
    if start.median is not None:
        return made
    return replace(made, reason=f"nothing to compare with at {at}: {start.reason}", short=_NO_BASE)


def _per(here: Mapping[str, CellFigure], figure: Per) -> CellFigure:
    """One figure over another, less what it is without that, run by run."""
    of, per = here[figure.of], here[figure.per]
    parts = [of, per] if figure.less is None else [of, per, here[figure.less]]
    unit = f"{of.unit}/{per.unit}" if per.unit else of.unit
    if per.unit and per.unit == of.unit:
        unit = "1"
    elif of.unit.endswith("/s") and per.unit == "W":  # a rate over a power is a number over an energy
        unit = f"{of.unit.removesuffix('/s')}/J"
    if parts[-1].unit and figure.less is not None and parts[-1].unit != of.unit:
        reason = f"{figure.less} is in {parts[-1].unit}, and {figure.of} in {of.unit}"
        return CellFigure(unit, of.better, reason=reason, short=NO_READING)
    lacking = next((part for part in parts if not part.by_run), None)
    if lacking is not None:
        reason = lacking.reason or "it is made of a figure that runs do not have"
        return CellFigure(unit, of.better, reason=reason, short=lacking.short or NO_READING)
    each = {run: [part.by_run[run] for part in parts] for run in of.by_run if all(run in p.by_run for p in parts)}
    by_run = {run: (a - sum(less)) / b for run, (a, b, *less) in each.items() if b}
    if not by_run:
        reason, short = (f"{figure.per} is 0", _OVER_ZERO) if each else ("no run has all of them", NO_READING)
        return CellFigure(unit, of.better, reason=reason, short=short)
    made = level_of(by_run, unit, of.better)
    reason, short = _lacks(parts)
    numbers = made.median, made.low, made.high, by_run, made.n
    return CellFigure(unit, of.better, *numbers, reason, ranked=of.ranked, short=short)


def capacity_cell(overload: Overload, cell: Cell, every: Sequence[Cell], known: Known) -> Cell | None:
    """The cell without loss that received most, among those that differ in the load alone; None if each one lost."""
    best: tuple[float, Cell] | None = None
    for other in neighbours(cell, overload.along, every):
        loss, received = known[other.id][overload.loss], known[other.id][overload.received]
        lossless = loss.median is not None and max(loss.values, default=loss.median) <= overload.lossless
        if lossless and received.median is not None and (best is None or received.median > best[0]):
            best = received.median, other
    return None if best is None else best[1]


def _expected(figure: ExpectedLoss, cell: Cell, every: Sequence[Cell], known: Known) -> CellFigure:
    overload, here = figure.overload, known[cell.id]
    base = capacity_cell(overload, cell, every, known)
    if base is None:
        return CellFigure("1", reason=f"no capacity: no {overload.along} without loss", short="no capacity")
    offered, capacity = here[overload.offered], known[base.id][overload.received]
    below = offered.median is not None and capacity.median is not None and offered.median <= capacity.median
    if base.id == cell.id or below:
        return (
            _noted(replace(here[overload.loss], better=""), figure.most) if figure.excess else _fixed("1", 0.0, offered)
        )
    if not figure.excess:
        return combined((offered, capacity), lambda sent, most: 1 - most / sent, "1")
    parts = (here[overload.loss], offered, capacity)
    return _noted(combined(parts, lambda loss, sent, most: loss - (1 - most / sent), "1"), figure.most)


def _note_ceiling(name: str, ceiling: Ceiling, every: Sequence[Cell], known: dict[str, dict[str, CellFigure]]) -> None:
    for cell in every:
        if cell.values.get(ceiling.axis) == ceiling.of:
            known[cell.id][name] = replace(known[cell.id][name], ranked=False)
            continue
        base = _at(cell, ceiling.axis, ceiling.of, every)
        here, most = known[cell.id][name], None if base is None else known[base.id][name].median
        if here.median is not None and most and abs(here.median - most) <= ceiling.within * abs(most):
            known[cell.id][name] = replace(here, note=AT_CEILING)


def _noted(excess: CellFigure, most: float) -> CellFigure:
    return replace(excess, note=ABOVE) if excess.median is not None and excess.median > most else excess


def _number(cell: Cell, axis: str) -> float:
    return number_of(cell.values[axis]) or math.nan
