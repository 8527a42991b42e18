"""Figures over runs: a row a run and figure, with the run's labels. What is asked of several runs is asked here.

``level`` takes rows of one kind together, ``diff`` holds two levels against one another, ``changes`` dates when a level
changed, ``grouped`` and ``pivot`` lay them out. ``compare``, ``trend`` and the tables of a campaign are made of these.
Missing is never zero: a row without a number keeps the reason, and a level knows what it lacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from soakwatch.runs.key_figures import Better, FigureValue
from soakwatch_rules.stats.changepoints import ChangePoint, history
from soakwatch_rules.stats.difference import Difference, by_ranks
from soakwatch_rules.stats.repetitions import median_interval

CONFIDENCE = 0.95
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunFigure:
    """A figure of a run: the run's name and labels, the number with its unit, or why there is none (``short``: in a
    word or two)."""

    run: str
    labels: Mapping[str, str]
    figure: str
    value: FigureValue
    short: str = ""


@dataclass(frozen=True, slots=True)
class FigureLevel:
    """A figure of some runs of one kind. ``by_run`` is one number for each run that has it.

    ``low``..``high`` hold the median with ``confidence``, at least the one asked for, or are None where there are too
    few runs for that. ``reason`` says why there is no number, or what is missing to it.
    """

    unit: str = ""
    better: Better = ""
    median: float | None = None
    low: float | None = None
    high: float | None = None
    by_run: Mapping[str, float] = field(default_factory=dict)
    n: int = 0
    reason: str = ""
    confidence: float | None = None

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers of its runs."""
        return tuple(self.by_run.values())

    @property
    def least(self) -> float | None:
        """The lowest number of a run."""
        return min(self.by_run.values(), default=None)

    @property
    def most(self) -> float | None:
        """The highest number of a run."""
        return max(self.by_run.values(), default=None)


def level(rows: Sequence[RunFigure]) -> tuple[FigureLevel, tuple[RunFigure, ...]]:
    """The level of the rows of one figure, in the unit of the first that has a number, and the rows that lack one.

    >>> rows = [RunFigure(name, {}, "rate", FigureValue(value, "W", "", "" if value else "lost"))
    ...         for name, value in (("a", 3.0), ("b", None), ("c", 5.0))]
    >>> found, lacking = level(rows)
    >>> found.median, found.n, found.low, [row.run for row in lacking]
    (4.0, 2, None, ['b'])
    """
    known: dict[str, float] = {}
    betters: list[Better] = [row.value.better for row in rows if row.value.better]
    unit = ""
    lacking: list[RunFigure] = []
    for row in rows:
        value = row.value
        if value.value is None or not math.isfinite(value.value):
            unit = unit or value.unit
            lacking.append(row)
        elif known and value.unit != unit:
            reason = f"in {value.unit or 'no unit'} instead of {unit or 'no unit'}"
            lacking.append(replace(row, value=replace(value, value=None, reason=reason), short="other unit"))
        else:
            known[row.run], unit = value.value, value.unit
    return level_of(known, unit, betters[0] if betters else ""), tuple(lacking)


def level_of(by_run: Mapping[str, float], unit: str, better: Better) -> FigureLevel:
    """The level of these numbers; without a median where there is none."""
    if not by_run:
        return FigureLevel(unit, better)
    interval = median_interval(tuple(by_run.values()), CONFIDENCE)
    numbers = interval.median, interval.low, interval.high
    return FigureLevel(unit, better, *numbers, by_run, len(by_run), confidence=interval.confidence)


def diff(new: FigureLevel, old: FigureLevel, margin: float) -> Difference:
    """Whether two levels differ, by the exact rank test; both need a run. ``corrected`` takes several of them."""
    return by_ranks(new.values, old.values, margin)


def changes(rows: Sequence[RunFigure], alpha: float, least: float) -> tuple[ChangePoint, ...]:
    """The change points of rows in their order; those without a number are passed over, and counted by the index."""
    numbers = [math.nan if row.value.value is None else row.value.value for row in rows]
    return history(numbers, alpha=alpha, least=least)


def grouped(items: Iterable[T], by: Callable[[T], K]) -> dict[K, list[T]]:
    """The items by a key, in the order of their first ones.

    >>> grouped(["aa", "b", "cc"], len)
    {2: ['aa', 'cc'], 1: ['b']}
    """
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups


def pivot(columns: Sequence[Mapping[K, T]]) -> dict[K, tuple[T | None, ...]]:
    """Every key with what each column has of it, None where it has nothing.

    >>> pivot([{"cpu": 1, "loss": 2}, {"cpu": 3}])
    {'cpu': (1, 3), 'loss': (2, None)}
    """
    keys = dict.fromkeys(key for column in columns for key in column)
    return {key: tuple(column.get(key) for column in columns) for key in keys}
