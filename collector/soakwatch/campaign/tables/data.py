"""A campaign as data: a line for each cell and figure as CSV, and everything as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict

from soakwatch.campaign.campaign_model import CellRun
from soakwatch.campaign.tables.cell_figures import CellData, CellFigure
from soakwatch.campaign.tables.result import DEFINITION, CampaignResult
from soakwatch.core.formatting import iso, no_formula
from soakwatch.core.yaml import Plain

CSV_COLUMNS = "figure,unit,better,n,median,low,high,min,max,verdict,runs,passed,reason"
"""What follows the axes; ``low`` and ``high`` are the 95 % interval of the median."""
JSON_VERSION = 1


def render_csv(result: CampaignResult) -> str:
    """A line for each cell and figure; numbers in the unit of the figure, empty where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    axes = [axis.name for axis in result.state.axes]
    writer.writerow([*axes, *CSV_COLUMNS.split(",")])
    for data in result.cells:
        values = [no_formula(data.cell.values[axis]) for axis in axes]
        verdict = "" if data.verdict.outcome is None else data.verdict.outcome.value
        passed = sum(n for outcome, n in data.verdict.counts.items() if outcome.value == "pass")
        for name, figure in _figures(result, data):
            numbers = [figure.median, figure.low, figure.high, figure.least, figure.most]
            writer.writerow(
                [
                    *values,
                    no_formula(name),
                    figure.unit,
                    figure.better,
                    figure.n,
                    *("" if number is None else repr(number) for number in numbers),
                    verdict,
                    len(data.runs),
                    passed,
                    no_formula("; ".join(part for part in (figure.reason, figure.note) if part)),
                ]
            )
    return text.getvalue()


def render_json(result: CampaignResult) -> str:
    """Everything as JSON: verdict, cells with their runs and figures, findings, doubts."""
    return json.dumps(result_data(result), indent=2, ensure_ascii=False) + "\n"


def result_data(result: CampaignResult) -> dict[str, Plain]:
    """Everything as plain data, for JSON."""
    state = result.state
    return {
        "version": JSON_VERSION,
        "campaign": state.name,
        "verdict": result.outcome.value,
        "preliminary": result.goes_on,
        "reason": result.reason,
        "definition": DEFINITION,
        "labels": dict(state.labels),
        "axes": [{"name": axis.name, "values": [value.name for value in axis.values]} for axis in state.axes],
        "states": dict(result.states.items()),
        "made_again": result.again,
        "against": result.earlier or None,
        "doubts": list(result.doubts),
        "findings": [{**asdict(finding), "outcome": finding.outcome.value} for finding in result.findings],
        "cells": [_cell(result, data) for data in result.cells],
    }


def _cell(result: CampaignResult, data: CellData) -> dict[str, Plain]:
    verdict = data.verdict
    return {
        "values": dict(data.cell.values),
        "verdict": None if verdict.outcome is None else verdict.outcome.value,
        "counts": {outcome.value: number for outcome, number in verdict.counts.items()},
        "reason": verdict.reason,
        "figures": [_figure(name, figure) for name, figure in _figures(result, data)],
        "runs": [_run(run) for run in data.runs],
    }


def _figure(name: str, figure: CellFigure) -> dict[str, Plain]:
    return {
        "figure": name,
        "unit": figure.unit,
        "better": figure.better or None,
        "n": figure.n,
        "median": figure.median,
        "low": figure.low,
        "high": figure.high,
        "min": figure.least,
        "max": figure.most,
        "values": dict(figure.by_run.items()),
        "reason": figure.reason,
        "note": figure.note,
    }


def _run(run: CellRun) -> dict[str, Plain]:
    return {
        "repetition": run.repetition,
        "attempt": run.attempt,
        "state": run.state,
        "verdict": run.verdict,
        "reason": run.reason,
        "run": None if run.folder is None else run.folder.name,
        "testbed": run.testbed or None,
        "begin": None if run.begin_ns is None else iso(run.begin_ns),
        "end": None if run.end_ns is None else iso(run.end_ns),
    }


def _figures(result: CampaignResult, data: CellData) -> Iterator[tuple[str, CellFigure]]:
    """All figures of a cell: those that the file lists, in its order, then those that others are made of."""
    names = [*result.spec.named, *(f.name for f in result.spec.figures if f.name not in result.spec.named)]
    yield from ((name, data.figures[name]) for name in names)
