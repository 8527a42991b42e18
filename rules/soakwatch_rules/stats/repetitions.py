"""How many runs are enough: how far runs lie apart, what their median is, and the runs that a wanted width needs.

The run is the unit, one number each. Intervals are by order statistics: whatever the distribution of the runs is, the
k-th smallest and the k-th largest of n independent runs hold its median with the probability 1 - 2 P(B < k), B binomial
of n and 1/2. Too sure for runs that are not independent, such as five in a row on a device that warms up: order them at
random. References: W. Hahn, W. Meeker, Statistical Intervals, 1991, ch. 5; T. Hoefler, R. Belli, SC 2015 (what must be
reported); A. Maricq et al., Taming Performance Variability, OSDI 2018 (CONFIRM).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.difference import Numbers, finite
from soakwatch_rules.stats.difference import wide_median as middle_of
from soakwatch_rules.stats.distributions import binomial_at_most, chi_square_quantile, log_choose, normal_quantile

_MOST = 100_000  # runs that are thought of at all
_MANY = 300  # runs from which on 1/sqrt(n) does for the expected half width
_MEDIAN_ERROR = math.sqrt(math.pi / 2)  # of the median of normal runs, in standard errors of their mean


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """The median of ``n`` runs, and an interval that holds the median of all such runs.

    ``low`` and ``high`` are two of the values; None where ``n`` is too small for the confidence that was asked for.
    ``confidence`` is that of this interval, which is at least the one asked for (an interval by order statistics has
    few sizes to choose from); without an interval it is what the smallest and the largest value would have.
    """

    n: int
    median: float
    low: float | None
    high: float | None
    confidence: float

    @property
    def half_width(self) -> float | None:
        """How far the farther end is from the median, relative to it; None without interval or with median 0."""
        if self.low is None or self.high is None or self.median == 0.0:
            return None
        return max(self.high - self.median, self.median - self.low) / abs(self.median)


def median_interval(values: Numbers, confidence: float = 0.95) -> MedianInterval:
    """The median of runs with its interval by order statistics; values that are no finite numbers do not count.

    Raises ValueError without a value, or for a confidence that is not within 0 and 1. At 95 % six runs are the least.

    >>> median_interval([7.0, 1.0, 3.0, 5.0, 2.0, 4.0])
    MedianInterval(n=6, median=3.5, low=1.0, high=7.0, confidence=0.96875)
    >>> median_interval([3.0, 1.0, 2.0])
    MedianInterval(n=3, median=2.0, low=None, high=None, confidence=0.75)
    """
    number = _sorted(values, confidence)
    n, k = number.size, _order(number.size, confidence)
    held = 1 - 2 * float(binomial_at_most(np.array([max(k, 1) - 1]), n, 0.5)[0])
    low, high = (None, None) if k == 0 else (float(number[k - 1]), float(number[n - k]))
    return MedianInterval(n, middle_of(number), low, high, held)


def fewest(confidence: float = 0.95) -> int:
    """The least runs whose smallest and largest hold the median with this confidence.

    >>> [fewest(c) for c in (0.9, 0.95, 0.99)]
    [5, 6, 8]
    """
    return max(1, math.ceil(1 - math.log2(1 - confidence) - 1e-12))


def repetitions_needed(values: Numbers, half_width: float, confidence: float = 0.95, at_most: int = 1000) -> int | None:
    """The fewest runs whose interval of the median is expected within ± ``half_width`` (relative) of the median; None
    where these runs cannot tell (one run, a median of 0), or it is above ``at_most``.

    As CONFIRM does: of subsets of the runs at hand, of growing size, the interval's ends are averaged, and the first
    size with both within the width is the answer. CONFIRM draws 200 subsets a size; here it is the mean over all of
    them, which is known exactly: the k-th smallest of s drawn from n sorted values is the i-th with the probability
    C(i-1, k-1) C(n-i, s-k) / C(n, s). So there is nothing to seed, and the number is that of CONFIRM without its noise.

    What the runs at hand do not reach is estimated. From ``fewest`` runs on: the half width at hand times how that of
    normal runs shrinks with their number (expected order statistics by Blom; 1/sqrt(n) for many). With fewer: from
    their coefficient of variation, as if normal, which two to five runs know within a factor of 16 to 2.4. Wrong for
    runs that differ in rare jumps none of these had.

    Raises ValueError without a value, or for a half width that is not above 0.

    >>> steady = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]
    >>> [repetitions_needed(steady, width) for width in (0.01, 0.001)], repetitions_needed([100.0, 103.0, 96.0], 0.02)
    ([6, 158], 23)
    """
    number = _sorted(values, confidence)
    n, middle = number.size, middle_of(number)
    if not half_width > 0:
        raise ValueError(f"half_width is {half_width:g}, and has to be above 0")
    if middle == 0.0 or n == 1:
        return None
    relative = number / abs(middle) - math.copysign(1.0, middle)
    if not np.isfinite(relative).all():
        return None
    needed = _needed(relative, half_width, confidence, median_interval(number, confidence).half_width)
    return None if needed is None or needed > at_most else needed


def _needed(relative: Floats, half_width: float, confidence: float, at_hand: float | None) -> int | None:
    """The same for runs relative to their median, sorted; ``at_hand`` is the half width of their interval."""
    n, least = relative.size, fewest(confidence)
    if n < least:
        return _normal_runs(float(relative.std(ddof=1)), half_width, confidence)
    sizes = range(least, n + 1) if n <= _MANY else np.unique(np.geomspace(least, n, _MANY).astype(np.int64)).tolist()
    for size in sizes:
        low, high = _expected_ends(relative, size, confidence)
        if max(high, -low) <= half_width:
            return size
    seen = max(at_hand or 0.0, half_width)
    return _normal_runs(seen / _normal_half(n, confidence), half_width, confidence, above=n)


Verdict = Literal["proven", "refuted", "not decided"]


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether the median of runs proves that what was claimed holds within its tolerance: ``interval`` against
    ``lowest`` .. ``highest`` = claimed · (1 ± tolerance). ``further`` is how many more runs would decide it if they are
    like those at hand, an estimate; None where it is decided or nobody can tell."""

    verdict: Verdict
    interval: MedianInterval
    lowest: float
    highest: float
    further: int | None


def tolerance_proven(
    values: Numbers, claimed: float, tolerance: float, confidence: float = 0.95, *, at_most: int = 1000
) -> Proof:
    """Whether "``claimed``, ± ``tolerance``" (a share: 0.15) is proven or refuted by these runs, or not decided.

    Proven: the whole interval of the median lies within the tolerance; refuted: it lies outside on one side. Both need
    six runs at 95 %. Runs that are added until it is decided, looked at after each, decide too often: fix the number
    (``further``) first.

    Raises ValueError without a value, for a claim of 0 or a tolerance that is not above 0.

    >>> runs = [98.0, 101.0, 100.0, 102.0, 99.0, 100.5]
    >>> tolerance_proven(runs, 100.0, 0.15).verdict, tolerance_proven(runs, 130.0, 0.15).verdict
    ('proven', 'refuted')
    >>> tolerance_proven(runs[:3], 100.0, 0.15).further
    3
    """
    number = _sorted(values, confidence)
    if claimed == 0 or not math.isfinite(claimed) or not tolerance > 0:
        raise ValueError(f"a claim of {claimed:g} ± {tolerance:g} is none: the claim is not 0, the tolerance above 0")
    lowest, highest = sorted((claimed * (1 - tolerance), claimed * (1 + tolerance)))
    interval = median_interval(number, confidence)
    low, high, middle = interval.low, interval.high, interval.median
    if low is not None and high is not None and low >= lowest and high <= highest:
        return Proof("proven", interval, lowest, highest, None)
    if low is not None and high is not None and (low > highest or high < lowest):
        return Proof("refuted", interval, lowest, highest, None)
    # until the interval of a median that stays where it is has left the nearer limit
    gap = min(abs(middle - lowest), abs(middle - highest))
    needed = repetitions_needed(number, gap / abs(middle), confidence, at_most) if gap and middle else None
    further = None if needed is None else max(needed - number.size, 1)
    return Proof("not decided", interval, lowest, highest, further)


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


def repeatability(values: Numbers, limit: float = 0.15) -> Repeatability | None:
    """The spread of one number a run; None without a number, with a median of 0, or on overflow.

    >>> r = repeatability([100.0, 103.0, 96.0])
    >>> r.n, round(r.worst, 3), round(r.sd_upper / r.sd, 2), r.within
    (3, 0.04, 4.42, True)
    """
    number = finite(values)
    middle = middle_of(number) if number.size else 0.0
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


def _sorted(values: Numbers, confidence: float) -> Floats:
    """The finite values in order. Raises ValueError without one, or for a confidence that is not within 0 and 1."""
    number = np.sort(finite(values))
    if not number.size:
        raise ValueError("no run has a number")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence:g} is not within 0 and 1")
    return number


def _order(n: int, confidence: float) -> int:
    """The largest k whose k-th smallest and k-th largest value hold the median with this confidence; 0 if none does."""
    k = np.arange(1, n // 2 + 1)
    held = 1 - 2 * binomial_at_most(k - 1, n, 0.5)
    return int(np.count_nonzero(held >= confidence - 1e-12))


def _expected_ends(relative: Floats, size: int, confidence: float) -> tuple[float, float]:
    """The mean of the interval's ends over all subsets of this size of sorted values."""
    n = relative.size
    k = _order(size, confidence)
    i = np.arange(1, n + 1)
    weight = np.exp(log_choose(i - 1, k - 1) + log_choose(n - i, size - k) - log_choose(n, size))
    return float(weight @ relative), float(weight[::-1] @ relative)


def _normal_half(n: int, confidence: float) -> float:
    """The expected half width of the interval of n standard normal runs, by G. Blom's scores (1958)."""
    k = _order(n, confidence)
    return float(normal_quantile((n + 1 - k - 0.375) / (n + 0.25))) if k else math.inf


def _normal_runs(sd: float, half_width: float, confidence: float, above: int = 0) -> int | None:
    """The fewest normal runs of this spread whose interval is expected within the half width."""
    first = max(fewest(confidence), above + 1)
    many = (_MEDIAN_ERROR * float(normal_quantile((1 + confidence) / 2)) * sd / half_width) ** 2
    if many > _MANY:
        return max(first, math.ceil(many)) if many <= _MOST else None
    sizes = range(first, 2 * (_MANY + first))
    return next((n for n in sizes if sd * _normal_half(n, confidence) <= half_width), None)
