"""Traffic: what was sent and what was lost, in whatever units the generators report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.flow import BITS, BYTES, LOST, PACKETS, REQUESTS
from soakwatch_model.metric import COUNTER
from soakwatch_model.series import Ints, Series
from soakwatch_model.window import Window
from soakwatch_rules.load.load_account import LoadAccount, LoadPair
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.outage import Bins

_UNITS = {PACKETS: "packet", REQUESTS: "request", BYTES: "byte", BITS: "bit"}
_MIN_CALM_BINS = 8  # bins needed to know what would have come
_DIP = 0.3  # share by which an uncommanded rate may dip by itself
_EXACT = 0.005


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """``bins`` of what was sent and lost, counted in ``unit``.

    ``assumed``: what was sent is not reported and taken to be what came in the calm before; ``source`` says in a few
    words what was counted.
    """

    bins: Bins
    unit: str
    source: str
    assumed: bool = False

    @property
    def least_share(self) -> float:
        """The share of what was sent that a bin must lose to count."""
        return _DIP if self.assumed else _EXACT

    def parted(self, calm: Window, window: Window) -> tuple[Bins, Bins] | None:
        """The bins of the calm and of the window after it; None if the calm is too short to know what would come."""
        before, after = self.bins.within(calm), self.bins.within(window)
        if not self.assumed:
            return before, after
        came = before.sent / before.seconds
        came = came[np.isfinite(came)]
        if came.size < _MIN_CALM_BINS or median(came) <= 0:
            return None
        rate = median(came)
        return _against(before, rate), _against(after, rate)


def _against(bins: Bins, rate: float) -> Bins:
    """What came compared with a rate: the shortfall is lost."""
    wanted = np.where(np.isfinite(bins.sent), rate * bins.seconds, np.nan)
    return Bins(bins.edges_ns, wanted, wanted - bins.sent)


def traffic(case: Case) -> Traffic | None:
    """The traffic of a case: packets sent and received, packets known to be lost, requests offered and answered, else
    what came back compared with the calm before; None if nothing is reported."""
    account = LoadAccount.of(case.load, case.window)
    if packets := account.pair(PACKETS):
        return _between(packets, "packets sent and received")
    sent, lost = account.into(PACKETS), account.side(LOST, PACKETS, kind=COUNTER)
    if sent and lost:
        edges = _edges(lost)
        return Traffic(
            Bins(edges, binned(sent, edges), binned(lost, edges)),
            "packet",
            "packets that the generator counted as lost",
        )
    if requests := account.pair(REQUESTS):
        return _between(requests, "requests offered and answered")
    for kind in (REQUESTS, PACKETS, BYTES, BITS):
        if came := account.back(kind):
            edges = _edges(came)
            count = binned(came, edges)
            source = f"{kind} received, compared with the time before"
            return Traffic(Bins(edges, count, np.zeros(count.size)), _UNITS[kind], source, assumed=True)
    return None


def _between(pair: LoadPair, source: str) -> Traffic:
    edges = _edges(pair.back)
    into, out = binned(pair.into, edges), binned(pair.back, edges)
    with np.errstate(invalid="ignore", over="ignore"):
        return Traffic(Bins(edges, into, into - out), _UNITS[pair.what], source)


def _edges(series: tuple[Series, ...]) -> Ints:
    return series[0].finite().time_ns
