"""Capacity of a device from what was sent and lost, and the loss beyond what overload explains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats

NOTHING = 1e-60
"""Counts up to this are zero; dividing by more stays finite."""
_MIN_BINS = 3  # a rate carried for three bins was no burst that a queue absorbed


@dataclass(frozen=True, slots=True)
class Capacity:
    """``rate`` per second and its relative ``error`` (one standard deviation).

    ``bound``: the device was never seen to lose above this rate, so its capacity may be any higher.
    """

    rate: float
    error: float
    bound: bool


def carried(sent: Floats, lost: Floats, bin_s: float, clean: float) -> Capacity | None:
    """The highest rate carried for three bins in a row with a loss of at most ``clean`` (a ratio).

    NaN bins interrupt a row. If a higher rate did lose, capacity is the middle between the two, with the error of a
    uniform distribution (width / sqrt 12). If not, the rate is a lower bound with the error of the mean of the three
    bins. None without three clean bins in a row.

    >>> carried(np.array([10.0, 20, 20, 20, 24, 30]), np.array([0.0, 0, 0, 0, 3, 9]), 1.0, 0.001)
    Capacity(rate=22.0, error=0.05248638810814779, bound=False)
    """
    if sent.size < _MIN_BINS:
        return None
    fine = (sent > NOTHING) & (lost <= clean * sent)
    threes = np.lib.stride_tricks.sliding_window_view(sent, _MIN_BINS)
    whole = np.lib.stride_tricks.sliding_window_view(fine, _MIN_BINS).all(axis=1)
    if not whole.any():
        return None
    means, scatter = threes[whole].mean(axis=1), threes[whole].std(axis=1, ddof=1)
    best = int(np.argmax(means))
    rate, error = float(means[best]), float(scatter[best]) / _MIN_BINS**0.5
    above = sent[(lost > clean * sent) & (sent > rate)]
    if not above.size:
        return Capacity(rate / bin_s, error / rate, bound=True)
    lowest = float(above.min())
    middle = (rate + lowest) / 2
    return Capacity(middle / bin_s, (error**2 + (lowest - rate) ** 2 / 12) ** 0.5 / middle, bound=False)


def excess(sent: Floats, lost: Floats, per_bin: Floats) -> tuple[float, float]:
    """The loss beyond what overload explains, and what could have been carried, both summed over finite bins.

    ``per_bin`` is the capacity in each bin. excess = sum lost - sum max(0, sent - capacity), carried at best = sum
    min(sent, capacity).
    """
    good = np.isfinite(sent) & np.isfinite(lost)
    allowed = np.clip(sent[good] - per_bin[good], 0, None)
    return float(np.sum(lost[good]) - np.sum(allowed)), float(np.sum(np.minimum(sent[good], per_bin[good])))
