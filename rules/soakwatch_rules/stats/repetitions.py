"""How many runs are enough: an interval of the median without normality, and the runs that a wanted width needs.

The run is the unit, one number each. Intervals are by order statistics: whatever the distribution of the runs is, the
k-th smallest and the k-th largest of n independent runs hold its median with the probability 1 - 2 P(B < k), B binomial
of n and 1/2. Too sure for runs that are not independent, such as five in a row on a device that warms up: order them at
random. References: W. Hahn, W. Meeker, Statistical Intervals, 1991, ch. 5; T. Hoefler, R. Belli, SC 2015 (what must be
reported); A. Maricq et al., Taming Performance Variability, OSDI 2018 (CONFIRM).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.differences import sd_factor
from soakwatch_rules.stats.distributions import beta_quantile, binomial_at_most, log_choose, normal_quantile

Floats = NDArray[np.float64]

_SURE = 0.95  # of the standard deviation behind the number at worst
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


def median_interval(values: Sequence[float] | Floats, confidence: float = 0.95) -> MedianInterval:
    """The median of runs with its interval by order statistics; values that are no finite numbers do not count.

    Raises ValueError without a value, or for a confidence that is not within 0 and 1. At 95 % six runs are the least.

    >>> median_interval([7.0, 1.0, 3.0, 5.0, 2.0, 4.0])
    MedianInterval(n=6, median=3.5, low=1.0, high=7.0, confidence=0.96875)
    >>> median_interval([3.0, 1.0, 2.0])
    MedianInterval(n=3, median=2.0, low=None, high=None, confidence=0.75)
    """
    number = _sorted(values)
    n = number.size
    _asked(n, confidence)
    middle = float(np.median(number / 2)) * 2
    k = _order(n, confidence)
    if k == 0:
        return MedianInterval(n, middle, None, None, _held(n, 1))
    return MedianInterval(n, middle, float(number[k - 1]), float(number[n - k]), _held(n, k))


def fewest(confidence: float = 0.95) -> int:
    """The least runs whose smallest and largest hold the median with this confidence.

    >>> [fewest(c) for c in (0.9, 0.95, 0.99)]
    [5, 6, 8]
    """
    return max(1, math.ceil(1 - math.log2(1 - confidence) - 1e-12))


@dataclass(frozen=True, slots=True)
class Repetitions:
    """How many runs make the interval of the median as narrow as wanted.

    ``needed`` is the number, None where these runs cannot tell or it is above ``at_most``; ``reason`` is the sentence.
    ``enough`` says that the runs at hand have such an interval already. ``estimated`` says that the number was not
    seen among the runs at hand but comes from how intervals shrink; then ``at_worst`` is the same for the largest
    spread that these runs leave possible (95 %; None where it is above any number worth telling). ``half_width`` is
    that of the ``n`` runs at hand, relative to their median; None where they have no interval.
    """

    n: int
    wanted: float
    half_width: float | None
    needed: int | None
    enough: bool
    estimated: bool
    at_worst: int | None
    reason: str


def repetitions_needed(
    values: Sequence[float] | Floats, half_width: float, confidence: float = 0.95, at_most: int = 1000
) -> Repetitions:
    """The fewest runs whose interval of the median is expected within ± ``half_width`` (relative) of the median.

    As CONFIRM does: of subsets of the runs at hand, of growing size, the interval's ends are averaged, and the first
    size with both within the width is the answer. CONFIRM draws 200 subsets a size; here it is the mean over all of
    them, which is known exactly: the k-th smallest of s drawn from n sorted values is the i-th with the probability
    C(i-1, k-1) C(n-i, s-k) / C(n, s). So there is nothing to seed, and the number is that of CONFIRM without its noise.

    What the runs at hand do not reach is estimated. From ``fewest`` runs on: the half width at hand times how that of
    normal runs shrinks with their number (expected order statistics by Blom; 1/sqrt(n) for many). With fewer: from
    their coefficient of variation, as if normal, which two to five runs know within a factor of 16 to 2.4, so that
    ``at_worst`` is far off. A single run tells nothing. Wrong for runs that differ in rare jumps none of these had.

    Raises ValueError without a value, or for a half width that is not above 0.

    >>> steady = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]
    >>> repetitions_needed(steady, 0.01).needed, repetitions_needed(steady, 0.01).enough
    (6, True)
    >>> r = repetitions_needed(steady, 0.001)
    >>> r.needed, r.estimated
    (158, True)
    >>> print(repetitions_needed([100.0, 103.0, 96.0], 0.02).reason)
    estimated: 23 runs for ± 2 %, from the coefficient of variation of 3 runs (3.5 %) as if they were normal
    >>> print(repetitions_needed([100.0], 0.02).reason)
    1 run does not show the spread between runs: 6 are the least for an interval of 95 %
    """
    number = _sorted(values)
    n = number.size
    _asked(n, confidence)
    if not half_width > 0:
        raise ValueError(f"half_width is {half_width:g}, and has to be above 0")
    at_hand = median_interval(number, confidence)
    least = fewest(confidence)

    def answer(needed: int | None, reason: str, at_worst: int | None = None, *, guess: bool = False) -> Repetitions:
        seen = at_hand.half_width
        enough = seen is not None and seen <= half_width
        if needed is not None and needed > at_most:
            reason = f"more than {at_most} runs for {_within(half_width)} ({reason})"
            needed = None
        return Repetitions(n, half_width, seen, needed, enough, guess, at_worst, reason)

    if at_hand.median == 0.0:
        return answer(None, f"the median of {_runs(n)} is 0, of which no share can be asked")
    if n == 1:
        sure = f"{100 * confidence:g} %"
        return answer(
            None, f"1 run does not show the spread between runs: {least} are the least for an interval of {sure}"
        )
    relative = number / abs(at_hand.median) - math.copysign(1.0, at_hand.median)
    if not np.isfinite(relative).all():
        return answer(None, "the runs differ by more than numbers can hold")
    if n < least:
        cv = float(relative.std(ddof=1))
        worst = _normal_runs(cv * sd_factor(n, 1 - _SURE), half_width, confidence)
        needed = _normal_runs(cv, half_width, confidence)
        of = f"the coefficient of variation of {_runs(n)} ({100 * cv:.2g} %) as if they were normal"
        if needed is None:
            return answer(None, f"more than {_MOST} runs for {_within(half_width)}, from {of}", guess=True)
        return answer(
            needed, f"estimated: {needed} runs for {_within(half_width)}, from {of}", _told(worst, at_most), guess=True
        )
    sizes = range(least, n + 1) if n <= _MANY else np.unique(np.geomspace(least, n, _MANY).astype(np.int64)).tolist()
    for size in sizes:
        low, high = _expected_ends(relative, size, confidence)
        if max(high, -low) <= half_width:
            return answer(size, f"{size} of these {n} runs have an interval within {_within(half_width)} on average")
    seen = max(float(at_hand.half_width or 0.0), half_width)
    sd = seen / _normal_half(n, confidence)
    needed = _normal_runs(sd, half_width, confidence, above=n)
    worst = _normal_runs(sd * sd_factor(n, 1 - _SURE), half_width, confidence, above=n)
    now = f"the {n} at hand have ± {100 * seen:.2g} %, and it shrinks as 1/sqrt(n)"
    if needed is None:
        return answer(None, f"more than {_MOST} runs for {_within(half_width)}: {now}", guess=True)
    return answer(
        needed, f"estimated: {needed} runs for {_within(half_width)}: {now}", _told(worst, at_most), guess=True
    )


Verdict = Literal["proven", "refuted", "not decided"]


@dataclass(frozen=True, slots=True)
class Proof:
    """Whether runs prove that what was claimed holds within its tolerance.

    ``verdict`` is about the median (what the device does, as a rule) and goes by ``interval`` against ``lowest`` ..
    ``highest`` = claimed · (1 ± tolerance). ``further`` is how many more runs would decide it if they are like those at
    hand, an estimate; None where it is decided or nobody can tell. The stricter reading, that single runs keep the
    tolerance: ``inside`` of the runs did, so the share of all runs that does lies in ``share_low`` .. ``share_high``
    (Clopper and Pearson, each side with the confidence); ``single`` is the verdict on at least ``share`` of all runs,
    and ``further_single`` the runs more that prove it if each of them keeps the tolerance.
    """

    verdict: Verdict
    interval: MedianInterval
    lowest: float
    highest: float
    further: int | None
    inside: int
    share_low: float
    share_high: float
    share: float
    single: Verdict
    further_single: int | None
    reason: str


def tolerance_proven(
    values: Sequence[float] | Floats,
    claimed: float,
    tolerance: float,
    confidence: float = 0.95,
    *,
    share: float = 0.95,
    at_most: int = 1000,
) -> Proof:
    """Whether "``claimed``, ± ``tolerance``" (a share: 0.15) is proven or refuted by these runs, or not decided.

    Proven: the whole interval of the median lies within the tolerance; refuted: it lies outside on one side. Both need
    six runs at 95 %. Runs that are added until it is decided, looked at after each, decide too often: fix the number
    (``further``) first. Beside it the reading that single runs keep it, by the share of runs that did: with every run
    inside, 59 prove 95 % of runs at 95 % confidence (one-sided; C. Clopper, E. Pearson, Biometrika 26, 1934).

    Raises ValueError without a value, for a claim of 0 or a tolerance that is not above 0.

    >>> runs = [98.0, 101.0, 100.0, 102.0, 99.0, 100.5]
    >>> p = tolerance_proven(runs, 100.0, 0.15)
    >>> p.verdict, p.inside, round(p.share_low, 3), p.single, p.further_single
    ('proven', 6, 0.607, 'not decided', 53)
    >>> print(p.reason)
    the median of 6 runs lies in 98 .. 102 (96.9 %), within 85 .. 115
    >>> tolerance_proven(runs[:3], 100.0, 0.15).further, tolerance_proven(runs, 130.0, 0.15).verdict
    (3, 'refuted')
    """
    number = _sorted(values)
    n = number.size
    _asked(n, confidence)
    if claimed == 0 or not math.isfinite(claimed) or not tolerance > 0:
        raise ValueError(f"a claim of {claimed:g} ± {tolerance:g} is none: the claim is not 0, the tolerance above 0")
    ends = claimed * (1 - tolerance), claimed * (1 + tolerance)
    lowest, highest = min(ends), max(ends)
    interval = median_interval(number, confidence)
    inside = int(np.count_nonzero((number >= lowest) & (number <= highest)))
    alpha = 1 - confidence
    share_low = beta_quantile(inside, n - inside + 1, alpha) if inside else 0.0
    share_high = beta_quantile(inside + 1, n - inside, 1 - alpha) if inside < n else 1.0
    single: Verdict = "proven" if share_low >= share else "refuted" if share_high < share else "not decided"
    further_single = None if single != "not decided" else _more_inside(n, inside, share, confidence, at_most)
    low, high, median = interval.low, interval.high, interval.median
    span = f"{lowest:.6g} .. {highest:.6g}"
    verdict: Verdict = "not decided"
    further: int | None = None
    if low is not None and high is not None:
        lies = f"the median of {_runs(n)} lies in {low:.6g} .. {high:.6g} ({100 * interval.confidence:.1f} %)"
        if low >= lowest and high <= highest:
            verdict, reason = "proven", f"{lies}, within {span}"
        elif low > highest or high < lowest:
            verdict, reason = "refuted", f"{lies}, outside {span}"
        else:
            reason = f"{lies}, partly outside {span}"
    else:
        reason = f"{_runs(n)} of at least {fewest(confidence)}: the median, {median:.6g}, has no interval yet"
    if verdict == "not decided":
        further = _runs_to_decide(number, median, lowest, highest, confidence, at_most)
        more = "how many more would decide it is not known" if further is None else f"about {further} more would decide"
        reason = f"{reason}; {more}"
    return Proof(
        verdict,
        interval,
        lowest,
        highest,
        further,
        inside,
        share_low,
        share_high,
        share,
        single,
        further_single,
        reason,
    )


def _runs_to_decide(
    number: Floats, median: float, lowest: float, highest: float, confidence: float, at_most: int
) -> int | None:
    """Runs more until the interval of a median that stays where it is has left the nearer limit."""
    gap = min(abs(median - lowest), abs(median - highest))
    if gap == 0.0 or median == 0.0 or number.size < 2:
        return None
    needed = repetitions_needed(number, gap / abs(median), confidence, at_most).needed
    return None if needed is None else max(needed - number.size, 1)


def _more_inside(n: int, inside: int, share: float, confidence: float, at_most: int) -> int | None:
    return next(
        (
            more
            for more in range(1, at_most + 1)
            if beta_quantile(inside + more, n - inside + 1, 1 - confidence) >= share
        ),
        None,
    )


def _sorted(values: Sequence[float] | Floats) -> Floats:
    given = np.asarray(values, dtype=np.float64).ravel()
    return np.sort(given[np.isfinite(given)])


def _asked(n: int, confidence: float) -> None:
    if n == 0:
        raise ValueError("no run has a number")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence of {confidence:g} is not within 0 and 1")


def _held(n: int, k: int) -> float:
    return 1 - 2 * float(binomial_at_most(np.array([k - 1]), n, 0.5)[0])


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


def _told(runs: int | None, at_most: int) -> int | None:
    return None if runs is None or runs > at_most else runs


def _within(half_width: float) -> str:
    return f"± {100 * half_width:.3g} %"


def _runs(n: int) -> str:
    return "1 run" if n == 1 else f"{n} runs"
