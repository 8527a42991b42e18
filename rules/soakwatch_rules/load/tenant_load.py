"""Tenants of a device: the load of each in time bins, when it was raised, and how well each was served."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from soakwatch_model.case import Tenant
from soakwatch_model.event import Event
from soakwatch_model.flow import (
    BACK,
    BITS,
    BYTES,
    CONNECTIONS,
    DELAY,
    DRIVE,
    FAILED,
    LOST,
    OFFERED,
    PACKETS,
    PORT,
    QUALITY,
    REQUESTS,
    SENT,
    STREAM,
    USERS,
    WHOLE,
)
from soakwatch_model.label import label
from soakwatch_model.metric import COUNTER, GAUGE, flows
from soakwatch_model.series import Floats, Ints, Mask, Series
from soakwatch_model.window import Window
from soakwatch_rules.load.offered import first_reported
from soakwatch_rules.sampling import cadence
from soakwatch_rules.stats.counted_amounts import binned
from soakwatch_rules.stats.medians import median, row_medians

_SCOPES: Final = (STREAM, WHOLE, PORT)
"""In order of preference: a flow may belong to one tenant, a generator's whole load to several."""


def _of_side(side: str, *what: str, kind: str | None = None, scopes: tuple[str, ...] = _SCOPES) -> tuple[str, ...]:
    """The metrics of one side: those of flows, then of the generator, then of its ports."""
    return tuple(name for one in what for scope in scopes for name in flows(side, one, kind=kind, scope=scope))


_SENT: Final = (
    *(name for kind in (COUNTER, GAUGE) for name in _of_side(SENT, PACKETS, BYTES, BITS, kind=kind)),
    *_of_side(OFFERED, PACKETS, REQUESTS, BITS),
    *_of_side(BACK, CONNECTIONS, kind=COUNTER),  # opened by the generator
)
_RETURNED: Final = (
    *(name for kind in (COUNTER, GAUGE) for name in _of_side(BACK, PACKETS, BYTES, BITS, kind=kind)),
    *_of_side(BACK, REQUESTS),
    *_of_side(BACK, CONNECTIONS, kind=GAUGE),
)
_BY_DEVICE: Final = ("system.network.packets", "system.network.io")
_ANY_LOAD: Final = (*flows(DRIVE, USERS, CONNECTIONS), "system.sessions.rate", "system.sessions")
_PAIRS: Final = tuple(
    pair
    for kind in (COUNTER, GAUGE)
    for scope in _SCOPES
    for pair in zip(
        *(flows(side, PACKETS, kind=kind, scope=scope) for side in (SENT, BACK)),
        strict=True,
    )
)
_STATED: Final = _of_side(LOST, PACKETS, kind=GAUGE)
_LATENCY: Final = (*_of_side(QUALITY, DELAY), "reach.round_trip")
_ANSWERED, _FAILURES = (flows(side, REQUESTS, kind=COUNTER) for side in (BACK, FAILED))
_CPU: Final = ("system.cpu.module.utilization", "process.cpu.utilization")
_QUANTILES: Final = ("p99", "0.99", "99", "p95", "0.95", "95", "p90", "0.9", "90", "mean", "p50", "0.5", "50", "median")

METRICS: Final = tuple(
    dict.fromkeys((*_SENT, *_RETURNED, *_BY_DEVICE, *_ANY_LOAD, *_STATED, *_LATENCY, *_CPU, *_FAILURES))
)
"""All metrics of a tenant's load or of how it was served."""
BY_DEVICE: Final = tuple(metric for metric in METRICS if not metric.startswith("load."))
"""Those of them that the device reports."""

_BIN_S: Final = 10.0
_MOST_BINS: Final = 2000
_LEAST_BINS: Final = 8
_RAISED: Final = 0.5  # share of the way from the base load to the highest above which it is raised
_CALM: Final = 0.25  # the same below which it is at its base


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """How a tenant was served in each bin; higher is worse. ``kind`` is throughput, loss, latency or cpu."""

    kind: str
    metric: str
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class TenantBins:
    """A tenant's bins: its load (None if unknown), what was sent to it, and how it was served.

    What comes back is not taken for load, since another tenant may make it fall.
    """

    name: str
    load: Floats | None
    sent: Floats | None
    measures: tuple[Measure, ...]
    samples: int


def bin_edges(tenants: Sequence[Tenant], window: Window) -> Ints:
    """Edges of at most 2000 bins, each at least 10 s and three readings of the slowest series."""
    slowest = max((cadence(s) or 0.0 for t in tenants for s in t.series if s.metric in METRICS), default=0.0)
    width_s = max(_BIN_S, 3 * min(slowest, window.seconds / 24), window.seconds / _MOST_BINS)
    width_ns = max(1, round(width_s * 1e9))
    return np.arange(window.begin_ns, window.end_ns + 1, width_ns, dtype=np.int64)


def tenant_bins(tenant: Tenant, edges_ns: Ints) -> TenantBins:
    kept = tuple(s for s in tenant.series if s.metric in METRICS and len(s.finite()) > 1)
    sent = _first(kept, _SENT, edges_ns)
    if sent is None:
        sent = _first(_directed(kept, "receive"), _BY_DEVICE, edges_ns)
    returned = _first(kept, _RETURNED, edges_ns)
    if returned is None:
        returned = _first(_directed(kept, "transmit"), _BY_DEVICE, edges_ns)
    load = sent if sent is not None else _first(kept, _ANY_LOAD, edges_ns)
    measures = [m for m in (_latency(kept, edges_ns), _cpu(kept, edges_ns)) if m is not None]
    if returned is not None:
        measures.insert(0, Measure("throughput", returned[0], -returned[1]))
    if (lost := _loss(kept, edges_ns)) is not None:
        measures.insert(0, lost)
    return TenantBins(
        tenant.name,
        None if load is None else load[1],
        None if sent is None else sent[1],
        tuple(measures),
        sum(len(s) for s in kept),
    )


def _directed(kept: Iterable[Series], direction: str) -> tuple[Series, ...]:
    return tuple(s for s in kept if label(s.object, "direction") == direction)


def _first(kept: Sequence[Series], metrics: Sequence[str], edges_ns: Ints) -> tuple[str, Floats] | None:
    """The first of these metrics that is reported, per second, summed over its objects."""
    reported = first_reported(kept, *metrics)
    if not reported:
        return None
    return reported[0].metric, binned(reported, edges_ns) / (np.diff(edges_ns) * 1e-9)


def _loss(kept: Sequence[Series], edges_ns: Ints) -> Measure | None:
    """The lost share of what was sent, or the failed share of requests."""
    for sent_metric, returned_metric in _PAIRS:
        sent, returned = first_reported(kept, sent_metric), first_reported(kept, returned_metric)
        if sent and returned and sent[0].metric == sent_metric and returned[0].metric == returned_metric:
            with np.errstate(all="ignore"):
                share = 1 - binned(returned, edges_ns) / binned(sent, edges_ns)
            return Measure("loss", returned_metric, np.where(np.isfinite(share), share, np.nan))
    if stated := first_reported(kept, *_STATED):
        return Measure("loss", stated[0].metric, _mean(stated, edges_ns))
    requests, failures = first_reported(kept, *_ANSWERED), first_reported(kept, *_FAILURES)
    if requests and failures:
        with np.errstate(all="ignore"):
            failed = binned(failures, edges_ns)
            share = failed / (binned(requests, edges_ns) + failed)
        return Measure("loss", failures[0].metric, np.where(np.isfinite(share), share, np.nan))
    return None


def _latency(kept: Sequence[Series], edges_ns: Ints) -> Measure | None:
    """The log of the latency (a difference is a factor) at the highest percentile up to the 99th."""
    reported = first_reported(kept, *_LATENCY)
    if not reported:
        return None
    by_quantile: dict[str | None, list[Series]] = {}
    for series in reported:
        by_quantile.setdefault(label(series.object, "quantile"), []).append(series)
    chosen = next((q for q in _QUANTILES if q in by_quantile), next(iter(by_quantile)))
    mean = _mean(by_quantile[chosen], edges_ns)
    with np.errstate(all="ignore"):
        value = np.log(np.where(mean > 0, mean, np.nan))
    return Measure("latency", reported[0].metric, value)


def _cpu(kept: Sequence[Series], edges_ns: Ints) -> Measure | None:
    reported = first_reported(kept, *_CPU)
    return Measure("cpu", reported[0].metric, _mean(reported, edges_ns)) if reported else None


def _mean(series: Sequence[Series], edges_ns: Ints) -> Floats:
    """The mean over all series of the mean reading in each bin; NaN without a reading."""
    rows = []
    for one in series:
        good = one.finite()
        place = np.searchsorted(edges_ns, good.time_ns, side="right") - 1
        inside = (place >= 0) & (place < edges_ns.size - 1)
        number = np.bincount(place[inside], minlength=edges_ns.size - 1).astype(np.float64)
        with np.errstate(all="ignore"):
            rows.append(np.bincount(place[inside], good.values[inside], minlength=edges_ns.size - 1) / number)
    result: Floats = np.mean(rows, axis=0)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class RaisedLoad:
    """When a tenant's load was raised and when at its base; ``times`` is the ratio (NaN if the base is 0)."""

    raised: Mask
    calm: Mask
    times: float

    @property
    def usual(self) -> Mask:
        """The state, raised or at base, that prevailed."""
        return self.raised if int(self.raised.sum()) > int(self.calm.sum()) else self.calm


def raised_load(
    name: str, load: Floats | None, events: Iterable[Event], edges_ns: Ints, change: float
) -> RaisedLoad | None:
    """When the load of a tenant was raised, by its readings and by events that name it; None if it never was.

    Raised is the upper half between the base (the 10 % quantile) and the highest load (over three bins), if that
    exceeds the base by the share ``change``; the lowest quarter is at the base.
    """
    size = edges_ns.size - 1
    raised, calm, times = np.zeros(size, np.bool_), np.zeros(size, np.bool_), math.nan
    known = np.zeros(size, np.bool_) if load is None else np.isfinite(load)
    if load is not None and int(known.sum()) >= _LEAST_BINS:
        value = load[known]
        base, top = float(np.quantile(value, 0.1)), _top(value)
        with np.errstate(invalid="ignore"):
            high, low = load >= base + _RAISED * (top - base), load <= base + _CALM * (top - base)
        if top > base and bool(high.any()) and bool(low.any()):
            levels = median(load[low]), median(load[high])
            if levels[1] >= (1 + change) * levels[0]:
                raised, calm = high, low
                times = levels[1] / levels[0] if levels[0] > 0 else math.nan
    spans = [e for e in events if e.detail.get("tenant") == name]
    if spans:
        calm = calm if bool(raised.any()) else np.ones(size, np.bool_)
        for event in spans:
            last_ns = event.begin_ns if event.end_ns is None else event.end_ns
            touched = (edges_ns[1:] > event.begin_ns) & (edges_ns[:-1] <= last_ns)
            raised, calm = raised | touched, calm & ~touched
    return RaisedLoad(raised, calm, times) if bool(raised.any()) and bool(calm.any()) else None


def _top(value: Floats) -> float:
    """The highest median of three neighbours, so that one odd bin is no level."""
    if value.size < 3:
        return float(value.max())
    return float(np.max(row_medians(np.lib.stride_tricks.sliding_window_view(value, 3))))
