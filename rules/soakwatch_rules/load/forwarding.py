"""Forwarding: what went into the device and what came out, as the generators counted it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.silences import silence_to_end
from soakwatch_rules.spans import joined
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.tally import Tally

_STOPPED = 0.01  # share of what goes in: with less coming out, forwarding stopped
_USUAL = 0.1  # share of the earlier rate from which a load comes back
_MIN_SENT = 1.0  # a bin in which less went in shows nothing


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """Packets sent and received, or requests offered and answered, else bytes or bits sent and received; each side has
    at least two readings."""

    into: tuple[Series, ...]
    out: tuple[Series, ...]
    word: str

    @classmethod
    def of(cls, case: Case) -> Forwarding | None:
        """The forwarding of a load; None unless both sides are reported."""
        return next((cls(pair.into, pair.back, pair.what) for pair in LoadAccount.of(case.load).pairs()), None)

    @property
    def apart_s(self) -> float:
        """The longest median distance of readings in seconds."""
        return max(median(np.diff(s.finite().time_ns)) * 1e-9 for s in (*self.into, *self.out))

    def stopped(self, window: Window) -> tuple[Window, ...]:
        """The stretches, to the reading, in which something went in and less than 1 % of it came out."""
        times = np.unique(np.concatenate([s.finite().time_ns for s in self.out]))
        edges = times[(times >= window.begin_ns) & (times <= window.end_ns)]
        if edges.size < 2:
            return ()
        sent, back = binned(self.into, edges), binned(self.out, edges)
        with np.errstate(invalid="ignore"):
            still = np.flatnonzero((sent >= _MIN_SENT) & (np.abs(back) < _STOPPED * sent))
        return joined(Window(int(edges[i]), int(edges[i + 1])) for i in still.tolist())

    def tallies(self) -> tuple[Tally, Tally]:
        """What went in and what came out, for queries on any stretch."""
        return Tally(self.into), Tally(self.out)


def comes_back(case: Case, window: Window) -> bool | None:
    """Whether the load comes back in a stretch: at least a tenth of its earlier rate.

    None if it is unknown what came back, or nothing was offered then.
    """
    flow = Forwarding.of(case)
    out = flow.out if flow is not None else LoadAccount.of(case.load).back()
    if not out:
        return None
    whole, seen = Tally(out).between(case.window.begin_ns, window.begin_ns)
    back, back_s = Tally(out).between(window.begin_ns, window.end_ns)
    if back_s < 0.5 * window.seconds or seen <= 0 or whole <= 0:
        return None
    if back / back_s >= _USUAL * whole / seen:
        return True
    if flow is not None and Tally(flow.into).between(window.begin_ns, window.end_ns)[0] < _MIN_SENT:
        return None
    return False


def alive_without_management(case: Case, silent: Sequence[Window], least_s: float) -> Window | None:
    """The silence of all management to the end of the run (see ``silence_to_end``) in which the load still comes back.

    None if there is none, or an announced event covers it.
    """
    gone = silence_to_end(case.ledgers, silent, case.window, least_s)
    planned = (e.deadline_ns if e.deadline_ns is not None else e.end_ns for e in case.events if e.expect)
    if gone is None or not comes_back(case, gone):
        return None
    return None if any(end_ns is None or end_ns >= gone.end_ns for end_ns in planned) else gone


def lost_share(sides: tuple[Tally, Tally], window: Window) -> float | None:
    """The share of what went in that did not come out, at least 0; None if nothing is known to have gone in."""
    (sent, sent_s), (back, back_s) = (side.between(window.begin_ns, window.end_ns) for side in sides)
    if sent < _MIN_SENT or min(sent_s, back_s) < 0.5 * window.seconds:
        return None
    return min(1.0, max(0.0, 1 - back / sent))
