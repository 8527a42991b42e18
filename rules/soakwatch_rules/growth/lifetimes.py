"""The judged lives of one series: which one a restart cut, which one warns, which one grows most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.finding import InconclusiveReason, Outcome
from soakwatch_model.series import Series
from soakwatch_rules.series_lives import Life
from soakwatch_rules.stats.following import LoadDependence
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.trend_answer import TrendAnswer
from soakwatch_rules.wording.growth_words import near_limit, released_words

_HIGH: Final = 0.98  # quantile of the readings of a life
_FREED: Final = 0.25  # share of the level from which a release is worth a warning


@dataclass(frozen=True, slots=True)
class GrowthOfLife:
    """One judged life: its ``trend``, the ``raw`` one including the load's part, and the load that it ``follows``.

    ``lowest``: it was judged by the lowest readings of these stretches (empty: by means). ``cut``: its growth is part
    of what a longer life showed. ``left``: the readings without the load's part, if they were judged.
    """

    life: Life
    trend: TrendAnswer
    raw: TrendAnswer
    follows: LoadDependence | None = None
    lowest: str = ""
    cut: bool = False
    left: Series | None = None


def reached_before(judged_life: GrowthOfLife, judged: Sequence[GrowthOfLife]) -> bool:
    """Whether a longer, passing life had been as high, so that a restart cut a sawtooth or a warm-up."""
    sign = -1.0 if judged_life.life.series.trait.growth == "down" else 1.0
    own = sign * judged_life.life.series.values
    end = median(own[-max(1, own.size // 16) :])
    return any(
        end <= float(np.quantile(sign * other.life.series.values, _HIGH))
        for other in judged
        if other.trend.outcome is Outcome.PASS and other.life.window.seconds > judged_life.life.window.seconds
    )


def explained_by_longer_life(judged_life: GrowthOfLife) -> GrowthOfLife:
    """The failed life as undecided, because a longer one explains its growth."""
    return replace(
        judged_life,
        cut=True,
        trend=replace(judged_life.trend, outcome=Outcome.INCONCLUSIVE, why=InconclusiveReason.NOISE, guard=False),
    )


def excess_growth(judged_life: GrowthOfLife) -> float:
    """Growth per second above what is allowed."""
    return judged_life.trend.rate - judged_life.trend.allowed


def memory_warning(series: Series, case: Case, judged: Sequence[GrowthOfLife]) -> str | None:
    """Why passing memory is worth a warning: a large release during the run, or a peak near its limit; else None."""
    if ".memory." not in series.metric:
        return None
    texts = []
    for judged_life in judged:
        release, blocks = judged_life.trend.release, judged_life.trend.blocks
        if release is not None and blocks and release.height >= _FREED * abs(judged_life.trend.level):
            released_ns = judged_life.life.window.begin_ns + round(
                judged_life.life.window.seconds * 1e9 * release.index / blocks
            )
            texts.append(released_words(series, release.height, released_ns))
    return "; ".join([*texts, *near_limit(series, case.facts.stated)]) or None
