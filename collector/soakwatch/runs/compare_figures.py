"""The figures of a run that people ask for first, side by side with those of other runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from soakwatch.core.formatting import natural, quantity
from soakwatch.record import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.runs.compare import ABSENT, Line
from soakwatch.runs.figure_spec import ALL_PHASES
from soakwatch.runs.figures import STANDARD, figure_of_series, figure_text, fits
from soakwatch_rules.rule import Finding, Outcome
from soakwatch_rules.traits import RISE_PER_HOUR, GrowthMethod, traits_of

FIGURES = tuple(
    (spec.name, replace(spec, labels={**spec.labels, "phase": ALL_PHASES}))
    for spec in STANDARD
    if spec.statistic != "slope"
)
"""The usual figures over the whole run, with their names; slopes are what a rule measured."""


def figures(views: Sequence[ReportSource], findings: Sequence[Sequence[Finding]], most: int = 60) -> tuple[Line, ...]:
    """The key figures over the whole of each run, a line for each series that two of the runs have.

    Counters count from the first reading to the last; with less than half of the polls answered there is no figure.
    The slope of memory is what the rule ``memory_growth`` measured.
    """
    roles: dict[str, str] = {}
    for view in views:
        roles.update(view.roles())
    known = [frozenset(view.keys({spec.metric for _, spec in FIGURES})) for view in views]
    lines: list[Line] = []
    for name, spec in FIGURES:
        keys = {key for available in known for key in available if fits(spec, key, roles)}
        for key in sorted(keys, key=lambda k: (natural(k.target), natural(k.object))):
            if len(lines) >= most:
                return tuple(lines)
            if sum(key in available for available in known) < 2:
                continue
            cells = [
                figure_text(spec, figure_of_series(view, spec, [key])) if key in available else ABSENT
                for view, available in zip(views, known, strict=True)
            ]
            if spec.statistic == "total" and set(cells) <= {"0", ABSENT}:
                continue  # nobody asks for what was never dropped
            lines.append(Line(name, _of(key), tuple(cells), len(set(cells)) > 1))
    return (*lines, *_slopes(findings))


def _of(key: SeriesKey) -> str:
    return f"{key.target} {key.object}".rstrip()


def _slopes(findings: Iterable[Sequence[Finding]]) -> tuple[Line, ...]:
    """What the rule measured as growth, a line a series."""
    by_run: list[dict[tuple[str, str, str], str]] = []
    for run in findings:
        slopes = {}
        for finding in run:
            rise = finding.numbers.get(RISE_PER_HOUR)
            by_stages = traits_of(finding.rule).growth is GrowthMethod.STAGES
            if by_stages and rise is not None and finding.outcome is not Outcome.NOT_APPLICABLE:
                slopes[finding.target, finding.metric, finding.object] = quantity(rise, f"{finding.unit}/h")
        by_run.append(slopes)
    keys = sorted({key for each in by_run for key in each if sum(key in other for other in by_run) > 1})
    lines = []
    for target, metric, name in keys[:20]:
        cells = tuple(each.get((target, metric, name), ABSENT) for each in by_run)
        lines.append(Line("memory slope", f"{target} {metric} {name}".rstrip(), cells, len(set(cells)) > 1))
    return tuple(lines)
