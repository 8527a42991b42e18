"""Slope of a straight line with correlated errors: AR(1)-corrected standard error and degrees of freedom."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from soakwatch_model.series import Floats
from soakwatch_rules.stats.distributions import student_cdf, student_quantile

_MAX_RHO: Final = 0.98
_POWER_Z: Final = 0.8416212335729143  # 80 % power


def power(risk: float = 0.05, freedom: float = math.inf) -> float:
    """Standard errors beyond a limit that are found with 80 % power at a one-sided risk.

    >>> round(power(), 2), round(power(0.05 / 30), 2), round(power(0.05, 3), 2)
    (2.49, 3.78, 3.19)
    """
    return student_quantile(freedom, 1 - risk) + _POWER_Z


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope per second with its standard error, that error's degrees of freedom, and the errors' correlation."""

    slope: float
    error: float
    freedom: float
    correlation: float

    def low(self, risk: float = 0.05) -> float:
        """The bound that lies above the true slope with probability ``risk``."""
        return self.slope - student_quantile(self.freedom, 1 - risk) * self.error

    def high(self, risk: float = 0.05) -> float:
        """The bound that lies below the true slope with probability ``risk``."""
        return self.slope + student_quantile(self.freedom, 1 - risk) * self.error

    def above(self, limit: float) -> float:
        """P(slope > limit)."""
        if not self.error > 0:
            return float(self.slope > limit)
        return student_cdf(self.freedom, max(-1e6, min(1e6, (self.slope - limit) / self.error)))

    def detectable(self, risk: float = 0.05) -> float:
        """The slope beyond a limit that is found with 80 % power at this risk (Student's t)."""
        return power(risk, self.freedom) * self.error


def slope(time_s: Floats, value: Floats, *, remember: bool = True) -> Slope:
    """Least squares over evenly spaced values (at least 4).

    The variance is that of white residuals times (1 + rho)/(1 - rho); rho is the lag-1 correlation of the residuals
    plus its bias (2 + 4 rho)/n (Marriott and Pope 1954, with a trend removed), limited to 0..0.98. The degrees of
    freedom are those of n·(1 - rho)/(1 + rho) values. ``remember=False`` takes the errors as independent.
    """
    n = value.size
    since = time_s - time_s.mean()
    across = float(since @ since)
    rise = float(since @ value) / across if across > 0 else 0.0
    rest = value - value.mean() - rise * since
    square = float(rest @ rest)
    if not square > 0:
        return Slope(rise, 0.0, float(max(n - 2, 1)), 0.0)
    rho = 0.0
    if remember:
        seen = float(rest[1:] @ rest[:-1]) / square
        rho = min(max(seen + (2 + 4 * seen) / n, 0.0), _MAX_RHO)
    longer = (1 + rho) / (1 - rho)
    error = math.sqrt(square / (n - 2) / across * longer)
    return Slope(rise, error, max(n / longer - 2, 1.0), rho)


def hours_more(fit: Slope, limit: float, span_s: float) -> float | None:
    """How many more hours separate estimate and limit, as the error falls with T^-1.5; None if no length does.

    None also if the estimate lies within a quarter of the limit: then another tolerance decides, not time.
    """
    apart = abs(fit.slope - limit)
    if apart <= 0.25 * limit or not apart > 0:
        return None
    times = math.pow(fit.detectable() / apart, 2 / 3) - 1
    return max(0.0, times * span_s / 3600)
