"""What a campaign proves or refutes: limits, loss beyond what an overload explains, claims, and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from soakwatch.campaign.model import Cell
from soakwatch.campaign.tables.cells import CellData, CellFigure
from soakwatch.campaign.tables.derived import capacity_cell, neighbours
from soakwatch.campaign.tables.sheet import figure_words
from soakwatch.campaign.tables.spec import VERDICT, Claim, Comparison, Limit, LossLimit, TablesSpec
from soakwatch.core.formatting import extent, quantity
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.difference import Difference, by_ranks, corrected
from soakwatch_rules.stats.repetitions import tolerance_proven
from soakwatch_rules.wording.words import counted, percent


@dataclass(frozen=True, slots=True)
class CampaignFinding:
    """What is found of one cell, or of a group of cells. ``kind`` is limit, expected loss, claim or comparison;
    ``asked`` is what was asked in words, ``subject`` the cell, ``reason`` the sentence with the numbers."""

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


def findings_of(spec: TablesSpec, cells: Sequence[CellData]) -> tuple[CampaignFinding, ...]:
    """Everything that limits, claims and comparisons of the file say, in their order."""
    found: list[CampaignFinding] = []
    for limit in spec.limits:
        found += _loss(limit, spec, cells) if isinstance(limit, LossLimit) else _limit(limit, spec, cells)
    for claim in spec.claims:
        found += _claim(claim, spec, cells)
    for comparison in spec.comparisons:
        found += _comparison(comparison, spec, cells)
    return tuple(found)


def cell_words(cell: Cell, but: Iterable[str] = ()) -> str:
    """A cell as a sentence names it: ``kind L4, size 64``."""
    return ", ".join(f"{axis} {value}" for axis, value in cell.values.items() if axis not in but) or "all"


def _limit(limit: Limit, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    words = figure_words(limit.figure, spec)
    unit = _unit(limit.figure, cells)
    found = []
    for data in _meant(limit.where.takes, cells):
        figure = data.figures[limit.figure]
        ends = [end for end in (limit.at_least, limit.at_most) if end is not None]
        end = ends[0]
        sign = "at least" if limit.at_most is None else "at most"
        asked = f"{words} {sign} {quantity(end, unit)}"

        def keeps(value: float, end: float = end) -> bool:
            return value >= end if limit.at_most is None else value <= end

        outcome, reason = _kept(figure, limit, keeps)
        found.append(
            CampaignFinding(
                "limit",
                asked,
                outcome,
                cell_words(data.cell),
                words,
                reason,
                figure.median,
                end,
                figure.unit,
                figure.low,
                figure.high,
            )
        )
    return found or [_nothing("limit", words, limit.where.words)]


def _kept(figure: CellFigure, limit: Limit, keeps: object) -> tuple[Outcome, str]:
    assert callable(keeps)
    if figure.median is None:
        return Outcome.INCONCLUSIVE, figure.reason
    median = quantity(figure.median, figure.unit)
    if limit.median or not figure.by_run:
        if figure.low is None or figure.high is None:
            inside = bool(keeps(figure.median))
            sure = "has no interval: 6 runs are the least" if figure.by_run else "is derived of too few runs"
            if figure.n > 1 or figure.by_run:
                return Outcome.INCONCLUSIVE, f"the median of {counted(figure.n, 'run')}, {median}, {sure}"
            return (Outcome.PASS if inside else Outcome.FAIL), median
        both = [bool(keeps(figure.low)), bool(keeps(figure.high))]
        span = extent(figure.low, figure.high, figure.unit)
        outcome = Outcome.PASS if all(both) else Outcome.INCONCLUSIVE if any(both) else Outcome.FAIL
        return outcome, f"median {median}, interval {span}, {counted(figure.n, 'run')}"
    beyond = [value for value in figure.values if not keeps(value)]
    least, most = min(figure.values), max(figure.values)
    span = extent(least, most, figure.unit)
    if beyond:
        return Outcome.FAIL, f"{len(beyond)} of {counted(figure.n, 'run')} beyond it: {span}"
    if figure.reason:
        return Outcome.INCONCLUSIVE, f"kept as far as runs have it: {span}; {figure.reason}"
    return Outcome.PASS, f"{span}, {counted(figure.n, 'run')}"


def _loss(limit: LossLimit, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    """One finding for each group of cells that differ in the load alone."""
    overload = limit.overload
    every = [data.cell for data in cells if limit.where.takes(data.cell)]
    known = {data.cell.id: data.figures for data in cells}
    excess = next(
        figure.name
        for figure in spec.figures
        if getattr(figure, "overload", None) == overload and getattr(figure, "excess", False)
    )
    asked = f"loss at most {quantity(limit.excess, '1')} above what the overload explains"
    found, done = [], set[str]()
    for cell in every:
        if cell.id in done:
            continue
        group = neighbours(cell, overload.along, every)
        done |= {other.id for other in group}
        found.append(_loss_of(limit, group, known, excess, asked))
    return found or [_nothing("expected loss", "loss", limit.where.words)]


def _loss_of(
    limit: LossLimit, group: Sequence[Cell], known: Mapping[str, Mapping[str, CellFigure]], excess: str, asked: str
) -> CampaignFinding:
    overload = limit.overload
    subject = cell_words(group[0], [overload.along])
    base = capacity_cell(overload, group[0], group, known)
    if base is None:
        reason = f"no capacity: each {overload.along} of these lost packets; add one below the capacity"
        return CampaignFinding(
            "expected loss", asked, Outcome.INCONCLUSIVE, subject, overload.loss, reason, None, limit.excess, "1"
        )
    capacity = known[base.id][overload.received]
    parts, outcomes, worst = [], [], None
    for cell in group:
        if cell.id == base.id:
            continue
        here = known[cell.id]
        over, loss, offered = here[excess], here[overload.loss], here[overload.offered]
        load = f"{overload.along} {cell.values[overload.along]}"
        if over.median is None or loss.median is None or offered.median is None or capacity.median is None:
            outcomes.append(Outcome.INCONCLUSIVE)
            parts.append(f"{load}: {over.reason}")
            continue
        expected = max(0.0, 1 - capacity.median / offered.median) if offered.median else 0.0
        inside = over.median <= limit.excess
        outcomes.append(Outcome.PASS if inside else Outcome.FAIL)
        parts.append(f"{load}: {quantity(loss.median, '1')} lost, {quantity(expected, '1')} expected")
        worst = over if worst is None or over.median > (worst.median or 0.0) else worst
    outcome = next((one for one in (Outcome.FAIL, Outcome.INCONCLUSIVE) if one in outcomes), Outcome.PASS)
    if outcome is Outcome.PASS:
        said = "loss was within the expected range"
    elif outcome is Outcome.FAIL:
        said = "loss was above the expected range"
    else:
        said = "not every load was measured"
    at = f"{overload.along} {base.values[overload.along]}"
    most = f"capacity at least {quantity(capacity.median, capacity.unit)}, without loss at {at}"
    reason = f"{said} ({most}): {'; '.join(parts)}"
    if not parts:
        outcome, reason = Outcome.INCONCLUSIVE, f"{at} is the only load: nothing is above the capacity"
    return CampaignFinding(
        "expected loss",
        asked,
        outcome,
        subject,
        overload.loss,
        reason,
        None if worst is None else worst.median,
        limit.excess,
        "1",
        None if worst is None else worst.low,
        None if worst is None else worst.high,
    )


_PROOF = {"proven": Outcome.PASS, "refuted": Outcome.FAIL, "not decided": Outcome.INCONCLUSIVE}


def _claim(claim: Claim, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    words = figure_words(claim.figure, spec)
    unit = _unit(claim.figure, cells)
    found = []
    for data in _meant(claim.where.takes, cells):
        figure = data.figures[claim.figure]
        source = f" ({claim.source})" if claim.source else ""
        asked = f"{words} is {quantity(claim.value, unit)} ± {quantity(claim.tolerance, '1')}{source}"
        subject = cell_words(data.cell)
        if not figure.values:
            outcome, reason = (
                Outcome.INCONCLUSIVE,
                f"not decided: {figure.reason or 'a derived figure has no runs of its own'}",
            )
        else:
            proof = tolerance_proven(figure.values, claim.value, claim.tolerance)
            outcome = _PROOF[proof.verdict]
            median = f"the median of {counted(figure.n, 'run')} is {quantity(figure.median, figure.unit)}"
            if proof.interval.low is not None:
                median += f", its interval {extent(proof.interval.low, proof.interval.high, figure.unit)}"
            more = ""
            if outcome is Outcome.INCONCLUSIVE:
                more = "; how many more runs would decide it is not known"
                if proof.further is not None:
                    more = f"; about {counted(proof.further, 'more run')} would decide it"
            within = {Outcome.PASS: "within", Outcome.FAIL: "outside", Outcome.INCONCLUSIVE: "against"}[outcome]
            ends = extent(proof.lowest, proof.highest, figure.unit)
            reason = f"{proof.verdict}: {median}, {within} {ends}{more}"
        found.append(
            CampaignFinding(
                "claim",
                asked,
                outcome,
                subject,
                words,
                reason,
                figure.median,
                claim.value,
                figure.unit,
                figure.low,
                figure.high,
            )
        )
    return found or [_nothing("claim", words, claim.where.words)]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two cells whose runs are compared, by what their values are called; or why they cannot be."""

    subject: str
    figure: str
    new: CellFigure
    earlier: CellFigure
    new_name: str
    earlier_name: str


def _comparison(comparison: Comparison, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    names = comparison.figures or tuple(name for name in spec.named if name != VERDICT)
    every = [data.cell for data in cells if comparison.where.takes(data.cell)]
    known = {data.cell.id: data.figures for data in cells}
    pairs = []
    for cell in every:
        base = next(
            (o for o in neighbours(cell, comparison.axis, every) if o.values[comparison.axis] == comparison.to), None
        )
        if base is None or base.id == cell.id:
            continue
        pairs += [
            Pair(
                cell_words(cell, [comparison.axis]),
                name,
                known[cell.id][name],
                known[base.id][name],
                cell.values[comparison.axis],
                comparison.to,
            )
            for name in names
        ]
    asked = f"every {comparison.axis} against {comparison.to}, margin {quantity(comparison.margin, '1')}"
    return compared(pairs, comparison.margin, spec, asked) or [
        _nothing("comparison", comparison.axis, comparison.where.words)
    ]


_JUDGED = {
    "better": Outcome.PASS,
    "equivalent": Outcome.PASS,
    "worse": Outcome.FAIL,
    "different": Outcome.WARN,
    "undecided": Outcome.INCONCLUSIVE,
}


def compared(pairs: Sequence[Pair], margin: float, spec: TablesSpec, asked: str) -> list[CampaignFinding]:
    """A finding for each pair, corrected for their number (Holm). Derived figures without runs of their own are not
    compared."""
    made = [
        by_ranks(pair.new.values, pair.earlier.values, margin)
        for pair in pairs
        if pair.new.values and pair.earlier.values
    ]
    answers = iter(corrected(made))
    found = []
    for pair in pairs:
        words = figure_words(pair.figure, spec)
        where = "" if pair.subject == "all" else f"{pair.subject}: "
        subject = f"{where}{pair.new_name} against {pair.earlier_name}"
        if pair.new.values and pair.earlier.values:
            tested = next(answers)
            judged = tested.judged(pair.new.better or pair.earlier.better)
            sentence = comparison_sentence(pair, tested, judged, words)
            found.append(
                CampaignFinding("comparison", asked, _JUDGED[judged], subject, words, sentence, *ratio_numbers(tested))
            )
            continue
        lacking, name = (pair.earlier, pair.earlier_name) if pair.new.values else (pair.new, pair.new_name)
        if lacking.median is None:
            reason = f"{words}: {name} has none: {lacking.reason}"
            found.append(CampaignFinding("comparison", asked, Outcome.INCONCLUSIVE, subject, words, reason))
    return found


def comparison_sentence(pair: Pair, tested: Difference, judged: str, words: str) -> str:
    """Who has how much more or less of what, with the interval; and how many runs would decide it."""
    if tested.change is None:
        old, new = (quantity(value, pair.new.unit) for value in (tested.old, tested.new))
        said = f"{pair.new_name} has {new}, {pair.earlier_name} {old}"
    elif tested.change == 0:
        said = f"{pair.new_name} is the same as {pair.earlier_name}"
    else:
        said = f"{pair.new_name} has {change_words(tested)} than {pair.earlier_name}"
    said += interval_words(tested)
    n = f"{tested.n_new} and {counted(tested.n_old, 'run')}"
    if tested.n_new == tested.n_old == 1:
        n = "one run each"
    if judged != "undecided":
        p = tested.p_equivalent if judged == "equivalent" else tested.p
        return f"{words}: {said}; {judged}, {n}, p {p:.2g} after Holm's correction"
    return f"{words}: {said}; {n} {'proves' if n == 'one run each' else 'prove'} neither: {tested.needs}"


def change_words(tested: Difference) -> str:
    """``7 % less``."""
    change = tested.change or 0.0
    return f"{percent(abs(change))} {'more' if change > 0 else 'less'}"


def interval_words(tested: Difference) -> str:
    """`` (interval -8 to -6 %)``; empty where there is none."""
    if tested.low is None or tested.high is None:
        return ""
    low, high = (percent(end, sign=True) for end in (tested.low, tested.high))
    return f" (interval {low.removesuffix(' %')} to {high})"


def ratio_numbers(tested: Difference) -> tuple[float | None, float, str, float | None, float | None]:
    """What a finding measures of a comparison: the ratio of new to old, against 1, with its interval."""
    ratio, low, high = (None if end is None else 1 + end for end in (tested.change, tested.low, tested.high))
    return ratio, 1.0, "1", low, high


def _meant(takes: object, cells: Sequence[CellData]) -> list[CellData]:
    assert callable(takes)
    return [data for data in cells if takes(data.cell)]


def _unit(name: str, cells: Sequence[CellData]) -> str:
    """The unit of a figure, of any cell that knows it."""
    return next((data.figures[name].unit for data in cells if data.figures[name].unit), "")


def _nothing(kind: str, figure: str, where: str) -> CampaignFinding:
    reason = f"no cell is meant: the matrix excludes {where or 'all'}"
    return CampaignFinding(kind, figure, Outcome.INCONCLUSIVE, where or "all", figure, reason)
