"""The trials of a search for the capacity as a drawing: load across, loss upwards, and the bounds as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from soakwatch.judge.capacity import CapacitySearch, Trial
from soakwatch.plan.capacity import loss_words
from soakwatch_rules.wording.words import percent

WIDTH, HEIGHT = 760, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 16, 44
_TICKS = 5
_LEAST_LOSS = 0.01  # the axis of loss reaches so far at least


@dataclass(frozen=True, slots=True)
class Dot:
    """One trial at its place in pixels; ``words`` says what it was, ``bad`` that it lost more than the lowest goal."""

    x: float
    y: float
    size: float
    bad: bool
    warmup: bool
    words: str


@dataclass(frozen=True, slots=True)
class Edge:
    """A bound at its place in pixels."""

    x: float
    upper: bool
    words: str


@dataclass(frozen=True, slots=True)
class TrialPlot:
    """What is drawn; ticks are places in pixels with their words."""

    dots: tuple[Dot, ...]
    edges: tuple[Edge, ...]
    across: tuple[tuple[float, str], ...]
    upwards: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def trial_plot(search: CapacitySearch) -> TrialPlot | None:
    """The drawing of a search; None of one without a trial."""
    trials = search.trials
    if not trials:
        return None
    low, high = _reach([trial.level for trial in trials])
    most = max(_LEAST_LOSS, 1.08 * max(trial.loss for trial in trials))
    longest = max(trial.sent_s for trial in trials)
    goal = min((goal.loss for goal in search.goals), default=0.0)

    def x(level: float) -> float:
        return round(_LEFT + (level - low) / (high - low) * (WIDTH - _LEFT - _RIGHT), 1)

    def y(loss: float) -> float:
        return round(HEIGHT - _BOTTOM - loss / most * (HEIGHT - _TOP - _BOTTOM), 1)

    dots = tuple(
        Dot(
            x(trial.level),
            y(trial.loss),
            round(3.0 + 3.0 * trial.sent_s / longest, 1),
            trial.loss > goal,
            trial.warmup,
            _words(trial),
        )
        for trial in trials
    )
    edges = tuple(
        Edge(x(level), upper, f"{word} bound at loss {loss_words(each.loss)}: {100 * level:.2f} %")
        for each in search.goals
        for level, upper, word in ((each.lower, False, "lower"), (each.upper, True, "upper"))
        if level is not None
    )
    across = tuple((x(tick), percent(tick)) for tick in _ticks(low, high))
    upwards = tuple((y(tick), percent(tick)) for tick in _ticks(0.0, most))
    return TrialPlot(dots, edges, across, upwards)


def _words(trial: Trial) -> str:
    warmup = " (warm-up)" if trial.warmup else ""
    return f"{100 * trial.level:.2f} % of full for {trial.sent_s:.1f} s: {percent(trial.loss)} lost{warmup}"


def _reach(levels: Sequence[float]) -> tuple[float, float]:
    low, high = min(levels), max(levels)
    margin = 0.04 * (high - low) or 0.05 * high
    return max(0.0, low - margin), high + margin


def _ticks(low: float, high: float) -> list[float]:
    return [low + (high - low) * index / _TICKS for index in range(_TICKS + 1)]
