"""Reads the figures of a campaign's runs from their records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from soakwatch.campaign.model import CampaignState, CellRun
from soakwatch.campaign.tables.cells import ENDED, last_attempts
from soakwatch.campaign.tables.spec import Measured
from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.runs.figures import STANDARD, FigureSpec, FigureValue, figure_of, standard_figures

_MOST_STANDARD = 6


def ended_runs(state: CampaignState) -> tuple[CellRun, ...]:
    """The runs that tables are made of: the last attempt of each repetition, if it has ended."""
    runs = (run for runs in last_attempts(state.runs).values() for run in runs)
    return tuple(run for run in runs if run.state == ENDED and run.folder is not None)


def read_figures(runs: Iterable[CellRun], measured: Sequence[Measured]) -> Mapping[Path, Mapping[str, FigureValue]]:
    """The figures of runs, by folder and name. A record that cannot be read gives its figures the reason."""
    return {run.folder: figures_in(run.folder, measured) for run in runs if run.folder is not None}


def figures_in(folder: Path, measured: Sequence[Measured]) -> Mapping[str, FigureValue]:
    """The figures of one run by name; of a record that was changed since it was sealed, only that."""
    if not measured:
        return {}
    try:
        with RecordView.open(folder) as view:
            if words := view.check().words:
                return {figure.name: FigureValue(None, "", reason=f"the record was {words}") for figure in measured}
            return {figure.name: figure_of(view, figure.spec) for figure in measured}
    except (RecordError, OSError) as error:
        reason = f"the record cannot be read: {error}".replace(f"{folder}/", "")
        return {figure.name: FigureValue(None, "", reason=reason) for figure in measured}


def usual_figures(runs: Sequence[CellRun], most: int = _MOST_STANDARD) -> tuple[FigureSpec, ...]:
    """The standard figures that one run of any cell has, most important first."""
    first = {run.cell.id: run.folder for run in reversed(runs) if run.folder is not None}
    found: dict[str, FigureSpec] = {}
    for folder in first.values():
        try:
            with RecordView.open(folder) as view:
                found.update((spec.text, spec) for spec in standard_figures(view))
        except (RecordError, OSError):
            continue
    order = {spec.text: place for place, spec in enumerate(STANDARD)}
    return tuple(sorted(found.values(), key=lambda spec: order.get(spec.text, len(order)))[:most])
