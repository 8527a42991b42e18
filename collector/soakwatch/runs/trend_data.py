"""A trend as JSON and as a table for programs."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping

from soakwatch.core.formatting import iso, no_formula
from soakwatch.runs.figure_trend import FigureChangePoint, FigureTrend, GroupFigure, PlanTrend, RunGroup, TrendResult
from soakwatch.runs.key_figures import FigureValue, figure_text
from soakwatch.runs.trend_runs import TrendRun
from soakwatch_rules.stats.mtbf import CONFIDENCE

COLUMNS = "plan,cell,group,run,begin,verdict,figure,name,value,unit,better,change_point,reason"
"""The columns of the CSV: a line a run and figure, in the order of the groups and of time within."""


def trend_data(trend: TrendResult) -> dict[str, object]:
    """The trend as JSON. Numbers are in their UCUM units, null with a reason where there is none. A change point names
    the first run of the new level; its change is null where the level before was 0."""
    return {
        "by": trend.by,
        "plans": [_plan(plan, trend.by) for plan in trend.plans],
        "left_out": [{"run": run.folder.name, "reason": run.reason} for run in trend.left_out],
    }


def figure_data(value: FigureValue) -> dict[str, object]:
    """One number with what belongs to it."""
    return {"value": value.value, "unit": value.unit, "better": value.better, "reason": value.reason}


def trend_csv(trend: TrendResult) -> str:
    """The single values as CSV with ``COLUMNS``. A missing value is empty and has its reason."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS.split(","))
    for plan in trend.plans:
        group_of = {run.folder: group.name for group in plan.groups for run in group.runs}
        for figure in plan.figures:
            turns = {turn.run.folder for turn in figure.turns}
            for run, value in zip(plan.runs, figure.values, strict=True):
                writer.writerow(
                    [
                        no_formula(plan.plan),
                        no_formula(plan.cell),
                        no_formula(group_of[run.folder]),
                        run.folder.name,
                        iso(run.begin_ns),
                        run.verdict,
                        figure.spec.text,
                        figure.spec.name,
                        "" if value.value is None else repr(value.value),
                        value.unit,
                        value.better,
                        "1" if run.folder in turns else "",
                        value.reason,
                    ]
                )
    return text.getvalue()


def _plan(plan: PlanTrend, by: str) -> dict[str, object]:
    return {
        "plan": plan.plan,
        "cell": plan.cell,
        "groups": [_group(group) for group in plan.groups],
        "runs": [_run(run, by) for run in plan.runs],
        "figures": [_figure(figure, plan) for figure in plan.figures],
    }


def _run(run: TrendRun, by: str) -> dict[str, object]:
    return {
        "run": run.folder.name,
        "begin": iso(run.begin_ns),
        "verdict": run.verdict,
        "group": run.group(by),
        "labels": dict(run.labels),
    }


def _group(group: RunGroup) -> dict[str, object]:
    return {
        "name": group.name,
        "runs": [run.folder.name for run in group.runs],
        "first": iso(group.runs[0].begin_ns),
        "last": iso(group.runs[-1].begin_ns),
        "verdicts": {verdict: group.verdicts.get(verdict, 0) for verdict in ("pass", "fail", "inconclusive")},
        "mtbf": [
            {
                "target": proof.target,
                "runs": proof.runs,
                "seconds": proof.watched_s,
                "failures": proof.failures,
                "at_least_seconds": proof.at_least_s,
                "confidence": CONFIDENCE,
            }
            for proof in group.proofs
        ],
    }


def _figure(figure: FigureTrend, plan: PlanTrend) -> dict[str, object]:
    return {
        "figure": figure.spec.text,
        "name": figure.spec.name,
        "unit": figure.unit,
        "better": figure.better,
        "values": [
            {
                "run": run.folder.name,
                "value": value.value,
                "text": figure_text(figure.spec, value),
                "reason": value.reason,
            }
            for run, value in zip(plan.runs, figure.values, strict=True)
        ],
        "groups": [_line(line) for line in figure.groups],
        "change_points": [_turn(turn) for turn in figure.turns],
        "note": figure.note,
    }


def _line(line: GroupFigure) -> Mapping[str, object]:
    level = line.level
    return {
        "group": line.group,
        "n": level.n,
        "median": level.median,
        "low": level.low,
        "high": level.high,
        "confidence": level.confidence,
        "missing": line.missing,
        "reason": line.reason,
        "against": line.against,
        "change": line.change,
        "outcome": line.outcome,
        "why": line.why,
    }


def _turn(turn: FigureChangePoint) -> Mapping[str, object]:
    return {
        "run": turn.run.folder.name,
        "before": turn.before,
        "after": turn.after,
        "change": turn.change if math.isfinite(turn.change) else None,
        "p": turn.p,
        "worse": turn.worse,
    }
