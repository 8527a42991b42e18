"""Rates so far: what grows as a running soak goes on, as soon as it is worth saying, and until it no longer is.

A rate is worth saying when

* there are ``LEAST`` minutes with readings in one life of a device's process or of the device (a restart begins anew),
* the straight line through means of at most ``BLOCKS`` equal times, its error corrected for AR(1), rises with 99.8 %
  confidence faster than rule ``growth`` allows (a share of the level a day, or the metric's floor in the time so far)
  and the second half still rises with 95 % confidence; or the second half alone rises as the whole would have to, and
  its rate is the one that is told: a warm-up that has ended says nothing,
* it has risen by ``RISEN`` of the level so far,
* and the look before found the same.

It is provisional: a warm-up that goes on looks the same. No finding, hook or notification comes of it, and it is gone
with the look at which one of these does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from soakwatch.core.roles import DUT
from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.live.following import RunFollower
from soakwatch.judge.live.raw_words import Floats
from soakwatch.judge.rates import Rate
from soakwatch.record import SeriesKey
from soakwatch.record.model import Ints
from soakwatch_agent.metric import BY_NAME
from soakwatch_rules.rule import Event, Rule, Window

LEAST, BLOCKS, RISK, RISEN, MOST = 6, 48, 0.002, 0.01, 20
_LINE = 4  # means that a straight line needs to have an error
_PARTS = frozenset({"process.memory.pss", "process.memory.uss"})  # of process.memory.usage, which says the same
_AGAIN = 1.1  # what says nothing is looked at again when so many times the minutes are there: a look costs little


@dataclass(slots=True)
class Growing:
    """The rates of one run; ``update`` works them out from what is followed."""

    rule: Rule | None
    rates: tuple[Rate, ...] = ()
    _met: frozenset[SeriesKey] = frozenset()  # those of the last look
    _seen: dict[tuple[SeriesKey, int], int] = field(default_factory=dict)

    def update(self, court: CaseBuilder, following: RunFollower) -> None:
        """Work out the rates that are worth saying now."""
        rule = self.rule
        tolerance: object = getattr(rule, "tolerance", None)
        horizon_s: object = getattr(rule, "horizon", None)
        if rule is None or not isinstance(tolerance, float) or not isinstance(horizon_s, float):
            return
        stretch, before = court.stretch(rule), self._met
        if not court.begun(rule) or stretch.end_ns < court.window.end_ns:
            self.rates, self._met = (), frozenset()
            return
        rates = []
        for key, known in following.known.items():
            if key.metric not in rule.metrics or court.roles.get(key.target) != DUT:
                continue
            begin_ns = _life_begins(court.events, key, stretch)
            time_ns, values = following.minutes.read(known.number, begin_ns, stretch.end_ns)
            if key not in before and time_ns.size < max(LEAST, _AGAIN * self._seen.get((key, begin_ns), 0)):
                continue
            self._seen[key, begin_ns] = int(time_ns.size)
            rate = _rate(court, key, known.unit, begin_ns, time_ns, values, tolerance, horizon_s)
            rates += [] if rate is None else [rate]
        self._met = met = frozenset(map(_key, rates))
        rates = [rate for rate in rates if _key(rate) in before and not (rate.metric in _PARTS and _whole(rate) in met)]
        rates.sort(key=lambda rate: (rate.limit_s if rate.limit_s is not None else math.inf, rate.target, rate.metric))
        self.rates = tuple(rates[:MOST])


def _key(rate: Rate) -> SeriesKey:
    return SeriesKey(rate.target, rate.metric, rate.object)


def _whole(rate: Rate) -> SeriesKey:
    return SeriesKey(rate.target, "process.memory.usage", rate.object)


def _life_begins(events: Iterable[Event], key: SeriesKey, stretch: Window) -> int:
    """The begin of the stretch, or of what came up again in it."""
    again = [
        event.end_ns or event.begin_ns
        for event in events
        if event.target == key.target
        and (event.kind == "reboot" or (event.kind == "process.restart" and event.object == key.object))
    ]
    return max([stretch.begin_ns, *(at_ns for at_ns in again if at_ns < stretch.end_ns)])


def _rate(
    court: CaseBuilder,
    key: SeriesKey,
    unit: str,
    begin_ns: int,
    time_ns: Ints,
    values: Floats,
    tolerance: float,
    horizon_s: float,
) -> Rate | None:
    """The rate of a series where it is worth saying."""
    from soakwatch_rules.stats.ar1 import slope  # with scipy, which waits until there is something to look at
    from soakwatch_rules.stats.tolerance import Tolerance

    entry = BY_NAME.get(key.metric)
    good = np.isfinite(values)
    if entry is None or entry.growth not in {"up", "down"} or int(good.sum()) < LEAST:
        return None
    down = entry.growth == "down"
    time_s, value = (time_ns[good] - begin_ns) * 1e-9, (-values if down else values)[good]
    edges = np.linspace(0, value.size, min(value.size, BLOCKS), endpoint=False).astype(np.int64)
    counts = np.diff(np.append(edges, value.size))
    times, means = np.add.reduceat(time_s, edges) / counts, np.add.reduceat(value, edges) / counts
    half = min(times.size // 2, times.size - _LINE)
    whole, later = slope(times, means), slope(times[half:], means[half:])
    span_s, level = float(times[-1] - times[0]), abs(float(np.median(means)))
    allowed = Tolerance(tolerance, horizon_s, entry.floor).per_second(level, span_s)
    steady, newly = whole.low(RISK) > allowed and later.low() > 0, later.low(RISK) > allowed
    if not (steady or newly) or whole.slope * span_s < RISEN * level:
        return None
    shown = whole if steady and not (newly and later.high() < whole.slope) else later
    sign = -1 if down else 1
    low, high = sorted((sign * shown.low() * 3600, sign * shown.high() * 3600))
    unlimited = Rate(key.target, key.metric, key.object, unit, begin_ns, sign * shown.slope * 3600, low, high)
    limit = entry.low if down else court.ceiling(key)
    if limit is None:
        return unlimited
    room = (-limit if down else limit) - float(means[-1])
    if not (room > 0 and shown.low() > 0):
        return unlimited
    return Rate(
        key.target,
        key.metric,
        key.object,
        unit,
        begin_ns,
        unlimited.per_hour,
        low,
        high,
        limit,
        room / shown.slope,
        room / shown.high(),
        room / shown.low(),
    )
