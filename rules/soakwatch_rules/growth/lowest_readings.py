"""Growth beneath jobs: judges a life again by its lowest readings, where its means cannot tell growth from jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Floats
from soakwatch_rules.growth.lifetimes import GrowthOfLife
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import net_change
from soakwatch_rules.stats.time_blocks import Blocks, blocks, opened
from soakwatch_rules.stats.trend_answer import TrendAnswer

Ask = Callable[[Floats, Floats, float], TrendAnswer]
"""Judges values at their times, from a second of the life to its end."""

_LOWEST: Final = 24  # stretches
_FINER: Final = 48
_NEED: Final = 5  # readings needed in each stretch
_JOB: Final = 0.2  # share of the life that a job lasts at most
_LEAST: Final = 3  # stretches at an end of the life, where no whole opening fits
_CYCLES: Final = 1.5  # usual cycles of a sawtooth that its longest cycle lasts at most
_HALF: Final = 0.5  # share of the life above which a rise and fall is no job
_CLEARLY: Final = 0.99
_THIRDS: Final = 3
_TWELFTHS: Final = 12
_MOST: Final = 0.35  # quantile of the rises: most of them lie above it
_JOBS: Final = frozenset(
    {"bump", "bump and leak", "cycle", "leak in steps", "ramp between plateaus", "stairs", "step"}
)  # shapes that jobs have


def judge_lowest_readings(judged_life: GrowthOfLife, time_s: Floats, value: Floats, ask: Ask) -> GrowthOfLife:
    """The answer by the lowest readings, if it is clear where the means are undecided or explained by jobs.

    Jobs that take memory for a while lift the means but not the lowest readings; a leak lifts both. Judged are the
    lowest reading of each of 24 stretches; then of each of 48, without rises of up to a fifth of the life (for a
    sawtooth: about a cycle); then the same without the first third, where start-up effects are over. If the life ended
    higher than allowed, a failure or a rise there prevents a pass. Wrong for jobs that last longer, and for a job that
    has just begun: a sixteenth counts at the end.
    """
    raw, span_s = judged_life.raw, judged_life.life.window.seconds
    open_ = raw.outcome is Outcome.INCONCLUSIVE and raw.why is InconclusiveReason.NOISE
    since = raw.outcome is Outcome.INCONCLUSIVE and raw.why is InconclusiveReason.RELEASE
    hidden = raw.outcome is Outcome.PASS and _may_hide(raw)
    if not (open_ or since or hidden):
        return judged_life
    within = raw.allowed * span_s
    if raw.mode == "mean":
        coarse = _lowest(time_s, value, span_s, _LOWEST)
        if coarse is None:
            return judged_life
        trend = ask(coarse.time_s, coarse.value, 0.0)
        calm = open_ and trend.outcome is Outcome.PASS and trend.waived != "released"
        if calm or (_proves(trend) and not (since and _been_there(coarse.value, within))):
            return _decided(judged_life, trend, f"{_LOWEST} intervals")
    fine = _lowest(time_s, value, span_s, _FINER)
    if fine is None:
        return judged_life
    cycle = _CYCLES / (raw.cycles + 1) if raw.mode == "sawtooth" else 0.0
    width = round(max(_JOB, min(cycle, _HALF)) * _FINER)
    # The last climb of a sawtooth whose minima are level has not fallen yet, and is no rise by itself.
    low = opened(fine.value, width, width if raw.level_floors else _LEAST)
    trend, words = ask(fine.time_s, low, 0.0), f"{_FINER} intervals, without what rises for a while"
    if _proves(trend) and not (since and _been_there(low, within)):
        return _decided(judged_life, trend, words)
    if since or net_change(value) <= within:
        return judged_life
    if trend.outcome is not Outcome.FAIL and raw.mode == "mean":
        third = _FINER // _THIRDS
        later = ask(fine.time_s[third:], low[third:], span_s / _THIRDS)
        if later.guard and _proves(later):
            return _decided(judged_life, later, f"{words}, from a third of the lifetime on")
    if hidden and (trend.outcome is Outcome.FAIL or _still_rising(low, within)):
        doubt = replace(trend, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.NOISE)
        return _decided(judged_life, doubt, words)
    return judged_life


def _decided(judged_life: GrowthOfLife, trend: TrendAnswer, words: str) -> GrowthOfLife:
    return GrowthOfLife(judged_life.life, trend, trend, lowest=words)


def _lowest(time_s: Floats, value: Floats, span_s: float, number: int) -> Blocks | None:
    """The lowest reading of each stretch; None if one has too few readings."""
    if value.size < _NEED * number:
        return None
    cut = blocks(time_s, value, begin_s=0.0, end_s=span_s, number=number, statistic="min")
    return cut if cut.missing == 0 else None


def _proves(trend: TrendAnswer) -> bool:
    """Whether it fails clearly and a straight line, over all or after a bend, exceeds what is allowed."""
    bent = trend.bend_s is not None and trend.line is not None and trend.line.low > trend.allowed
    return trend.outcome is Outcome.FAIL and trend.probability >= _CLEARLY and (trend.guard or bent)


def _still_rising(low: Floats, within: float) -> bool:
    """Whether most of the last third of the lowest readings rises faster than ``within`` per run.

    Rises over a twelfth of the run are counted: a step is in few of them, a leak in all.
    """
    apart = low.size // _TWELFTHS
    rises = low[apart:] - low[:-apart]
    return float(np.quantile(rises[-(low.size // _THIRDS) :], _MOST)) > within * apart / low.size


def _been_there(low: Floats, within: float) -> bool:
    """Whether the first third was about as high as the end, so that the release may have taken back all growth."""
    return float(median(low[-_LEAST:]) - low[: low.size // _THIRDS].max()) <= within


def _may_hide(trend: TrendAnswer) -> bool:
    """Whether a pass may hide growth because the means show jobs, releases or a sawtooth."""
    if trend.waived == "released":
        return False
    return trend.mode == "sawtooth" or trend.waived == "freed" or trend.shape in _JOBS
