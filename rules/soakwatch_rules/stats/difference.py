"""Is it different? Two sides with a number a run, or a number a part of a run: one answer, by the test that fits.

* ``by_ranks``: several runs against several, by the exact rank test. Assumes no distribution; four runs each at least.
* ``by_t``: one new run, or a few, against two earlier ones or more, by Student's t. Decides with fewer runs because it
  takes runs to be normal.
* ``by_parts``: one run against one, over parts of the same time. Says that these two runs differ, never how much runs
  of one thing differ.

Every test gives a ``Difference``. ``corrected`` corrects several of them for their number. Distributions come from
scipy.special. The rank test is ours because scipy.stats.mannwhitneyu has an exact p without ties only, and
scipy.stats.permutation_test counts out every division (2.7 million for 12 + 12 runs); the tests hold both, and
scipy.stats.ttest_ind, against these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.distributions import normal_cdf, normal_quantile, student_cdf, student_quantile
from soakwatch_rules.stats.medians import median

Numbers = Sequence[float] | Floats
Method = Literal["ranks", "t", "parts"]
Outcome = Literal["different", "equivalent", "undecided"]
Better = Literal["higher", "lower", ""]
Judged = Literal["better", "worse", "different", "equivalent", "undecided"]

LEAST_PARTS: Final = 6
_MAX_RHO: Final = 0.98
_POWER = 0.8
_EXACT = 100  # runs of both together; from there on the normal approximation, which is close by then
_MOST = 10_000  # runs each that are thought of
_MOST_OLD = 200
_EFFICIENCY = 3 / math.pi  # of the rank test beside the t test where runs are normal


@dataclass(frozen=True, slots=True)
class Difference:
    """How the new side differs from the old one.

    ``old`` and ``new`` are the levels: medians by ranks, else means. ``change`` is (new - old)/|old|, by ranks the
    median of all quotients less 1; ``low`` .. ``high`` hold the true one with the confidence 1 - ``alpha`` (by t: each
    end with 1 - ``alpha``). They are None from an old level of 0, and where there are too few numbers.

    ``p`` is the probability of such a difference without one: two-sided, by t in the direction that was seen.
    ``p_equivalent`` is that of a difference by ``margin`` or more: the larger of two one-sided tests (Schuirmann 1987).

    ``spread`` is the standard deviation between runs of one kind relative to their level (None where no run was
    repeated, and by parts). ``smallest`` is the change that so many runs show in four of five cases (by t only).
    ``tests`` is how many differences were corrected together.
    """

    method: Method
    old: float
    new: float
    n_old: int
    n_new: int
    margin: float
    alpha: float
    change: float | None = None
    low: float | None = None
    high: float | None = None
    p: float = 1.0
    p_equivalent: float = 1.0
    spread: float | None = None
    smallest: float | None = None
    tests: int = 1

    @property
    def outcome(self) -> Outcome:
        """equivalent: proven to lie within the margin; different: proven to differ, and seen beyond the margin."""
        if self.p_equivalent <= self.alpha:
            return "equivalent"
        return "different" if self.p <= self.alpha and self._beyond else "undecided"

    def judged(self, better: Better) -> Judged:
        """The outcome where one direction is better."""
        if self.outcome != "different" or not better:
            return self.outcome
        return "better" if self.rose == (better == "higher") else "worse"

    @property
    def rose(self) -> bool:
        """Whether the new side is higher."""
        return self.new > self.old if self.change is None else self.change > 0

    @property
    def _beyond(self) -> bool:
        return self.new != self.old if self.change is None else abs(self.change) > self.margin

    @property
    def reason(self) -> str:
        """The numbers and what they prove, in one sentence; of an undecided one what would decide it."""
        seen = f"{100 * abs(self.change or 0.0):.2g} % {'more' if self.rose else 'less'}"
        if not self.change:
            seen = f"{self.new:.6g} against {self.old:.6g}"
        runs = f"{self.n_new} new {'run' if self.n_new == 1 else 'runs'} and {self.n_old} earlier"
        if self.outcome == "equivalent":
            why = f"within ± {100 * self.margin:.3g} % (p {self.p_equivalent:.2g})"
        elif self.outcome == "different":
            why = f"a difference (p {self.p:.2g}) beyond ± {100 * self.margin:.3g} %"
        else:
            why = self.needs if self.change is None or self.spread is None else f"not decided; {self.needs}"
        return f"{seen}, of {runs}: {why}"

    @property
    def needs(self) -> str:
        """Of an undecided one: the runs each that decide it in four of five cases, if the change is what was seen."""
        if self.outcome != "undecided":
            return ""
        level = self.alpha / self.tests
        least = least_runs(self.alpha, self.tests)
        if self.change is None:
            return f"not decided (p {self.p:.2g}); at least {least} each"
        beyond, margin = self._beyond, f"± {100 * self.margin:.3g} %"
        ratio = 1 + self.change
        effect = abs(math.log(ratio)) if ratio > 0 else abs(self.change)
        if not beyond:  # what is asked is whether it stays within the margin's end
            effect = abs(math.log1p(math.copysign(self.margin, self.change))) - effect
        if self.spread is None:
            most = _largest_spread(least, effect, level, two_sided=beyond)
            what = "prove it" if beyond else f"prove {margin}"
            return f"{least} each {what} if the coefficient of variation of runs is at most {100 * most:.2g} %"
        needed = _runs_each(self.spread, effect, level, two_sided=beyond)
        much = "no number of runs up to 10000"
        if needed is not None:
            much = f"about {max(needed, min(self.n_new, self.n_old) + 1)} each"
        what = "prove it" if beyond else f"prove that it is within {margin}"
        return f"{much} {what} at a coefficient of variation of {100 * self.spread:.2g} %"


def by_ranks(new: Numbers, old: Numbers, margin: float, confidence: float = 0.95) -> Difference:
    """Several runs against several; ``margin`` is the change that does not matter (0.02).

    The test is that of Wilcoxon, Mann and Whitney by its exact permutation distribution, ties and all; the change is
    the median of all quotients of a new and an old run (Hodges and Lehmann on logarithms, Ann. Math. Statist. 34,
    1963), its interval the inversion of the test (D. Bauer, JASA 67, 1972). Where runs are not all above 0 the change
    is the difference relative to the size of the old median. At 95 % four runs each can prove a difference, three each
    that it is the same; fewer are undecided whatever they say.

    What it gets wrong: it takes both kinds to have distributions of one shape; where one scatters more than the other
    it errs somewhat more often than 1 - confidence. Runs that are not independent (all old, then all new, on a device
    that warms up) make it much too sure.

    Raises ValueError without a value on each side, or for a margin that is not within 0 and 1.

    >>> d = by_ranks([92.0, 92.4, 91.8, 92.2], [100.0, 100.3, 99.8, 100.1], 0.02)
    >>> d.outcome, round(d.change, 3), round(d.p, 3)
    ('different', -0.079, 0.029)
    >>> by_ranks([100.1, 99.9, 100.2], [100.0, 100.3, 99.8], 0.02).outcome
    'equivalent'
    >>> print(by_ranks([7_414_833.0], [8_029_181.0], 0.02).reason)
    7.7 % less, of 1 new run and 1 earlier: 4 each prove it if the coefficient of variation of runs is at most 3.3 %
    """
    after, before = finite(new), finite(old)
    if not after.size or not before.size:
        raise ValueError("no run has a number" if not after.size else "no earlier run has a number")
    if not 0 < margin < 1 or not 0 < confidence < 1:
        raise ValueError(f"margin {margin:g} and confidence {confidence:g} have to be within 0 and 1")
    alpha = round(1 - confidence, 12)  # 1 - 0.9 is less than 0.1, and a p of three runs is 0.1
    n, m = after.size, before.size
    a, b = wide_median(after), wide_median(before)
    logs = bool((after > 0).all() and (before > 0).all())
    low_end, high_end = (math.log1p(-margin), math.log1p(margin)) if logs else (-margin, margin)
    if logs:
        x, y = np.log(after), np.log(before)
    else:
        scale = abs(b) or float(np.abs(after).max()) or 1.0
        x, y = after / scale, before / scale
    p = min(1.0, 2 * min(_above(x, y), _above(y, x)))
    p_equivalent = max(_above(x, y + low_end), _above(y + high_end, x))
    known = logs or b != 0.0
    if not known and (a != 0.0 or bool(after.any()) or bool(before.any())):
        p_equivalent = 1.0  # no share of nothing

    def change(value: float | None) -> float | None:
        if value is None or not known:
            return None
        number = math.exp(min(value, 700.0)) if logs else 1 + value
        return number - 1 if math.isfinite(number) else None

    shifts = np.sort(np.subtract.outer(x, y).ravel())
    low, high = _ends(shifts, n, m, alpha / 2)
    free = n + m - 2
    squares = float(((x - x.mean()) ** 2).sum()) + float(((y - y.mean()) ** 2).sum())
    spread = math.sqrt(squares / free) if free and known else None
    middle = change(median(shifts))
    return Difference("ranks", b, a, m, n, margin, alpha, middle, change(low), change(high), p, p_equivalent, spread)


def by_t(new: Numbers, old: Numbers, margin: float, alpha: float = 0.05, quantum: float = 0.0) -> Difference | None:
    """A few runs against earlier ones: the t prediction interval with one new run, the t test with pooled variance with
    several. ``p`` is one-sided. None without a number on each side, from an old mean of 0, or on overflow.

    The spread is at least that of a rounding to ``quantum`` (quantum/sqrt(12)): three equal integers are not exact.

    >>> d = by_t([110.0], [100.0, 101.0, 99.0, 100.5, 99.5], 0.05)
    >>> d.outcome, round(d.change, 3), round(d.spread, 4)
    ('different', 0.1, 0.0079)

    Wrong (too sure) for runs that are not independent, such as five in a row on a device that warms up. References:
    W. Hahn, W. Meeker, Statistical intervals, 1991, ch. 4 (prediction interval); D. Schuirmann, J. Pharmacokin.
    Biopharm. 15, 1987. Tests on the readings of two runs, as in Kayenta, answer another question: with a spread between
    runs of 2 % they call 25 to 80 % of equal builds different.
    """
    after, before = finite(new), finite(old)
    n, m = before.size, after.size
    if not n or not m:
        return None
    scale = float(max(np.abs(before).max(), np.abs(after).max()))
    if scale == 0.0:
        return Difference("t", 0.0, 0.0, n, m, margin, alpha, 0.0)
    if not math.isfinite(quantum / scale):
        return None
    before, after = before / scale, after / scale
    a, b = float(before.mean()), float(after.mean())
    if a == 0.0 or not math.isfinite((b - a) / abs(a)):
        return None
    change, free = (b - a) / abs(a), n + m - 2
    plain = Difference("t", a * scale, b * scale, n, m, margin, alpha, change)
    if free < 1:
        return plain
    squares = float(((before - a) ** 2).sum() + ((after - b) ** 2).sum())
    spread = max(math.sqrt(squares / free), quantum / scale / math.sqrt(12)) / abs(a)
    error = spread * math.sqrt(1 / n + 1 / m)
    half = student_quantile(free, 1 - alpha) * error
    smallest = max(half, margin) + student_quantile(free, _POWER) * error
    if not all(map(math.isfinite, (change - half, change + half, smallest))):
        return plain
    p, p_equivalent = _one_sided(change, error, free), _equivalent(change, error, free, margin)
    return replace(
        plain, low=change - half, high=change + half, p=p, p_equivalent=p_equivalent, spread=spread, smallest=smallest
    )


def by_parts(new: Numbers, old: Numbers, margin: float) -> Difference:
    """One run against one: the ratio of the means of paired parts, shapes (n,), at least ``LEAST_PARTS``, at 95 %.

    The ratio estimator (Cochran, Sampling Techniques, 1977, ch. 6): its residuals are new - ratio * old. Their
    variance is that of independent ones times (1 + rho)/(1 - rho), with rho the lag-1 correlation of the residuals plus
    its bias (1 + 4 rho)/n (Marriott and Pope, Biometrika 41, 1954), cut to 0..0.98; the freedom is that of
    n·(1 - rho)/(1 + rho) values, less one. Of runs that are alike about 5 % are called different whatever the time over
    which readings stay alike (tests/bench/accuracy/compared.py).

    What it gets wrong: a wave as long as the run is a trend to it, and a trend that only one of the runs has widens the
    interval instead of being reported. A mean near 0 has a ratio that says little.

    Raises ValueError for too few parts, or sides of different length.

    >>> d = by_parts([11.0, 10.9, 11.1, 11.0, 10.9, 11.1, 11.0], [10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0], 0.03)
    >>> round(d.change, 3), round(d.low, 2), round(d.high, 2), d.outcome
    (0.1, 0.08, 0.12, 'different')
    >>> by_parts([3.0] * 6, [0.0] * 6, 0.03).change is None
    True
    """
    after, before = (np.asarray(values, dtype=np.float64).ravel() for values in (new, old))
    n, alpha = after.size, 0.05
    if n < LEAST_PARTS or n != before.size:
        raise ValueError(f"{n} new and {before.size} old parts: at least {LEAST_PARTS}, and as many of each")
    a, b = float(after.mean()), float(before.mean())
    ratio = a / b if b else 1.0
    error, free = _error_of_mean(after - ratio * before)
    p = min(1.0, 2 * _one_sided(a - b, error, free))
    plain = Difference("parts", b, a, n, n, margin, alpha, p=p)
    if not b:
        return replace(plain, p_equivalent=1.0 if a or error else 0.0)
    error /= abs(b)
    half = student_quantile(free, (1 + (1 - alpha)) / 2) * error if error > 0 else 0.0
    equivalent = _equivalent(ratio - 1, error, free, margin)
    return replace(plain, change=ratio - 1, low=ratio - half - 1, high=ratio + half - 1, p_equivalent=equivalent)


def corrected(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """The same with their p values corrected for how many there are (Holm, each kind of test by itself).

    >>> one = by_ranks([92.0, 92.4, 91.8, 92.2], [100.0, 100.3, 99.8, 100.1], 0.02)
    >>> one.outcome, {each.outcome for each in corrected([one] * 12)}
    ('different', {'undecided'})
    """
    p, p_equivalent = holm([each.p for each in differences]), holm([each.p_equivalent for each in differences])
    return tuple(
        replace(each, p=p[index], p_equivalent=p_equivalent[index], tests=len(differences))
        for index, each in enumerate(differences)
    )


def holm(p_values: Numbers) -> list[float]:
    """The p values corrected for their number, in their order: one that is at most alpha is proven, and all such
    together are wrong anywhere with a probability of at most alpha (S. Holm, Scand. J. Statist. 6, 1979).

    NaN (a test that could not be made) stays NaN and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64).ravel()
    result = np.full(given.size, np.nan)
    made = np.flatnonzero(~np.isnan(given))
    order = made[np.argsort(given[made], kind="stable")]
    factor = np.arange(order.size, 0, -1)
    result[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * factor)) if order.size else 0.0
    return [float(value) for value in result]


def least_runs(alpha: float = 0.05, tests: int = 1, *, equivalence: bool = False) -> int:
    """The fewest runs each with which the rank test can be significant at all, as the smallest p of ``tests`` (Holm).

    The smallest two-sided p of n runs each is 2 / C(2n, n), the one-sided one of ``equivalence`` half of it.

    >>> [least_runs(tests=k) for k in (1, 12, 27, 100)], least_runs(equivalence=True)
    ([4, 6, 7, 8], 3)
    """
    sides = 1 if equivalence else 2
    return next(n for n in range(1, _MOST) if sides / math.comb(2 * n, n) <= alpha / tests)


def runs_needed(spread: float, effect: float, new: int = 1, alpha: float = 0.05) -> int | None:
    """How many old runs show a change of ``effect`` by t in four of five cases; None if no number does.

    >>> runs_needed(0.02, 0.10), runs_needed(0.05, 0.10), runs_needed(0.05, 0.10, new=3)
    (3, None, 6)
    """
    for old in range(2, _MOST_OLD):
        if _factor(old + new - 2, alpha, _POWER) * spread * math.sqrt(1 / old + 1 / new) <= effect:
            return old
    return None


def finite(values: Numbers) -> Floats:
    """The values that are finite numbers, shape (n,)."""
    given = np.asarray(values, dtype=np.float64).ravel()
    kept: Floats = given[np.isfinite(given)]
    return kept


def wide_median(values: Floats) -> float:
    """The median, also of numbers whose sum is too large for one."""
    return median(values / 2) * 2


def _one_sided(change: float, error: float, freedom: float) -> float:
    """The p of so large a change in its own direction, by t."""
    if not error > 0:
        return 0.0 if change else 0.5
    return float(student_cdf(freedom, -abs(change) / error))


def _equivalent(change: float, error: float, freedom: float, margin: float) -> float:
    """The p of a change by at least ``margin``, by t: the larger of two one-sided tests."""
    room = margin - abs(change)
    if not error > 0:
        return 0.0 if room >= 0 else 1.0
    return float(student_cdf(freedom, -room / error))


def _factor(freedom: float, side: float, power: float) -> float:
    """The effect, in standard errors, that a t test shows at this one-sided level with this power."""
    return student_quantile(freedom, 1 - side) + student_quantile(freedom, power)


def _runs_each(spread: float, effect: float, level: float, *, two_sided: bool) -> int | None:
    """How many runs each show the effect in four of five cases: those of the t test, and pi/3 as many for ranks."""
    least = least_runs(level, equivalence=not two_sided)
    if not effect > 0:
        return None
    if spread == 0:
        return least
    side, power = _side_and_power(level, two_sided=two_sided)
    z = float(normal_quantile(1 - side)) + float(normal_quantile(power))
    rough = 2 * (spread / effect) ** 2 / _EFFICIENCY * z**2
    if rough > _MOST:
        return None
    for n in range(max(least, int(rough) - 1), 2 * _MOST):
        if spread <= _largest_spread(n, effect, level, two_sided=two_sided):
            return n
    return None


def _largest_spread(n: int, effect: float, level: float, *, two_sided: bool) -> float:
    """The largest coefficient of variation with which n runs each show the effect in four of five cases."""
    factor = _factor(2 * n - 2, *_side_and_power(level, two_sided=two_sided))
    return max(effect, 0.0) / factor / math.sqrt(2 / n / _EFFICIENCY)


def _side_and_power(level: float, *, two_sided: bool) -> tuple[float, float]:
    """The level of one side, and the power that each one-sided test needs: of two both have to succeed."""
    return (level / 2, _POWER) if two_sided else (level, (1 + _POWER) / 2)


def _above(x: Floats, y: Floats) -> float:
    """The one-sided p of x lying above y: how often a random division of all values has so large a rank sum."""
    both = np.concatenate((x, y))
    n, total = x.size, both.size
    _, place, count = np.unique(np.round(both, 12), return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    double = (2 * last - count + 1)[place]  # twice the mid-rank
    seen = int(double[:n].sum())
    if total > _EXACT:
        mean = n * (total + 1)
        spread = math.sqrt(n * (total - n) / (total * (total - 1)) * float(((double - (total + 1)) ** 2).sum()))
        return float(normal_cdf(-(seen - 1 - mean) / spread)) if spread else 1.0
    tail = _rank_sums(n, tuple(sorted(double.tolist())))
    return float(tail[seen]) if seen < tail.size else 0.0


@lru_cache(32)  # without ties, all comparisons of as many runs share it
def _rank_sums(n: int, double: tuple[int, ...]) -> Floats:
    """The probability that n drawn of these (doubled) ranks have a sum of at least the index."""
    ways = np.zeros((n + 1, sum(double[-n:]) + 1))
    ways[0, 0] = 1.0
    for step in double:
        ways[1:, step:] = ways[1:, step:] + ways[:-1, : ways.shape[1] - step]
    tail: Floats = np.minimum(1.0, np.cumsum(ways[n][::-1])[::-1] / math.comb(len(double), n))
    return tail


def _ends(shifts: Floats, n: int, m: int, side: float) -> tuple[float | None, float | None]:
    """The ends of the interval of the shift, each with the probability 1 - side, from the sorted differences."""
    if n + m > _EXACT:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        k = math.floor(n * m / 2 - float(normal_quantile(1 - side)) * spread)
    else:
        tail = _rank_sums(n, tuple(range(2, 2 * (n + m) + 1, 2)))[n * (n + 1) :: 2]  # by how many pairs are above
        k = int(np.count_nonzero(tail <= side * (1 + 1e-9)))
    return (None, None) if k < 1 else (float(shifts[k - 1]), float(shifts[shifts.size - k]))


def _error_of_mean(residuals: Floats) -> tuple[float, float]:
    """The standard error of the mean of values whose neighbours are alike, and its freedom."""
    n = residuals.size
    rest = residuals - residuals.mean()
    square = float(rest @ rest)
    if not square > (1e-12 * float(np.abs(residuals).max() or 1.0)) ** 2:
        return 0.0, float(n - 1)
    seen = float(rest[1:] @ rest[:-1]) / square
    rho = min(max(seen + (1 + 4 * seen) / n, 0.0), _MAX_RHO)
    longer = (1 + rho) / (1 - rho)
    return math.sqrt(square / (n - 1) / n * longer), max(n / longer - 1, 1.0)
