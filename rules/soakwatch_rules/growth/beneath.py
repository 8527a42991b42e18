"""Growth beneath jobs: what the lowest readings of a life say where its means leave growth open, or explain it away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_rules.growth.lifetimes import GrowthOfLife
from soakwatch_rules.stats.blocks import Blocks, blocks, opened
from soakwatch_rules.stats.level import net_change
from soakwatch_rules.stats.trend_answer import Trend

Floats = NDArray[np.float64]
Ask = Callable[[Floats, Floats, float], Trend]
"""The judgement of values at their times, from a second of the life on to its end."""

_LOWEST: Final = 24  # stretches
_FINER: Final = 48
_NEED: Final = 5  # readings in each stretch
_JOB: Final = 0.2  # of the life, that a job lasts at most
_LEAST: Final = 3  # stretches at an end, that count where no whole opening fits
_CYCLES: Final = 1.5  # of the usual cycle of a sawtooth, that the longest takes
_HALF: Final = 0.5  # of the life, beyond which what rises and falls is no job
_CLEARLY: Final = 0.99
_THIRDS: Final = 3
_TWELFTHS: Final = 12
_MOST: Final = 0.35  # quantile of rises, above which most of them lie
_JOBS: Final = frozenset(
    {"bump", "bump and leak", "cycle", "leak in steps", "ramp between plateaus", "stairs", "step"}
)  # shapes that jobs have


def beneath_jobs(judged_life: GrowthOfLife, time_s: Floats, value: Floats, ask: Ask) -> GrowthOfLife:
    """The answer of the lowest readings, where it decides clearly what the means leave open or explain by jobs.

    Jobs that take memory for a while lift the means and leave the lowest alone, a leak lifts both. Of the lowest
    reading of each of 24 stretches; and of each of 48, without what rises for up to a fifth of the life (for about a
    cycle of a sawtooth), also from a third of the life on, where what came and went at its begin is over. Where the
    life ended higher than allowed, what fails or still rises there keeps it from passing. Wrong for jobs that last
    longer, and for a job that has just begun: at the end a sixteenth counts.
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
    # the last climb of a sawtooth that falls as low as before has not fallen yet: no rise by itself
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


def _decided(judged_life: GrowthOfLife, trend: Trend, words: str) -> GrowthOfLife:
    return GrowthOfLife(judged_life.life, trend, trend, lowest=words)


def _lowest(time_s: Floats, value: Floats, span_s: float, number: int) -> Blocks | None:
    """The lowest reading of each stretch; None where one holds too few."""
    if value.size < _NEED * number:
        return None
    cut = blocks(time_s, value, begin_s=0.0, end_s=span_s, number=number, statistic="min")
    return cut if cut.missing == 0 else None


def _proves(trend: Trend) -> bool:
    """Whether it fails clearly, and a straight line grows faster than allowed: over all, or behind a bend."""
    bent = trend.bend_s is not None and trend.line is not None and trend.line.low > trend.allowed
    return trend.outcome is Outcome.FAIL and trend.probability >= _CLEARLY and (trend.guard or bent)


def _still_rising(low: Floats, within: float) -> bool:
    """Whether the last third of what lies beneath rises faster than ``within`` a run, in most places.

    By its rises over a twelfth of the run: a step is in few of them, a leak in all.
    """
    apart = low.size // _TWELFTHS
    rises = low[apart:] - low[:-apart]
    return float(np.quantile(rises[-(low.size // _THIRDS) :], _MOST)) > within * apart / low.size


def _been_there(low: Floats, within: float) -> bool:
    """Whether the first third had been about as high as the end: what was released then may have been all of it."""
    return float(np.median(low[-_LEAST:]) - low[: low.size // _THIRDS].max()) <= within


def _may_hide(trend: Trend) -> bool:
    """Whether a pass says only that the means do not tell growth from what comes and goes: jobs, falls, a sawtooth."""
    if trend.waived == "released":
        return False
    return trend.mode == "sawtooth" or trend.waived == "freed" or trend.shape in _JOBS
