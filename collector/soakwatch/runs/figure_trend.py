"""Key figures of a plan over its runs: a median a release (or build, or week), what changed, and since which run.

Change points are those of ``soakwatch_rules.stats.changepoints`` (energy statistic and t test, after Matteson and
James, JASA 109, 2014, and Fleming et al., Hunter, ICPE 2023), of single runs in the order of the groups and of time
within: whoever tests an old release again finds its runs beside those that it had. Of independent runs where nothing
changed about one figure in a hundred has one. The run of a change of 7 % is named in 99 of 100 cases with 12 runs that
differ by 1 % (coefficient of variation), in 77 if by 2 %, in 5 if by 5 % (tests/bench/accuracy/trend.py). A slow drift
becomes a staircase, and runs on several testbeds in turn are no trend: choose one by its label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.judge.proved import ProvedMtbf, joined
from soakwatch.runs.figure_frame import FigureLevel, RunFigure, changes, diff, grouped, level
from soakwatch.runs.key_figures import Better, FigureSpec, FigureValue
from soakwatch.runs.release_under_test import are_versions, version_key
from soakwatch.runs.trend_runs import BY_TIME, CELL, LeftOut, TrendRun

RELEASE_BY = "release"
MARGIN = 0.02
"""Changes smaller than this share are none that anybody asks for."""
LEAST_RUNS = 8
"""Runs with a figure, below which no change point is looked for."""
ALPHA = 0.001
"""The probability below which the t test believes a change point."""
_NONE = "no {}"


@dataclass(frozen=True, slots=True)
class RunGroup:
    """The runs of one release, build or week, oldest first."""

    name: str
    runs: tuple[TrendRun, ...]
    verdicts: Mapping[str, int]

    @property
    def proofs(self) -> tuple[ProvedMtbf, ...]:
        """What the hours of all its runs prove together of each device; inconclusive runs do not count."""
        return joined(proof for run in self.runs for proof in run.proofs)


@dataclass(frozen=True, slots=True)
class GroupFigure:
    """A figure of a group: its level, how many runs are ``missing``, and the ``reason`` why the first of them is.

    ``change`` is relative to the median of ``against``, the nearest group before that has the figure (None without one,
    or from 0). ``outcome`` is the answer of an exact rank test of both (better, worse, different, equivalent within
    2 %, undecided), "" without one.
    """

    group: str
    level: FigureLevel
    missing: int
    reason: str = ""
    against: str = ""
    change: float | None = None
    outcome: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class FigureChangePoint:
    """A change point: from ``run`` on the figure has another level. ``change`` is relative, infinite from 0."""

    run: TrendRun
    before: float
    after: float
    change: float
    p: float
    worse: bool | None


@dataclass(frozen=True, slots=True)
class FigureTrend:
    """One figure over all runs of a plan, in the order of the groups. ``note`` says why no change was looked for."""

    spec: FigureSpec
    unit: str
    better: Better
    values: tuple[FigureValue, ...]
    groups: tuple[GroupFigure, ...]
    turns: tuple[FigureChangePoint, ...]
    note: str


@dataclass(frozen=True, slots=True)
class PlanTrend:
    """All runs of one plan, or of one cell of a campaign; ``runs`` in the order of the groups and of time within."""

    plan: str
    cell: str
    runs: tuple[TrendRun, ...]
    groups: tuple[RunGroup, ...]
    figures: tuple[FigureTrend, ...]

    @property
    def title(self) -> str:
        """The plan and its cell."""
        return f"{self.plan}, {self.cell}" if self.cell else self.plan


@dataclass(frozen=True, slots=True)
class TrendResult:
    """The trends of all plans, and the runs that are in none."""

    by: str
    plans: tuple[PlanTrend, ...]
    left_out: tuple[LeftOut, ...]


def trend_of(
    runs: Iterable[TrendRun | LeftOut], by: str = RELEASE_BY, wanted: Sequence[FigureSpec] = (), plan: str = ""
) -> TrendResult:
    """The trends of some runs, plan by plan. Raises SoakwatchError for an unknown plan, or a label that no run has."""
    given = list(runs)
    counted = [run for run in given if isinstance(run, TrendRun)]
    plans = {run.plan for run in counted}
    if plan and counted and plan not in plans:
        raise SoakwatchError(f"no run of the plan {plan!r} was judged here{hint(plan, plans)}")
    chosen = [run for run in counted if plan in {"", run.plan}]
    known = {name for run in chosen for name in run.labels}
    if by not in {RELEASE_BY, *BY_TIME, *known} and chosen:
        raise SoakwatchError(f"no run has the label {by!r}{hint(by, {RELEASE_BY, *BY_TIME, *known})}")
    cells = grouped(chosen, lambda run: (run.plan, cell_without(run.cell, by)))
    trends = tuple(_plan(name, cell, cells[name, cell], by, wanted) for name, cell in sorted(cells))
    return TrendResult(by, trends, tuple(run for run in given if isinstance(run, LeftOut)))


def cell_without(cell: str, by: str) -> str:
    """A cell of a campaign without the axis by which runs are grouped.

    >>> cell_without("release=7.2,size=64", "release"), cell_without("release=7.2,size=64", CELL)
    ('size=64', '')
    """
    if by == CELL:
        return ""
    return ",".join(part for part in re.split(r",(?=[a-z][a-z0-9_-]*=)", cell) if not part.startswith(f"{by}="))


def _plan(name: str, cell: str, runs: Sequence[TrendRun], by: str, wanted: Sequence[FigureSpec]) -> PlanTrend:
    groups = _groups(runs, by)
    ordered = tuple(run for group in groups for run in group.runs)
    specs = tuple(wanted) or _usual(ordered)
    return PlanTrend(name, cell, ordered, groups, tuple(map(partial(_figure, ordered, groups), specs)))


def _groups(runs: Sequence[TrendRun], by: str) -> tuple[RunGroup, ...]:
    """The groups in the order of versions where all names are versions, otherwise in the order of their first runs.
    Runs without the label come last."""
    members = grouped(sorted(runs, key=lambda run: (run.begin_ns, run.folder)), lambda run: run.group(by))
    names = [name for name in members if name]
    if by not in BY_TIME and are_versions(names):
        names.sort(key=version_key)
    if "" in members:
        names.append("")
    return tuple(
        RunGroup(name or _NONE.format(by), tuple(members[name]), Counter(run.verdict for run in members[name]))
        for name in names
    )


def _usual(runs: Sequence[TrendRun]) -> tuple[FigureSpec, ...]:
    """The first of the usual figures of each metric, without what was sent and without totals that were always 0."""
    seen: dict[str, FigureSpec] = {}
    ranked = sorted(
        {spec.text: (index, spec) for run in runs for index, spec in enumerate(run.specs)}.values(),
        key=lambda ranked: ranked[0],
    )
    for _, spec in ranked:
        values = [run.values[spec.text].value for run in runs if spec.text in run.values]
        dull = spec.statistic == "total" and not any(values)
        if spec.metric not in seen and not spec.metric.startswith("load.tx.") and not dull:
            seen[spec.metric] = spec
    return tuple(seen.values())


def _figure(runs: Sequence[TrendRun], groups: Sequence[RunGroup], spec: FigureSpec) -> FigureTrend:
    rows = [RunFigure(run.folder.name, run.labels, spec.text, _value(run, spec)) for run in runs]
    shown = next((row.value for row in rows if row.value.value is not None), rows[0].value)
    lines: list[GroupFigure] = []
    earlier: tuple[str, FigureLevel] | None = None
    first = 0
    for group in groups:  # the rows stand in the order of the groups
        found, lacking = level(rows[first : first + len(group.runs)])
        first += len(group.runs)
        line = GroupFigure(group.name, found, len(lacking), lacking[0].value.reason if lacking else "")
        lines.append(line if earlier is None or found.median is None else _against(line, *earlier, shown.better))
        if found.n:
            earlier = group.name, found
    turns, note = _turns(runs, rows, shown.better)
    return FigureTrend(spec, shown.unit, shown.better, tuple(row.value for row in rows), tuple(lines), turns, note)


def _against(line: GroupFigure, name: str, earlier: FigureLevel, better: Better) -> GroupFigure:
    new, old = line.level.median or 0.0, earlier.median or 0.0
    change = (new - old) / abs(old) if old else 0.0 if not new else None
    tested = diff(line.level, earlier, MARGIN)
    return replace(line, against=name, change=change, outcome=tested.judged(better), why=tested.reason)


def _turns(
    runs: Sequence[TrendRun], rows: Sequence[RunFigure], better: Better
) -> tuple[tuple[FigureChangePoint, ...], str]:
    """The change points, or why none was looked for."""
    there = sum(row.value.value is not None for row in rows)
    if there < LEAST_RUNS:
        return (), f"too few runs for change points: {there} of {LEAST_RUNS}"
    turns = []
    for point in changes(rows, ALPHA, MARGIN):
        worse = None if not better else (point.after > point.before) == (better == "lower")
        turns.append(FigureChangePoint(runs[point.index], point.before, point.after, point.change, point.p, worse))
    return tuple(turns), ""


def _value(run: TrendRun, spec: FigureSpec) -> FigureValue:
    return run.values.get(spec.text) or FigureValue(None, "", "", f"the run has no {spec.metric}")
