"""How much of a window was read: distance of readings, their expected number, and unread ends."""

from __future__ import annotations

import numpy as np

from soakwatch_model.series import Ints, Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.medians import median
from soakwatch_rules.wording.quantities import moment

_BLIND_SHARE = 0.05  # of a window; the same share that a gap may have


def spacing(series: Series) -> float | None:
    """The median distance of readings in seconds; None with fewer than two."""
    return median(np.diff(series.time_ns)) * 1e-9 if len(series) > 1 else None


def cadence(series: Series) -> float | None:
    """The planned distance of readings in seconds, else the median one; None if neither is known."""
    planned = series.cadence_s
    return planned if planned is not None and planned > 0 else spacing(series)


def expected(seconds: float, cadence_s: float | None) -> int | None:
    """The number of readings that a stretch should hold; None if the cadence is unknown.

    >>> expected(3600, 60.0), expected(10, None)
    (60, None)
    """
    return None if cadence_s is None or seconds <= 0 else max(1, int(seconds / cadence_s + 1e-6))


def unseen(time_ns: Ints, window: Window) -> str:
    """Why the readings do not cover the whole window, in one sentence; empty if they reach from end to end.

    For rules that compare neighbours (an identity, a counter): what happened in a gap shows at its far end, so only the
    two ends of the window can hide something. Each end may lack 5 % of the window or three median distances.
    """
    if time_ns.size < 2:
        return f"{'only one sample' if time_ns.size else 'no samples'}: two are needed to see a change"
    slack_ns = max(3.0 * median(np.diff(time_ns)), _BLIND_SHARE * (window.end_ns - window.begin_ns))
    if time_ns[0] - window.begin_ns > slack_ns:
        return f"no samples before {moment(int(time_ns[0]))}"
    if window.end_ns - time_ns[-1] > slack_ns:
        return f"no samples after {moment(int(time_ns[-1]))}"
    return ""
