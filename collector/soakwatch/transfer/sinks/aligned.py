"""Aligns runs on one clock: minute means and maxima of the metrics by which runs are compared, with one hour zero.

InfluxQL cannot shift times, so a second, small copy is written (measurement ``soakwatch_aligned``). Hour zero lies in
the year 2100: the retention of a bucket drops what is old, and these points must stay as long as the run's verdict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from soakwatch.record import RecordView
from soakwatch.record.minutes import MINUTE_NS, starts_of
from soakwatch.record.model import Ints
from soakwatch.transfer.sinks.lines import decimals, key
from soakwatch.transfer.sinks.load import APART_NS, LOADS, apart, loads_of
from soakwatch_model.metric import BY_NAME, CATALOGUE
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import object_labels
from soakwatch_model.series import Series
from soakwatch_model.window import Phase

MEASUREMENT = "soakwatch_aligned"
ZERO_NS = 4_102_444_800_000_000_000
"""2100-01-01T00:00:00Z."""
METRICS = frozenset(metric.name for metric in CATALOGUE if metric.aligned)
"""The metrics by which two releases or two nights are compared; counters as their rate per second."""


LOAD, SINCE_RUN = "load", "run"
_MIN_SHARE = 0.5  # of the usual interval: closer readings belong to one poll


def aligned(view: RecordView, run: str) -> Iterator[bytes]:
    """The lines of a run, without line ends; none for a record without a poll. Raises RecordError.

    Each minute is written on the clock of the run (tag ``since=run``) and on that of its phase (``since=soak``). A
    minute that holds no reading has no line. The same record gives the same lines, so that writing them again
    changes nothing; a minute that was written half full is overwritten when it is full.
    """
    keys, loads, roles = view.keys(METRICS), loads_of(view), view.roles()
    if not keys and not loads:
        return
    phases = view.phases()
    clocks = clocks_of(phases, phases[0].window.begin_ns if phases else view.window().begin_ns)
    for series_key in keys:
        series = view.series(series_key)
        target, metric = series_key.target, series_key.metric
        tags = {"run": run, "target": target, "role": roles.get(target, ""), "metric": metric}
        labels = object_labels(series_key.object)
        yield from _lines(steps_of(series, counter=BY_NAME[metric].kind == "counter"), clocks, tags, labels)
    for target, series_key in sorted(loads.items()):
        what, factor = LOADS[series_key.metric]
        tags = {"run": run, "target": target, "role": GENERATOR, "metric": LOAD, "what": what}
        steps = steps_of(view.series(series_key), counter=BY_NAME[series_key.metric].kind == "counter")
        yield from _lines(replace(steps, value=steps.value * factor), clocks, tags, {})


@dataclass(frozen=True, slots=True)
class Clock:
    """The zero of aligned times: its name, and from when to when it applies (UTC ns; None: to the end)."""

    since: str
    begin_ns: int
    end_ns: int | None


def clocks_of(phases: Sequence[Phase], begin_ns: int) -> tuple[Clock, ...]:
    """The clock of the run and one of each phase; of phases of one name the second is called "NAME 2".

    >>> from soakwatch_model.window import Window
    >>> [clock.since for clock in clocks_of([Phase(name, Window(0, 1)) for name in ("soak", "spike", "soak")], 0)]
    ['run', 'soak', 'spike', 'soak 2']
    """
    clocks = [Clock(SINCE_RUN, begin_ns, None)]
    names = Counter([SINCE_RUN])
    for phase in phases:
        names[phase.name] += 1
        number = names[phase.name]
        name = phase.name if number == 1 else f"{phase.name} {number}"
        clocks.append(Clock(name, phase.window.begin_ns, phase.window.end_ns))
    return tuple(clocks)


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Readings in order of time, all of shape (n,); each counts ``weight`` in a mean: the seconds that it covers."""

    time_ns: Ints
    value: NDArray[np.float64]
    weight: NDArray[np.float64]


def steps_of(series: Series, *, counter: bool) -> Readings:
    """A gauge unchanged; a counter as its rate per second between two readings, at the later one.

    Two readings of one poll count as one: over the nanoseconds between them a rate means nothing. A counter that
    restarted has no rate there.
    """
    if not counter:
        series = series.finite()
        return Readings(series.time_ns, series.values, np.ones(len(series)))
    usual_ns = (series.cadence_s or 0.0) * 1e9
    if not usual_ns and len(series) > 1:
        usual_ns = float(np.median(np.diff(series.time_ns)))
    time_ns, value = apart(series.time_ns, series.value, max(APART_NS, round(_MIN_SHARE * usual_ns)))
    rates = replace(series, time_ns=time_ns, value=value).rate()
    known = np.isfinite(rates.values)
    return Readings(rates.time_ns[known], rates.values[known], (np.diff(time_ns) * 1e-9)[known])


def _lines(
    readings: Readings, clocks: Sequence[Clock], tags: Mapping[str, str], labels: Mapping[str, str]
) -> Iterator[bytes]:
    for clock in clocks:
        begin, end = np.searchsorted(readings.time_ns, [clock.begin_ns, clock.end_ns or 2**63 - 1])
        if begin == end:
            continue
        head = key(MEASUREMENT, {**tags, "since": clock.since}, labels)
        values, weight = (part[begin:end] for part in (readings.value, readings.weight))
        minutes, starts = starts_of(readings.time_ns[begin:end], clock.begin_ns)
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.add.reduceat(values * weight, starts) / np.add.reduceat(weight, starts)
            highest = np.maximum.reduceat(values, starts)
        known = np.isfinite(means)
        minutes, means, highest = minutes[known], means[known], highest[known]
        fields = f"{head} mean=".encode(errors="replace")
        for minute, mean, most in zip(minutes.tolist(), decimals(means), decimals(highest), strict=True):
            yield b"%b%b,max=%b %d" % (fields, mean, most, ZERO_NS + minute * MINUTE_NS)
