"""Plateaus: stretches at the maximum, judged by the level and the scatter of the readings before them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_rules.stats.hysteresis import stretches
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.robust_level import robust

MIN_SAMPLES = 16
"""Readings that a level needs."""
_BUSY = 0.90
_TOP = 0.995
_FEW, _FEWER = 5 / 6, 2 / 3  # shares of the sigmas that long plateaus need
_LONG, _LONGER = 2.0, 3.0  # times the least duration
_READINGS = 3
_BLOCKS = 12  # with fewer means their scatter is wrong by a third
_TOUCH = 0.05  # share of the trailing time: noise touches the maximum but does not stay there longer
_CHANCE = 0.05  # plateaus in the whole run that scatter alone makes: with more it explains a plateau
_MAX_DURATION_S = 600.0  # a plateau that would have to last longer to differ from scatter is no spike


@dataclass(frozen=True, slots=True)
class SpikeDefinition:
    """The definition of a spike: ratios ``enter``, ``leave`` and ``rise``, a number of ``sigmas``, times in seconds."""

    enter: float
    leave: float
    rise: float
    sigmas: float
    seconds: float
    trailing: float

    def spiked(self, top: float, above_s: float, level: LevelAndScatter, reading_s: float) -> bool:
        """Whether a plateau of this mean and length is a spike above this level.

        Noise seldom stays where it touches: five sixths of the sigmas suffice for twice the least duration, two thirds
        for a mean of 99.5 % over three times that (and three readings in either case).
        """
        high, sigma = top - level.middle + 1e-9, level.sigma(above_s)
        if high < self.rise:
            return False
        times = above_s / self.seconds + 1e-9 if above_s >= _READINGS * reading_s * (1 - 1e-9) else 1.0
        share = 1.0
        if times >= _LONGER and top >= max(self.enter, _TOP):
            share = _FEWER
        elif times >= _LONG:
            share = _FEW
        return high >= share * self.sigmas * sigma

    def shortest(self, level: LevelAndScatter, reading_s: float) -> float | None:
        """The least time at 100 % that would be a spike above this level, tried in steps of a half; None above ten
        minutes (and above ``seconds``), or if the level leaves no room for the rise."""
        lasting, most = max(self.seconds, reading_s), max(_MAX_DURATION_S, 2 * self.seconds, 4 * reading_s)
        while lasting <= most:
            if self.spiked(1.0, lasting, level, reading_s):
                return self.seconds if lasting <= max(self.seconds, reading_s) else lasting
            lasting *= 1.5
        return None


class LevelAndScatter:
    """Level and scatter of readings ``apart_s`` seconds apart, by median and scaled MAD.

    A plateau is compared with the scatter of means of its length: single readings of 35 % ± 14 swing to 77 %, means of
    ten do not. If there are fewer than twelve such means, shorter ones (which scatter more) are taken.
    """

    __slots__ = ("_apart_s", "_known", "_value", "middle")

    def __init__(self, value: Floats, apart_s: float) -> None:
        self._value, self._apart_s = value, apart_s
        self._known: dict[int, float] = {}
        self.middle = median(value)

    @property
    def longest_s(self) -> float:
        """The longest means of which enough were read, in seconds."""
        return self._value.size * self._apart_s / _BLOCKS

    def sigma(self, lasting_s: float) -> float:
        """The robust sigma of means over ``lasting_s`` seconds.

        >>> level = LevelAndScatter(np.tile([0.2, 0.4], 600), 1.0)
        >>> round(level.sigma(1.0), 3), round(level.sigma(10.0), 3)
        (0.148, 0.0)
        """
        number = max(1, min(math.floor(lasting_s / self._apart_s + 0.1), self._value.size // _BLOCKS))
        if number not in self._known:
            self._known[number] = robust(_means(self._value, number))[1]
        return self._known[number]

    def jitter(self, lasting_s: float) -> float:
        """The same without steady rises or falls, from the differences of successive means.

        >>> ramp = LevelAndScatter(np.linspace(0.2, 0.9, 1200), 1.0)
        >>> round(ramp.sigma(10.0), 2), round(ramp.jitter(10.0), 2)
        (0.26, 0.0)
        """
        number = max(1, min(math.floor(lasting_s / self._apart_s + 0.1), self._value.size // _BLOCKS))
        whole = self._value.size // number * number
        steps = np.diff(self._value[:whole].reshape(-1, number).mean(axis=1))
        return robust(steps)[1] / math.sqrt(2) if steps.size else 0.0


def _means(value: Floats, number: int) -> Floats:
    """Means of ``number`` neighbours, overlapping by half."""
    if number == 1:
        return value
    total = np.append(0.0, np.cumsum(value))
    result: Floats = ((total[number:] - total[:-number]) / number)[:: max(1, number // 2)]
    return result


@dataclass(frozen=True, slots=True)
class Plateau:
    """Readings [open, close); ``above_s`` is the time at or above ``enter``, ``top`` the mean during it.

    ``spike``: it rose above the ``level`` before it like a spike. Otherwise ``scatter`` says whether the device's own
    scatter makes such a plateau now and then. ``level`` is None if nothing else was read.
    """

    open: int
    close: int
    above_s: float
    top: float
    peak: float
    level: float | None
    sigma: float
    spike: bool
    scatter: bool


@dataclass(frozen=True, slots=True)
class Plateaus:
    """The plateaus that lasted long enough, and all stretches at the maximum with their times at or above ``enter``."""

    long: tuple[Plateau, ...]
    opens: Ints
    above_s: Floats

    @property
    def brief(self) -> int:
        """The number of stretches too short to be a plateau."""
        return self.opens.size - len(self.long)


def plateaus(
    value: Floats, cover_s: Floats, shape: SpikeDefinition, keep: int, level: LevelAndScatter | None
) -> Plateaus:
    """Finds the plateaus in readings that each cover ``cover_s`` seconds before them.

    Without a given ``level`` it comes from the ``keep`` readings before a plateau that lie in no spike, so that it is
    frozen while one lasts; at the very beginning also from later readings outside of plateaus. Only stretches that are
    high for long enough are examined closely, so a quiet day costs one pass. A stretch may be a tenth of a reading
    short, at most a tenth of the least duration, since polls are slightly early or late.
    """
    pairs = stretches(value, shape.enter, shape.leave)
    high_s = np.append(0.0, np.cumsum(np.where(value >= shape.enter, cover_s, 0.0)))
    high = high_s[pairs[:, 1]] - high_s[pairs[:, 0]]
    reading_s = median(cover_s) if cover_s.size else 0.0
    long = high + 0.1 * min(reading_s, shape.seconds) >= shape.seconds
    calm = np.ones(value.size, dtype=bool)
    for begin, end in pairs[long].tolist():
        calm[begin:end] = False
    spiking = np.zeros(value.size, dtype=bool)
    rest = LevelAndScatter(value[calm], reading_s) if np.count_nonzero(calm) >= MIN_SAMPLES else None
    plateaus: list[Plateau] = []
    for (begin, end), above_s in zip(pairs[long].tolist(), high[long].tolist(), strict=True):
        here = level if level is not None else _around(value, begin, end, ~spiking, calm, keep, reading_s)
        inside = value[begin:end]
        above = inside >= shape.enter
        top = float(np.average(inside[above], weights=cover_s[begin:end][above]))
        spiked = here is not None and shape.spiked(top, above_s, here, reading_s)
        noises = [] if spiked else [noise for noise in (here, rest) if noise is not None]
        lasted_s = float(cover_s[begin:end].sum())
        mean = float(np.average(inside, weights=cover_s[begin:end]))
        brief = lasted_s <= max(_TOUCH * shape.trailing, _READINGS * reading_s)
        scatter = any(_scatters(mean, lasted_s, noise, float(cover_s.sum()), brief=brief) for noise in noises)
        spiking[begin:end] = spiked
        middle, sigma = (None, 0.0) if here is None else (here.middle, here.sigma(above_s))
        plateaus.append(Plateau(begin, end, above_s, top, float(inside.max()), middle, sigma, spiked, scatter))
    return Plateaus(tuple(plateaus), pairs[:, 0], high)


def _scatters(mean: float, lasted_s: float, level: LevelAndScatter, whole_s: float, *, brief: bool) -> bool:
    """Whether normal noise of this scatter makes such a mean at least once in twenty runs of this length.

    A climb scatters too: for a plateau that is not ``brief`` only the scatter around the climb counts, and only if the
    level was read for long enough to know how such means scatter.
    """
    if not brief and lasted_s > level.longest_s:
        return False
    sigma = level.sigma(lasted_s) if brief else level.jitter(lasted_s)
    beyond = 0.5 * math.erfc((mean - level.middle) / sigma / math.sqrt(2)) if sigma > 0 else 0.0
    return beyond * whole_s / lasted_s >= _CHANCE


def _around(
    value: Floats, begin: int, end: int, usable: Mask, calm: Mask, keep: int, apart_s: float
) -> LevelAndScatter | None:
    """The level of the readings before a plateau, without a start-up in the first half of them.

    With fewer than ``keep`` of them, calm readings after it also show the scatter, since a plateau that ended is no new
    level. Few readings allow only short means, which scatter more, so the least of the alternatives is taken.
    """
    before = value[np.flatnonzero(usable[:begin])[-keep:]]
    after = value[end:][calm[end:]][: keep - before.size]
    if before.size < MIN_SAMPLES:
        both = np.concatenate([before, after])
        return LevelAndScatter(both, apart_s) if both.size >= MIN_SAMPLES else None
    if before.size == keep:
        return LevelAndScatter(before, apart_s)
    late = before[before.size // 2 :]
    known = [before, late if late.size >= MIN_SAMPLES else before, np.concatenate([late, after])]
    levels = [LevelAndScatter(some, apart_s) for some in known]
    lasts_s = (end - begin) * apart_s
    return min(levels, key=lambda level: level.sigma(lasts_s))


def chance(lasting_s: float, apart_s: float, shape: SpikeDefinition, level: float) -> float:
    """The probability that a spike to 100 % of this length shows in averages over ``apart_s`` seconds.

    k = ceil(``seconds``/``apart_s``) neighbours must reach the threshold; the first and the last do if they lie in the
    spike for the share f = (enter - level)/(1 - level). With equally likely begins this is
    (lasting_s - (k - 2)·apart_s - 2·f·apart_s)/apart_s, limited to 0..1.

    >>> ten = SpikeDefinition(0.95, 0.85, 0.2, 6.0, 10.0, 1800.0)
    >>> [round(chance(d, 60.0, ten, 0.3), 2) for d in (10, 60, 90, 120)]
    [0.0, 0.14, 0.64, 1.0]
    """
    number = max(1, math.ceil(shape.seconds / apart_s - 0.1))
    share = min(1.0, max(0.0, (shape.enter - level) / (1 - level))) if level < 1 else 1.0
    value = (lasting_s - (number - 2) * apart_s - 2 * share * apart_s) / apart_s
    return min(1.0, max(0.0, value))


def shortest(
    value: Floats, seen: Plateaus, shape: SpikeDefinition, keep: int, apart_s: float, evaluations: int = 48
) -> list[float | None]:
    """The least time at the maximum that would have been a spike, at evenly spaced times outside of plateaus."""
    calm = np.ones(value.size, dtype=bool)
    for plateau in seen.long:
        calm[plateau.open : plateau.close] = False
    rest = value[calm]
    if rest.size < MIN_SAMPLES:
        return []
    ends = np.unique(np.linspace(min(keep, rest.size), rest.size, evaluations).astype(np.int64)).tolist()
    return [shape.shortest(LevelAndScatter(rest[max(0, end - keep) : end], apart_s), apart_s) for end in ends]


def busy_throughout(value: Floats, level: float | None, keep: int, share: float = 0.9) -> bool:
    """Whether a series is busy (over 90 %) for this share of the time, and from the beginning on; a known ``level``
    decides alone."""
    if level is not None:
        return level > _BUSY
    if np.count_nonzero(value > _BUSY) < share * value.size:
        return False
    early = value[: max(MIN_SAMPLES, min(keep, value.size // 20))]
    return median(early) > _BUSY
