"""The load behind a dip of throughput: did the generator ask for less, or did the device deliver less?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.flow import (
    BACK,
    CONNECTIONS,
    DRIVE,
    LEVEL,
    OFFERED,
    PACKETS,
    QUALITY,
    REPEATS,
    REQUESTS,
    SENT,
    USERS,
)
from soakwatch_model.metric import BY_NAME
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.throughput import Curve, Flow, curve
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.throughput_dips import running_level

NOTHING = 0.2
"""Share of the level up to which next to nothing was sent or came back; no daily load dips this deep by itself."""


class LoadMeanwhile(StrEnum):
    """How much was asked of the device while less came back."""

    AS_MUCH = "as much as before"
    SET_TO_LESS = "less, by its settings"
    SENT_LESS = "less was sent, and that came back"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The load behind one throughput: what its generator was ``set_to``, in any unit, and what it ``sent``.

    ``open``: it sends regardless of what comes back, so sending less is not the device's doing. A generator that waits
    for answers (requests, connections, TCP) sends less when the device stops, which proves nothing.
    """

    set_to: tuple[Curve, ...]
    sent: tuple[Curve, ...]
    open: bool
    apart_ns: int

    @classmethod
    def of(cls, case: Case, flow: Flow) -> Demand:
        """The load of the flow's generator; if that reports none, of all (one may send what another receives)."""
        account = LoadAccount.of(case.load, case.window)
        own = account.only((flow.series.target,))
        if not (_set_to(own) or flow.sent):
            own = account
        sent = flow.sent or (own.side(SENT, PACKETS) if _counts_packets(flow) else ())
        answers = ((BACK, REQUESTS), (BACK, CONNECTIONS), (QUALITY, REPEATS), (DRIVE, USERS))
        waits = [own.side(side, what) for side, what in answers]
        apart_ns = round((cadence(flow.series.finite()) or 1.0) * 1e9)
        open_ = _counts_packets(flow) and not any(waits)
        return cls(_set_to(own), tuple(curve(series) for series in sent), open_, apart_ns)

    @property
    def known(self) -> bool:
        """Whether it is known what the generator was set to send."""
        return bool(self.set_to)

    def during(self, begin_ns: int, end_ns: int, left: float, deep: float) -> LoadMeanwhile:
        """The load while only a share ``left`` of the level came back; it counts as lower from ``deep`` on.

        The lowest reading in the stretch or next to it counts, since a command and a counter are not read together.

        >>> at = np.arange(41) * 10**9
        >>> order = np.where(np.arange(40) == 20, 6.0, 9.0)
        >>> demand = Demand((Curve(at[:-1], at[1:], order),), (), open=False, apart_ns=10**9)
        >>> demand.during(20 * 10**9, 21 * 10**9, 0.66, 0.3), demand.during(20 * 10**9, 21 * 10**9, 0.0, 0.3)
        (<LoadMeanwhile.SET_TO_LESS: 'less, by its settings'>, <LoadMeanwhile.AS_MUCH: 'as much as before'>)
        """
        begin_ns, end_ns = begin_ns - self.apart_ns, end_ns + self.apart_ns
        ordered = [low for order in self.set_to if (low := _lowest(order, begin_ns, end_ns)) is not None]
        if any(left >= (1 - deep) * low for low in ordered if low < 1 - deep / 2):
            return LoadMeanwhile.SET_TO_LESS
        sent = [low for one in self.sent if (low := _lowest(one, begin_ns, end_ns)) is not None]
        less = bool(sent) and left >= (1 - deep) * min(sent)
        if less and self.open and min(sent) > NOTHING:
            return LoadMeanwhile.SENT_LESS
        if ordered or (sent and not less):
            return LoadMeanwhile.AS_MUCH
        return LoadMeanwhile.UNKNOWN

    def sent_less(self, begin_ns: int, end_ns: int, deep: float) -> bool:
        """Whether the rate sent fell by a share of ``deep`` or more in a stretch."""
        for sent in self.sent:
            inside = (sent.end_ns > begin_ns) & (sent.begin_ns < end_ns)
            if inside.any() and float(sent.rate[inside].min()) < (1 - deep) * median(sent.rate):
                return True
        return False


def _set_to(own: LoadAccount) -> tuple[Curve, ...]:
    sides = (own.side(OFFERED), own.side(DRIVE, LEVEL), own.side(DRIVE, USERS))
    made = [curve(series) for series in next((side for side in sides if side), ())]
    return tuple(order for order in made if bool((order.rate > 0).any()))


def _counts_packets(flow: Flow) -> bool:
    reported = BY_NAME[flow.series.metric].flow if flow.series.metric in BY_NAME else None
    return reported is not None and reported.what == PACKETS


def _lowest(load: Curve, begin_ns: int, end_ns: int) -> float | None:
    """The lowest reading that touches a stretch, as a share of the running level; None without a reading."""
    inside = (load.end_ns > begin_ns) & (load.begin_ns < end_ns)
    if not inside.any():
        return None
    apart_s = median(load.end_ns - load.begin_ns) * 1e-9
    level = running_level(load.rate, apart_s)[inside]
    usual = np.where(level > 0, level, 1.0)
    return float(np.min(np.where(level > 0, load.rate[inside] / usual, 1.0)))
