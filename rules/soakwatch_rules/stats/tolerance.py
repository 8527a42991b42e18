"""What a trend is judged by: the allowed growth, and how certain an answer must be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Probabilities at which an answer is given."""

    fail: float = 0.95  # of growth above the allowed rate
    guarded: float = 0.75  # the same by shapes free to grow, if the straight line agrees
    guard: float = 0.05  # risk of the straight line's bound
    clear: float = 0.05  # of growth, at most, for a pass
    free: float = 0.20  # the same among shapes that can grow at the end
    # in windows of under six hours noise with a correlation of an hour looks like anything
    fail_short: float = 0.98
    free_short: float = 0.05


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The allowed growth: a share of the level per ``horizon_s``, or ``floor`` per window if that is more."""

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
