"""Runs compared with runs: the run is the unit, one number each, because runs differ among themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.distributions import chi_square_quantile, student_cdf, student_quantile

Floats = NDArray[np.float64]

_POWER = 0.8
_MAX_RUNS = 200


@dataclass(frozen=True, slots=True)
class Difference:
    """How the new runs differ from the old: means, and everything else relative to the size of the old mean.

    ``change`` is (new - old)/|old|. ``spread`` is the pooled standard deviation between runs of one kind,
    ``low``..``high`` hold the true change with probability 1 - 2·alpha, ``p_up``/``p_down`` are the one-sided
    probabilities of such a rise or fall without a change, ``smallest`` is the change that these numbers of runs would
    show in four of five cases. These are None where no run was repeated: then nobody knows how runs differ.
    """

    old: float
    new: float
    n_old: int
    n_new: int
    change: float
    tolerance: float
    alpha: float
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    p_up: float | None = None
    p_down: float | None = None
    smallest: float | None = None

    @property
    def rose(self) -> bool:
        """A rise above the tolerance that is no accident."""
        return self.p_up is not None and self.p_up < self.alpha and self.change > self.tolerance

    @property
    def fell(self) -> bool:
        """A fall by more than the tolerance that is no accident."""
        return self.p_down is not None and self.p_down < self.alpha and self.change < -self.tolerance

    @property
    def equivalent(self) -> bool:
        """Both one-sided tests say that the change lies within the tolerance (TOST)."""
        return self.low is not None and self.high is not None and max(-self.low, self.high) <= self.tolerance


def difference(
    old: Sequence[float] | Floats,
    new: Sequence[float] | Floats,
    tolerance: float = 0.05,
    alpha: float = 0.05,
    quantum: float = 0.0,
) -> Difference | None:
    """Compares one number a run: the t prediction interval of new runs from old ones (with one new run), the t test
    with pooled variance (with several). None without a number on each side, from an old mean of 0, or on overflow.

    The spread is at least that of a rounding to ``quantum`` (quantum/sqrt(12)): three equal integers are not exact.

    >>> d = difference([100.0, 101.0, 99.0, 100.5, 99.5], [110.0])
    >>> d.rose, round(d.change, 3), round(d.spread, 4), d.equivalent
    (True, 0.1, 0.0079, False)

    Wrong (too sure) for runs that are not independent, such as five in a row on a device that warms up. Reference:
    W. Hahn, W. Meeker, Statistical intervals, 1991, ch. 4 (prediction interval); D. Schuirmann, J. Pharmacokin.
    Biopharm. 15, 1987 (TOST). Tests on the readings of two runs, as in Kayenta, answer another question: with a
    spread between runs of 2 % they call 25 to 80 % of equal builds different.
    """
    before, after = _numbers(old), _numbers(new)
    if not before.size or not after.size:
        return None
    scale = float(max(np.abs(before).max(), np.abs(after).max()))
    if scale == 0.0:
        return Difference(0.0, 0.0, before.size, after.size, 0.0, tolerance, alpha)
    if not math.isfinite(quantum / scale):
        return None
    before, after = before / scale, after / scale
    a, b = float(before.mean()), float(after.mean())
    n, m = before.size, after.size
    if a == 0.0 or not math.isfinite((b - a) / abs(a)):
        return None
    change, free = (b - a) / abs(a), n + m - 2
    plain = Difference(a * scale, b * scale, n, m, change, tolerance, alpha)
    if free < 1:
        return plain
    squares = float(((before - a) ** 2).sum() + ((after - b) ** 2).sum())
    spread = max(math.sqrt(squares / free), quantum / scale / math.sqrt(12)) / abs(a)
    error = spread * math.sqrt(1 / n + 1 / m)
    half = student_quantile(free, 1 - alpha) * error
    t = change / error if error > 0 else math.copysign(math.inf, change) if change else 0.0
    smallest = max(half, tolerance) + student_quantile(free, _POWER) * error
    if not all(map(math.isfinite, (change - half, change + half, smallest))):
        return plain
    return Difference(
        a * scale,
        b * scale,
        n,
        m,
        change,
        tolerance,
        alpha,
        spread,
        change - half,
        change + half,
        float(student_cdf(free, -t)),
        float(student_cdf(free, t)),
        smallest,
    )


def runs_needed(spread: float, effect: float, new: int = 1, alpha: float = 0.05) -> int | None:
    """How many old runs show a change of ``effect`` in four of five cases; None if no number does.

    >>> runs_needed(0.02, 0.10), runs_needed(0.05, 0.10), runs_needed(0.05, 0.10, new=3)
    (3, None, 6)
    """
    for old in range(2, _MAX_RUNS):
        free = old + new - 2
        factor = float(student_quantile(free, 1 - alpha) + student_quantile(free, _POWER))
        if factor * spread * math.sqrt(1 / old + 1 / new) <= effect:
            return old
    return None


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far runs of the same thing lie apart: ``worst`` is the largest distance from the median, relative to it.

    ``sd`` (relative to the median) is known only to lie below ``sd_upper`` with 95 % probability: with few runs that
    is many times more (16 times with 2, 4.4 with 3, 2.4 with 5, 1.65 with 10). Both are None for a single run.
    """

    n: int
    median: float
    worst: float
    sd: float | None
    sd_upper: float | None
    limit: float

    @property
    def within(self) -> bool:
        """Whether every run lies within the limit: met by accident in 69 % of cases with 3 runs of a CV of 10 %."""
        return self.worst <= self.limit


def repeatability(values: Sequence[float] | Floats, limit: float = 0.15) -> Repeatability | None:
    """The spread of one number a run; None without a number, with a median of 0, or on overflow.

    >>> r = repeatability([100.0, 103.0, 96.0])
    >>> r.n, round(r.worst, 3), round(r.sd_upper / r.sd, 2), r.within
    (3, 0.04, 4.42, True)
    """
    number = _numbers(values)
    middle = float(np.median(number / 2)) * 2 if number.size else 0.0
    if middle == 0.0 or not math.isfinite(middle):
        return None
    with np.errstate(all="ignore"):
        ratio = number / abs(middle) - math.copysign(1.0, middle)
        worst = float(np.abs(ratio).max())
        sd = float(ratio.std(ddof=1)) if number.size > 1 else None
    if not math.isfinite(worst) or (sd is not None and not math.isfinite(sd)):
        return None
    return Repeatability(number.size, middle, worst, sd, None if sd is None else sd * sd_factor(number.size), limit)


def sd_factor(n: int, alpha: float = 0.05) -> float:
    """By how much the true standard deviation may exceed that of ``n`` >= 2 values, with probability 1 - alpha.

    >>> [round(sd_factor(n), 2) for n in (2, 3, 5, 10)]
    [15.95, 4.42, 2.37, 1.65]
    """
    return math.sqrt((n - 1) / chi_square_quantile(n - 1, 1 - alpha))


def _numbers(values: Sequence[float] | Floats) -> Floats:
    given = np.asarray(values, dtype=np.float64).ravel()
    kept: Floats = given[np.isfinite(given)]
    return kept
