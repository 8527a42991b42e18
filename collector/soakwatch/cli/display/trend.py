"""A trend on the terminal: one table per figure, with a sparkline of its runs."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.core.formatting import utc
from soakwatch.core.tables import harmless, show_table
from soakwatch.runs.figure_trend import FigureTrend, PlanTrend, TrendResult
from soakwatch.runs.trend_words import (
    change_text,
    interval_text,
    median_text,
    missing_text,
    outcome_text,
    runs_text,
    spark,
    turn_text,
    verdicts_text,
)
from soakwatch_rules.wording.quantities import counted

_MAX_LEFT_OUT = 5


def show_trend(trend: TrendResult, runs: Path) -> None:
    """Print all plans, and which runs were left out."""
    for plan in trend.plans:
        _show_plan(plan, trend.by)
    if not trend.plans:
        click.echo(f"no run in {runs}/ that is over, was judged and was asked for")
    for left in trend.left_out[:_MAX_LEFT_OUT]:
        click.echo(harmless(f"left out: {left.folder.name}: {left.reason}"))
    if len(trend.left_out) > _MAX_LEFT_OUT:
        click.echo(f"left out: {len(trend.left_out) - _MAX_LEFT_OUT} more")


def _show_plan(plan: PlanTrend, by: str) -> None:
    begins = [run.begin_ns for run in plan.runs]
    first, last = (utc(begin_ns)[:10] for begin_ns in (min(begins), max(begins)))
    click.echo(harmless(f"{plan.title}: {counted(len(plan.runs), 'run')}, {first} to {last}"))
    click.echo()
    show_table(
        (by, "verdicts", "first run", "last run"),
        [
            (group.name, verdicts_text(group.verdicts), group.runs[0].folder.name, group.runs[-1].folder.name)
            for group in plan.groups
        ],
    )
    for group in plan.groups:
        for proof in (proof for proof in group.proofs if proof.worth_words):
            click.echo(harmless(f"{group.name}, {proof.target}: {proof.words}"))
    for figure in plan.figures:
        click.echo()
        _show_figure(figure, by)
    if not plan.figures:
        click.echo("\nnone of the usual figures: name some with --figure")
    click.echo()


def _show_figure(figure: FigureTrend, by: str) -> None:
    better = f", {figure.better} is better" if figure.better else ""
    line = spark([value.value for value in figure.values])
    click.echo(harmless(f"{figure.spec.name} ({figure.spec.text}{better})") + (f"  {line}" if line else ""))
    show_table(
        (f"  {by}", "runs", "median", "95 % interval", "change", "compared"),
        [
            (
                f"  {group.group}",
                runs_text(group),
                median_text(figure, group),
                interval_text(figure, group),
                change_text(group.change),
                outcome_text(group),
            )
            for group in figure.groups
        ],
    )
    for turn in figure.turns:
        click.echo(harmless(f"  changes at {turn.run.folder.name}: {turn_text(figure, turn)}"))
    if figure.note:
        click.echo(f"  {figure.note}")
    missing = missing_text(figure)
    if missing:
        click.echo(harmless(f"  {missing}"))
