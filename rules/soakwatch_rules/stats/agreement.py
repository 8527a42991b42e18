"""New runs against earlier ones of the same thing: better, worse, equivalent, or not decided, and what would decide it.

The run is the unit, one number each. Everything is exact and free of normality, for few runs: the permutation
distribution of the rank sum, and the interval of the ratio that its inversion gives. ``differences.py`` has the t tests
that the rule ``run_difference`` uses; they decide with fewer runs, by trusting that runs are normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.distributions import normal_cdf, normal_quantile, student_quantile

Floats = NDArray[np.float64]
Better = Literal["higher", "lower", ""]
Outcome = Literal["better", "worse", "different", "equivalent", "undecided"]

_POWER = 0.8
_EXACT = 100  # runs of both together; from there on the normal approximation, which is close by then
_MOST = 10_000  # runs each that are thought of
_EFFICIENCY = 3 / math.pi  # of the rank test beside the t test where runs are normal


@dataclass(frozen=True, slots=True)
class Agreement:
    """How the new runs compare with the earlier ones.

    ``ratio`` is new / earlier by Hodges and Lehmann, and ``low`` .. ``high`` hold it with the confidence that was asked
    for; ``equivalence_low`` .. ``equivalence_high`` is the narrower interval that the test of equivalence reads, each
    side with that confidence. None where there are too few runs for it, or the earlier median is 0. Where runs are not
    all above 0 the ratio is 1 + (difference / size of the earlier median).

    ``p_difference`` is the two-sided p of no difference; ``p_equivalent`` that of a difference by at least the margin
    (the larger of two one-sided tests); ``p_not_worse`` that of being worse by at least the margin (with no better
    direction: the same as p_equivalent). ``outcome`` takes them at ``alpha``; better, worse (different: where no
    direction is better) need a difference that is proven and seen to be beyond the margin. ``runs_needed`` is how many
    runs each would decide it in four of five cases if the ratio is what was seen; None where it is decided or these
    runs cannot tell. ``cv`` is the coefficient of variation that it was taken from. ``least_runs`` is how many each the
    tests need at all.
    """

    new: float
    earlier: float
    n_new: int
    n_earlier: int
    margin: float
    alpha: float
    better: Better
    ratio: float | None
    low: float | None
    high: float | None
    equivalence_low: float | None
    equivalence_high: float | None
    p_difference: float
    p_equivalent: float
    p_not_worse: float
    outcome: Outcome
    cv: float | None
    least_runs: int
    runs_needed: int | None
    reason: str
    needs: str = ""  # of an undecided one: how many runs would decide it

    @property
    def not_worse(self) -> bool:
        """Whether being worse by the margin or more is refuted (non-inferiority), as the p stands here."""
        return self.p_not_worse <= self.alpha


def compare(
    new: Sequence[float] | Floats,
    earlier: Sequence[float] | Floats,
    margin: float,
    confidence: float = 0.95,
    *,
    better: Better = "higher",
    cv: float | None = None,
) -> Agreement:
    """Compares new runs with earlier ones; ``margin`` is the ratio's distance from 1 that does not matter (0.02).

    The test is that of Wilcoxon, Mann and Whitney by its exact permutation distribution, ties and all; the ratio is the
    median of all quotients of a new and an earlier run (Hodges and Lehmann on logarithms, Ann. Math. Statist. 34,
    1963), its interval the inversion of the test (D. Bauer, JASA 67, 1972); equivalence is two one-sided tests at the
    margin's ends (D. Schuirmann, J. Pharmacokin. Biopharm. 15, 1987). At 95 % four runs each can prove a difference,
    three each equivalence; fewer are undecided whatever they say. ``cv`` is the coefficient of variation of runs of one
    kind where it is known from elsewhere; without it and with one run each nobody knows how runs differ, and the reason
    tells how alike they have to be for ``least_runs`` to do.

    What it gets wrong: it takes both kinds to have distributions of one shape; where one scatters more than the other
    it errs somewhat more often than 1 - confidence, and runs that are not independent (all old, then all new, on a
    device that warms up) make it much too sure.

    Raises ValueError without a value on each side, or for a margin that is not within 0 and 1.

    >>> a = compare([92.0, 92.4, 91.8, 92.2], [100.0, 100.3, 99.8, 100.1], 0.02)
    >>> a.outcome, round(a.ratio, 3), round(a.p_difference, 3)
    ('worse', 0.921, 0.029)
    >>> compare([100.1, 99.9, 100.2], [100.0, 100.3, 99.8], 0.02).outcome
    'equivalent'
    >>> a = compare([7_414_833.0], [8_029_181.0], 0.02)
    >>> print(a.reason)
    7.7 % less, of 1 new run and 1 earlier: 4 each prove it if the coefficient of variation of runs is at most 3.3 %
    >>> compare([7_414_833.0], [8_029_181.0], 0.02, cv=0.05).runs_needed
    8
    """
    after, before = _numbers(new), _numbers(earlier)
    if not after.size or not before.size:
        raise ValueError("no run has a number" if not after.size else "no earlier run has a number")
    if not 0 < margin < 1 or not 0 < confidence < 1:
        raise ValueError(f"margin {margin:g} and confidence {confidence:g} have to be within 0 and 1")
    alpha = round(1 - confidence, 12)  # 1 - 0.9 is less than 0.1, and a p of three runs is 0.1
    n, m = after.size, before.size
    a, b = _median(after), _median(before)
    logs = bool((after > 0).all() and (before > 0).all())
    low_end, high_end = (math.log1p(-margin), math.log1p(margin)) if logs else (-margin, margin)
    if logs:
        x, y = np.log(after), np.log(before)
    else:
        scale = abs(b) or float(np.abs(after).max()) or 1.0
        x, y = after / scale, before / scale
    p_difference = min(1.0, 2 * min(_above(x, y), _above(y, x)))
    p_low, p_high = _above(x, y + low_end), _above(y + high_end, x)
    p_equivalent = max(p_low, p_high)
    known = logs or b != 0.0
    if not known and (a != 0.0 or bool(after.any()) or bool(before.any())):
        p_low = p_high = p_equivalent = 1.0  # no share of nothing
    quotient = np.sort(np.subtract.outer(x, y).ravel())
    middle = float(np.median(quotient))
    inner, outer = _ends(quotient, n, m, alpha), _ends(quotient, n, m, alpha / 2)

    def told(value: float | None) -> float | None:
        if value is None or not known:
            return None
        number = math.exp(min(value, 700.0)) if logs else 1 + value
        return number if math.isfinite(number) else None

    spread = _spread(x, y) if cv is None else cv
    answer = Agreement(
        a,
        b,
        n,
        m,
        margin,
        alpha,
        better,
        told(middle),
        told(outer[0]),
        told(outer[1]),
        told(inner[0]),
        told(inner[1]),
        p_difference,
        p_equivalent,
        {"higher": p_low, "lower": p_high, "": p_equivalent}[better],
        "undecided",
        spread if known else None,
        least_runs(alpha),
        None,
        "",
    )
    return _decided(answer)


def least_runs(alpha: float = 0.05, tests: int = 1, *, equivalence: bool = False) -> int:
    """The fewest runs each with which the exact test can be significant at all, as the smallest p of ``tests`` (Holm).

    The smallest two-sided p of n runs each is 2 / C(2n, n), the one-sided one of ``equivalence`` half of it.

    >>> [least_runs(tests=k) for k in (1, 12, 27, 100)], least_runs(equivalence=True)
    ([4, 6, 7, 8], 3)
    """
    sides = 1 if equivalence else 2
    return next(n for n in range(1, _MOST) if sides / math.comb(2 * n, n) <= alpha / tests)


def holm(p_values: Sequence[float] | Floats) -> list[float]:
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


def corrected(cells: Sequence[Agreement]) -> tuple[Agreement, ...]:
    """The same comparisons with their p values corrected for how many there are (Holm, each kind of test by itself),
    their outcomes decided by these, and the runs that the correction needs at the least.

    >>> one = compare([92.0, 92.4, 91.8, 92.2], [100.0, 100.3, 99.8, 100.1], 0.02)
    >>> many = corrected([one] * 12)
    >>> one.outcome, many[0].outcome, many[0].least_runs
    ('worse', 'undecided', 6)
    """
    difference = holm([cell.p_difference for cell in cells])
    equivalent = holm([cell.p_equivalent for cell in cells])
    not_worse = holm([cell.p_not_worse for cell in cells])
    return tuple(
        _decided(
            replace(
                cell,
                p_difference=difference[index],
                p_equivalent=equivalent[index],
                p_not_worse=not_worse[index],
                least_runs=least_runs(cell.alpha, len(cells)),
            ),
            len(cells),
        )
        for index, cell in enumerate(cells)
    )


def runs_each(cv: float, ratio: float, alpha: float = 0.05, tests: int = 1) -> int | None:
    """How many new and as many earlier runs prove a difference of this ratio in four of five cases; None if it is 1.

    By the t test of normal runs with this coefficient of variation, and pi/3 as many for ranks; never below
    ``least_runs``. With several ``tests``, at the smallest level that Holm asks of any.

    >>> runs_each(0.02, 0.9235), runs_each(0.05, 0.9235), runs_each(0.05, 0.9235, tests=12)
    (4, 8, 14)
    """
    return _runs_for(cv, abs(math.log(ratio)) if ratio > 0 else abs(ratio - 1), alpha / tests, two_sided=True)


def _decided(cell: Agreement, tests: int = 1) -> Agreement:
    """Outcome, runs needed and reason by the p values as they stand."""
    change = None if cell.ratio is None else cell.ratio - 1
    up = cell.new > cell.earlier if change is None else change > 0
    beyond = cell.new != cell.earlier if change is None else abs(change) > cell.margin
    outcome: Outcome = "undecided"
    if cell.p_equivalent <= cell.alpha:
        outcome = "equivalent"
    elif cell.p_difference <= cell.alpha and beyond:
        outcome = "different" if not cell.better else "better" if up == (cell.better == "higher") else "worse"
    seen = f"{100 * abs(change or 0.0):.2g} % {'more' if up else 'less'}"
    if change is None or change == 0.0:
        seen = f"{cell.new:.6g} against {cell.earlier:.6g}"
    runs = f"{cell.n_new} new {'run' if cell.n_new == 1 else 'runs'} and {cell.n_earlier} earlier"
    margin = f"± {100 * cell.margin:.3g} %"
    if outcome == "equivalent":
        why = f"{seen}, of {runs}: within {margin} (p {cell.p_equivalent:.2g})"
        return replace(cell, outcome=outcome, runs_needed=None, reason=why)
    if outcome != "undecided":
        why = f"{seen}, of {runs}: a difference (p {cell.p_difference:.2g}) beyond {margin}"
        return replace(cell, outcome=outcome, runs_needed=None, reason=why)
    if change is None or cell.ratio is None:
        needs = f"not decided (p {cell.p_difference:.2g}); at least {cell.least_runs} each"
        return replace(cell, outcome=outcome, runs_needed=None, reason=f"{seen}, of {runs}: {needs}", needs=needs)
    effect = abs(math.log(cell.ratio)) if cell.ratio > 0 else abs(change)
    end = math.log1p(math.copysign(cell.margin, change))
    room = abs(end) - effect
    level = cell.alpha / tests
    if cell.cv is None:
        most = _largest_cv(cell.least_runs, effect if beyond else room, level, two_sided=beyond)
        what = "prove it" if beyond else f"prove {margin}"
        needs = f"{cell.least_runs} each {what} if the coefficient of variation of runs is at most {100 * most:.2g} %"
        return replace(cell, outcome=outcome, runs_needed=None, reason=f"{seen}, of {runs}: {needs}", needs=needs)
    needed = _runs_for(cell.cv, effect if beyond else room, level, two_sided=beyond)
    if needed is not None:
        needed = max(needed, min(cell.n_new, cell.n_earlier) + 1)
    what = "prove it" if beyond else f"prove that it is within {margin}"
    much = "no number of runs up to 10000" if needed is None else f"about {needed} each"
    needs = f"{much} {what} at a coefficient of variation of {100 * cell.cv:.2g} %"
    why = f"{seen}, of {runs}: not decided; {needs}"
    return replace(cell, outcome=outcome, runs_needed=needed, reason=why, needs=needs)


def _runs_for(cv: float, effect: float, level: float, *, two_sided: bool) -> int | None:
    least = least_runs(level, equivalence=not two_sided)
    if not effect > 0:
        return None
    if cv == 0:
        return least
    rough = 2 * (cv / effect) ** 2 / _EFFICIENCY * _z(level, two_sided=two_sided) ** 2
    if rough > _MOST:
        return None
    for n in range(max(least, int(rough) - 1), 2 * _MOST):
        if cv <= _largest_cv(n, effect, level, two_sided=two_sided):
            return n
    return None


def _z(level: float, *, two_sided: bool) -> float:
    side = level / 2 if two_sided else level
    power = _POWER if two_sided else (1 + _POWER) / 2
    return float(normal_quantile(1 - side)) + float(normal_quantile(power))


def _largest_cv(n: int, effect: float, level: float, *, two_sided: bool) -> float:
    """The largest coefficient of variation with which n runs each show the effect in four of five cases."""
    free = 2 * n - 2
    side = level / 2 if two_sided else level
    power = _POWER if two_sided else (1 + _POWER) / 2  # both one-sided tests have to succeed
    factor = student_quantile(free, 1 - side) + student_quantile(free, power)
    return max(effect, 0.0) / factor / math.sqrt(2 / n / _EFFICIENCY)


def _spread(x: Floats, y: Floats) -> float | None:
    """The pooled standard deviation of runs of one kind; None with one run of each."""
    free = x.size + y.size - 2
    if free < 1:
        return None
    return math.sqrt((float(((x - x.mean()) ** 2).sum()) + float(((y - y.mean()) ** 2).sum())) / free)


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


def _ends(quotient: Floats, n: int, m: int, side: float) -> tuple[float | None, float | None]:
    """The ends of the interval of the shift, each with the probability 1 - side, from the sorted differences."""
    k = _place(n, m, side)
    if k < 1:
        return None, None
    return float(quotient[k - 1]), float(quotient[quotient.size - k])


@lru_cache(256)
def _place(n: int, m: int, side: float) -> int:
    """Which difference, from the smallest, is that end; 0 where there are too few."""
    if n + m > _EXACT:
        spread = math.sqrt(n * m * (n + m + 1) / 12)
        return math.floor(n * m / 2 - float(normal_quantile(1 - side)) * spread)
    ways = np.zeros((n + 1, n * m + 1))  # of U, by how many of n were placed
    ways[0, 0] = 1.0
    for rank in range(1, n + m + 1):
        for taken in range(min(rank, n), 0, -1):
            behind = rank - taken  # of the others lie below this one
            if behind <= n * m:
                ways[taken, behind:] += ways[taken - 1, : n * m + 1 - behind]
    below = np.cumsum(ways[n]) / math.comb(n + m, n)
    return int(np.count_nonzero(below <= side * (1 + 1e-9)))


def _median(value: Floats) -> float:
    return float(np.median(value / 2)) * 2


def _numbers(values: Sequence[float] | Floats) -> Floats:
    given = np.asarray(values, dtype=np.float64).ravel()
    return given[np.isfinite(given)]
