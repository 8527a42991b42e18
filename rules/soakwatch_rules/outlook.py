"""Outlook: when a finite resource is full, by its readings since its last restart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.series_lives import Life, lives
from soakwatch_rules.stats.time_to_full import TimeToFull, time_to_full
from soakwatch_rules.wording.quantities import duration

SHORTEST_S: Final = 7200.0
"""Seconds since the last restart below which nothing is forecast: what warms up in minutes would fill anything."""
_SHARE: Final = "1"
_MOST: Final = 1e150


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The life that goes on at the end of the window, its limit, and when it is full; or why that is not known."""

    life: Life | None
    limit: float
    full: TimeToFull | None
    unknown: str = ""


def limit_of(series: Series) -> float | None:
    """The most there can be: the whole of a share, else what the device states; None if it states none."""
    if series.trait.unit == _SHARE:
        return 1.0
    stated = series.trait.ceiling
    return stated if stated is not None and 0 < stated < _MOST else None


def outlook_of(series: Series, window: Window, events: Iterable[Event]) -> Outlook | None:
    """When the series reaches its limit; None if it has none. Only its last life counts, since a restart empties."""
    limit = limit_of(series)
    if limit is None:
        return None
    of_lives = lives(series.between(window.begin_ns, window.end_ns).finite(), window, events)
    if not of_lives:
        return Outlook(None, limit, None, "no sample")
    life = of_lives[-1]
    if life.window.end_ns < window.end_ns or life.window.seconds < SHORTEST_S:
        since = f"{duration(life.window.seconds)} since the last restart" if len(of_lives) > 1 else "too short a run"
        return Outlook(life, limit, None, f"{since}, {duration(SHORTEST_S)} needed")
    begin_s = (life.window.begin_ns - int(life.series.time_ns[0])) * 1e-9
    full = time_to_full(
        life.series.seconds,
        life.series.values,
        limit,
        span_s=(begin_s, begin_s + life.window.seconds),
        unseen=_unseen(series),
    )
    return Outlook(life, limit, full, "" if full is not None else "too few samples")


def _unseen(series: Series) -> float:
    """How much may have come without being seen: of things that are counted three, which is the 95 % bound of a number
    of events of which none was seen (Poisson); of what is measured one step of its resolution."""
    quantum = series.trait.quantum or 0.0
    return (-math.log(0.05) if series.trait.unit.startswith("{") else 1.0) * quantum
