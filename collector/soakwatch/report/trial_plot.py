"""The trials of a search for the capacity as a drawing: load across, loss upwards, and the bounds as lines."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.capacity import CapacitySearch, Trial
from soakwatch.plan.capacity_plan import loss_words
from soakwatch.report.svg import Canvas, Dot, Drawn, Label, Stroke
from soakwatch_rules.wording.quantities import percent

WIDTH, HEIGHT = 760, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 16, 44
_TICKS = 5
_LEAST_LOSS = 0.01  # the axis of loss reaches so far at least


def trial_plot(search: CapacitySearch) -> Drawn | None:
    """The drawing of a search; None of one without a trial."""
    trials = search.trials
    if not trials:
        return None
    low, high = _reach([trial.level for trial in trials])
    most = max(_LEAST_LOSS, 1.08 * max(trial.loss for trial in trials))
    longest = max(trial.sent_s for trial in trials)
    goal = min((goal.loss for goal in search.goals), default=0.0)
    canvas = Canvas(WIDTH, HEIGHT, low, high, 0.0, most, _LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM)
    _grid(canvas)
    for each in search.goals:
        for level, side in ((each.lower, "lower"), (each.upper, "upper")):
            if level is not None:
                words = f"{side} bound at loss {loss_words(each.loss)}: {100 * level:.2f} %"
                canvas.strokes.append(Stroke(f"M{canvas.x(level)} {canvas.top}V{canvas.bottom}", side, words))
    for trial in trials:
        kind = "warmup" if trial.warmup else "lossy" if trial.loss > goal else "lossless"
        size = round(3.0 + 3.0 * trial.sent_s / longest, 1)
        canvas.dots.append(Dot(canvas.x(trial.level), canvas.y(trial.loss), size, kind, _words(trial)))
    words = f"Loss of {len(trials)} trials by their load; the table has the same figures"
    return canvas.drawn("Loss of each trial by its load", words)


def _grid(canvas: Canvas) -> None:
    for tick in _ticks(canvas.begin, canvas.end):
        canvas.strokes.append(Stroke(f"M{canvas.x(tick)} {canvas.top}V{canvas.bottom}", "grid"))
        canvas.labels.append(Label(canvas.x(tick), canvas.bottom + 17, percent(tick), "tick", "middle"))
    for tick in _ticks(canvas.low, canvas.high):
        canvas.strokes.append(Stroke(f"M{canvas.left} {canvas.y(tick)}H{canvas.right}", "grid"))
        canvas.labels.append(Label(canvas.left - 6, canvas.y(tick) + 4, percent(tick), "tick", "end"))
    middle = (canvas.left + canvas.right) / 2
    canvas.labels.append(Label(middle, canvas.height - 6, "load, of the generators' full rate", "unit", "middle"))


def _words(trial: Trial) -> str:
    warmup = " (warm-up)" if trial.warmup else ""
    return f"{100 * trial.level:.2f} % of full for {trial.sent_s:.1f} s: {percent(trial.loss)} lost{warmup}"


def _reach(levels: Sequence[float]) -> tuple[float, float]:
    low, high = min(levels), max(levels)
    margin = 0.04 * (high - low) or 0.05 * high
    return max(0.0, low - margin), high + margin


def _ticks(low: float, high: float) -> list[float]:
    return [low + (high - low) * index / _TICKS for index in range(_TICKS + 1)]
