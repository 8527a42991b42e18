"""Growth beside a load: the load that a life follows, its readings without the load's part, the words for both, and
growth that may be part of a daily wave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from soakwatch_model.finding import Finding, InconclusiveReason
from soakwatch_model.series import Floats, Series, Trait
from soakwatch_rules.series_lives import Life
from soakwatch_rules.stats.daily import DAY_S, is_daily_sine
from soakwatch_rules.stats.following import LoadDependence, explaining_load, holds_throughout
from soakwatch_rules.stats.time_blocks import blocks, how_many
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.wording.growth_words import hourly, per_hour
from soakwatch_rules.wording.quantities import duration, percent, quantity

_HALF_A_DAY_S, _QUARTER_S = 43200.0, 21600.0
_LITTLE, _LITTLE_SHORT = 0.02, 0.03  # shares of the level; the second up to a quarter of a day
_WAVE = 0.05  # share of the level by which a daily wave may lift and lower it
_CUT = 0.6  # share of the run: a shorter life was cut by restarts
_ROUGH = 1e-6  # share by which rounding changes no answer
_DAYS = (0.25, 2.0)  # days: runs in between see much of a daily cycle but cannot tell it from growth


def load_followed(
    time_s: Floats, value: Floats, life: Life, loads: Sequence[Series], share: float
) -> tuple[LoadDependence, Floats] | None:
    """The load that explains ``share`` of a life, and the readings without the load's part (but with its mean).

    The life must follow the load in each of its parts; a warm-up that ends at the highest load does not fall with it.
    """
    if max(float(value.max()), -float(value.min())) > 1e150:
        return None
    span_s, number = life.window.seconds, how_many(value.size)
    cut = blocks(time_s, value, begin_s=0.0, end_s=span_s, number=number, statistic="about")
    if cut.missing > 0.5:
        return None
    centres = life.window.begin_ns + (cut.time_s * 1e9).astype(np.int64)
    best = explaining_load(centres, cut.value, loads)
    # few series follow a load, and rounding decides none but those that hardly move at all
    moves = float(np.ptp(cut.value)) > _ROUGH * float(np.abs(cut.value).max())
    if best is None or (moves and best[0].share < share - _ROUGH):
        return None
    cut = blocks(time_s, value, begin_s=0.0, end_s=span_s, number=number)
    best = explaining_load(centres, cut.value, loads)
    if best is None or best[0].share < share:
        return None
    follows, load = best
    if not follows.straight and not holds_throughout(cut.value, load, follows.each):
        return None
    part = np.interp(time_s, cut.time_s, load) - follows.mean
    rest: Floats = value - follows.each * part
    return follows, rest


def load_numbers(follows: LoadDependence, raw: TrendAnswer, sign: int) -> dict[str, float]:
    """Numbers of what the load explains, and of the ``raw`` trend including the load's part."""
    return {
        "load_share": follows.share,
        "per_load": sign * follows.each,
        "load_mean": follows.mean,
        "with_load_per_hour": per_hour(sign * raw.rate),
        "with_load_probability": raw.probability,
    }


def with_load(reason: str, follows: LoadDependence, raw: TrendAnswer, trait: Trait) -> str:
    """The reason extended by the load that the life follows, and its change including the load's part."""
    if follows.straight:
        return f"{reason}; but {follows.metric} also rises steadily and would explain {100 * follows.share:.0f} %"
    per = "unit" if follows.unit == "1" else follows.unit.replace("{", "").replace("}", "")
    each = f"{quantity(abs(follows.each), trait.unit)} per {per}"
    text = f"{reason}; it follows {follows.metric} ({each}; explains {100 * follows.share:.0f} %)"
    return f"{text}; including load effects it changes by {hourly(raw.rate, trait)}"


def part_of_a_wave(finding: Finding, trend: TrendAnswer, life: Life, series: Series, run_s: float) -> Finding:
    """The failed finding, inconclusive if the rise may be part of a daily cycle.

    It may be if a life below half a day rose by less than 2 % in total (below six hours: 3 %, or, if restarts cut it
    out of a longer run, less than a daily wave of 5 % lifts it), or if one sine of a day explains a run of up to two
    days.

    A daily wave of 5 % moves by up to 1.3 % an hour, and looks like steady growth for a quarter of a day.
    """
    span_s = life.window.seconds
    if len(series) and _DAYS[0] <= series.seconds[-1] / DAY_S <= _DAYS[1]:  # over all lives: a restart ends no day
        number = how_many(len(series))
        cut = blocks(series.seconds, series.values, begin_s=0.0, end_s=float(series.seconds[-1]), number=number)
        if is_daily_sine(cut.time_s, cut.value):
            reason = f"{finding.reason}; but a daily cycle explains nearly all of it"
            settle = "needs a run of two days"
            return replace(finding.undecided(reason, InconclusiveReason.CYCLE, settle), forecast=None)
    rise, little = abs(trend.rate) * span_s, _LITTLE if span_s > _QUARTER_S else _LITTLE_SHORT
    if span_s < min(_CUT * run_s, _QUARTER_S):
        little = max(little, 2 * _WAVE * float(np.sin(np.pi * span_s / DAY_S)))
    if span_s < _HALF_A_DAY_S and rise < little * abs(trend.level):
        reason = f"{finding.reason}; {percent(rise / abs(trend.level))} in total, which may be part of a daily cycle"
        settle = f"needs a run of 24 h, {duration(2 * _HALF_A_DAY_S - span_s)} more"
        return replace(finding.undecided(reason, InconclusiveReason.CYCLE, settle), forecast=None)
    return finding
