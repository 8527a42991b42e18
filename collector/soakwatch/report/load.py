"""What the traffic generators did in any stretch of time: offered, sent, received, failed, lost, how late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from soakwatch.core.formatting import natural
from soakwatch.core.plotted import as_plotted
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch_model.flow import BACK, BITS, FAILED, OFFERED, PACKETS, REQUESTS, SENT
from soakwatch_model.metric import COUNTER, GAUGE, flows
from soakwatch_model.metric_load import WHOLE_LOAD
from soakwatch_model.sample import object_labels, object_text
from soakwatch_model.series import Series
from soakwatch_model.window import Window

_STALE = 3.5  # times the cadence: an older sample of the load does not describe a moment
_BEFORE_NS, _LAST, _LIKE, _HELD = 30 * 10**9, 5, 0.4, 0.25
_QUANTILE = "quantile"
_UNREAD = "lines.unread"
_NO_RATE = frozenset({_UNREAD, "queue_full", "retransmits"})
"""Counters that tell no load."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadTrace:
    """One line of a generator's account: its word ("answered", "latency p99") and its readings as a gauge."""

    word: str
    series: Series


@dataclass(frozen=True, slots=True, eq=False)
class TrafficGenerator:
    """One stream of one traffic generator; what it does not report is None or missing.

    ``failures`` counts failed requests reading by reading, for sums. ``packets`` and ``bits`` are the rates of what was
    offered, sent and received, as far as told; ``loss`` is the share that the generator says was lost. ``latencies``
    rise from the lowest quantile to the maximum. ``others`` are the remaining ``load.*`` series of the whole generator.
    """

    target: str
    object: str
    offered: LoadTrace | None
    answered: LoadTrace | None
    failed: LoadTrace | None
    failures: Series | None
    latencies: tuple[LoadTrace, ...]
    others: tuple[LoadTrace, ...]
    packets: tuple[LoadTrace, ...] = ()
    bits: tuple[LoadTrace, ...] = ()
    loss: LoadTrace | None = None

    @property
    def name(self) -> str:
        """Target and labels."""
        return f"{self.target} {self.object}".rstrip()

    @property
    def rate(self) -> LoadTrace | None:
        """The rate that is drawn as the load behind plots: answered (else offered) requests, else packets
        or bits sent (or received, by a sink), else the next best rate."""
        rates = [
            trace for trace in self.others if trace.series.trait.unit.endswith("/s") and trace.word not in _NO_RATE
        ]
        moved = [trace for trace in (*self.packets, *self.bits) if "offered" not in trace.word]
        return self.answered or self.offered or next(iter((*moved, *self.packets, *self.bits, *rates)), None)

    @property
    def asked(self) -> LoadTrace | None:
        """The rate that the generator was to send, which no failure of the device lowers; if unknown, ``rate``."""
        to_send = next((trace for trace in (*self.packets, *self.bits) if "offered" in trace.word), None)
        return self.offered or to_send or self.rate

    def rate_at(self, time_ns: int) -> float | None:
        """The load at a moment; None if it is unknown.

        It is the rate that was to be sent, if about as much went through at that reading or at the one before (during a
        failure little does). Otherwise it is the rate that went through: a generator that has ended may still report
        what it was to send.
        """
        if self.rate is None or self.asked is None:
            return None if self.rate is None else value_at(self.rate.series, time_ns)
        real, wanted = value_at(self.rate.series, time_ns), value_at(self.asked.series, time_ns)
        before = value_at(self.rate.series, time_ns - round(1e9 * (self.rate.series.cadence_s or 0.0)))
        if wanted is None or real is None:
            return real
        held = (each for each in (real, before) if each is not None and abs(each - wanted) <= _HELD * wanted)
        return real if next(held, None) is None else wanted

    @property
    def counts_requests(self) -> bool:
        """Whether it sends requests that are answered, and not packets."""
        return self.offered is not None or self.answered is not None or self.failed is not None

    @property
    def latency(self) -> LoadTrace | None:
        """The 99th percentile, else the highest quantile that there is."""
        words = {trace.word: trace for trace in self.latencies}
        return words.get("latency p99") or next(reversed(self.latencies), None)

    def traces(self) -> tuple[LoadTrace, ...]:
        """All of its traces, in the order of a table."""
        first = [trace for trace in (self.offered, self.answered, self.failed) if trace is not None]
        lost = () if self.loss is None else (self.loss,)
        return (*first, *self.packets, *self.bits, *lost, *self.latencies, *self.others)


@dataclass(frozen=True, slots=True)
class TraceFigure:
    """One trace in one stretch of time: lowest, mean and highest of ``readings`` readings, None where there is none."""

    word: str
    unit: str
    low: float | None
    mean: float | None
    high: float | None
    readings: int


@dataclass(frozen=True, slots=True)
class LoadLine:
    """One generator in one window, in brief; ``missing`` names what others of its kind report and it does not."""

    name: str
    figures: tuple[TraceFigure, ...]
    missing: tuple[str, ...]


def generators(source: ReportSource) -> tuple[TrafficGenerator, ...]:
    """The generators of a record, by target and labels; empty if no ``load.*`` metric has a reading."""
    streams: dict[tuple[str, str], list[SeriesKey]] = {}
    for key in sorted(source.keys()):
        if key.metric in WHOLE_LOAD:
            streams.setdefault((key.target, _stream(key.object)), []).append(key)
    streams_found = [_generator(source, target, name, keys) for (target, name), keys in sorted(streams.items())]
    return tuple(generator for generator in streams_found if generator.traces())


def figure_of(trace: LoadTrace, window: Window) -> TraceFigure:
    """The trace in the window; readings that are no numbers are left out."""
    part = trace.series.between(window.begin_ns, window.end_ns).finite()
    unit = trace.series.trait.unit
    if not len(part):
        return TraceFigure(trace.word, unit, None, None, None, 0)
    values = part.values
    return TraceFigure(trace.word, unit, float(values.min()), float(values.mean()), float(values.max()), len(part))


def value_at(series: Series, time_ns: int) -> float | None:
    """The mean of the readings in the half minute before a moment. At the moment itself the load may already have
    failed, and a single reading of few requests is noise. Readings that are 40 % off the median of the last five do not
    count. None if there is no reading, or the last one is older than three and a half times the cadence."""
    part = series.finite()
    index = int(part.time_ns.searchsorted(time_ns, side="right")) - 1
    if index < 0 or time_ns - int(part.time_ns[index]) > _STALE * 1e9 * (series.cadence_s or 60.0):
        return None
    first = int(part.time_ns.searchsorted(time_ns - _BEFORE_NS))
    near = part.values[min(first, index) : index + 1]
    last = near[-_LAST:]
    middle = float(np.median(last))
    alike = near[np.abs(near - middle) <= _LIKE * abs(middle)]
    if not len(alike):  # the median lies between two readings that differ widely: the load has begun or failed there
        middle = float(np.sort(last)[len(last) // 2])
        alike = near[np.abs(near - middle) <= _LIKE * abs(middle)]
    return float(alike.mean()) if middle else middle


def failures_in(generator: TrafficGenerator, window: Window) -> float | None:
    """How many requests failed in the window; None if they were not counted, or nothing was read.

    Too low where the generator's counter restarted: what it had counted since the reading before is not known.
    """
    if generator.failures is None:
        return None
    part = generator.failures.between(window.begin_ns, window.end_ns).finite()
    return float(part.values.sum()) if len(part) else None


def failed_share(generator: TrafficGenerator, window: Window) -> float | None:
    """Failed requests as a share of all that were answered or failed; None where one of the two is not known."""
    if generator.answered is None or generator.failed is None:
        return None
    good, bad = figure_of(generator.answered, window).mean, figure_of(generator.failed, window).mean
    return None if good is None or bad is None or good + bad <= 0 else bad / (good + bad)


def answered_share(generator: TrafficGenerator, window: Window) -> float | None:
    """The answered rate as a share of the offered one; None where one of the two is not known."""
    if generator.answered is None or generator.offered is None:
        return None
    got, offered = figure_of(generator.answered, window).mean, figure_of(generator.offered, window).mean
    return None if got is None or not offered else got / offered


def load_lines(load: tuple[TrafficGenerator, ...], window: Window) -> tuple[LoadLine, ...]:
    """What each generator did in the window: its rate, its failures and its slow answers, where recorded."""
    lines = []
    for generator in load:
        if generator.counts_requests:
            traces = [generator.rate, generator.failed, generator.latency]
            missing = tuple(
                w for w, known in (("failures", generator.failed), ("latency", generator.latency)) if known is None
            )
        else:
            traces, missing = (
                [*(generator.packets or generator.bits or (generator.rate,)), generator.loss, generator.latency],
                (),
            )
        figures = tuple(figure_of(trace, window) for trace in traces if trace is not None)
        lines.append(LoadLine(generator.name, figures, missing))
    return tuple(lines)


def _stream(text: str) -> str:
    """The labels of an object without the quantile, which only separates lines of one stream."""
    if "=" not in text:
        return text
    return object_text(**{name: value for name, value in object_labels(text).items() if name != _QUANTILE})


def _generator(source: ReportSource, target: str, name: str, keys: list[SeriesKey]) -> TrafficGenerator:
    by_metric: dict[str, list[SeriesKey]] = {}
    for key in sorted(keys):
        by_metric.setdefault(key.metric, []).append(key)

    # What is taken here is no longer among the others, which are shown as they are.
    def taken(metric: str, read: Callable[[Series], Series]) -> Series | None:
        series = [read(source.series(key)) for key in by_metric.pop(metric, [])[:1]]
        return next((entry for entry in series if len(entry.finite())), None)

    def rate(side: str, what: str, word: str) -> LoadTrace | None:
        found = [taken(name, lambda entry: entry.spaced().rate()) for name in flows(side, what, kind=COUNTER)]
        found += [taken(name, lambda entry: entry) for name in flows(side, what, kind=GAUGE)]
        # a rate that the generator tells is better than one made of its counter
        best = next((series for series in reversed(found) if series is not None), None)
        return None if best is None else LoadTrace(word, best)

    steps = [
        source.series(key).increments()
        for name in flows(FAILED, REQUESTS, kind=COUNTER)
        for key in by_metric.get(name, [])[:1]
    ]
    failures = next((entry for entry in steps if len(entry.finite())), None)
    offered, answered = rate(OFFERED, REQUESTS, "offered"), rate(BACK, REQUESTS, "answered")
    failed = rate(FAILED, REQUESTS, "failed")
    quantiles = [(object_labels(key.object).get(_QUANTILE, ""), key) for key in by_metric.pop("load.latency", [])]
    quantiles.sort(key=lambda entry: (entry[0] == "max", natural(entry[0])))
    latencies = [LoadTrace(f"latency {word}".rstrip(), source.series(key)) for word, key in quantiles]
    packets, bits = (
        [
            rate(side, what, f"{word} {what}")
            for side, word in ((OFFERED, "offered"), (SENT, "sent"), (BACK, "received"))
        ]
        for what in (PACKETS, BITS)
    )
    loss = taken("load.loss", lambda entry: entry)
    others = [
        LoadTrace(_word(key), as_plotted(source.series(key))[0])
        for metric, rest in sorted(by_metric.items())
        for key in rest
    ]
    return TrafficGenerator(
        target,
        name,
        offered,
        answered,
        failed,
        failures,
        _with_readings(latencies),
        _worth(others),
        tuple(entry for entry in packets if entry is not None),
        tuple(entry for entry in bits if entry is not None),
        None if loss is None else LoadTrace("lost", loss),
    )


def _worth(traces: list[LoadTrace]) -> tuple[LoadTrace, ...]:
    """The traces with readings; lines that could not be read only if there were any."""
    return tuple(
        trace
        for trace in _with_readings(traces)
        if trace.word != _UNREAD or float(trace.series.finite().values.max()) > 0
    )


def _word(key: SeriesKey) -> str:
    return f"{key.metric.removeprefix('load.')} {object_labels(key.object).get(_QUANTILE, '')}".rstrip()


def _with_readings(traces: list[LoadTrace]) -> tuple[LoadTrace, ...]:
    return tuple(trace for trace in traces if bool(np.isfinite(trace.series.values).any()))
