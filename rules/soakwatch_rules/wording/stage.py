"""Sentences of the stage-interval method about one lifetime."""

from __future__ import annotations

import math
from dataclasses import dataclass

from soakwatch_model.series import Series
from soakwatch_rules.series_lives import Life
from soakwatch_rules.stats.stages import Comparison
from soakwatch_rules.wording.quantities import counted, moment, percent, plus_minus, quantity
from soakwatch_rules.wording.series_names import name_of

_LITTLE = 0.15  # share of the rise after the middle third; of a straight leak it is half


@dataclass(frozen=True, slots=True)
class JudgedLife:
    """A judged life and the comparison of its first and last stage.

    ``lately`` is the rise within the last third (first to second half) as a share of the whole rise, or twice that
    within the last sixth if this is less: a quarter for a straight line, almost 0 for a warm-up, a full cache or a
    step; NaN if unknown. ``levelled``: the rise had ended by then, as after a start-up.
    """

    life: Life
    of: Comparison
    lately: float = math.nan
    levelled: bool = False

    @property
    def hours(self) -> float:
        """Hours between the centres of the two stages."""
        return self.life.window.seconds * (2 / 3) / 3600


def sentence(judged: JudgedLife, series: Series, tolerance: float, several: int = 1) -> str:
    """Both means with their spread, the change and its rate, and why that is growth or not: whether the intervals
    overlap, whether the last mean exceeds the first (for what runs out: falls below), and what is allowed.

    With ``several`` lifetimes it says which one.
    """
    c, unit = judged.of, series.trait.unit
    change = percent((c.last - c.first) / abs(c.first), sign=True) if c.first else f"{quantity(c.last, unit)} from zero"
    rate = quantity(abs(c.last - c.first) / judged.hours, f"{unit}/h")
    verb = "went" if c.last == c.first else "grew" if c.last > c.first else "fell"
    means = (
        f"{verb} from {plus_minus(c.first, c.sds[0], unit)} (first third) to {plus_minus(c.last, c.sds[1], unit)} "
        f"(last third): {change}, about {rate}"
    )
    why = _answers(c, "below" if series.trait.growth == "down" else "above", tolerance)
    which = f", in the lifetime from {moment(judged.life.window.begin_ns)}" if several > 1 else ""
    return f"{name_of(series)} {means}; {why}{which}"


def _answers(c: Comparison, beyond: str, tolerance: float) -> str:
    """The two criteria of the method with their answers, and the tolerance."""
    overlap = "the intervals overlap" if c.crosses else "the intervals do not overlap"
    if c.rise <= 0:
        return f"no growth: the last does not lie {beyond} the first; {overlap}"
    allowed = f"the allowed {100 * tolerance:g} % over the run"
    if c.rise <= c.allowed:
        return f"no growth: the last lies {beyond} the first within {allowed}; {overlap}"
    more = f"the last lies {beyond} the first, by more than {allowed}"
    return f"{overlap} and {more}" if c.grows else f"{more}, but {overlap}: no growth"


def doubts_of(judged: JudgedLife, series: Series, short: int, tolerance: float) -> tuple[str, ...]:
    """Known weaknesses of the method that apply to this life; ``short`` lives were left out."""
    doubts, c, middle = [], judged.of, judged.of.stages[1].mean
    if c.grows:
        over = middle is not None and abs(c.last - middle) <= _LITTLE * c.rise
        text = "nearly all of the growth came before the last third: " if over else ""
        doubts.append(f"{text}a warm-up, a cache that fills, or a single lasting step look the same to this method")
    else:
        rate = c.smallest / judged.hours
        daily = 24 * rate / abs(c.first) if c.first else 0.0
        share = f" ({percent(daily)} of the level a day)" if 0 < daily <= 1 else ""
        share = f" ({daily:.3g} times the level a day)" if daily > 1 else share
        doubts.append(f"only a leak of {quantity(rate, f'{series.trait.unit}/h')}{share} or more would have been found")
    if not c.grows and c.rise > c.allowed:
        change = f" by {100 * c.rise / abs(c.first):.1f} %" if c.first else ""
        literal = "; taken literally, the method says growth" if c.rise > tolerance * abs(c.last) else ""
        doubts.append(
            f"the mean changed{change}, more than the tolerance, but within the spread of the samples{literal}"
        )
    if short > 0:
        doubts.append(f"{counted(short, 'lifetime')} between restarts too short to judge")
    return tuple(doubts)
