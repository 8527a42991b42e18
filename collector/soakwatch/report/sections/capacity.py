# ruff: noqa: E501 - lines of HTML are as long as they are
"""The capacity: what a search found, its bounds, what limited it, and every trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import number, utc
from soakwatch.core.units import show_seconds
from soakwatch.judge.capacity import CapacitySearch, GoalBounds, SearchState, goal_words, rate_words
from soakwatch.plan.capacity import loss_words
from soakwatch.report.blocks import HTML, Block, Cell, Column, Table, Text, columns_in
from soakwatch.report.page import Page
from soakwatch.report.trial_plot import trial_plot
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.words import percent

ORDER = 15
TITLE = "Capacity"
ALWAYS = True
OPEN = True
TEMPLATE = """\
{% for search in searches %}
{% with drawn = search.drawn %}{% include "blocks.html.jinja" %}{% endwith %}
{% if search.plot %}{% set p = search.plot %}
<div class="card scroll"><h4>Loss of each trial by its load</h4>
<svg viewBox="0 0 {{ p.width }} {{ p.height }}" role="img" aria-label="Loss of {{ p.dots|length }} trials by their load; the table has the same figures" style="width:100%;max-width:{{ p.width }}px;height:auto;font-size:12px">
{% for x, words in p.across %}<line x1="{{ x }}" x2="{{ x }}" y1="{{ p.top }}" y2="{{ p.bottom }}" stroke="var(--line)"/><text x="{{ x }}" y="{{ p.bottom + 17 }}" text-anchor="middle" fill="var(--soft)">{{ words }}</text>
{% endfor %}
{% for y, words in p.upwards %}<line x1="{{ p.left }}" x2="{{ p.right }}" y1="{{ y }}" y2="{{ y }}" stroke="var(--line)"/><text x="{{ p.left - 6 }}" y="{{ y + 4 }}" text-anchor="end" fill="var(--soft)">{{ words }}</text>
{% endfor %}
<text x="{{ (p.left + p.right) / 2 }}" y="{{ p.height - 6 }}" text-anchor="middle" fill="var(--soft)">load, of the generators' full rate</text>
{% for edge in p.edges %}<line x1="{{ edge.x }}" x2="{{ edge.x }}" y1="{{ p.top }}" y2="{{ p.bottom }}" stroke="var({{ "--fail" if edge.upper else "--pass" }})" stroke-width="2"{% if edge.upper %} stroke-dasharray="6 4"{% endif %}><title>{{ edge.words }}</title></line>
{% endfor %}
{% for dot in p.dots %}<circle cx="{{ dot.x }}" cy="{{ dot.y }}" r="{{ dot.size }}" fill="{{ "none" if dot.warmup else "var(--fail)" if dot.bad else "var(--pass)" }}" stroke="var({{ "--soft" if dot.warmup else "--fail" if dot.bad else "--pass" }})" stroke-width="1.5"><title>{{ dot.words }}</title></circle>
{% endfor %}
</svg>
<p class="soft">A dot is a trial, the larger the longer; an empty one was for warming up. Lines are the bounds: solid the highest load that holds, dashed the lowest that does not.</p></div>
{% endif %}
{% endfor %}
"""
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


def facts(page: Page) -> Mapping[str, object] | None:
    """The same with a drawing of the trials."""
    searches = [
        {
            "drawn": [
                (type(block).__name__, block, columns_in(block, "html") if isinstance(block, Table) else ())
                for block in _blocks(search)
                if "html" in block.formats
            ],
            "plot": trial_plot(search),
        }
        for search in page.verdict.capacity
    ]
    return {"searches": searches} if searches else None


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
