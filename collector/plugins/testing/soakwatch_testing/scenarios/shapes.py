"""Shapes that signals are made of: noises, cycles, warm-ups, leaks; in percent of a level, over hours.

A shape is a function of a random generator and the times in hours from the start of the run. Shapes add up, so a signal
is a list of them; each draws its random parts (a phase, the time of a step) from the generator.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

Floats = NDArray[np.float64]
Shape = Callable[[np.random.Generator, Floats], Floats]


def times(hours: float, cadence_s: float) -> Floats:
    """The times of the readings of a run in seconds."""
    return np.arange(round(hours * 3600 / cadence_s), dtype=np.float64) * np.float64(cadence_s)


def length(t: Floats) -> float:
    """The hours that the times span, including the last reading."""
    return float(t[-1] + (t[1] - t[0])) if t.size > 1 else 0.0


def white(sd: float = 1.0) -> Shape:
    """Independent normal noise."""
    return lambda rng, t: sd * rng.standard_normal(t.size)


def correlated(minutes: float, sd: float = 1.0) -> Shape:
    """First-order autoregressive noise with a correlation time."""

    def noise(rng: np.random.Generator, t: Floats) -> Floats:
        phi = math.exp(-60.0 * (t[1] - t[0]) / minutes)
        steps = math.sqrt(1 - phi * phi) * rng.standard_normal(t.size)
        wander: Floats
        wander, _ = lfilter([1.0], [1.0, -phi], steps, zi=[phi * rng.standard_normal()])
        return sd * wander

    return noise


def phi(per_minute: float, sd: float = 1.0) -> Shape:
    """Autoregressive noise with a coefficient from one minute to the next."""
    return correlated(-1.0 / math.log(per_minute), sd)


def pink(d: float, sd: float = 1.0, minute_s: float = 60.0) -> Shape:
    """Fractional noise with spectrum f^-2d, flat above one cycle in two minutes: it wanders at every scale."""

    def noise(rng: np.random.Generator, t: Floats) -> Floats:
        apart_s = 3600 * (t[1] - t[0])
        often = np.fft.rfftfreq(t.size, apart_s)
        often[0] = often[1] if often.size > 1 else 1.0
        weight = np.maximum(1.0 / (2 * minute_s) / often, 1.0) ** d
        wave = np.fft.irfft(np.fft.rfft(rng.standard_normal(t.size)) * weight, t.size)
        scaled: Floats = sd * wave / max(float(np.std(wave)), 1e-12)
        return scaled

    return noise


def heavy(freedom: float, sd: float = 1.0) -> Shape:
    """Student's t noise, which has outliers."""
    return lambda rng, t: sd * rng.standard_t(freedom, t.size) / math.sqrt(freedom / (freedom - 2))


def flips(height: float, hours: float) -> Shape:
    """A level that flips between two at random, staying ``hours`` on average."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        apart = rng.exponential(hours, max(8, 4 + int(4 * length(t) / hours)))
        flipped: Floats = height * ((np.searchsorted(np.cumsum(apart), t) + rng.integers(2)) % 2).astype(np.float64)
        return flipped

    return shape


def levels(sd: float, low: float = 2.0, high: float = 4.0) -> Shape:
    """A new level every ``low`` to ``high`` hours, like a load that is set anew."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        many = 2 + int(length(t) / low)
        positions = np.searchsorted(np.cumsum(rng.uniform(low, high, many)), t)
        return sd * rng.standard_normal(many + 1)[positions]

    return shape


def ramp(rate: float, begin: float = 0.0, end: float = 1.0) -> Shape:
    """Growth of ``rate`` a day between two shares of the run."""
    return lambda _, t: rate / 24 * np.clip(t - begin * length(t), 0, (end - begin) * length(t))


def curve(rate: float) -> Shape:
    """Growth that accelerates evenly from nothing to twice ``rate`` a day."""
    return lambda _, t: rate / 24 * t * t / length(t)


def doubling(start: float, hours: float) -> Shape:
    """Growth that doubles each ``hours``, from ``start``."""
    return lambda _, t: start * (2.0 ** (t / hours) - 1)


def stairs(rate: float, apart: float) -> Shape:
    """Growth of ``rate`` a day in steps every ``apart`` hours."""
    return lambda rng, t: rate / 24 * apart * np.floor(t / apart + rng.random())


def intermittent(rate: float, hours: float = 1.0) -> Shape:
    """Growth that pauses: twice ``rate`` a day in half of the intervals, none in the others."""
    return lambda rng, t: rate / 24 * hours * _half(t / hours + 2 * rng.random())


def _half(turns: Floats) -> Floats:
    whole, part = np.floor(turns / 2), turns % 2
    grown: Floats = 2 * whole + 2 * np.clip(part, 0, 1)
    return grown - grown[:1]


def wave(height: float, period: float = 24.0, phase: float | None = None) -> Shape:
    """A sine (``height`` is half of peak to peak) with a random phase, or one given in turns."""
    return lambda rng, t: height * np.sin(2 * np.pi * (t / period + (rng.random() if phase is None else phase)))


def teeth(height: float, period: float, jitter: float = 0.1, power: float = 1.0) -> Shape:
    """Irregular rises that fall abruptly: a collected heap, a rotated log."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        many = 4 + int(3 * length(t) / period)
        lasts = period * np.maximum(0.3, 1 + jitter * rng.standard_normal(many))
        high = height * (1 + 0.1 * rng.standard_normal(many))
        begins = np.concatenate([[0.0], np.cumsum(lasts)])[:-1] - rng.random() * period
        positions = np.clip(np.searchsorted(begins, t, side="right") - 1, 0, many - 1)
        return high[positions] * np.clip((t - begins[positions]) / lasts[positions], 0, 1) ** power

    return shape


def daily_teeth(height: float) -> Shape:
    """One rise a day from -``height`` to ``height``, with a random start."""
    return lambda rng, t: np.asarray(height * (2 * ((t / 24 + rng.random()) % 1) - 1), dtype=np.float64)


def warm_up(gain: float, hours: float, begin: float = 0.0, power: float = 1.0) -> Shape:
    """What is missing at first and approaches with a time constant; ``power`` below 1 stretches it."""
    return lambda _, t: -gain * np.exp(-((np.maximum(t - begin * length(t), 0) / hours) ** power))


def logarithmic(gain: float, minutes: float = 10.0) -> Shape:
    """Growth by ``gain`` per e-fold of time: it slows down and never stops."""
    return lambda _, t: gain * np.log1p(60 * t / minutes)


def filled(gain: float, share: float) -> Shape:
    """A cache that fills evenly until a share of the run, and stays full."""
    return lambda _, t: -gain * np.clip(1 - t / (share * length(t)), 0, None)


def sigmoid(gain: float, middle: float, width: float) -> Shape:
    """A rise around a share of the run, to a plateau."""
    return lambda _, t: gain / (1 + np.exp(-(t / length(t) - middle) / width))


def step(height: float, low: float = 0.3, high: float = 0.7) -> Shape:
    """A lasting step at a random share of the run between two."""
    return lambda rng, t: height * (t >= length(t) * rng.uniform(low, high)).astype(np.float64)


def shrinking_stairs(first: float, ratio: float, begin: float, apart: float) -> Shape:
    """Steps up, each smaller than the previous: a cache that fills by chunks."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        at_s = begin * rng.uniform(0.7, 1.3)
        total, high = np.zeros(t.size), first
        while at_s < length(t):
            total += high * (t >= at_s)
            at_s, high = at_s + apart * rng.uniform(0.7, 1.3), high * ratio
        return total

    return shape


def bump(height: float, hours: float, share: float | None = None) -> Shape:
    """A rise that reverts after some hours, at random or at a share of the run."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        begin = (length(t) - hours) * (rng.random() if share is None else share)
        return height * ((t >= begin) & (t < begin + hours)).astype(np.float64)

    return shape


def batches(height: float, every: float, hours: float) -> Shape:
    """A recurring job that needs more for some time."""
    return lambda rng, t: height * (((t + every * rng.random()) % every) < hours).astype(np.float64)


def hump(height: float, middle: float = 0.55, width: float = 0.18) -> Shape:
    """A smooth rise and fall, like that of a load."""
    return lambda _, t: height * np.exp(-0.5 * ((t / length(t) - middle) / width) ** 2)


def outliers(share: float, height: float) -> Shape:
    """Single readings that are up to ``height`` too high."""
    return lambda rng, t: height * rng.random(t.size) * (rng.random(t.size) < share)


def after(share: float, *shapes: Shape) -> Shape:
    """Shapes that start at a share of the run, with their own time from there; before it nothing."""

    def shape(rng: np.random.Generator, t: Floats) -> Floats:
        late = t >= share * length(t)
        total = np.zeros(t.size)
        if int(late.sum()) > 1:
            total[late] = added(rng, t[late] - t[late][0], shapes)
        return total

    return shape


def added(rng: np.random.Generator, t: Floats, shapes: tuple[Shape, ...]) -> Floats:
    """The sum of shapes."""
    total = np.zeros(t.size)
    for shape in shapes:
        total = total + shape(rng, t)
    return total
