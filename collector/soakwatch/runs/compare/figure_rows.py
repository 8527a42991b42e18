"""The figures of a run that people ask for first, side by side with those of other runs, and how they changed.

A change is told by phase time: the phases under load that both runs have (all that both have where none is) are cut
into about 24 parts of equal length at the same phase time, and the mean of the figure over the parts of one run is
divided by that of the other, with a 95 % interval that knows that neighbouring parts are alike (``by_parts``). All
tests of a comparison are corrected together (Holm); changes within 3 % are none that anybody asks for.

What it gets wrong: it knows how much a figure moves within these two runs, not how much runs of the same thing differ.
Two runs on one device hours apart may differ by more than either of them moved, and a slow wave (a day in a run of
hours) counts as a difference. To tell releases apart, repeat them: ``soakwatch campaign``, rule ``run_difference``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from soakwatch.core.formatting import natural, quantity
from soakwatch.record import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.runs.compare.phase_slots import PhaseSlot, parts_of
from soakwatch.runs.compare.targets import TargetMap
from soakwatch.runs.figure_frame import pivot
from soakwatch.runs.key_figures import (
    STANDARD,
    FigureSpec,
    FigureValue,
    figure_in_parts,
    figure_of,
    figure_of_series,
    figure_over,
    figure_text,
    fits,
)
from soakwatch_model.fact import Growth
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window
from soakwatch_rules.stats.difference import LEAST_PARTS, Difference, by_parts, corrected

FIGURES = tuple(spec for spec in STANDARD if spec.statistic != "slope")
"""The usual figures, of the phases under load; slopes are what a rule measured."""
MARGIN = 0.03
_IN_PARTS = frozenset({"mean", "median", "rate", "total", "p50", "p90", "p95", "p99"})
"""What a part of a phase has as the whole has it; of a total its rate."""
_MOST_SLOPES = 20
_AS_LONG = 0.05  # so far the lengths of runs may differ for their totals to be held against one another
_RESULTS = {"equivalent": "the same", "undecided": "not decided"}


@dataclass(frozen=True, slots=True)
class FigureChange:
    """How a figure differs from that of the reference run. ``relative`` is (new - old) / old, None from 0; ``low`` and
    ``high`` its 95 % interval, None where the parts of the runs do not have the figure; ``result`` says what is
    proven (better, worse, different, the same, not decided), "" where that was not asked."""

    relative: float | None
    low: float | None = None
    high: float | None = None
    result: str = ""

    @property
    def words(self) -> str:
        """As a person reads it.

        >>> FigureChange(0.0772, 0.052, 0.101, "worse").words, FigureChange(2.5).words
        ('+7.7 % (+5.2 to +10 %)', 'x 3.5')
        """
        if self.relative is None:
            return "from 0"
        change = _share(self.relative)
        if self.low is None or self.high is None:
            return change
        low, high = _share(self.low), _share(self.high)
        if low == high == change:
            return change
        return f"{change} ({low.removesuffix(' %') if high.endswith('%') else low} to {high})"


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A figure in each run, the reference first: its texts, its values in ``unit`` (None where a run does not have
    it), and its changes (None for the reference and where there is nothing to compare)."""

    head: str
    of: str
    cells: tuple[str, ...]
    changes: tuple[FigureChange | None, ...]
    values: tuple[float | None, ...]
    unit: str

    @property
    def differs(self) -> bool:
        """Whether the figures are not all the same."""
        return len(set(self.cells)) > 1


@dataclass(frozen=True, slots=True)
class FigureSide:
    """A run of a comparison: its record, its findings, its targets beside those of the reference."""

    view: ReportSource
    findings: Sequence[Finding]
    targets: TargetMap


@dataclass(frozen=True, slots=True)
class _Row:
    spec: FigureSpec
    of: str
    keys: tuple[SeriesKey | None, ...]
    values: tuple[FigureValue, ...]


def figures(sides: Sequence[FigureSide], slots: Sequence[PhaseSlot], most: int = 60) -> tuple[FigureRow, ...]:
    """The key figures of each run (of its phases under load, else of all of it), a row for each series
    that two of the runs have, and their changes from the first, by phase time. ``slots`` are the phases of the runs.

    With less than half of the polls answered there is no figure. The slope of memory is what the rule
    ``memory_growth`` measured.
    """
    rows = _rows(sides, most)
    parts = [parts_of(slots, 0, number)[0] for number in range(len(sides))]
    whole = [side.view.window().seconds for side in sides]
    tests: dict[tuple[int, int], Difference] = {}
    for line, row in enumerate(rows):
        for number in range(1, len(sides)):
            found = _compared(row, sides, number, parts[number])
            if found is not None:
                tests[line, number] = found
    proven = dict(zip(tests, corrected(list(tests.values())), strict=True))
    shown = []
    twice = Counter((row.spec.name, row.of) for row in rows)
    for line, row in enumerate(rows):
        # Two metrics may have one name for people, as a count and a rate of requests have.
        name = row.spec.name
        head = f"{name} ({row.spec.metric})" if twice[name, row.of] > 1 else name
        alike = [abs(seconds - whole[0]) <= _AS_LONG * max(whole[0], 1.0) for seconds in whole]
        changes = [
            _change(row, number, proven.get((line, number)), as_long=alike[number]) for number in range(1, len(sides))
        ]
        cells = tuple(figure_text(row.spec, value) for value in row.values)
        unit = next((value.unit for value in row.values if value.value is not None), "")
        values = tuple(value.value for value in row.values)
        shown.append(FigureRow(head, row.of, cells, (None, *changes), values, unit))
    return (*shown, *_slopes(sides))


def _rows(sides: Sequence[FigureSide], most: int) -> list[_Row]:
    names = [side.targets.shown for side in sides]
    roles: dict[str, str] = {}
    known: list[Mapping[SeriesKey, SeriesKey]] = []
    for side, shown in zip(sides, names, strict=True):
        available = side.view.keys({spec.metric for spec in FIGURES})
        known.append({replace(key, target=shown.get(key.target, key.target)): key for key in available})
        roles |= {
            shown.get(name, name): role for name, role in side.view.roles().items() if shown.get(name) not in roles
        }
    rows: list[_Row] = []
    for spec in FIGURES:
        if spec.per is not None:
            whole = tuple(figure_of(side.view, spec) for side in sides)
            if sum(value.value is not None for value in whole) > 1:
                rows.append(_Row(spec, "", (None,) * len(sides), whole))
            continue
        keys = {key for available in known for key in available if fits(spec, key, roles)}
        for key in sorted(keys, key=lambda k: (natural(k.target), natural(k.object))):
            if len(rows) >= most:
                return rows
            own = tuple(available.get(key) for available in known)
            if sum(each is not None for each in own) < 2:
                continue
            values = tuple(
                FigureValue(None, "") if each is None else figure_of_series(side.view, spec, [each])
                for side, each in zip(sides, own, strict=True)
            )
            if spec.statistic == "total" and not any(value.value for value in values):
                continue  # nobody asks for what was never dropped
            rows.append(_Row(spec, f"{key.target} {key.object}".rstrip(), own, values))
    return rows


def _compared(
    row: _Row, sides: Sequence[FigureSide], number: int, parts: Sequence[tuple[Window, Window]]
) -> Difference | None:
    """A figure in the parts of a run against that in the parts of the reference; None where too few have it."""
    if row.spec.statistic not in _IN_PARTS or row.values[0].value is None or row.values[number].value is None:
        return None
    spec = replace(row.spec, statistic="rate") if row.spec.statistic == "total" else row.spec
    read = []
    for side, place in ((0, 0), (number, 1)):
        windows, key, view = [pair[place] for pair in parts], row.keys[side], sides[side].view
        read.append(
            [figure_over(view, spec, window) for window in windows]
            if key is None
            else figure_in_parts(view, spec, key, windows)
        )
    both = [(new, old) for old, new in zip(*read, strict=True) if old is not None and new is not None]
    if len(both) < LEAST_PARTS:
        return None
    return by_parts([new for new, _ in both], [old for _, old in both], MARGIN)


def _change(row: _Row, number: int, tested: Difference | None, *, as_long: bool) -> FigureChange | None:
    before, after = row.values[0].value, row.values[number].value
    if tested is not None:
        judged = tested.judged(row.values[0].better)
        result = _RESULTS.get(judged, judged)
        if tested.change is None:
            return FigureChange(None, result=result) if before != after else FigureChange(0.0, result="the same")
        return FigureChange(tested.change, tested.low, tested.high, result)
    if before is None or after is None or (row.spec.statistic == "total" and not as_long):
        return None
    if before == after:
        return FigureChange(0.0)
    return FigureChange((after - before) / abs(before) if before else None)


def _share(value: float) -> str:
    """A relative change in words.

    >>> _share(-0.0031), _share(4.0)
    ('-0.31 %', 'x 5')
    >>> _share(-0.999), _share(-1.3), _share(0.996)
    ('-100 %', '-130 %', '+100 %')
    """
    if value >= 1:
        return f"x {float(f'{1 + value:.2g}'):g}" if value < 99 else f"x {1 + value:,.0f}"
    return f"{float(f'{100 * value:+.2g}'):+,.10g} %" if value else "0 %"


def _slopes(sides: Sequence[FigureSide]) -> Iterable[FigureRow]:
    """What the rule measured as growth, a row a series."""
    by_run: list[dict[tuple[str, str, str], tuple[float, str]]] = []
    for side in sides:
        slopes = {}
        for finding in side.findings:
            grew = finding.fact(Growth)
            if grew is not None and finding.outcome is not Outcome.NOT_APPLICABLE:
                target = side.targets.shown.get(finding.target, finding.target)
                slopes[target, finding.metric, finding.object] = (grew.per_hour, f"{finding.unit}/h")
        by_run.append(slopes)
    shared = [(key, found) for key, found in sorted(pivot(by_run).items()) if sum(map(bool, found)) > 1]
    for (target, metric, name), found in shared[:_MOST_SLOPES]:
        cells = tuple("–" if each is None else quantity(*each) for each in found)
        values = tuple(None if each is None else each[0] for each in found)
        unit = next(each[1] for each in found if each is not None)
        of = f"{target} {metric} {name}".rstrip()
        yield FigureRow("memory slope", of, cells, (None,) * len(cells), values, unit)
