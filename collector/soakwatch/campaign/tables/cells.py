"""What the runs of a cell say together: their verdicts, and of each figure the median with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.campaign.model import CampaignState, Cell, CellRun
from soakwatch.campaign.tables.spec import Measured
from soakwatch.runs.figures import Better, FigureValue
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.repetitions import median_interval
from soakwatch_rules.wording.words import counted

NOT_RUN, EXCLUDED, RUNNING, NO_READING = "not run", "excluded", "running", "no reading"
CONFIDENCE = 0.95
ENDED, LOST, WAITING = "ended", "lost", "waiting"
_WORST_FIRST = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.PASS)

Readings = Mapping[Path, Mapping[str, FigureValue]]
"""What was read of runs: by folder, then by the name of the figure."""


@dataclass(frozen=True, slots=True)
class CellFigure:
    """A figure of a cell. ``by_run`` is one number for each repetition that has it; derived figures have none.

    ``low``..``high`` hold the median with 95 % confidence, or None where there are too few runs for that. ``reason``
    says why there is no number, or what is missing to it, and ``short`` the same in a word or two; ``note`` what else
    a reader must know. One that is not ``ranked`` is no rival of the others, such as the generator by itself.
    """

    unit: str = ""
    better: Better = ""
    median: float | None = None
    low: float | None = None
    high: float | None = None
    by_run: Mapping[int, float] = field(default_factory=dict)
    n: int = 0
    reason: str = ""
    note: str = ""
    ranked: bool = True
    short: str = ""

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers of its runs."""
        return tuple(self.by_run.values())

    @property
    def least(self) -> float | None:
        """The lowest number of a run."""
        return min(self.by_run.values(), default=None)

    @property
    def most(self) -> float | None:
        """The highest number of a run."""
        return max(self.by_run.values(), default=None)


@dataclass(frozen=True, slots=True)
class CellVerdict:
    """The worst verdict of a cell's runs, and how many runs have which. ``outcome`` is None where none has ended;
    ``reason`` says why, ``short`` in a word or two; or what the worst run says."""

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
    """A cell with the last attempt of each repetition, and what they say."""

    cell: Cell
    runs: tuple[CellRun, ...]
    verdict: CellVerdict
    figures: Mapping[str, CellFigure]


def last_attempts(runs: Iterable[CellRun]) -> dict[str, tuple[CellRun, ...]]:
    """The last attempt of each repetition, by the cell's id, repetitions in order."""
    last: dict[str, dict[int, CellRun]] = {}
    for run in runs:
        known = last.setdefault(run.cell.id, {})
        before = known.get(run.repetition)
        if before is None or run.attempt >= before.attempt:
            known[run.repetition] = run
    return {cell: tuple(by[repetition] for repetition in sorted(by)) for cell, by in last.items()}


def cells_of(state: CampaignState, measured: Sequence[Measured], readings: Readings) -> tuple[CellData, ...]:
    """All cells of a campaign with what was read of their runs, in the order of the matrix."""
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
        lack = _absence(runs)
        return CellVerdict(None, {}, len(runs), lack.text, lack.short)
    said = next(run.reason for run in runs if outcomes.get(run.repetition) is worst)
    return CellVerdict(worst, {outcome: n for outcome, n in counts.items() if n}, len(runs), said)


def cell_figure(figure: Measured, runs: Sequence[CellRun], readings: Readings) -> CellFigure:
    """A figure of some repetitions: the median of those that have it, and what the others lack."""
    known: dict[int, float] = {}
    unit, better, lacking = "", figure.better or "", list[_Lack]()
    for run in runs:
        read = None if run.folder is None or run.state != ENDED else readings.get(run.folder, {}).get(figure.name)
        if read is None:
            lacking.append(_absence([run]))
        elif read.value is None or not math.isfinite(read.value):
            unit, better = unit or read.unit, better or read.better
            lacking.append(_Lack(NO_READING, read.reason or f"no reading of {figure.spec.metric}"))
        elif known and read.unit != unit:
            lacking.append(_Lack("other unit", f"in {read.unit or 'no unit'} instead of {unit or 'no unit'}"))
        else:
            known[run.repetition] = read.value
            unit, better = read.unit, figure.better or read.better
    if not known:
        short = lacking[0].short if lacking else NOT_RUN
        return CellFigure(unit, better, reason=_of_all(lacking) or NOT_RUN, short=short)
    interval = median_interval(tuple(known.values()), CONFIDENCE)
    short = f"{len(known)} of {counted(len(runs), 'run')}" if lacking else ""
    reason = f"{short}: {_of_all(lacking)}" if lacking else ""
    return CellFigure(
        unit, better, interval.median, interval.low, interval.high, known, len(known), reason, short=short
    )


@dataclass(frozen=True, slots=True)
class _Lack:
    """Why a run has no number: in a word or two, and whole."""

    short: str
    text: str


def _absence(runs: Sequence[CellRun]) -> _Lack:
    """Why runs have no numbers, by the one that says most."""
    lost = next((run for run in runs if run.state == LOST), None)
    if any(run.state == RUNNING for run in runs):
        return _Lack(RUNNING, RUNNING)
    if lost is not None:
        return _Lack("lost", f"lost: {lost.reason}" if lost.reason else "lost")
    if any(run.state == ENDED for run in runs):
        text = "not judged" if all(run.verdict is None for run in runs) else "no record"
        return _Lack(text, text)
    return _Lack(NOT_RUN, NOT_RUN)


def _of_all(lacking: Sequence[_Lack]) -> str:
    """Several reasons in one text, each once, with its number where it holds for some only."""
    reasons = [lack.text for lack in lacking]
    each = list(dict.fromkeys(reasons))
    if len(each) < 2:
        return "".join(each)
    return "; ".join(f"{reasons.count(reason)} {reason}" for reason in each)
