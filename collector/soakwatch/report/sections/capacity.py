"""The capacity: what a search found, its bounds, what limited it, and every trial."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import number, utc
from soakwatch.core.units import show_seconds
from soakwatch.judge.capacity import CapacitySearch, GoalBounds, SearchState, Trial, goal_words, rate_words
from soakwatch.plan.capacity_plan import loss_words
from soakwatch.report.blocks import HTML, Block, Layout, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.svg import SvgCanvas, SvgDot, SvgDrawing, SvgLabel, SvgStroke, tick_texts, ticks_between
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import counted, percent

ORDER = 15
TITLE = "Capacity"
ALWAYS = True
OPEN = True
_GOALS = (
    ReportColumn("loss up to", "number"),
    ReportColumn("capacity", "number"),
    ReportColumn("of full", "number"),
    ReportColumn("lower bound", "number"),
    ReportColumn("upper bound", "number"),
    ReportColumn("result"),
)
_TRIALS = (
    ReportColumn("begin", "time"),
    ReportColumn("load", "number"),
    ReportColumn("sent for", "number"),
    ReportColumn("rate", "number"),
    ReportColumn("offered", "number"),
    ReportColumn("lost", "number"),
    ReportColumn("loss", "number"),
    ReportColumn("note"),
)
WIDTH, HEIGHT = 760, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 20, 16, 44
_TICKS = 5
_LEAST_LOSS = 0.01  # the axis of loss reaches so far at least


def blocks(page: Page) -> Sequence[Block] | None:
    """What each search found, its bounds, and its trials."""
    return [block for search in page.verdict.capacity for block in _blocks(search)] or None


def _blocks(search: CapacitySearch) -> list[Block]:
    drawn: list[Block] = []
    if search.state is not SearchState.FOUND:
        why = "The search goes on" if search.state is SearchState.RUNNING else f"Not finished: {search.reason}"
        drawn.append(Text(f"{why}.", outcome=Outcome.INCONCLUSIVE))
    for goal in search.goals:
        words = goal_words(goal, search.unit)
        drawn.append(Text(words[0].upper() + words[1:] + ".", tone="strong"))
    if search.basis:
        drawn.append(Text(f"Counted as lost: {search.basis}.", tone="soft"))
    drawn += [Text(f"Note: {note}.", tone="soft") for note in search.notes]
    if search.goals:
        drawn.append(Table("Bounds of each goal", _GOALS, [_goal(goal, search) for goal in search.goals], HTML))
    if search.trials:
        drawn.append(Table("Trials", _TRIALS, _trials(search), brief=8, folded_after=30))
    if plot := trial_plot(search):
        drawn.append(Layout("trial_plot", lambda: {"plot": plot}))
    return drawn


def _goal(goal: GoalBounds, search: CapacitySearch) -> list[ReportCell | str]:
    bound = goal.bound(search.state)
    result = "none found" if bound is None else f"{bound}: {goal.limit}" if goal.limit else bound
    return [
        loss_words(goal.loss),
        "–" if goal.rate is None else rate_words(goal.rate, search.unit),
        _percent(goal.throughput),
        _percent(goal.lower),
        _percent(goal.upper),
        ReportCell(result, "caution" if goal.limit else ""),
    ]


def _trials(search: CapacitySearch) -> list[list[ReportCell | str]]:
    rows: list[list[ReportCell | str]] = []
    for trial in search.trials:
        notes = ["warm-up, not counted"] if trial.warmup else []
        again = trial.repeats - trial.retries
        notes += [f"repeated {counted(again, 'time')}"] if again else []
        notes += [f"tried again {counted(trial.retries, 'time')}"] if trial.retries else []
        if trial.lost > 0 and len(trial.ways) > 1:
            notes += [f"{percent(way.lost / way.offered)} {way.words}" for way in trial.ways if way.lost is not None]
        if trial.refused:
            notes.append(f"refused: {percent(trial.attained or 0.0)} of what was asked for was sent")
        rows.append(
            [
                utc(trial.begin_ns)[11:19],
                _percent(trial.level),
                show_seconds(round(trial.sent_s, 1)),
                rate_words(trial.rate, search.unit),
                number(round(trial.offered)),
                number(round(trial.lost)),
                percent(trial.loss),
                ", ".join(notes),
            ]
        )
    return rows


def _percent(level: float | None) -> str:
    return "–" if level is None else f"{100 * level:.2f} %"


def trial_plot(search: CapacitySearch) -> SvgDrawing | None:
    """The drawing of a search; None of one without a trial."""
    trials = search.trials
    if not trials:
        return None
    low, high = _reach([trial.level for trial in trials])
    most = max(_LEAST_LOSS, 1.08 * max(trial.loss for trial in trials))
    longest = max(trial.sent_s for trial in trials)
    goal = min((goal.loss for goal in search.goals), default=0.0)
    canvas = SvgCanvas(WIDTH, HEIGHT, low, high, 0.0, most, _LEFT, WIDTH - _RIGHT, _TOP, HEIGHT - _BOTTOM)
    _grid(canvas)
    for each in search.goals:
        for level, side in ((each.lower, "lower"), (each.upper, "upper")):
            if level is not None:
                words = f"{side} bound at loss {loss_words(each.loss)}: {100 * level:.2f} %"
                canvas.strokes.append(SvgStroke(f"M{canvas.x(level)} {canvas.top}V{canvas.bottom}", side, words))
    for trial in trials:
        kind = "warmup" if trial.warmup else "lossy" if trial.loss > goal else "lossless"
        size = round(3.0 + 3.0 * trial.sent_s / longest, 1)
        canvas.dots.append(SvgDot(canvas.x(trial.level), canvas.y(trial.loss), size, kind, _words(trial)))
    words = f"Loss of {len(trials)} trials by their load; the table has the same figures"
    return canvas.drawn("Loss of each trial by its load", words)


def _grid(canvas: SvgCanvas) -> None:
    for tick, text in _ticks(canvas.begin, canvas.end):
        canvas.strokes.append(SvgStroke(f"M{canvas.x(tick)} {canvas.top}V{canvas.bottom}", "grid"))
        canvas.labels.append(SvgLabel(canvas.x(tick), canvas.bottom + 17, text, "tick", "middle"))
    for tick, text in _ticks(canvas.low, canvas.high):
        canvas.strokes.append(SvgStroke(f"M{canvas.left} {canvas.y(tick)}H{canvas.right}", "grid"))
        canvas.labels.append(SvgLabel(canvas.left - 6, canvas.y(tick) + 4, text, "tick", "end"))
    middle = (canvas.left + canvas.right) / 2
    canvas.labels.append(SvgLabel(middle, canvas.height - 6, "load, of the generators' full rate", "unit", "middle"))


def _words(trial: Trial) -> str:
    warmup = " (warm-up)" if trial.warmup else ""
    return f"{100 * trial.level:.2f} % of full for {trial.sent_s:.1f} s: {percent(trial.loss)} lost{warmup}"


def _reach(levels: Sequence[float]) -> tuple[float, float]:
    low, high = min(levels), max(levels)
    margin = 0.04 * (high - low) or 0.05 * high
    return max(0.0, low - margin), high + margin


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Round shares between the ends, with their words."""
    ticks = ticks_between(100 * low, 100 * high, _TICKS)
    return [(tick / 100, f"{text} %") for tick, text in zip(ticks, tick_texts(ticks), strict=True)]
