"""What the stage-interval method says of a life, in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from soakwatch_rules.lives import Life
from soakwatch_rules.series import Series
from soakwatch_rules.stats.stages import Comparison
from soakwatch_rules.wording.words import counted, lasting, moment, quantity

_LITTLE = 0.15  # of the rise: of a straight leak half of it comes after the middle third


@dataclass(frozen=True, slots=True)
class JudgedLife:
    """A life that is long enough, and its first and last stage compared.

    ``lately`` is the rise within the last third (from its first half to its second) as a share of the whole rise, or
    twice that within the last sixth where this is less: a quarter for a straight line, next to nothing for a warm-up, a
    cache that is full, or a step; NaN where not known.
    """

    life: Life
    of: Comparison
    lately: float = math.nan

    @property
    def hours(self) -> float:
        """Between the centres of the two stages."""
        return self.life.window.seconds * (2 / 3) / 3600


def sentence(judged: JudgedLife, series: Series, tolerance: float) -> str:
    """Both means with their spread, which is higher, by how much, and why that is growth or none."""
    c, unit = judged.of, series.trait.unit
    change = f"{100 * (c.last - c.first) / abs(c.first):+z.1f} %" if c.first else f"{quantity(c.last, unit)} from zero"
    higher = "the same in both" if c.last == c.first else f"higher in the {'last' if c.last > c.first else 'first'}"
    means = (
        f"{quantity(c.first, unit)} ± {quantity(c.sds[0], unit)} in the first third, {quantity(c.last, unit)} ± "
        f"{quantity(c.sds[1], unit)} in the last; the mean is {higher} ({change} in {lasting(3600 * judged.hours)})"
    )
    if c.grows:
        why = f"the intervals do not cross and the change is above the tolerance of {100 * tolerance:g} %"
    elif c.rise > c.allowed:
        why = "but the intervals cross"
    elif c.rise <= 0:
        why = "which is no growth"
    else:
        why = f"within the tolerance of {100 * tolerance:g} %"
    return f"{series.metric}: {means}, {why}, in the life from {moment(judged.life.window.begin_ns)}"


def doubts_of(judged: JudgedLife, series: Series, short: int, tolerance: float) -> tuple[str, ...]:
    """Known weaknesses of the method that matter for this life; ``short`` lives were left out."""
    doubts, c, middle = [], judged.of, judged.of.stages[1].mean
    if c.grows:
        over = middle is not None and abs(c.last - middle) <= _LITTLE * c.rise
        text = "nearly all of it came before the last third: " if over else ""
        doubts.append(f"{text}a warm-up, a cache that fills or one lasting step look the same to this method")
    else:
        rate = c.smallest / judged.hours
        daily = 24 * rate / abs(c.first) if c.first else 0.0
        share = f" ({100 * daily:.3g} % of the level a day)" if 0 < daily <= 1 else ""
        share = f" ({daily:.3g} times the level a day)" if daily > 1 else share
        doubts.append(f"a leak slower than {quantity(rate, f'{series.trait.unit}/h')}{share} would not have been seen")
    if not c.grows and c.rise > c.allowed:
        change = f" by {100 * c.rise / abs(c.first):.1f} %" if c.first else ""
        literal = "; read literally, the method says growth" if c.rise > tolerance * abs(c.last) else ""
        doubts.append(f"the mean moved{change}, more than the tolerance: the spread of the readings hides it{literal}")
    if short > 0:
        doubts.append(f"{counted(short, 'life').replace('lifes', 'lives')} between restarts too short to judge")
    return tuple(doubts)
