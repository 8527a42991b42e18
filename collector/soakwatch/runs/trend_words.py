"""The words of a trend: medians, changes, verdicts and change points as a person reads them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from soakwatch.core.formatting import SYMBOLS, extent
from soakwatch.runs.figure_trend import FigureChangePoint, FigureTrend, GroupFigure
from soakwatch.runs.key_figures import FigureValue, figure_text
from soakwatch_model.finding import Outcome
from soakwatch_rules.stats.repetitions import fewest
from soakwatch_rules.wording.quantities import counted

_VERDICTS = (Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE)
_OUTCOMES = {"equivalent": "same within 2 %", "undecided": "not decided"}
STEPS = "▁▂▃▄▅▆▇█"
_LEAST_SPAN = 0.04


def change_text(change: float | None) -> str:
    """A relative change with its sign; empty where there is none.

    >>> change_text(-0.0766), change_text(0.0), change_text(None), change_text(12.5), change_text(-0.997)
    ('−7.7 %', '0 %', '', '+1250 %', '−100 %')
    """
    if change is None:
        return ""
    if not math.isfinite(change):
        return "from 0"
    percent = 100 * change
    shown = f"{abs(percent):.2g}" if abs(percent) < 99.5 else f"{abs(percent):.0f}"
    return "0 %" if float(shown) == 0 else f"{'+' if percent > 0 else '−'}{shown} %"


def verdicts_text(verdicts: Mapping[str, int]) -> str:
    """How many runs ended how.

    >>> verdicts_text({"pass": 3, "fail": 1})
    '3 ✓ 1 ✗'
    """
    return " ".join(f"{verdicts[o.value]} {SYMBOLS[o]}" for o in _VERDICTS if verdicts.get(o.value))


def median_text(figure: FigureTrend, line: GroupFigure) -> str:
    """The median of a group, or why there is none."""
    if line.level.median is None:
        return f"– ({line.reason})"
    return figure_text(figure.spec, FigureValue(line.level.median, figure.unit))


def interval_text(figure: FigureTrend, line: GroupFigure) -> str:
    """The interval of the median, or how many runs an interval needs."""
    if line.level.median is None:
        return ""
    if line.level.low is None or line.level.high is None:
        return f"needs {fewest()} runs"
    return extent(line.level.low, line.level.high, figure.unit)


def runs_text(line: GroupFigure) -> str:
    """How many runs the median is of, and how many lack the figure."""
    return f"{line.level.n} ({line.missing} without)" if line.missing else str(line.level.n)


def outcome_text(line: GroupFigure) -> str:
    """What the comparison with the group before says, in words."""
    return _OUTCOMES.get(line.outcome, line.outcome)


def turn_text(figure: FigureTrend, turn: FigureChangePoint) -> str:
    """A change point in one sentence, without its run."""
    before, after = (figure_text(figure.spec, FigureValue(value, figure.unit)) for value in (turn.before, turn.after))
    word = "" if turn.worse is None else ", worse" if turn.worse else ", better"
    change = change_text(turn.change)
    return f"{before} → {after} ({change}{word}; p = {turn.p:.1g})"


def missing_text(figure: FigureTrend) -> str:
    """How many runs lack the figure, and why the first of them does; empty where all have it."""
    reasons = [value.reason for value in figure.values if value.value is None]
    return f"{counted(len(reasons), 'run')} without it: {reasons[0]}" if reasons else ""


def spark(values: Sequence[float | None]) -> str:
    """One sign a run, from the lowest to the highest value, blank where a run has no value. Values within 4 % of one
    another are drawn as close as that, so that noise does not look like a change.

    >>> spark([8.0, 8.1, None, 7.4]), spark([100.0, 100.1, 100.0])
    ('▇█ ▁', '▄▄▄')
    """
    there = [value for value in values if value is not None]
    if not there:
        return ""
    low, high = reach(there)
    most = len(STEPS) - 1
    return "".join(" " if v is None else STEPS[int((v / 2 - low / 2) / (high / 2 - low / 2) * most)] for v in values)


def reach(values: Sequence[float]) -> tuple[float, float]:
    """The range in which values (at least one) are drawn: at least 4 % of their middle, and never empty.

    >>> reach([100.0, 100.0]), reach([0.0]), reach([1.0, 2.0])
    ((98.0, 102.0), (-0.5, 0.5), (1.0, 2.0))
    """
    low, high = min(values), max(values)
    middle = low / 2 + high / 2
    least = _LEAST_SPAN * abs(middle) or 1.0
    return (low, high) if high - low >= least else (middle - least / 2, middle + least / 2)
