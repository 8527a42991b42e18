"""Pauses of throughput: when, how much they lost, whether they are periodic, and the words for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.throughput_dips import Rhythm, rhythm
from soakwatch_rules.wording.quantities import counted, duration, first_few, moment


class Pause(NamedTuple):
    """One pause and the seconds that it lost; ``sure``: the load did not dip by itself."""

    begin_ns: int
    end_ns: int
    lost_s: float
    planned: bool = False
    sure: bool = True


def rhythm_of(pauses: Sequence[Pause], apart_s: float) -> Rhythm | None:
    """The rhythm of pauses in readings ``apart_s`` apart; None unless they are periodic."""
    beat = rhythm(seconds_since_first([p.begin_ns + (p.end_ns - p.begin_ns) // 2 for p in pauses]), apart_s=apart_s)
    return beat if beat is not None and beat.periodic else None


def number_and_length(pauses: Sequence[Pause], kind: str = "") -> str:
    """The number and length of pauses of the throughput, or of a ``kind`` (with a trailing space).

    >>> number_and_length([Pause(0, 10**9, 1.0)])
    'throughput paused once, for 1 s'
    >>> number_and_length([Pause(0, 10**9, 1.0), Pause(0, 10**9, 2.0)], "logged ")
    '2 logged pauses of up to 2 s, 3 s in total'
    """
    worst, total = max(p.lost_s for p in pauses), sum(p.lost_s for p in pauses)
    if kind:
        several = f" of up to {duration(worst)}, {duration(total)} in total"
        return f"{counted(len(pauses), f'{kind}pause')}{several if len(pauses) > 1 else f' of {duration(worst)}'}"
    if len(pauses) == 1:
        return f"throughput paused once, for {duration(worst)}"
    return f"throughput paused {len(pauses):,} times, for up to {duration(worst)}, {duration(total)} in total"


def moments(pauses: Sequence[Pause]) -> str:
    """When they were, as the end of a sentence."""
    if len(pauses) == 1:
        return f", at {moment(pauses[0].begin_ns)}"
    return ": " + first_few([f"{moment(p.begin_ns)} ({duration(p.lost_s)})" for p in pauses])


def seconds_since_first(at_ns: Sequence[int]) -> Floats:
    """Times in seconds since the first; differences are taken in ns, so the date costs no precision."""
    first = min(at_ns, default=0)
    return np.array([(time_ns - first) * 1e-9 for time_ns in at_ns])


def rhythm_text(beat: Rhythm) -> str:
    """The period of a rhythm, its uncertainty, and a timer of like period, in words."""
    timer = round(beat.period_s / 60)
    close = timer > 0 and abs(beat.period_s - 60 * timer) <= 0.005 * beat.period_s
    like = f", like a timer of {timer} min" if close and beat.spread < 0.05 else ""
    return (
        f"every {beat.period_s:.4g} s (95 %: {beat.low_s:.4g} to {beat.high_s:.4g} s; middle half of the "
        f"intervals within {100 * beat.spread:.0f} %{like})"
    )
