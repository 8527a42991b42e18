"""Poll latency: how long a device took to answer the polls of one source, and how many it did not answer.

A poll is many requests, and its length depends on what it reads: a survey takes many times as long as other polls. So
lengths are compared only by quantiles, and only within one source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Ledger
from soakwatch_model.series import Floats, Series
from soakwatch_model.window import Window
from soakwatch_rules.spans import overlap_s

DURATION: Final = "source.poll.duration"
_MAX_DURATION_S: Final = 1e9  # longer durations are invalid
_OWN: Final = ("missed", "gap")  # the monitor was late or did not run


@dataclass(frozen=True, slots=True)
class PollLatency:
    """The polls in some stretches: quantiles of the answered ones in seconds, and single lost ones.

    ``due`` counts polls due outside of silences (three intervals or more), ``lost`` those of them without an answer,
    minus those that the monitor may not have sent. Both are 0 without poll statistics.
    """

    quarter: float
    median: float
    late: float  # the 95th percentile
    number: int
    due: float
    lost: float


def poll_latency(series: Series, ledger: Ledger | None, spans: Sequence[Window]) -> PollLatency | None:
    """The polls of one source in sorted, disjoint stretches; None if none was answered."""
    parts = [series.between(w.begin_ns, w.end_ns).values for w in spans]
    took: Floats = np.concatenate(parts) if parts else np.empty(0)
    took = took[np.isfinite(took) & (took >= 0) & (took < _MAX_DURATION_S)]
    if not took.size:
        return None
    due, lost = (0.0, 0.0) if ledger is None else _account(series, ledger, spans)
    quarter, median, late = (float(x) for x in np.quantile(took, (0.25, 0.5, 0.95)))
    return PollLatency(quarter, median, late, int(took.size), due, lost)


def slowdown(high: PollLatency, low: PollLatency) -> float:
    """How many times as long polls took, by the median or the lower quartile, whichever shows less.

    More surveys among the polls raise the median but not the shortest ones.
    """
    pairs = ((high.median, low.median), (high.quarter, low.quarter))
    return min(now / before if before > 0 else float(now > 0) * 1e6 for now, before in pairs)


def _account(series: Series, ledger: Ledger, spans: Sequence[Window]) -> tuple[float, float]:
    """How many polls were due outside of silences, and how many of these were not answered."""
    silences = [silence.window for silence in ledger.silences]
    due = 0.0
    answered = 0
    for span in spans:
        whole = int(span.seconds / ledger.interval_s)
        inside = series.between(span.begin_ns, span.end_ns)
        quiet = round(overlap_s(span, silences) / ledger.interval_s)
        heard_in_silence = sum(len(inside.between(w.begin_ns, w.end_ns)) for w in silences)
        due += max(0, whole - quiet)
        answered += min(len(inside) - heard_in_silence, max(0, whole - quiet))
    missing = max(0.0, due - answered - len(spans))  # one poll per stretch may fall outside its edge
    own = sum(ledger.lost.get(how, 0) for how in _OWN)
    return due, max(0.0, missing - own)
