"""The mean time between failures that hours of a run prove.

If failures come at a constant rate, a time T in which r were seen proves with the confidence C a mean time between them
of at least 2T / chi-square(C; 2r + 2): without a failure T / -ln(1 - C), a third of T at 95 %. The time was fixed, not
the number of failures (a time-truncated test). References: B. Epstein, M. Sobel, Life testing, JASA 48, 1953;
NIST/SEMATECH e-Handbook of Statistical Methods, 8.4.5.1; MIL-HDBK-781A, 5.9.

What it gets wrong: things that age (a leak) fail more often later than the rate of the first hours; hours of runs that
begin with a restart show nothing of what lies beyond them; devices that differ, or another load, have other rates; and
a failure that no rule looks for is not counted.
"""

from __future__ import annotations

from typing import Final

from soakwatch_rules.stats.distributions import gamma_quantile

CONFIDENCE: Final = 0.95


def proved_mtbf(watched: float, failures: int, confidence: float = CONFIDENCE) -> float:
    """The lower bound of the mean time between failures, in the unit of the time ``watched``; 0 of no time.

    >>> round(proved_mtbf(24.0, 0), 2), round(proved_mtbf(72.0, 0), 1), round(proved_mtbf(72.0, 1), 1)
    (8.01, 24.0, 15.2)
    """
    return max(watched, 0.0) / gamma_quantile(failures + 1.0, confidence)
