"""What a campaign proves or refutes: limits, loss beyond what an overload explains, and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.campaign.campaign_model import Cell
from soakwatch.campaign.tables.cell_figures import CellData, CellFigure
from soakwatch.campaign.tables.derived import capacity_cell, neighbours
from soakwatch.campaign.tables.spec import Claim, ExpectedLoss, Limit, LossLimit, TablesSpec, Where, takes, where_words
from soakwatch.core.formatting import extent, quantity
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.repetitions import tolerance_proven
from soakwatch_rules.wording.quantities import counted


@dataclass(frozen=True, slots=True)
class CampaignFinding:
    """One answer about a cell, or about a group of cells. ``kind`` is limit, expected loss, claim, comparison or phase
    time; ``asked`` is the question in words, ``subject`` the cell, ``reason`` the answer with its numbers."""

    kind: str
    asked: str
    outcome: Outcome
    subject: str
    figure: str
    reason: str
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    low: float | None = None
    high: float | None = None

    def of(self, figure: CellFigure, limit: float) -> CampaignFinding:
        """The same with the numbers of a figure and the limit that it was compared with."""
        low, high = figure.low, figure.high
        return replace(self, measured=figure.median, limit=limit, unit=figure.unit, low=low, high=high)


def findings_of(spec: TablesSpec, cells: Sequence[CellData]) -> tuple[CampaignFinding, ...]:
    """The answers to all limits and claims of the file, in their order."""
    found: list[CampaignFinding] = []
    for limit in spec.limits:
        found += _loss(limit, spec, cells) if isinstance(limit, LossLimit) else _limit(limit, spec, cells)
    for claim in spec.claims:
        found += _claim(claim, spec, cells)
    return tuple(found)


def cell_words(cell: Cell, but: Iterable[str] = ()) -> str:
    """A cell as a sentence names it: ``kind L4, size 64``."""
    return ", ".join(f"{axis} {value}" for axis, value in cell.values.items() if axis not in but) or "all"


def no_cell(kind: str, figure: str, where: Where) -> CampaignFinding:
    """The answer where the matrix excludes every cell that the question is about."""
    words = where_words(where) or "all"
    reason = f"no cell is meant: the matrix excludes {words}"
    return CampaignFinding(kind, figure, Outcome.INCONCLUSIVE, words, figure, reason)


def _limit(limit: Limit, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    words, unit = spec.words(limit.figure), _unit(limit.figure, cells)
    least, most = limit.at_least, limit.at_most
    end = next(end for end in (least, most) if end is not None)
    asked = f"{words} {'at least' if most is None else 'at most'} {quantity(end, unit)}"

    def keeps(value: float) -> bool:
        return value >= end if most is None else value <= end

    found = []
    for data in cells:
        if takes(limit.where, data.cell):
            figure = data.figures[limit.figure]
            outcome, reason = _kept(figure, keeps, of_median=limit.of == "median")
            made = CampaignFinding("limit", asked, outcome, cell_words(data.cell), words, reason)
            found.append(made.of(figure, end))
    return found or [no_cell("limit", words, limit.where)]


def _kept(figure: CellFigure, keeps: Callable[[float], bool], *, of_median: bool) -> tuple[Outcome, str]:
    if figure.median is None:
        return Outcome.INCONCLUSIVE, figure.reason
    median, runs = quantity(figure.median, figure.unit), counted(figure.n, "run")
    if of_median or not figure.by_run:
        if figure.low is None or figure.high is None:
            sure = "has no interval: 6 runs are the least" if figure.by_run else "is derived of too few runs"
            if figure.n > 1 or figure.by_run:
                return Outcome.INCONCLUSIVE, f"the median of {runs}, {median}, {sure}"
            return (Outcome.PASS if keeps(figure.median) else Outcome.FAIL), median
        both = [keeps(figure.low), keeps(figure.high)]
        outcome = Outcome.PASS if all(both) else Outcome.INCONCLUSIVE if any(both) else Outcome.FAIL
        return outcome, f"median {median}, interval {extent(figure.low, figure.high, figure.unit)}, {runs}"
    beyond = sum(not keeps(value) for value in figure.values)
    span = extent(min(figure.values), max(figure.values), figure.unit)
    if beyond:
        return Outcome.FAIL, f"{beyond} of {runs} beyond it: {span}"
    if figure.reason:
        return Outcome.INCONCLUSIVE, f"kept as far as runs have it: {span}; {figure.reason}"
    return Outcome.PASS, f"{span}, {runs}"


def _loss(limit: LossLimit, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    """One finding for each group of cells that differ in the load alone."""
    every = [data.cell for data in cells if takes(limit.where, data.cell)]
    known = {data.cell.id: data.figures for data in cells}
    losses = [figure for figure in spec.figures if isinstance(figure, ExpectedLoss)]
    excess = next(figure.name for figure in losses if figure.excess and figure.overload == limit.overload)
    found, done = [], set[str]()
    for cell in every:
        if cell.id not in done:
            group = neighbours(cell, limit.along, every)
            done |= {other.id for other in group}
            found.append(_loss_of(limit, group, known, excess))
    return found or [no_cell("expected loss", "loss", limit.where)]


def _loss_of(
    limit: LossLimit, group: Sequence[Cell], known: Mapping[str, Mapping[str, CellFigure]], excess: str
) -> CampaignFinding:
    asked = f"loss at most {quantity(limit.excess, '1')} above what the overload explains"
    subject = cell_words(group[0], [limit.along])
    made = CampaignFinding("expected loss", asked, Outcome.INCONCLUSIVE, subject, limit.loss, "")
    made = replace(made, limit=limit.excess, unit="1")
    base = capacity_cell(limit, group[0], group, known)
    if base is None:
        reason = f"no capacity: each {limit.along} of these lost packets; add one below the capacity"
        return replace(made, reason=reason)
    capacity = known[base.id][limit.received]
    parts, outcomes, worst = [], [], CellFigure()
    for cell in group:
        if cell.id == base.id:
            continue
        over, loss, offered = (known[cell.id][name] for name in (excess, limit.loss, limit.offered))
        load = f"{limit.along} {cell.values[limit.along]}"
        if over.median is None or loss.median is None or offered.median is None or capacity.median is None:
            outcomes.append(Outcome.INCONCLUSIVE)
            parts.append(f"{load}: {over.reason}")
            continue
        expected = max(0.0, 1 - capacity.median / offered.median) if offered.median else 0.0
        outcomes.append(Outcome.PASS if over.median <= limit.excess else Outcome.FAIL)
        parts.append(f"{load}: {quantity(loss.median, '1')} lost, {quantity(expected, '1')} expected")
        worst = over if worst.median is None or over.median > worst.median else worst
    at = f"{limit.along} {base.values[limit.along]}"
    if not parts:
        return replace(made, reason=f"{at} is the only load: nothing is above the capacity")
    outcome = next((one for one in _LOSS_WORDS if one in outcomes), Outcome.PASS)
    most = f"capacity at least {quantity(capacity.median, capacity.unit)}, without loss at {at}"
    reason = f"{_LOSS_WORDS[outcome]} ({most}): {'; '.join(parts)}"
    return replace(made, outcome=outcome, reason=reason, measured=worst.median, low=worst.low, high=worst.high)


_LOSS_WORDS = {
    Outcome.FAIL: "loss was above the expected range",
    Outcome.INCONCLUSIVE: "not every load was measured",
    Outcome.PASS: "loss was within the expected range",
}


def _claim(claim: Claim, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    words, unit = spec.words(claim.figure), _unit(claim.figure, cells)
    source = f" ({claim.source})" if claim.source else ""
    asked = f"{words} is {quantity(claim.value, unit)} ± {quantity(claim.tolerance, '1')}{source}"
    found = []
    for data in cells:
        if takes(claim.where, data.cell):
            figure = data.figures[claim.figure]
            outcome, reason = _proof(claim, figure)
            made = CampaignFinding("claim", asked, outcome, cell_words(data.cell), words, reason)
            found.append(made.of(figure, claim.value))
    return found or [no_cell("claim", words, claim.where)]


def _proof(claim: Claim, figure: CellFigure) -> tuple[Outcome, str]:
    if not figure.values:
        reason = figure.reason or "a derived figure has no runs of its own"
        return Outcome.INCONCLUSIVE, f"not decided: {reason}"
    proof = tolerance_proven(figure.values, claim.value, claim.tolerance)
    median = f"the median of {counted(figure.n, 'run')} is {quantity(figure.median, figure.unit)}"
    if proof.interval.low is not None:
        median += f", its interval {extent(proof.interval.low, proof.interval.high, figure.unit)}"
    ends = extent(proof.lowest, proof.highest, figure.unit)
    if proof.verdict == "proven":
        return Outcome.PASS, f"proven: {median}, within {ends}"
    if proof.verdict == "refuted":
        return Outcome.FAIL, f"refuted: {median}, outside {ends}"
    more = "how many more runs would decide it is not known"
    if proof.further is not None:
        more = f"about {counted(proof.further, 'more run')} would decide it"
    return Outcome.INCONCLUSIVE, f"not decided: {median}, against {ends}; {more}"


def _unit(name: str, cells: Sequence[CellData]) -> str:
    """The unit of a figure: that of the first cell that has it."""
    return next((data.figures[name].unit for data in cells if data.figures[name].unit), "")
