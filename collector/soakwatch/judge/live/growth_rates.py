"""Provisional growth rates of a running soak, reported as soon as the evidence suffices and for as long as it does.

A rate is reported when

* there are ``MIN_MINUTES`` minutes with samples since the last restart of the process or device,
* the straight line through the means of at most ``MAX_BLOCKS`` blocks of equal length, its error corrected for AR(1),
  rises with 99.8 % confidence faster than rule ``growth`` allows (a share of the level a day, or the metric's floor
  in the time so far) and the second half still rises with 95 % confidence; or the second half alone meets the first
  condition, and its rate is reported: a warm-up that has ended does not count,
* the series has risen by ``MIN_RISE`` of its level so far,
* and the previous evaluation came to the same result.

What has already risen by ``STRONG`` of its level has a rate before that, from ``EARLY_READINGS`` single readings on.

A warm-up still in progress meets these conditions too, so a rate causes no finding, hook or notification. It
disappears at the first evaluation that does not meet them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from soakwatch.judge.cases import CaseBuilder
from soakwatch.judge.live.raw_values import Floats
from soakwatch.judge.live.run_follower import RunFollower
from soakwatch.judge.rates import STRONG, Rate
from soakwatch.record import SeriesKey
from soakwatch.record.model import Ints
from soakwatch_model.event import Event
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_entry import HELD_MEMORY
from soakwatch_model.metric_queries import telling
from soakwatch_model.roles import DUT
from soakwatch_rules.rule import Rule
from soakwatch_rules.stats.medians import median

MIN_MINUTES, MAX_BLOCKS, RISK, MIN_RISE, MAX_RATES = 6, 48, 0.002, 0.01, 20
EARLY_READINGS, _EARLY_MINUTES = 20, MIN_MINUTES + 2
_MIN_LINE_MEANS = 4  # fewest means from which a line has a standard error
_WHOLE, *_PARTS = telling(HELD_MEMORY)  # the others say what the first says
_RETRY_GROWTH = 1.1  # a series without a rate is evaluated again once it has this many times the minutes


@dataclass(slots=True)
class GrowthRates:
    """The growth rates of one run; ``update`` computes them from the samples so far."""

    rule: Rule | None
    rates: tuple[Rate, ...] = ()
    _met: frozenset[SeriesKey] = frozenset()  # series with a rate at the last evaluation
    _seen: dict[SeriesKey, tuple[int, int]] = field(default_factory=dict)  # since when, and how many minutes

    def update(self, case_builder: CaseBuilder, following: RunFollower) -> None:
        """Compute the rates to report now."""
        rule = self.rule
        tolerance: object = getattr(rule, "tolerance", None)
        horizon_s: object = getattr(rule, "horizon", None)
        if rule is None or not isinstance(tolerance, float) or not isinstance(horizon_s, float):
            return
        stretch, before = case_builder.stretch(rule), self._met
        if not case_builder.begun(rule) or stretch.end_ns < case_builder.window.end_ns:
            self.rates, self._met = (), frozenset()
            return
        rates = []
        bin_ns, begins = following.bin_ns, _life_begins(case_builder.events, stretch.end_ns)
        for key, known in following.known.items():
            if key.metric not in rule.metrics or case_builder.roles.get(key.target) != DUT:
                continue
            own = begins.get((key.target, key.object), 0), following.events.begin_ns(key)
            begin_ns = max(stretch.begin_ns, begins.get((key.target, None), 0), *own)
            since_ns, minutes_seen = self._seen.get(key, (begin_ns, 0))
            seen = minutes_seen if since_ns == begin_ns else 0
            needed = max(MIN_MINUTES, _RETRY_GROWTH * seen)
            most = stretch.end_ns // bin_ns + -begin_ns // bin_ns  # minutes that lie wholly inside
            if key not in before and seen >= _EARLY_MINUTES and most < needed:
                continue  # nothing is read
            minutes = following.minutes(key, begin_ns, stretch.end_ns)
            if _may_be_early(minutes.values) and (
                rate := _early(case_builder, following, key, known.unit, begin_ns, tolerance, horizon_s)
            ):
                rates.append(rate)
                continue
            if key not in before and len(minutes) < needed:
                continue
            self._seen[key] = begin_ns, len(minutes)
            shown = minutes.time_ns, minutes.values
            rate = _rate(case_builder, key, known.unit, begin_ns, *shown, tolerance, horizon_s, MIN_RISE)
            rates += [] if rate is None else [rate]
        self._met = met = frozenset(map(_key, rates))
        rates = [rate for rate in rates if _key(rate) in before and not (rate.metric in _PARTS and _whole(rate) in met)]
        rates.sort(key=lambda rate: (rate.limit_s if rate.limit_s is not None else math.inf, rate.target, rate.metric))
        self.rates = tuple(rates[:MAX_RATES])


def _key(rate: Rate) -> SeriesKey:
    return SeriesKey(rate.target, rate.metric, rate.object)


def _whole(rate: Rate) -> SeriesKey:
    return SeriesKey(rate.target, _WHOLE, rate.object)


def _life_begins(events: Iterable[Event], end_ns: int) -> dict[tuple[str, str | None], int]:
    """When the last life before a time began, by target and object of the process; for a reboot the object is None."""
    begins: dict[tuple[str, str | None], int] = {}
    for event in events:
        if event.kind in {"reboot", "process.restart"}:
            key = event.target, event.object if event.kind != "reboot" else None
            at_ns = event.end_ns or event.begin_ns
            if begins.get(key, 0) < at_ns < end_ns:
                begins[key] = at_ns
    return begins


def _rate(
    case_builder: CaseBuilder,
    key: SeriesKey,
    unit: str,
    begin_ns: int,
    time_ns: Ints,
    values: Floats,
    tolerance: float,
    horizon_s: float,
    least_rise: float,
) -> Rate | None:
    """The rate of a series if the evidence suffices (see the module), else None."""
    from soakwatch_rules.stats.ar1 import slope  # with scipy, which waits until there is something to look at
    from soakwatch_rules.stats.tolerance import Tolerance

    entry = BY_NAME.get(key.metric)
    good = np.isfinite(values)
    if entry is None or entry.growth not in {"up", "down"} or int(good.sum()) < MIN_MINUTES:
        return None
    down = entry.growth == "down"
    time_s, value = (time_ns[good] - begin_ns) * 1e-9, (-values if down else values)[good]
    edges = np.linspace(0, value.size, min(value.size, MAX_BLOCKS), endpoint=False).astype(np.int64)
    counts = np.diff(np.append(edges, value.size))
    times, means = np.add.reduceat(time_s, edges) / counts, np.add.reduceat(value, edges) / counts
    half = min(times.size // 2, times.size - _MIN_LINE_MEANS)
    whole, later = slope(times, means), slope(times[half:], means[half:])
    span_s, level = float(times[-1] - times[0]), abs(median(means))
    allowed = Tolerance(tolerance, horizon_s, entry.floor).per_second(level, span_s)
    steady, newly = whole.low(RISK) > allowed and later.low() > 0, later.low(RISK) > allowed
    if not (steady or newly) or whole.slope * span_s < least_rise * level:
        return None
    shown = whole if steady and not (newly and later.high() < whole.slope) else later
    sign = -1 if down else 1
    low, high = sorted((sign * shown.low() * 3600, sign * shown.high() * 3600))
    base = float(means[0]) - (whole.slope * float(times[0]) if shown is whole else 0.0)  # where it began
    change = sign * (float(means[-1]) - base) / abs(base) if base else None
    per_hour = sign * shown.slope * 3600
    unlimited = Rate(key.target, key.metric, key.object, unit, begin_ns, per_hour, low, high, change=change)
    limit = entry.low if down else case_builder.ceiling(key)
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
        change,
    )


def _may_be_early(minutes: Floats) -> bool:
    """Whether to look at single readings: there are less than eight minutes, and they do not stay level."""
    good = minutes[np.isfinite(minutes)]
    if minutes.size >= _EARLY_MINUTES:
        return False
    return good.size < 2 or bool(abs(good[-1] - good[0]) > 0.5 * STRONG * abs(good[0]))


def _early(
    case_builder: CaseBuilder,
    following: RunFollower,
    key: SeriesKey,
    unit: str,
    begin_ns: int,
    tolerance: float,
    horizon_s: float,
) -> Rate | None:
    """The rate of a series that rose by a fifth within its first minutes, from its single readings."""
    series = following.readings(key, begin_ns, case_builder.window.end_ns).finite()
    if len(series) < EARLY_READINGS:
        return None
    time_ns, values = series.time_ns, series.values
    return _rate(case_builder, key, unit, begin_ns, time_ns, values, tolerance, horizon_s, STRONG)
