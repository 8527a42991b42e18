"""The ratio of two means whose readings remember: one run's against another's, over the same parts of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from soakwatch_rules.stats.distributions import student_cdf, student_quantile

LEAST_PARTS: Final = 6
_MAX_RHO: Final = 0.98
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeansRatio:
    """``ratio`` of new to old (None where the old mean is 0) with its standard error and the freedom of that error;
    ``difference`` is that of the means, with its error. ``correlation`` is that of neighbouring parts."""

    ratio: float | None
    error: float
    difference: float
    difference_error: float
    freedom: float
    correlation: float

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """The ends that hold the ratio with this confidence; None without a ratio."""
        if self.ratio is None:
            return None
        half = student_quantile(self.freedom, (1 + confidence) / 2) * self.error if self.error > 0 else 0.0
        return self.ratio - half, self.ratio + half

    @property
    def p_difference(self) -> float:
        """The two-sided p of no difference of the means."""
        if not self.difference_error > 0:
            return 0.0 if self.difference else 1.0
        return 2 * student_cdf(self.freedom, -abs(self.difference) / self.difference_error)

    def p_equivalent(self, margin: float) -> float:
        """The p of a ratio off 1 by at least ``margin``: the larger of two one-sided tests (Schuirmann 1987)."""
        if self.ratio is None:
            return 1.0 if self.difference or self.difference_error else 0.0
        room = margin - abs(self.ratio - 1)
        if not self.error > 0:
            return 0.0 if room > 0 else 1.0
        return student_cdf(self.freedom, -room / self.error)


def means_ratio(new: Sequence[float] | Floats, old: Sequence[float] | Floats) -> MeansRatio:
    """The ratio of the means of paired parts, shapes (n,), at least ``LEAST_PARTS`` of them.

    The ratio estimator (Cochran, Sampling Techniques, 1977, ch. 6): its residuals are new - ratio * old. Their
    variance is that of white ones times (1 + rho)/(1 - rho), with rho the lag-1 correlation of the residuals plus its
    bias (1 + 4 rho)/n (Marriott and Pope, Biometrika 41, 1954), cut to 0..0.98; the freedom is that of
    n·(1 - rho)/(1 + rho) values, less one. Of runs that are alike about 5 % are called different at 95 % whatever the
    time over which readings stay alike (tests/bench/accuracy/compared.py).

    What it gets wrong: waves as long as the run are trends to it, and a trend that only one of the runs has widens the
    interval instead of being told. A mean near 0 has a ratio that says little.

    Raises ValueError for too few parts, or sides of different length.

    >>> r = means_ratio([11.0, 10.9, 11.1, 11.0, 10.9, 11.1, 11.0], [10.0, 10.1, 9.9, 10.0, 10.1, 9.9, 10.0])
    >>> round(r.ratio, 3), [round(end, 2) for end in r.interval()], r.p_difference < 0.001
    (1.1, [1.08, 1.12], True)
    >>> means_ratio([3.0] * 6, [0.0] * 6).ratio is None
    True
    """
    after, before = (np.asarray(values, dtype=np.float64).ravel() for values in (new, old))
    n = after.size
    if n < LEAST_PARTS or n != before.size:
        raise ValueError(f"{n} new and {before.size} old parts: at least {LEAST_PARTS}, and as many of each")
    mean_after, mean_before = float(after.mean()), float(before.mean())
    plain = _error_of(after - before)
    if not mean_before:
        return MeansRatio(None, 0.0, mean_after, *plain)
    ratio = mean_after / mean_before
    error, freedom, correlation = _error_of(after - ratio * before)
    return MeansRatio(ratio, error / abs(mean_before), mean_after - mean_before, error, freedom, correlation)


def _error_of(residuals: Floats) -> tuple[float, float, float]:
    """The standard error of the mean of values that remember, its freedom, and their correlation."""
    n = residuals.size
    rest = residuals - residuals.mean()
    square = float(rest @ rest)
    if not square > (1e-12 * float(np.abs(residuals).max() or 1.0)) ** 2:
        return 0.0, float(n - 1), 0.0
    seen = float(rest[1:] @ rest[:-1]) / square
    rho = min(max(seen + (1 + 4 * seen) / n, 0.0), _MAX_RHO)
    longer = (1 + rho) / (1 - rho)
    return math.sqrt(square / (n - 1) / n * longer), max(n / longer - 1, 1.0), rho
