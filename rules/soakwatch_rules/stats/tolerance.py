"""What is asked of a trend: the growth that is allowed, and how sure an answer has to be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probabilities at which the answer is given."""

    fail: float = 0.95  # growth above the allowed rate
    guarded: float = 0.75  # the same by shapes free to grow, where the straight line says so as well
    guard: float = 0.05  # risk of the straight line's bound
    clear: float = 0.05  # at most this much growth for a pass
    free: float = 0.20  # the same among shapes that can grow at the end
    # in windows of under six hours noise that remembers for an hour looks like anything
    fail_short: float = 0.98
    free_short: float = 0.05


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Growth that is allowed: a share of the level each ``horizon_s``, or ``floor`` per window where that is more."""

    share: float = 0.05
    horizon_s: float = 86400.0
    floor: float = 0.0

    def per_second(self, level: float, span_s: float) -> float:
        """The allowed growth per second.

        >>> round(86400 * Tolerance(0.05).per_second(100.0, 43200.0), 9)
        5.0
        >>> round(43200 * Tolerance(0.05, floor=1.0).per_second(10.0, 43200.0), 9)
        1.0
        """
        return max(self.share * abs(level) / self.horizon_s, self.floor / span_s if span_s > 0 else 0.0)
