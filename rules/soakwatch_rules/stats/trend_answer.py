"""The answer about a trend: growth or not, or why that is undecided, with its arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_rules.stats.falls import Release

_MOST: Final = 1.7e308

Mode = Literal["constant", "mean", "sawtooth", "none"]
Waived = Literal["", "small", "wave", "released", "freed"]
"""Why a doubt passes: the whole movement is small, a wave came back, all growth was released, or judged since then."""


@dataclass(frozen=True, slots=True)
class PivotLine:
    """A straight line through a pivot, around which the slope's interval (5 to 95 %) turns; slopes are per second."""

    centre_s: float
    centre: float
    slope: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class TrendAnswer:
    """The answer with its arithmetic; rates are per second, growth is upwards.

    ``probability`` is P(slope at the end > ``allowed``); ``rate`` with ``rate_low`` to ``rate_high`` (5 to 95 %) is
    that slope. ``smallest_detectable`` is 2.49 standard errors of the slope (more if the thresholds leave less risk
    than 5 %): a leak of ``allowed`` plus twice that fails in 80 % of cases. ``hours_needed`` would settle an undecided
    answer (None: no length would). ``weight`` is that of ``shape``, ``bend_s`` where it bends (None if it does not).
    ``line`` runs through the blocks after the bend of a growing shape (None if they are too few); that of a sawtooth is
    raised to its peaks. ``guard``: the straight line confirms growth. ``cycles`` counts the falls of a removed
    sawtooth; ``climbing``: only its last climb, which has not fallen yet, leaves the answer open; ``level_floors``: its
    last fall went as low as the first. ``waived`` says why an answer that the shapes alone would leave open passes;
    ``release`` is the highest abrupt fall that took back earlier growth.
    """

    outcome: Outcome
    why: InconclusiveReason | None
    allowed: float
    mode: Mode
    level: float
    probability: float = 0.5
    rate: float = 0.0
    rate_low: float = 0.0
    rate_high: float = 0.0
    smallest_detectable: float | None = None
    hours_needed: float | None = None
    shape: str = "unknown"
    weight: float = 0.0
    bend_s: float | None = None
    guard: bool = False
    blocks: int = 0
    missing: float = 0.0
    cycles: int = 0
    climbing: bool = False
    level_floors: bool = False
    correlation: float = 0.0
    line: PivotLine | None = None
    waived: Waived = ""
    release: Release | None = None


def scaled_back(trend: TrendAnswer, unit: float, begin_s: float) -> TrendAnswer:
    """The answer in the caller's unit and time axis; values are limited to the largest float."""
    line = trend.line
    if line is not None:
        ends = (_finite(x * unit) for x in (line.centre, line.slope, line.low, line.high))
        line = PivotLine(line.centre_s + begin_s, *ends)
    detectable, release = trend.smallest_detectable, trend.release
    if release is not None:
        release = replace(release, height=_finite(release.height * unit))
    return replace(
        trend,
        release=release,
        allowed=_finite(trend.allowed * unit),
        level=_finite(trend.level * unit),
        rate=_finite(trend.rate * unit),
        rate_low=_finite(trend.rate_low * unit),
        rate_high=_finite(trend.rate_high * unit),
        smallest_detectable=None if detectable is None else _finite(detectable * unit),
        bend_s=None if trend.bend_s is None else trend.bend_s + begin_s,
        line=line,
    )


def _finite(number: float) -> float:
    if math.isfinite(number):
        return float(number)
    return 0.0 if math.isnan(number) else math.copysign(_MOST, number)
