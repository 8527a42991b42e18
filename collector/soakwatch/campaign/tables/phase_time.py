"""A campaign against an earlier one by phase time: where in a phase a figure is worse, which a mean over all may hide.

Each phase under load (the whole run where there is none) is cut into equal parts, and each part of each figure of
each cell is compared by itself. All of them are corrected together (Holm), so a part needs more runs than the whole:
what is found is a regression, and where nothing is found nothing is proven. Only cells are compared whose runs all have
the same phases, of the same lengths within 5 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from soakwatch.campaign.model import CellRun
from soakwatch.campaign.tables.against import Earlier, asked_of
from soakwatch.campaign.tables.cells import ENDED, CellData, last_attempts
from soakwatch.campaign.tables.findings import (
    CampaignFinding,
    cell_words,
    change_words,
    interval_words,
    ratio_numbers,
)
from soakwatch.campaign.tables.sheet import figure_words
from soakwatch.campaign.tables.spec import Measured, TablesSpec
from soakwatch.core.errors import RecordError
from soakwatch.core.units import show_seconds
from soakwatch.record import RecordView
from soakwatch.runs.figures import UNDER_LOAD, figure_over
from soakwatch_model.finding import Outcome
from soakwatch_model.window import Window
from soakwatch_rules.stats.difference import Better, Difference, by_ranks, corrected

PARTS = 6
_ALIKE = 0.05
_STATISTICS = frozenset({"mean", "median", "min", "max", "rate", "p50", "p90", "p95", "p99"})
"""What a part of a phase has as the whole has it: no total, no slope, no last."""
Place = tuple[str, int, int]
"""A figure by name, a phase by number, a part of it by number."""


@dataclass(frozen=True, slots=True)
class Course:
    """The figures of a run by phase time; ``phases`` are names and seconds."""

    phases: tuple[tuple[str, float], ...]
    values: Mapping[Place, float]


@dataclass(frozen=True, slots=True)
class _Tested:
    data: CellData
    place: Place
    phases: tuple[tuple[str, float], ...]
    better: Better


def by_phase_time(spec: TablesSpec, cells: Sequence[CellData], earlier: Earlier) -> tuple[CampaignFinding, ...]:
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
                    tested.append(_Tested(data, place, new[0].phases, better))
                    made.append(by_ranks(values[0], values[1], earlier.margin))
    worse = [(test, a) for test, a in zip(tested, corrected(made), strict=True) if a.judged(test.better) == "worse"]
    return tuple(_findings(worse, spec, earlier, len(made)))


def _courses(runs: Sequence[CellRun], figures: Sequence[Measured]) -> list[Course]:
    return [_course(run.folder, figures) for run in runs if run.state == ENDED and run.folder is not None]


def _course(folder: Path, figures: Sequence[Measured]) -> Course:
    """The figures of a run in each part of its phases; none where the record cannot be read."""
    values: dict[Place, float] = {}
    try:
        with RecordView.open(folder) as view:
            named = [(phase.name, phase.window) for phase in view.phases() if phase.name in UNDER_LOAD]
            named = [(name, window) for name, window in named if window.seconds > 0] or [("the run", view.window())]
            for number, (_, window) in enumerate(named):
                for part, piece in enumerate(_pieces(window)):
                    for figure in figures:
                        value = figure_over(view, figure.spec, piece)
                        if value is not None:
                            values[figure.name, number, part] = value
    except (RecordError, OSError):
        return Course((), {})
    return Course(tuple((name, window.seconds) for name, window in named), values)


def _pieces(window: Window) -> list[Window]:
    edges = [window.begin_ns + (window.end_ns - window.begin_ns) * part // PARTS for part in range(PARTS + 1)]
    return [Window(edges[part], edges[part + 1]) for part in range(PARTS)]


def _alike(courses: Sequence[Course]) -> bool:
    """Whether all runs have the same phases of about the same lengths."""
    names = {tuple(name for name, _ in course.phases) for course in courses}
    if len(names) != 1 or names == {()}:
        return False
    lengths = zip(*([seconds for _, seconds in course.phases] for course in courses), strict=True)
    return all(max(each) <= (1 + _ALIKE) * min(each) for each in lengths)


def _findings(
    worse: Sequence[tuple[_Tested, Difference]], spec: TablesSpec, earlier: Earlier, tests: int
) -> list[CampaignFinding]:
    """Parts that follow upon one another are one finding."""
    groups: list[list[tuple[_Tested, Difference]]] = []
    for test, agreement in worse:
        last = groups[-1][-1][0] if groups else None
        figure, number, part = test.place
        follows = last is not None and last.data is test.data and last.place == (figure, number, part - 1)
        if follows:
            groups[-1].append((test, agreement))
        else:
            groups.append([(test, agreement)])
    found = []
    for group in groups:
        (first, _), (last, _) = group[0], group[-1]
        worst = max((tested for _, tested in group), key=lambda tested: abs(tested.change or 0.0))
        name, seconds = first.phases[first.place[1]]
        stretch = [show_seconds(seconds * share / PARTS) for share in (first.place[2], last.place[2] + 1)]
        words = figure_words(first.place[0], spec)
        new, old = earlier.names
        reason = (
            f"{words}, {name} from {stretch[0]} to {stretch[1]}: {new} has up to {change_words(worst)} than"
            f" {old}{interval_words(worst)}; p {worst.p:.2g} after Holm's correction for {tests} parts"
        )
        subject = f"{cell_words(first.data.cell)}: {new} against {old}"
        numbers = ratio_numbers(worst)
        found.append(CampaignFinding("phase time", asked_of(earlier), Outcome.FAIL, subject, words, reason, *numbers))
    return found
