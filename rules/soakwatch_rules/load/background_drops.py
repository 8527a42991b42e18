"""Drops that were not traffic of the test, because every packet that the generators sent came back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.flow import BACK, PACKETS, REQUESTS
from soakwatch_model.series import Mask
from soakwatch_model.window import Window
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.load.offers import offers
from soakwatch_rules.stats.counted_amounts import Steps
from soakwatch_rules.stats.outage import Bins, lost_for_good
from soakwatch_rules.wording.quantities import digits, duration

_WARM_UP_S = 60.0  # after the first packet of the load: addresses are resolved, tables filled
_SHORT, _SHORTEST_S = 0.05, 5.0  # warm-up of a short run: this share of it, at least these seconds
_LOST = 0.5  # packets: losses are whole numbers
_BLOCKS, _FEWEST = 16, 4
_STEADY = 1.5  # index of dispersion of the blocks: 1 at random, more in bursts
_LEAST = 3.0  # drops per block on average: fewer do not show steadiness
_RAREST = 2.0  # drops a second: neighbour protocols send less often
_LONGEST_S = 120.0  # between two packets of a neighbour protocol (LLDP 30 s, CDP 60 s, ARP 60 s)


@dataclass(frozen=True, slots=True, eq=False)
class PacketBalance:
    """Packets counted where they are sent and where they return, in ``bins``; ``lost`` is what never came back."""

    bins: Bins

    @classmethod
    def of(cls, case: Case) -> PacketBalance | None:
        """The packets of all generators; None if some are not counted, or belong to requests, of whose packets only the
        answers are known."""
        account = LoadAccount.of(case.load, case.window)
        if account.side(BACK, REQUESTS) or any(not account.only((g,)).side(BACK, PACKETS) for g in account.generators):
            return None
        for offer in offers(case):
            if offer.kind == PACKETS and offer.ratio and offer.exact and offer.bins is not None:
                bins = offer.bins
                known = np.isfinite(bins.sent) & np.isfinite(bins.lost)
                lost = lost_for_good(np.where(known, np.clip(bins.lost, -1e120, 1e120), 0.0), bins)
                return cls(Bins(bins.edges_ns, np.where(known, bins.sent, np.nan), lost)) if known.any() else None
        return None

    @property
    def began_ns(self) -> int | None:
        """The reading before the first packet was sent."""
        sends = np.flatnonzero(np.nan_to_num(self.bins.sent) > 0)
        return int(self.bins.edges_ns[sends[0]]) if sends.size else None

    def sent_without_loss(self, window: Window) -> float | None:
        """The packets sent in a stretch extended by a reading at each side; None if one was lost or not counted."""
        bins = self.bins
        here = (bins.edges_ns[1:] > window.begin_ns) & (bins.edges_ns[:-1] < window.end_ns)
        wide = np.convolve(here, np.ones(3))[1:-1] > 0
        if not here.any() or not bool(np.isfinite(bins.sent[wide]).all()) or float(bins.lost[wide].sum()) > _LOST:
            return None
        return float(bins.sent[here].sum())


def why_not_test_traffic(case: Case, taken: Steps, counted: Mask) -> str:
    """Why the drops in these steps of a counter were not traffic of the test; empty if they may have been.

    All packets that the generators sent came back, and the drops lie before or in the first minute of the load (in a
    short run: its first twentieth), when addresses are resolved, or come evenly all the time, like neighbour protocols
    (LLDP, ARP). Drops in bursts, or hours apart, are not excused, since their origin is unknown. Known weakness: a
    device that drops steadily while its generator counts wrongly.
    """
    rises = np.flatnonzero(counted & (np.nan_to_num(taken.count) > 0))
    balance = PacketBalance.of(case) if rises.size else None
    if balance is None or (began_ns := balance.began_ns) is None:
        return ""
    steps = [Window(int(taken.begin_ns[i]), int(taken.end_ns[i])) for i in rises.tolist()]
    warm_up_s = min(_WARM_UP_S, max(_SHORTEST_S, _SHORT * case.window.seconds))
    warm_ns = began_ns + round(warm_up_s * 1e9)
    early = all(step.begin_ns < warm_ns and step.end_ns <= warm_ns + step.end_ns - step.begin_ns for step in steps)
    if not early and not _steady(taken, counted, case.window):
        return ""
    edges_ns = balance.bins.edges_ns
    window = Window(began_ns, max(steps[-1].end_ns, began_ns + 1)) if early else Window(began_ns, int(edges_ns[-1]))
    sent = balance.sent_without_loss(window)
    if sent is None:
        return ""
    when = f"in the first {duration(warm_up_s)} of the load" if early else "steadily, with or without load"
    return f"{when}, and all {digits(sent)} packets sent then came back: none was of the test (ARP, LLDP, warm-up)"


def _steady(taken: Steps, counted: Mask, window: Window) -> bool:
    """Whether drops come at least as evenly as at random, and neither too often nor too rarely."""
    count = np.where(counted, np.nan_to_num(taken.count), 0.0)
    total, seconds = float(count.sum()), window.seconds
    if total < _LEAST * _FEWEST or seconds / total > _LONGEST_S or total > _RAREST * seconds:
        return False
    number = min(_BLOCKS, int(total / _LEAST))
    middles = (taken.begin_ns + taken.end_ns) // 2
    edges = np.linspace(window.begin_ns, window.end_ns, number + 1)
    blocks, _ = np.histogram(middles, bins=edges, weights=count)
    return float(np.var(blocks)) <= _STEADY * float(np.mean(blocks))
