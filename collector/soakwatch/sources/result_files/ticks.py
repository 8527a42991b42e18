"""Single answers of a load tool, added up to what the generator did in each tick: counts so far, rates, percentiles.

A tick ends when an answer from ``SLACK_NS`` after it was seen, or when nothing has come for ``PATIENCE_NS``. An answer
that comes later than that counts in the oldest tick that is still open: nothing is lost from the counters. Ticks in
which nothing was answered, between two in which something was, are ticks too: their rate is nought, and known.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from soakwatch_agent.sample import Sample

SLACK_NS = 1_000_000_000
"""How much earlier than an answer before it an answer may be: tools write what several users saw in turn."""
PATIENCE_NS = 5_000_000_000
MOST_EXACT = 20_000
"""Times of one tick that are kept; of more of them, so many are kept by chance."""
MOST_EMPTY = 3_600
"""Empty ticks between two others that are told."""
ANSWERED, FAILED = "load.requests", "load.failures"
_RATES = {ANSWERED: "load.request.rate", FAILED: "load.failure.rate"}
QUANTILES = (0.5, 0.9, 0.95, 0.99)


@dataclass(slots=True)
class Times:
    """Times (s) of one tick: all of them up to ``MOST_EXACT``, then a random choice of so many (Vitter's R)."""

    kept: list[float] = field(default_factory=list)
    many: int = 0
    total: float = 0.0
    least: float = float("inf")
    most: float = float("-inf")

    def add(self, seconds: float, chance: random.Random) -> None:
        """One more."""
        self.many += 1
        self.total += seconds
        self.least, self.most = min(self.least, seconds), max(self.most, seconds)
        if len(self.kept) < MOST_EXACT:
            self.kept.append(seconds)
        elif (at := chance.randrange(self.many)) < MOST_EXACT:
            self.kept[at] = seconds

    def quantiles(self) -> Iterable[tuple[str, float]]:
        """``min``, ``mean``, ``max`` (of all), and percentiles between the two kept times next to them."""
        if self.many:
            yield "min", self.least
            yield "mean", self.total / self.many
            yield "max", self.most
            for share, value in zip(QUANTILES, np.quantile(np.array(self.kept), QUANTILES).tolist(), strict=True):
                yield f"p{share * 100:g}", value


@dataclass(slots=True)
class _Tick:
    counts: dict[str, int] = field(default_factory=dict)
    levels: dict[str, float] = field(default_factory=dict)
    times: Times = field(default_factory=Times)


class Ticks:
    """Ticks of ``width_ns`` on the grid of the run's time; ``known`` are counters that begin at nought."""

    def __init__(self, width_ns: int, begin_ns: int, known: Iterable[str] = (), seed: int = 0) -> None:
        self._width, self._begin = width_ns, begin_ns
        self._totals = dict.fromkeys(known, 0)
        self._open: dict[int, _Tick] = {}
        self._done: int | None = None  # the last tick that was told
        self._newest = begin_ns
        self._chance = random.Random(seed)  # noqa: S311 - a choice of figures, no secret
        self._arrived_ns: int | None = None
        self._partial = True  # nobody knows when in it the first tick began
        self._sampled = False

    def count(self, time_ns: int, metric: str, many: int) -> None:
        """So many more at that time."""
        if time_ns < self._begin:
            self._totals[metric] = self._totals.get(metric, 0) + many
            return
        counts = self._tick(time_ns).counts
        counts[metric] = counts.get(metric, 0) + many

    def took(self, time_ns: int, seconds: float) -> None:
        """An answer at that time took so long."""
        if time_ns >= self._begin:
            self._tick(time_ns).times.add(seconds, self._chance)

    def level(self, time_ns: int, metric: str, value: float) -> None:
        """A gauge stood there at that time."""
        if time_ns >= self._begin:
            self._tick(time_ns).levels[metric] = value

    def ended(self, now_ns: int) -> list[Sample]:
        """What the ticks that have ended by now brought, each at its end."""
        over = (self._newest - SLACK_NS) // self._width
        late = [at for at in self._open if (at + 1) * self._width < now_ns - PATIENCE_NS]
        samples: list[Sample] = []
        for at in sorted(at for at in self._open if at < over or at in late):
            samples += self._tell(at, (at + 1) * self._width, cut=at >= over)
        return samples

    def arrived(self, now_ns: int) -> list[Sample]:
        """All that is there, as one tick from the one before until now: for answers whose own times are of no use."""
        if not self._open:
            return []
        tick = _Tick()
        for one in self._open.values():
            for metric, many in one.counts.items():
                tick.counts[metric] = tick.counts.get(metric, 0) + many
            tick.levels |= one.levels
            tick.times = one.times if one.times.many >= tick.times.many else tick.times
        self._open = {}
        since_ns, self._arrived_ns = self._arrived_ns, now_ns
        return self._told(tick, now_ns, None if since_ns is None else (now_ns - since_ns) * 1e-9)

    def notes(self) -> tuple[str, ...]:
        """What has to be told of the figures."""
        return (f"percentiles of more than {MOST_EXACT} answers in a tick are of so many by chance",) * self._sampled

    def _tick(self, time_ns: int) -> _Tick:
        self._newest = max(self._newest, time_ns)
        at = time_ns // self._width
        if self._done is not None and at <= self._done:
            at = self._done + 1
        tick = self._open.get(at)
        if tick is None:
            tick = self._open[at] = _Tick()
        return tick

    def _tell(self, at: int, end_ns: int, *, cut: bool) -> list[Sample]:
        tick = self._open.pop(at)
        samples: list[Sample] = []
        seconds = None if cut or self._partial else self._width * 1e-9
        if self._done is not None and seconds is not None:
            for empty in range(max(self._done + 1, at - MOST_EMPTY), at):
                samples += self._told(_Tick(), (empty + 1) * self._width, seconds)
        self._done, self._partial = at, cut
        return samples + self._told(tick, end_ns, seconds)

    def _told(self, tick: _Tick, end_ns: int, seconds: float | None) -> list[Sample]:
        """The samples of a tick; without rates where nobody knows how long it was."""
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
        self._sampled |= tick.times.many > MOST_EXACT
        return samples
