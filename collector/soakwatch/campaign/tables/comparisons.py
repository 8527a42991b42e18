"""What differs: values of an axis against one of them, a campaign against an earlier one, and that by phase time too.

Everything that one question asks is corrected together (Holm). By phase time, each phase under load (the whole run
where there is none) is cut into equal parts, and each part of each figure of each cell is compared by itself: that
finds where in a phase a figure is worse, which a mean over all may hide. A part needs more runs than the whole, so what
is found is a regression, and where nothing is found nothing is proven. Only cells are compared whose runs all have the
same phases, of the same lengths within 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from soakwatch.campaign.campaign_model import ENDED, CampaignError, CampaignState, CellRun
from soakwatch.campaign.tables.campaign_findings import CampaignFinding, cell_words, no_cell
from soakwatch.campaign.tables.cell_figures import CellData, CellFigure, Readings, cells_of, last_attempts
from soakwatch.campaign.tables.derived import neighbours, with_derived
from soakwatch.campaign.tables.spec import MARGIN, VERDICT, Comparison, Measured, Per, TablesSpec, takes
from soakwatch.core.errors import RecordError
from soakwatch.core.formatting import quantity
from soakwatch.core.units import show_seconds
from soakwatch.record import RecordView
from soakwatch.runs.compare.phase_slots import split
from soakwatch.runs.figure_frame import diff
from soakwatch.runs.key_figures import UNDER_LOAD, figure_over
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.difference import Better, Difference, by_ranks, corrected
from soakwatch_rules.wording.quantities import counted, percent

PARTS = 6
_ALIKE = 0.05
_STATISTICS = frozenset({"mean", "median", "min", "max", "rate", "p50", "p90", "p95", "p99"})
"""What a part of a phase has as the whole has it: no total, no slope, no last."""
_OUTCOMES = {
    "better": Outcome.PASS,
    "equivalent": Outcome.PASS,
    "worse": Outcome.FAIL,
    "different": Outcome.WARN,
    "undecided": Outcome.INCONCLUSIVE,
}


@dataclass(frozen=True, slots=True)
class Earlier:
    """A campaign to compare with. ``names`` are what the new and the earlier campaign are called; a change of up to
    ``margin`` counts as none."""

    state: CampaignState
    names: tuple[str, str]
    margin: float = MARGIN

    @property
    def asked(self) -> str:
        """What is asked by such a comparison."""
        new, old = self.names
        return f"{new} against {old}, margin {quantity(self.margin, '1')}"


def campaign_names(new: CampaignState, earlier: CampaignState) -> tuple[str, str]:
    """What two campaigns are called in sentences: the label in which they differ (their release), else their names.

    >>> from pathlib import Path
    >>> old, now = (CampaignState("nat", Path(v), (), (), (), {"release": v}) for v in ("v2.2", "v2.3"))
    >>> campaign_names(now, old)
    ('v2.3', 'v2.2')
    """
    for label in ("release", *sorted({*new.labels, *earlier.labels})):
        one, other = new.labels.get(label), earlier.labels.get(label)
        if one and other and one != other:
            return one, other
    if new.name != earlier.name:
        return new.name, earlier.name
    return f"{new.folder}", f"{earlier.folder}"


@dataclass(frozen=True, slots=True)
class _Pair:
    """A figure of two cells that are compared. ``names`` are those of the new and of the old side."""

    subject: str
    figure: str
    new: CellFigure
    old: CellFigure
    names: tuple[str, str]

    @property
    def better(self) -> Better:
        return self.new.better or self.old.better


def comparisons(spec: TablesSpec, cells: Sequence[CellData]) -> tuple[CampaignFinding, ...]:
    """What the comparisons of the file say, in their order."""
    return tuple(finding for each in spec.comparisons for finding in _comparison(each, spec, cells))


def _comparison(comparison: Comparison, spec: TablesSpec, cells: Sequence[CellData]) -> list[CampaignFinding]:
    axis, to = comparison.axis, comparison.to
    names = comparison.figures or tuple(name for name in spec.named if name != VERDICT)
    every = [data.cell for data in cells if takes(comparison.where, data.cell)]
    known = {data.cell.id: data.figures for data in cells}
    pairs = [
        _Pair(cell_words(cell, [axis]), name, known[cell.id][name], known[base.id][name], (cell.values[axis], to))
        for cell in every
        for base in neighbours(cell, axis, every)
        if base.values[axis] == to and base.id != cell.id
        for name in names
    ]
    asked = f"every {axis} against {to}, margin {quantity(comparison.margin, '1')}"
    return _compared(pairs, comparison.margin, spec, asked) or [no_cell("comparison", axis, comparison.where)]


def against(
    spec: TablesSpec, cells: Sequence[CellData], earlier: Earlier, readings: Readings
) -> tuple[CampaignFinding, ...]:
    """Compares every figure that both campaigns have in cells of the same values, over the whole run and by phase time.

    Raises CampaignError if they have no cell in common.
    """
    theirs = with_derived(cells_of(earlier.state, spec.measured, readings), spec.figures)
    before = {data.cell.id: data.figures for data in theirs}
    shared = [data for data in cells if data.cell.id in before]
    if not shared:
        raise CampaignError(
            f"{earlier.state.folder} has no cell of this campaign (it has {next(iter(before), 'none')}, this one"
            f" {cells[0].cell.id if cells else 'none'}): compare campaigns whose matrix has the same axes and values"
        )
    names = [f.name for f in spec.figures if isinstance(f, Measured | Per) and f.name in spec.named]
    pairs = [
        _Pair(cell_words(data.cell), name, data.figures[name], before[data.cell.id][name], earlier.names)
        for data in shared
        for name in names
    ]
    return (*_compared(pairs, earlier.margin, spec, earlier.asked), *_by_phase_time(spec, cells, earlier))


def _compared(pairs: Sequence[_Pair], margin: float, spec: TablesSpec, asked: str) -> list[CampaignFinding]:
    """A finding for each pair, corrected for their number. Derived figures without runs of their own are not
    compared."""
    both = [pair for pair in pairs if pair.new.values and pair.old.values]
    tests = iter(corrected([diff(pair.new, pair.old, margin) for pair in both]))
    found = []
    for pair in pairs:
        words, (new, old) = spec.words(pair.figure), pair.names
        subject = f"{'' if pair.subject == 'all' else f'{pair.subject}: '}{new} against {old}"
        if pair.new.values and pair.old.values:
            tested = next(tests)
            judged = tested.judged(pair.better)
            reason = f"{words}: {_sentence(pair, tested, judged)}"
            found.append(_finding("comparison", asked, _OUTCOMES[judged], subject, words, reason, tested))
            continue
        lacking, name = (pair.old, old) if pair.new.values else (pair.new, new)
        if lacking.median is None:
            reason = f"{words}: {name} has none: {lacking.reason}"
            found.append(CampaignFinding("comparison", asked, Outcome.INCONCLUSIVE, subject, words, reason))
    return found


def _finding(
    kind: str, asked: str, outcome: Outcome, subject: str, words: str, reason: str, tested: Difference
) -> CampaignFinding:
    """The finding of a comparison: it measures the ratio of new to old, against 1."""
    ratio, low, high = (None if change is None else 1 + change for change in (tested.change, tested.low, tested.high))
    return CampaignFinding(kind, asked, outcome, subject, words, reason, ratio, 1.0, "1", low, high)


def _sentence(pair: _Pair, tested: Difference, judged: str) -> str:
    """Who has how much more or less, with the interval; and how many runs would decide it."""
    new, old = pair.names
    if tested.change is None:
        said = f"{new} has {quantity(tested.new, pair.new.unit)}, {old} {quantity(tested.old, pair.new.unit)}"
    elif tested.change == 0:
        said = f"{new} is the same as {old}"
    else:
        said = f"{new} has {_change(tested)} than {old}"
    said += _interval(tested)
    n = f"{tested.n_new} and {counted(tested.n_old, 'run')} prove"
    if tested.n_new == tested.n_old == 1:
        n = "one run each proves"
    if judged == "undecided":
        return f"{said}; {n} neither: {tested.needs}"
    p = tested.p_equivalent if judged == "equivalent" else tested.p
    return f"{said}; {judged}, {n.rpartition(' ')[0]}, p {p:.2g} after Holm's correction"


def _change(tested: Difference) -> str:
    """``7 % less``."""
    return f"{percent(abs(tested.change or 0.0))} {'more' if tested.rose else 'less'}"


def _interval(tested: Difference) -> str:
    """`` (interval -8 to -6 %)``; empty where there is none."""
    if tested.low is None or tested.high is None:
        return ""
    low, high = (percent(end, sign=True) for end in (tested.low, tested.high))
    return f" (interval {low.removesuffix(' %')} to {high})"


# --- by phase time ---------------------------------------------------------------------------------------------------

Place = tuple[str, int, int]
"""A figure by name, a phase by number, a part of it by number."""


@dataclass(frozen=True, slots=True)
class _Course:
    """The figures of a run by phase time; ``phases`` are names and seconds."""

    phases: tuple[tuple[str, float], ...]
    values: Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class _Tested:
    data: CellData
    place: Place
    phase: tuple[str, float]
    better: Better


def _by_phase_time(spec: TablesSpec, cells: Sequence[CellData], earlier: Earlier) -> list[CampaignFinding]:
    """A finding for each stretch of a phase in which a figure is worse than it was."""
    figures = [
        figure
        for figure in spec.measured
        if figure.name in spec.named and figure.spec.statistic in _STATISTICS and "phase" not in figure.spec.labels
    ]
    before = last_attempts(earlier.state.runs)
    tested: list[_Tested] = []
    made: list[Difference] = []
    for data in cells:
        new, old = _courses(data.runs, figures), _courses(before.get(data.cell.id, ()), figures)
        if not new or not old or not _alike([*new, *old]):
            continue
        for figure in figures:
            better = figure.better or data.figures[figure.name].better
            for place in [p for p in new[0].values if p[0] == figure.name]:
                values = [[course.values[place] for course in side if place in course.values] for side in (new, old)]
                if better and all(values):
                    tested.append(_Tested(data, place, new[0].phases[place[1]], better))
                    made.append(by_ranks(values[0], values[1], earlier.margin))
    groups: list[list[tuple[_Tested, Difference]]] = []
    for test, each in zip(tested, corrected(made), strict=True):
        if each.judged(test.better) != "worse":
            continue
        last = groups[-1][-1][0] if groups else None
        figure_name, number, part = test.place
        if last is not None and last.data is test.data and last.place == (figure_name, number, part - 1):
            groups[-1].append((test, each))  # parts that follow upon one another are one finding
        else:
            groups.append([(test, each)])
    return [_stretch(group, spec, earlier, len(made)) for group in groups]


def _stretch(
    group: Sequence[tuple[_Tested, Difference]], spec: TablesSpec, earlier: Earlier, tests: int
) -> CampaignFinding:
    (first, _), (last, _) = group[0], group[-1]
    worst = max((tested for _, tested in group), key=lambda tested: abs(tested.change or 0.0))
    name, seconds = first.phase
    begin, end = (show_seconds(seconds * share / PARTS) for share in (first.place[2], last.place[2] + 1))
    words, (new, old) = spec.words(first.place[0]), earlier.names
    reason = (
        f"{words}, {name} from {begin} to {end}: {new} has up to {_change(worst)} than {old}{_interval(worst)};"
        f" p {worst.p:.2g} after Holm's correction for {tests} parts"
    )
    subject = f"{cell_words(first.data.cell)}: {new} against {old}"
    return _finding("phase time", earlier.asked, Outcome.FAIL, subject, words, reason, worst)


def _courses(runs: Sequence[CellRun], figures: Sequence[Measured]) -> list[_Course]:
    return [_course(run.folder, figures) for run in runs if run.state == ENDED and run.folder is not None]


def _course(folder: Path, figures: Sequence[Measured]) -> _Course:
    """The figures of a run in each part of its phases; none where the record cannot be read."""
    values: dict[Place, float] = {}
    try:
        with RecordView.open(folder) as view:
            named = [(phase.name, phase.window) for phase in view.phases() if phase.name in UNDER_LOAD]
            named = [(name, window) for name, window in named if window.seconds > 0] or [("the run", view.window())]
            for number, (_, window) in enumerate(named):
                for part, piece in enumerate(split(window, PARTS)):
                    for figure in figures:
                        value = figure_over(view, figure.spec, piece)
                        if value is not None:
                            values[figure.name, number, part] = value
    except (RecordError, OSError):
        return _Course((), {})
    return _Course(tuple((name, window.seconds) for name, window in named), values)


def _alike(courses: Sequence[_Course]) -> bool:
    """Whether all runs have the same phases of about the same lengths."""
    names = {tuple(name for name, _ in course.phases) for course in courses}
    if len(names) != 1 or names == {()}:
        return False
    lengths = zip(*([seconds for _, seconds in course.phases] for course in courses), strict=True)
    return all(max(each) <= (1 + _ALIKE) * min(each) for each in lengths)
