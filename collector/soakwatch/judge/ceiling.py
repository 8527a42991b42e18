"""The ceiling of a generator: the highest rate that it held for 10 s while at most 0.1 % was lost.

Arithmetic on the series of one generator, without I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.flow import BACK, BITS, BYTES, CEILING, DRIVE, FAILED, LEVEL, LOST, PACKETS, REQUESTS, SENT
from soakwatch_model.metric import COUNTER, GAUGE, flows
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.stats.medians import median
from soakwatch_rules.wording.quantities import duration, quantity

HELD_S = 10.0
MAX_LOSS = 0.001
_FLOATS = NDArray[np.float64]
_HOLE = 3.0  # times the median distance of readings: a longer gap is unknown


@dataclass(frozen=True, slots=True)
class Kind:
    """One rate that may have a ceiling. ``metric`` is its name in the catalogue; ``sent`` are the metrics that it is
    computed from, counters first, each with its factor (8 bits a byte)."""

    name: str
    metric: str
    unit: str
    sent: tuple[tuple[str, float], ...]


def _pairs(*sides: str, what: str) -> tuple[tuple[str, str], ...]:
    """The metrics of two sides of one kind, paired counter with counter and gauge with gauge."""
    return tuple(zip(*(flows(side, what) for side in sides), strict=True))


KINDS = (
    Kind(PACKETS, flows(CEILING, PACKETS)[0], "{packet}/s", tuple((name, 1) for name in flows(SENT, PACKETS))),
    Kind(
        BITS,
        flows(CEILING, BITS)[0],
        "bit/s",
        tuple((name, factor) for what, factor in ((BYTES, 8), (BITS, 1)) for name in flows(SENT, what)),
    ),
    Kind(REQUESTS, flows(CEILING, REQUESTS)[0], "{request}/s", tuple((name, 1) for name in flows(BACK, REQUESTS))),
)
_CPU = "load.cpu.utilization"
_QUEUE_FULL = "load.queue_full"
(_LEVEL,) = flows(DRIVE, LEVEL)
(_LOSS,) = flows(LOST, PACKETS, kind=GAUGE)
_LOST_PACKETS = tuple(product(flows(LOST, PACKETS, kind=COUNTER), flows(SENT, PACKETS, kind=COUNTER)))
_LOST = {PACKETS: _LOST_PACKETS, BITS: _LOST_PACKETS, REQUESTS: _pairs(FAILED, BACK, what=REQUESTS)}
"""Pairs of lost and sent counters; of requests, failed and answered."""
_BACK = {
    PACKETS: _pairs(BACK, SENT, what=PACKETS),
    BITS: (_pairs(BACK, SENT, what=PACKETS)[0], *_pairs(BACK, SENT, what=BYTES), *_pairs(BACK, SENT, what=BITS)),
    REQUESTS: (),
}
"""Pairs of received and sent: the loss of a generator that counts both."""
METRICS = tuple(
    sorted(
        {_CPU, _QUEUE_FULL, _LEVEL, _LOSS}
        | {metric for kind in KINDS for metric, _ in kind.sent}
        | {metric for pairs in (*_LOST.values(), *_BACK.values()) for pair in pairs for metric in pair}
    )
)
"""All metrics that are read."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The highest rate held, per second; None for what the generator does not report.

    ``loss`` is the generator's own share lost at that rate, ``cpu`` its CPU utilisation, ``queue_full`` how often its
    queue was full in these seconds, ``level`` the commanded share of its full load.
    """

    kind: Kind
    rate: float
    window: Window
    loss: float | None
    cpu: float | None
    queue_full: float | None
    level: float | None


@dataclass(frozen=True, slots=True)
class NoCeiling:
    """Why there is no ceiling, in one sentence."""

    kind: Kind
    reason: str


def ceilings(series: Iterable[Series]) -> tuple[Ceiling | NoCeiling, ...]:
    """The ceiling of each kind of rate that a generator reports, from its series without labels (``METRICS``); ()
    without any.

    >>> from soakwatch_rules.signals import readings
    >>> sent = readings("load.tx.packets", np.minimum(np.arange(60) * 1000, 40_000), 1.0)
    >>> [(one.kind.name, round(one.rate), one.loss) for one in best(ceilings([sent]))]
    [('packets', 1000, None)]
    """
    by_metric = {each.metric: each.finite() for each in series if not each.object and len(each.finite()) > 1}
    if not by_metric:
        return ()
    zero_ns = min(int(each.time_ns[0]) for each in by_metric.values())
    totals = {metric: _Total.of(each, zero_ns) for metric, each in by_metric.items()}
    results = []
    for kind in KINDS:
        sent = next(((totals[metric], factor) for metric, factor in kind.sent if metric in totals), None)
        if sent is not None:
            results.append(_ceiling(kind, *sent, totals, zero_ns))
    return tuple(results)


def best(results: Sequence[Ceiling | NoCeiling]) -> tuple[Ceiling, ...]:
    """Those that are ceilings."""
    return tuple(result for result in results if isinstance(result, Ceiling))


def _ceiling(
    kind: Kind, sent: _Total, factor: float, totals: Mapping[str, _Total], zero_ns: int
) -> Ceiling | NoCeiling:
    begin, end = sent.windows()
    rate = factor * sent.between(begin, end) / (end - begin)
    if not bool(np.isfinite(rate).any()):
        return NoCeiling(kind, f"its {kind.name} were never read for {duration(HELD_S)} without a gap")
    good = np.nan_to_num(rate) > 0
    if not bool(good.any()):
        return NoCeiling(kind, f"it sent no {kind.name}")
    loss = _loss(kind, totals, begin, end)
    if loss is not None:
        clean = good & (np.nan_to_num(loss, nan=1.0) <= MAX_LOSS * (1 + 1e-9))
        if not bool(clean.any()):
            known = loss[good & np.isfinite(loss)]
            least = f"it was {quantity(known.min(), '1')} at least" if known.size else "it was never known"
            most = f"no {duration(HELD_S)} had a loss of at most {100 * MAX_LOSS:g} % of its {kind.name}"
            return NoCeiling(kind, f"{most}: {least}")
        good = clean
    index = int(np.flatnonzero(good)[np.argmax(rate[good])])
    span_s = float(end[index] - begin[index])

    def over(metric: str) -> float | None:
        if metric not in totals:
            return None
        value = float(totals[metric].between(begin[index : index + 1], end[index : index + 1])[0])
        return value if np.isfinite(value) else None

    busy, level = over(_CPU), over(_LEVEL)
    return Ceiling(
        kind=kind,
        rate=float(rate[index]),
        window=Window(zero_ns + round(float(begin[index]) * 1e9), zero_ns + round(float(end[index]) * 1e9)),
        loss=None if loss is None else float(loss[index]),
        cpu=None if busy is None else busy / span_s,
        queue_full=over(_QUEUE_FULL),
        level=None if level is None else level / span_s,
    )


def _loss(kind: Kind, totals: Mapping[str, _Total], begin: _FLOATS, end: _FLOATS) -> _FLOATS | None:
    """The share lost in each window, NaN where it is unknown; None if no series shows it."""
    for lost, of in _LOST[kind.name]:
        if lost in totals and of in totals:
            gone, whole = (totals[name].between(begin, end) for name in (lost, of))
            return _share(gone, gone + whole if kind.name == "requests" else whole)
    for back, of in _BACK[kind.name]:
        # Nothing ever came back: this generator only sends, and knows of no loss.
        if back in totals and of in totals and totals[back].total[-1] > 0:
            came, whole = (totals[name].between(begin, end) for name in (back, of))
            return _share(np.maximum(whole - came, 0.0), whole)
    if _LOSS in totals and kind.name != "requests":
        return totals[_LOSS].between(begin, end) / (end - begin)
    return None


def _share(part: _FLOATS, whole: _FLOATS) -> _FLOATS:
    share: _FLOATS = np.divide(part, whole, out=np.full(part.size, np.nan), where=whole > 0)
    return share


@dataclass(frozen=True, slots=True, eq=False)
class _Total:
    """A running total at each reading: the counter itself, or the integral of a rate that holds since the previous
    reading.

    ``time_s`` are seconds since a moment that all series share; ``holes`` counts the unknown intervals (restarts, gaps)
    up to each reading.
    """

    time_s: _FLOATS
    total: _FLOATS
    holes: _FLOATS
    apart_s: float

    @classmethod
    def of(cls, series: Series, zero_ns: int) -> _Total:
        time_s = np.asarray((series.time_ns - zero_ns) * 1e-9, dtype=np.float64)
        apart = np.diff(time_s)
        step = series.increments().values if series.trait.kind == "counter" else series.values[1:] * apart
        usual = median(apart)
        hole = ~np.isfinite(step) | (apart > _HOLE * usual)
        total = np.append(0.0, np.cumsum(np.where(hole, 0.0, step)))
        return cls(time_s, total, np.append(0.0, np.cumsum(hole)), usual)

    def windows(self) -> tuple[_FLOATS, _FLOATS]:
        """All windows from one reading to another that are ``HELD_S`` long, or at most two reading intervals longer."""
        after = np.searchsorted(self.time_s, self.time_s + HELD_S - 1e-6)
        whole = after < self.time_s.size
        begin, end = self.time_s[whole], self.time_s[after[whole]]
        near = end - begin <= HELD_S + 2 * self.apart_s
        return begin[near], end[near]

    def between(self, begin: _FLOATS, end: _FLOATS) -> _FLOATS:
        """The increase between two moments; NaN across a hole or outside of the readings."""
        first, last, blank_first, blank_last = (
            np.interp(when, self.time_s, values) for values in (self.total, self.holes) for when in (begin, end)
        )
        reach = (begin >= self.time_s[0] - self.apart_s) & (end <= self.time_s[-1] + self.apart_s)
        growth: _FLOATS = np.where(reach & (blank_last - blank_first <= 0), last - first, np.nan)
        return growth
