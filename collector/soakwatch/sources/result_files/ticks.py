"""Sums up a load tool's single answers per tick: counts, rates, percentiles.

A tick ends when an answer ``SLACK_NS`` after it was seen, or when nothing came for ``PATIENCE_NS``. A later answer
counts in the oldest open tick, so no count is lost. Empty ticks between two others are reported too, with the rate 0.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from soakwatch_model.sample import Sample

SLACK_NS = 1_000_000_000
"""How far back the next answer's time may be: tools write the answers of several users in turn."""
PATIENCE_NS = 5_000_000_000
MAX_EXACT_VALUES = 20_000
"""Durations kept per tick; of more, a random sample of this size."""
MAX_EMPTY_TICKS = 3_600
"""Maximum of empty ticks reported between two others."""
ANSWERED, FAILED = "load.requests", "load.failures"
_RATES = {ANSWERED: "load.request.rate", FAILED: "load.failure.rate"}
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(slots=True)
class Times:
    """Durations (s) of one tick: all up to ``MAX_EXACT_VALUES``, then a random sample of that size (Vitter's R)."""

    kept: list[float] = field(default_factory=list)
    many: int = 0
    total: float = 0.0
    lowest: float = float("inf")
    highest: float = float("-inf")

    def add(self, seconds: float, chance: random.Random) -> None:
        """Adds one duration."""
        self.many += 1
        self.total += seconds
        self.lowest, self.highest = min(self.lowest, seconds), max(self.highest, seconds)
        if len(self.kept) < MAX_EXACT_VALUES:
            self.kept.append(seconds)
        elif (position := chance.randrange(self.many)) < MAX_EXACT_VALUES:
            self.kept[position] = seconds

    def quantiles(self) -> Iterable[tuple[str, float]]:
        """``min``, ``mean``, ``max`` of all, and percentiles interpolated between kept durations."""
        if self.many:
            yield "min", self.lowest
            yield "mean", self.total / self.many
            yield "max", self.highest
            for share, value in zip(QUANTILES, np.quantile(np.array(self.kept), QUANTILES).tolist(), strict=True):
                yield f"p{share * 100:g}", value


@dataclass(slots=True)
class _Tick:
    counts: dict[str, int] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    times: Times = field(default_factory=Times)


class Ticks:
    """Ticks of ``width_ns`` on the grid of the run's time; counters in ``known`` start at zero."""

    def __init__(self, width_ns: int, begin_ns: int, known: Iterable[str] = (), seed: int = 0) -> None:
        self._width, self._begin = width_ns, begin_ns
        self._totals = dict.fromkeys(known, 0)
        self._open: dict[int, _Tick] = {}
        self._done: int | None = None  # index of the last reported tick
        self._newest = begin_ns
        self._chance = random.Random(seed)  # noqa: S311 - samples figures, no secret
        self._arrived_ns: int | None = None
        self._partial = True  # True if the next tick is cut at its begin
        self._sampled = False

    def count(self, time_ns: int, metric: str, many: int) -> None:
        """Counts ``many`` at ``time_ns``."""
        if time_ns < self._begin:
            self._totals[metric] = self._totals.get(metric, 0) + many
            return
        counts = self._tick(time_ns).counts
        counts[metric] = counts.get(metric, 0) + many

    def took(self, time_ns: int, seconds: float) -> None:
        """Adds the duration of an answer at ``time_ns``."""
        if time_ns >= self._begin:
            self._tick(time_ns).times.add(seconds, self._chance)

    def level(self, time_ns: int, metric: str, value: float) -> None:
        """Sets a gauge at ``time_ns``."""
        if time_ns >= self._begin:
            self._tick(time_ns).levels[metric] = value

    def ended(self, now_ns: int) -> list[Sample]:
        """The samples of ticks that have ended by ``now_ns``, each at its end."""
        over = (self._newest - SLACK_NS) // self._width
        late = [index for index in self._open if (index + 1) * self._width < now_ns - PATIENCE_NS]
        samples: list[Sample] = []
        for index in sorted(index for index in self._open if index < over or index in late):
            samples += self._close_tick(index, (index + 1) * self._width, cut=index >= over)
        return samples

    def rested(self, now_ns: int) -> list[Sample]:
        """Empty ticks up to now, since it is known that nothing was counted after the last one."""
        if self._open or self._done is None:
            return []
        first, over = self._done + 1, now_ns // self._width
        samples: list[Sample] = []
        for index in range(max(first, over - MAX_EMPTY_TICKS), over):
            samples += self._samples_of(_Tick(), (index + 1) * self._width, self._width * 1e-9)
            self._done = index
        return samples

    def arrived(self, now_ns: int) -> list[Sample]:
        """All answers since the last call as one tick, if their own times are unusable."""
        if not self._open:
            return []
        tick = _Tick()
        for open_tick in self._open.values():
            for metric, many in open_tick.counts.items():
                tick.counts[metric] = tick.counts.get(metric, 0) + many
            tick.levels |= open_tick.levels
            tick.times = open_tick.times if open_tick.times.many >= tick.times.many else tick.times
        self._open = {}
        since_ns, self._arrived_ns = self._arrived_ns, now_ns
        return self._samples_of(tick, now_ns, None if since_ns is None else (now_ns - since_ns) * 1e-9)

    def notes(self) -> tuple[str, ...]:
        """Notes on the figures."""
        return (
            f"with more than {MAX_EXACT_VALUES} answers in a tick, percentiles are of a random sample of that size",
        ) * self._sampled

    def _tick(self, time_ns: int) -> _Tick:
        self._newest = max(self._newest, time_ns)
        index = time_ns // self._width
        if self._done is not None and index <= self._done:
            index = self._done + 1
        tick = self._open.get(index)
        if tick is None:
            tick = self._open[index] = _Tick()
        return tick

    def _close_tick(self, index: int, end_ns: int, *, cut: bool) -> list[Sample]:
        tick = self._open.pop(index)
        samples: list[Sample] = []
        seconds = None if cut or self._partial else self._width * 1e-9
        if self._done is not None and seconds is not None:
            for empty in range(max(self._done + 1, index - MAX_EMPTY_TICKS), index):
                samples += self._samples_of(_Tick(), (empty + 1) * self._width, seconds)
        self._done, self._partial = index, cut
        return samples + self._samples_of(tick, end_ns, seconds)

    def _samples_of(self, tick: _Tick, end_ns: int, seconds: float | None) -> list[Sample]:
        """The samples of a tick, without rates if its length is unknown."""
        for metric, many in tick.counts.items():
            self._totals[metric] = self._totals.get(metric, 0) + many
        samples = [Sample(metric, "", total, end_ns) for metric, total in self._totals.items()]
        if seconds:
            samples += [
                Sample(rate, "", tick.counts.get(metric, 0) / seconds, end_ns)
                for metric, rate in _RATES.items()
                if metric in self._totals
            ]
        samples += [Sample(metric, "", value, end_ns) for metric, value in tick.levels.items()]
        samples += [Sample("load.latency", f"quantile={name}", s, end_ns) for name, s in tick.times.quantiles()]
        self._sampled |= tick.times.many > MAX_EXACT_VALUES
        return samples
