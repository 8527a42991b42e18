"""Campaigns whose runs have known figures, without records: for tables, marks and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from soakwatch.campaign.campaign_model import Axis, AxisValue, CampaignState, Cell, CellRun
from soakwatch.campaign.tables.cell_figures import Readings
from soakwatch.campaign.tables.comparisons import Earlier
from soakwatch.campaign.tables.parse import tables_of
from soakwatch.campaign.tables.result import CampaignResult, result_of
from soakwatch.campaign.tables.sheet import sheets_of
from soakwatch.campaign.tables.spec import Measured
from soakwatch.core.yaml import parse
from soakwatch.report.blocks import ReportCell, Table
from soakwatch.runs.figure_spec import better_of
from soakwatch.runs.key_figures import FigureValue

Values = Mapping[tuple[str, ...], Sequence[float | None]]
UNITS = {
    "load.rx.packet.rate": "{packet}/s",
    "load.tx.packet.rate": "{packet}/s",
    "load.rx.bit.rate": "bit/s",
    "load.tx.bit.rate": "bit/s",
    "load.connection.rate": "{connection}/s",
    "load.loss": "1",
    "imported.power": "W",
    "system.memory.usage": "By",
    "load.connections": "{connection}",
}


def state_of(axes: Mapping[str, Sequence[str]], runs: Mapping[tuple[str, ...], Sequence[str]]) -> CampaignState:
    """A campaign with these cells; of each the states or verdicts of its repetitions."""
    made = tuple(Axis(name, tuple(AxisValue(value) for value in values)) for name, values in axes.items())
    cells = tuple(Cell(dict(zip(axes, values, strict=True))) for values in product(*axes.values()) if values in runs)
    every = []
    for cell in cells:
        for number, word in enumerate(runs[tuple(cell.values.values())], 1):
            run = CellRun(cell, number)
            if word in {"pass", "fail", "inconclusive"}:
                folder = Path(f"/none/{cell.id}-r{number}")
                run = replace(run, state="ended", verdict=word, reason=f"it is a {word}", folder=folder)
            else:
                state, _, reason = word.partition(": ")
                run = replace(run, state=state, reason=reason)
            every.append(run)
    return CampaignState("made", Path("/none"), made, cells, tuple(every))


def result(
    axes: Mapping[str, Sequence[str]],
    figures: Mapping[str, Values],
    asked: str,
    *,
    runs: Mapping[tuple[str, ...], Sequence[str]] | None = None,
    earlier: Earlier | None = None,
) -> CampaignResult:
    """The result of a campaign whose figures have these numbers by cell; ``asked`` is YAML. None is no number."""
    known = {cell: len(numbers) for values in figures.values() for cell, numbers in values.items()}
    state = state_of(axes, runs or {cell: ["pass"] * n for cell, n in known.items()})

    def read(given: Sequence[CellRun], measured: Sequence[Measured]) -> Readings:
        return {run.folder: {one.name: _value(one, figures, run) for one in measured} for run in given if run.folder}

    return result_of(state, tables_of(parse(asked, "campaign.yaml"), state.axes), read, earlier)


def sheets(made: CampaignResult, table: int = 0) -> tuple[Table, ...]:
    """The views of one of its tables."""
    return sheets_of(made.tables[table], made.spec)


def rows_of(sheet: Table) -> list[tuple[tuple[str, ...], list[ReportCell]]]:
    """The heads of each row of a table, and its figures."""
    return [
        (
            tuple(cell for cell in row if isinstance(cell, str)),
            [cell for cell in row if isinstance(cell, ReportCell)],
        )
        for row in sheet.rows
    ]


def titles_of(sheet: Table, kind: str) -> tuple[str, ...]:
    """The headings of the columns of a kind: head or figure."""
    return tuple(column.title for column in sheet.columns if column.kind == kind)


def _value(one: Measured, figures: Mapping[str, Values], run: CellRun) -> FigureValue:
    metric = one.spec.metric
    numbers = figures.get(one.spec.text, figures.get(metric, {})).get(tuple(run.cell.values.values()), ())
    value = numbers[run.repetition - 1] if run.repetition <= len(numbers) else None
    unit = UNITS[metric]
    better = better_of(metric, one.spec.statistic, unit)
    return FigureValue(value, unit, better, "" if value is not None else f"the run has no {metric}")
