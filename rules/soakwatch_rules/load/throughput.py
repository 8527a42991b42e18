"""Throughput as the generators report it, absolute or relative to the offered load."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.flow import BACK, BITS, BYTES, OFFERED, PACKETS, REQUESTS, SENT
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_rules.load.load_account import LoadAccount
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.counted_amounts import steps
from soakwatch_rules.stats.medians import median

_MAX_VALUE = 1e120
_MAX_CADENCES = 3  # cadences that one reading of a rate covers
_CHANGE = 0.1  # share by which a commanded rate must change
_IDLE = 0.05  # share of the median offered rate below which it is idle


class Flow(NamedTuple):
    """One throughput of one generator, with the rate ``commanded`` and what it ``sent`` (either may be missing).

    ``label`` is the object that findings name; empty if there is only one generator.
    """

    series: Series
    commanded: tuple[Series, ...]
    sent: tuple[Series, ...]
    label: str


class Curve(NamedTuple):
    """A rate by reading: the mean from ``begin_ns`` to ``end_ns``; all values are finite."""

    begin_ns: Ints
    end_ns: Ints
    rate: Floats

    def per(self, offered: Series) -> Curve | None:
        """Relative to an offered rate or a counter of what was sent; None if that was never above 0.

        Left out are readings with under 5 % of the usual offered, and the two readings around each change of a
        commanded rate by over 10 %, since a command takes effect with a delay.
        """
        order = curve(offered)
        if not order.rate.size or not bool((order.rate > 0).any()) or not self.rate.size:
            return None
        positions = np.searchsorted(order.end_ns, self.end_ns, side="right") - 1
        if offered.trait.kind == "counter":
            positions = np.searchsorted(order.end_ns, self.end_ns)
        rate = order.rate[np.clip(positions, 0, order.rate.size - 1)]
        keep = (rate > 0) & (rate > _IDLE * median(rate))
        if offered.trait.kind != "counter":
            before = np.append(rate[:1], rate[:-1])
            changed = np.abs(rate - before) > _CHANGE * np.maximum(np.abs(rate), np.abs(before))
            keep &= ~changed & ~np.append(False, changed[:-1])
        with np.errstate(over="ignore"):
            share = np.divide(self.rate, rate, out=np.zeros(rate.size), where=keep)
        keep &= np.abs(share) < _MAX_VALUE
        return Curve(self.begin_ns[keep], self.end_ns[keep], share[keep])


def curve(series: Series) -> Curve:
    """The rate of a counter, or the readings of a rate, without values that are no numbers."""
    if series.trait.kind == "counter":
        increments = steps(series)
        with np.errstate(all="ignore"):
            whole = Curve(increments.begin_ns, increments.end_ns, increments.count / increments.seconds)
    else:
        good = series.finite()
        apart_ns = round((cadence(good) or 0.0) * 1e9)
        before = np.append(good.time_ns[:1] - apart_ns, good.time_ns[:-1])
        whole = Curve(np.maximum(before, good.time_ns - _MAX_CADENCES * apart_ns), good.time_ns, good.values)
    keep = np.isfinite(whole.rate) & (
        np.abs(np.nan_to_num(whole.rate, posinf=_MAX_VALUE, neginf=_MAX_VALUE)) < _MAX_VALUE
    )
    return Curve(whole.begin_ns[keep], whole.end_ns[keep], whole.rate[keep])


def flows(case: Case) -> list[Flow]:
    """The throughputs of a case: requests and packets of each generator, bytes or bits if it reports neither."""
    account = LoadAccount.of(case.load, case.window)
    result = []
    for generator in account.generators:
        own = account.only((generator,))
        name = f"generator={generator}" if len(account.generators) > 1 else ""
        # Sizes only where neither requests nor packets are reported, since they vary with what is sent.
        for what in [kind for kind in (REQUESTS, PACKETS) if own.any_of(BACK, kind)] or [_size(own)]:
            offered, sent = own.side(OFFERED, BITS if what == BYTES else what), own.side(SENT, what)
            for samples in own.side(BACK, what) or own.any_of(BACK, what)[:1]:
                label = ",".join(x for x in (name, samples.object) if x)
                result.append(Flow(samples, offered, sent, label))
    return result


def _size(own: LoadAccount) -> str:
    """Bytes, which are counted, if they are reported; else bits."""
    return BYTES if own.any_of(BACK, BYTES) else BITS
