"""What the runs of a campaign say, cell by cell: their verdicts, and of each figure the median with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from soakwatch.campaign.campaign_model import ENDED, LOST, RUNNING, CampaignState, Cell, CellRun
from soakwatch.campaign.tables.spec import Measured
from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.runs.figure_frame import FigureLevel, RunFigure, grouped, level
from soakwatch.runs.key_figures import STANDARD, FigureSpec, FigureValue, figure_of, standard_figures
from soakwatch_model.finding import Outcome
from soakwatch_rules.wording.quantities import counted

NOT_RUN, EXCLUDED, NO_READING = "not run", "excluded", "no reading"
_MOST_STANDARD = 6
_WORST_FIRST = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)

Readings = Mapping[Path, Mapping[str, FigureValue]]
"""What was read of runs: by folder, then by the name of the figure."""


@dataclass(frozen=True, slots=True)
class CellFigure(FigureLevel):
    """A figure of a cell. Derived figures have no numbers of single runs.

    ``short`` says in a word or two why the number, or a part of its runs, is missing; ``note`` is what else a reader
    must know. A figure that is not ``ranked`` competes with no other: the generator measured alone, for example.
    """

    note: str = ""
    ranked: bool = True
    short: str = ""


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The worst verdict of a cell's runs, and how many runs have which.

    ``outcome`` is None where no run has ended; then ``reason`` says why, and ``short`` in a word or two. Otherwise
    ``reason`` is that of the worst run.
    """

    outcome: Outcome | None
    counts: Mapping[Outcome, int]
    planned: int
    reason: str = ""
    short: str = ""

    @property
    def ended(self) -> int:
        """How many runs have a verdict."""
        return sum(self.counts.values())

    @property
    def words(self) -> str:
        """``fail 2 of 5``; of one run or of runs that agree the verdict alone."""
        if self.outcome is None:
            return self.reason
        count = self.counts[self.outcome]
        return self.outcome.value if count == self.planned else f"{self.outcome.value} {count} of {self.planned}"


@dataclass(frozen=True, slots=True)
class CellData:
    """A cell with the last attempt of each repetition, their verdict and their figures."""

    cell: Cell
    runs: tuple[CellRun, ...]
    verdict: CellVerdict
    figures: Mapping[str, CellFigure]


def last_attempts(runs: Iterable[CellRun]) -> dict[str, tuple[CellRun, ...]]:
    """The last attempt of each repetition, by the cell's id, repetitions in order."""
    return {
        cell: tuple({run.repetition: run for run in sorted(own, key=lambda r: (r.repetition, r.attempt))}.values())
        for cell, own in grouped(runs, lambda run: run.cell.id).items()
    }


def ended_runs(state: CampaignState) -> tuple[CellRun, ...]:
    """The runs that tables are made of: the last attempt of each repetition, if it has ended."""
    runs = (run for runs in last_attempts(state.runs).values() for run in runs)
    return tuple(run for run in runs if run.state == ENDED and run.folder is not None)


def read_figures(runs: Iterable[CellRun], measured: Sequence[Measured]) -> Mapping[Path, Mapping[str, FigureValue]]:
    """The figures of runs, by folder and name. A record that cannot be read gives its figures the reason."""
    return {run.folder: figures_in(run.folder, measured) for run in runs if run.folder is not None}


def figures_in(folder: Path, measured: Sequence[Measured]) -> Mapping[str, FigureValue]:
    """The figures of one run, by name. A record changed after it was sealed gives no figure, only that reason."""
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
    """The standard figures of a campaign, most important first. One run of each cell is looked at."""
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


def cells_of(state: CampaignState, measured: Sequence[Measured], readings: Readings) -> tuple[CellData, ...]:
    """All cells of a campaign in the order of the matrix, each with the figures of its runs."""
    runs_of = last_attempts(state.runs)
    data = []
    for cell in state.cells:
        runs = runs_of.get(cell.id, ())
        figures = {figure.name: cell_figure(figure, runs, readings) for figure in measured}
        data.append(CellData(cell, runs, cell_verdict(runs), figures))
    return tuple(data)


def cell_verdict(runs: Sequence[CellRun]) -> CellVerdict:
    """The worst verdict of some repetitions."""
    outcomes = {run.repetition: Outcome(run.verdict) for run in runs if run.state == ENDED and run.verdict is not None}
    counts = {outcome: list(outcomes.values()).count(outcome) for outcome in _WORST_FIRST}
    worst = next((outcome for outcome in _WORST_FIRST if counts[outcome]), None)
    if worst is None:
        short, text = _absence(runs)
        return CellVerdict(None, {}, len(runs), text, short)
    said = next(run.reason for run in runs if outcomes.get(run.repetition) is worst)
    return CellVerdict(worst, {outcome: n for outcome, n in counts.items() if n}, len(runs), said)


def cell_figure(figure: Measured, runs: Sequence[CellRun], readings: Readings) -> CellFigure:
    """A figure of a cell: the median of the repetitions that have it, and what the others lack."""
    found, lacking = level([_row(figure, run, readings) for run in runs])
    reasons = [row.value.reason for row in lacking]
    each = list(dict.fromkeys(reasons))
    reason = "".join(each) if len(each) < 2 else "; ".join(f"{reasons.count(one)} {one}" for one in each)
    short = lacking[0].short if lacking else NOT_RUN
    if found.n:
        short = f"{found.n} of {counted(len(runs), 'run')}" if lacking else ""
        reason = f"{short}: {reason}" if lacking else ""
    numbers = found.median, found.low, found.high, found.by_run, found.n
    return CellFigure(found.unit, figure.better or found.better, *numbers, reason or short, short=short)


def _row(figure: Measured, run: CellRun, readings: Readings) -> RunFigure:
    read = None if run.folder is None or run.state != ENDED else readings.get(run.folder, {}).get(figure.name)
    name, labels = f"{run.repetition}", run.cell.values
    if read is None:
        short, reason = _absence([run])
        return RunFigure(name, labels, figure.name, FigureValue(None, "", "", reason), short)
    if read.value is None or not math.isfinite(read.value):
        read = replace(read, reason=read.reason or f"no reading of {figure.spec.metric}")
    return RunFigure(name, labels, figure.name, read, NO_READING)


def _absence(runs: Sequence[CellRun]) -> tuple[str, str]:
    """Why runs have no numbers, in a word or two and in full. The first that holds: running, lost, not judged."""
    lost = next((run for run in runs if run.state == LOST), None)
    if any(run.state == RUNNING for run in runs):
        return RUNNING, RUNNING
    if lost is not None:
        return "lost", f"lost: {lost.reason}" if lost.reason else "lost"
    if any(run.state == ENDED for run in runs):
        text = "not judged" if all(run.verdict is None for run in runs) else "no record"
        return text, text
    return NOT_RUN, NOT_RUN
