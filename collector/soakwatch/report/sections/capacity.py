"""The capacity: what a search found, its bounds, what limited it, and every trial."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import number, utc
from soakwatch.core.units import show_seconds
from soakwatch.judge.capacity import CapacitySearch, GoalBounds, SearchState, goal_words, rate_words
from soakwatch.plan.capacity_plan import loss_words
from soakwatch.report.blocks import HTML, Block, Cell, Column, Layout, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.trial_plot import trial_plot
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import percent

ORDER = 15
TITLE = "Capacity"
ALWAYS = True
OPEN = True
_GOALS = (
    Column("loss up to", "number"),
    Column("capacity", "number"),
    Column("of full", "number"),
    Column("lower bound", "number"),
    Column("upper bound", "number"),
    Column("result"),
)
_TRIALS = (
    Column("begin", "time"),
    Column("load", "number"),
    Column("sent for", "number"),
    Column("rate", "number"),
    Column("offered", "number"),
    Column("lost", "number"),
    Column("loss", "number"),
    Column("note"),
)


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


def _goal(goal: GoalBounds, search: CapacitySearch) -> list[Cell | str]:
    bound = goal.bound(search.state)
    result = "none found" if bound is None else f"{bound}: {goal.limit}" if goal.limit else bound
    return [
        loss_words(goal.loss),
        "–" if goal.rate is None else rate_words(goal.rate, search.unit),
        _percent(goal.throughput),
        _percent(goal.lower),
        _percent(goal.upper),
        Cell(result, "caution" if goal.limit else ""),
    ]


def _trials(search: CapacitySearch) -> list[list[Cell | str]]:
    rows: list[list[Cell | str]] = []
    for trial in search.trials:
        notes = ["warm-up, not counted"] if trial.warmup else []
        notes += [f"repeated {trial.repeats} times"] if trial.repeats else []
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
