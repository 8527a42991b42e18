"""Evidence about a slope that may be looked at as often as one likes: e-values of a straight line.

The e-value against "the slope is ``null``" is the likelihood of the estimate under a normal mixture of slopes around
it, over its likelihood under ``null``. As data come in it is a test martingale, up to the estimate of the variance, so
that it ever reaches 1/a with a probability of at most a, however often it is looked at (Ville). The estimate and its
error are those of ``ar1.slope``: blocks of time, corrected for their correlation; Student's t becomes a normal score of
the same probability. Evidence for "more" and for "less" is read on one side each: a true slope below ``null`` is
excluded from above only if it is itself excluded, so both hold for all slopes on the other side.

References: J. Ville 1939; H. Robbins, Annals of Mathematical Statistics 41, 1970 (normal mixture); S. Howard, A.
Ramdas, J. McAuliffe, J. Sekhon, Annals of Statistics 49, 2021; I. Waudby-Smith, A. Ramdas, JRSS B 86, 2024 (betting);
I. Waudby-Smith, D. Arbour, R. Sinha, E. Kennedy, A. Ramdas, Annals of Statistics 52, 2024 (asymptotic confidence
sequences, for variances that are estimated); S. Shekhar, A. Ramdas, arXiv 2309.09111, 2023 (what is found must agree
with what began later: where it does not, something changed).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from soakwatch_rules.stats.ar1 import Slope
from soakwatch_rules.stats.distributions import normal_quantile, student_cdf

_MOST: Final = 8.0  # normal scores: beyond, their probabilities are those of rounding


@dataclass(frozen=True, slots=True)
class Evidence:
    """Natural logarithms of the e-values that the slope is above, and that it is below what is allowed."""

    above: float
    below: float


NONE: Final = Evidence(-math.inf, -math.inf)


def evidence(fit: Slope, allowed: float, scale: float) -> Evidence:
    """The evidence of an estimate against ``allowed``, by a mixture of slopes that lie ``scale`` around it.

    >>> nothing = evidence(Slope(1.0, 0.5, 40.0, 0.0), 1.0, 1.0)
    >>> nothing.above < 0, nothing.below < 0
    (True, True)
    >>> much = evidence(Slope(4.0, 0.5, 40.0, 0.0), 1.0, 1.0)
    >>> much.above > math.log(1000), much.below < 0
    (True, True)
    """
    if not fit.error > 0:
        return Evidence(*((math.inf, -math.inf) if fit.slope > allowed else (-math.inf, math.inf)))
    score = (fit.slope - allowed) / fit.error
    tail = float(student_cdf(fit.freedom, -min(abs(score), 1e6)))
    z = min(-float(normal_quantile(tail)), _MOST) if tail > 0 else _MOST
    ratio = (fit.error / scale) ** 2
    nothing = 0.5 * math.log(ratio / (1 + ratio))
    something = nothing + z * z / (2 * (1 + ratio))
    return Evidence(something, nothing) if score > 0 else Evidence(nothing, something)


def joined(fits: Iterable[Slope]) -> Slope:
    """One slope of several stretches, each with a level of its own: weighted by what each knows of it.

    A line through a stretch knows its slope with the third power of its length, so five stretches of a fifth know a
    25th of what the whole knows, unless the level goes on from one to the next: then they are one stretch.
    """
    some = [fit for fit in fits if fit.error > 0]
    if not some:
        return Slope(0.0, 0.0, 1.0, 0.0)
    weights = [1 / fit.error**2 for fit in some]
    total = sum(weights)
    return Slope(
        sum(weight * fit.slope for weight, fit in zip(weights, some, strict=True)) / total,
        1 / math.sqrt(total),
        sum(fit.freedom for fit in some),
        max(fit.correlation for fit in some),
    )
