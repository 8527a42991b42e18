"""Return to a level: windows that are proven to lie near it, and windows that are proven not to."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Ints
from soakwatch_rules.stats.distributions import student_cdf, student_quantile
from soakwatch_rules.stats.medians import median

MIN_WINDOW = 30
"""Readings of the shortest window."""
_TAIL = 10  # readings at the very end that must be off as well: a level that has just come back is not away
_HOPS = 10  # windows begin a tenth of their length apart
_MAX_WINDOWS = 20_000
_SHARP = 0.6  # windows grow until their interval is at most this share of the tolerance ...
_SHARE = 0.25  # ... or they are this share of what there is
_MAX_LAGS = 20_000
_WIDER = 1.5  # times the widest scatter before: what swings and not what is noise
NEAR = 0.95
"""One-sided confidence of each half of the equivalence test."""
OUT = 0.995
"""One-sided confidence that a window lies outside."""


def correlation_time(value: Floats) -> float:
    """How many readings count as one, at least 1: one plus twice the sum of the correlations, as far as the sums of
    two neighbouring ones are positive. 1 for constants and fewer than four readings; long series by their begin.

    >>> correlation_time(np.array([1.0, -1.0] * 20))
    1.0

    Too small for a series shorter than some ten correlation times. Reference: C. Geyer, Practical Markov chain Monte
    Carlo, Statistical Science 7, 1992 (initial positive sequence).
    """
    part = value[:_MAX_LAGS]
    n = part.size
    off = part - part.mean() if n else part
    largest = float(np.abs(off).max(initial=0.0))
    if n < 4 or largest == 0.0 or not math.isfinite(largest):
        return 1.0
    spectrum = np.fft.rfft(off / largest, 2 * n)
    rho = np.fft.irfft(spectrum.real**2 + spectrum.imag**2)[:n]
    pairs = (rho[0 : n - 1 : 2] + rho[1:n:2]) / rho[0]
    negative = np.flatnonzero(pairs <= 0)
    kept = pairs[: int(negative[0])] if negative.size else pairs
    return float(min(max(1.0, 2.0 * float(kept.sum()) - 1.0), n))


@dataclass(frozen=True, slots=True)
class Reference:
    """The level before: its mean, the standard deviation of its readings, how many they are, their correlation time in
    readings, and how far from the level the mean of 30 of them went (0 with fewer): a job that runs each ten minutes
    is no relapse. ``widest`` is the largest standard deviation of 30 of their running medians of three, ``usual`` the
    median one (both that of all with fewer)."""

    mean: float
    sd: float
    n: int
    time: float
    farthest: float = 0.0
    widest: float = 0.0
    usual: float = 0.0

    @property
    def effective(self) -> float:
        """How many independent readings these are worth."""
        return self.n / self.time


def reference(value: Floats) -> Reference:
    """The level of readings that are calm; at least two."""
    mean, n = float(value.mean()), int(value.size)
    even, farthest = _even(value - mean), 0.0
    scatter = np.array([float(even.std(ddof=1))])
    if n >= MIN_WINDOW:
        farthest = float(np.abs(_means(even, _begins(n, MIN_WINDOW), MIN_WINDOW)).max())
        scatter = _scatter(even, _begins(n, MIN_WINDOW))
    sd, widest, usual = float(value.std(ddof=1)), float(scatter.max()), median(scatter)
    return Reference(mean, sd, n, correlation_time(value), farthest, widest, usual)


@dataclass(frozen=True, slots=True)
class Return:
    """How readings came back to a level.

    ``index`` is the first reading of the first window near the level after the last one outside, None if there is none;
    ``outside`` whether the last window is outside, and its end as well, ``last`` the first reading of the last window
    outside, ``since`` that of the first one outside after the last near before that; ``relapses`` how often it was
    outside again after having been near. ``residue`` is the mean from ``index`` on (without it: of the last window, if
    it was near before only as far as it lies after the last one outside) less the level, ± ``residue_half`` (each
    side 95 %) with standard error ``residue_error`` of ``freedom``. ``half`` is the interval of one window; ``width``
    its number of readings, ``overshoot`` the farthest mean of a window on the other side, ``swing`` by how much the
    last window swings, 0 if it did not from the last one outside on.
    """

    index: int | None
    outside: bool
    last: int | None
    since: int | None
    relapses: int
    residue: float
    residue_half: float
    residue_error: float
    freedom: float
    half: float
    width: int
    overshoot: float
    swing: float = 0.0


def returned(value: Floats, before: Reference, tolerance: float) -> Return | None:
    """Looks at windows of readings after a disturbance; None with fewer than two windows of 30, or on overflow.

    A window is near if |mean - level| + t(.95)·error <= tolerance (two one-sided tests); its error is that of both
    means, from the larger of its own standard deviation and that before, times the root of the correlation time (the
    larger of that before and that within the windows). It has 30 readings, or as many as make its interval at most
    0.6 tolerances, at most a quarter of all. A window of 30 readings is outside if |mean - level| - t(.995)·error >
    tolerance, with the usual standard deviation of a window (its own would hide the very change), and if it is farther
    from the level than any was before; of running medians of three, so that one odd reading is no relapse.

    A mean over whole swings is near though the readings are not. So the windows that follow upon the last one outside
    (or the begin) without a break count as outside as well while they swing: the amplitude of the sine with the
    variance that they have beyond the usual of before is more than the tolerance, and their scatter 1.5 times the
    widest of before.
    """
    n = value.size
    if n < 2 * MIN_WINDOW:
        return None
    with np.errstate(all="ignore"):
        return _returned(value - before.mean, before, tolerance)


def _returned(off: Floats, before: Reference, tolerance: float) -> Return | None:
    n = off.size
    total, squares = (np.append(0.0, np.cumsum(x)) for x in (off, off * off))
    if not math.isfinite(float(squares[-1]) * n) or not math.isfinite(before.sd):
        return None
    time = max(before.time, _time_within(off, MIN_WINDOW))
    width = _width(before, tolerance, time, n)
    begin, short = _begins(n, width), _begins(n, MIN_WINDOW)
    mean, sd = _moments(total, squares, begin, width)
    error = _error(np.maximum(sd, before.sd), width, before, time)
    t_near = student_quantile(_freedom(width, before, time), NEAR)
    near = np.abs(mean) + t_near * error <= tolerance
    usual = max(before.sd, median(_moments(total, squares, short, MIN_WINDOW)[1]))
    level = _means(_even(off), short, MIN_WINDOW)
    t_out = student_quantile(_freedom(MIN_WINDOW, before, time), OUT)
    sure = t_out * float(_error(np.array([usual]), MIN_WINDOW, before, time)[0])
    outside = np.abs(level) > max(tolerance + sure, before.farthest)
    last = int(short[outside][-1]) if outside.any() else -1
    scatter = _scatter(_even(off), short)
    swing = np.sqrt(2 * np.maximum(scatter**2 - before.usual**2, 0.0))
    swinging = (swing > tolerance) & (scatter > _WIDER * before.widest)
    last = _followed(last, short[swinging])
    first = short[outside & (short > begin[near & (begin < last)].max(initial=-1))]
    after = begin[near & (begin > last)]
    index = int(after[0]) if after.size else None
    ended = bool(outside[-1]) and abs(float(off[-_TAIL:].mean())) > tolerance
    start = n - width if ended or not near.any() else min(max(n - width, last + MIN_WINDOW), n - MIN_WINDOW)
    rest = off[index if index is not None else start :]
    rest_time = min(max(time, correlation_time(rest)), rest.size / 2)
    rest_sd = max(float(rest.std(ddof=1)), before.sd)
    rest_error = math.sqrt(rest_sd**2 * rest_time / rest.size + before.sd**2 * before.time / before.n)
    rest_free = max(rest.size / rest_time + before.effective - 2, 1.0)
    side = math.copysign(1.0, float(level[np.argmax(np.abs(level))]))
    order = np.argsort(np.append(begin[near], short[outside]), kind="stable")
    states = np.append(np.ones(int(near.sum())), -np.ones(int(outside.sum())))[order]
    return Return(
        index,
        ended,
        last if last >= 0 else None,
        int(first[0]) if first.size else None,
        int(np.count_nonzero(np.diff(states) < 0)),
        float(rest.mean()),
        student_quantile(rest_free, NEAR) * rest_error,
        rest_error,
        rest_free,
        float(t_near * median(error)),
        width,
        max(0.0, float((-side * level).max())),
        float(swing[-1]) if last == short[-1] and not outside[-1] else 0.0,
    )


def _followed(last: int, begin: Ints) -> int:
    """The last of the windows beginning there that follow upon ``last`` without a break."""
    for index in begin[begin > last].tolist():
        if index > max(last, 0) + MIN_WINDOW:
            break
        last = index
    return last


def _scatter(value: Floats, begin: Ints) -> Floats:
    total, squares = (np.append(0.0, np.cumsum(x)) for x in (value, value * value))
    return _moments(total, squares, begin, MIN_WINDOW)[1]


def _means(value: Floats, begin: Ints, width: int) -> Floats:
    total = np.append(0.0, np.cumsum(value))
    result: Floats = (total[begin + width] - total[begin]) / width
    return result


def _begins(n: int, width: int) -> Ints:
    begin = np.arange(0, n - width + 1, max(1, width // _HOPS, n // _MAX_WINDOWS))
    return begin if begin[-1] == n - width else np.append(begin, n - width)


def _freedom(width: int, before: Reference, time: float) -> float:
    return max(width / time + before.n / time - 2, 1.0)


def _even(value: Floats) -> Floats:
    """Running medians of three: one odd reading is no relapse."""
    left, right = np.append(value[0], value[:-1]), np.append(value[1:], value[-1])
    result: Floats = np.maximum(np.minimum(left, right), np.minimum(np.maximum(left, right), value))
    return result


def _error(sd: Floats, width: int, before: Reference, time: float) -> Floats:
    result: Floats = np.sqrt(sd * sd * time / width + before.sd**2 * time / before.n)
    return result


def _width(before: Reference, tolerance: float, time: float, n: int) -> int:
    """Readings of a window, so that the interval of a calm one is sharp enough."""
    most = max(MIN_WINDOW, int(_SHARE * n))
    for width in np.unique(np.round(np.geomspace(MIN_WINDOW, most, 40)).astype(np.int64)).tolist():
        half = student_quantile(_freedom(width, before, time), NEAR) * float(
            _error(np.array([before.sd]), width, before, time)[0]
        )
        if half <= _SHARP * tolerance:
            return int(width)
    return most


def _moments(total: Floats, squares: Floats, begin: Ints, width: int) -> tuple[Floats, Floats]:
    mean = (total[begin + width] - total[begin]) / width
    spread = (squares[begin + width] - squares[begin]) / width - mean * mean
    return mean, np.sqrt(np.maximum(spread, 0.0) * width / (width - 1))


def _time_within(off: Floats, width: int) -> float:
    """The correlation time of an AR(1) with the median lag-1 correlation within windows whose straight line is taken
    out (a level on its way back is no noise), the bias of (2 + 4 rho)/n put back (Marriott, Pope, Biometrika 41, 1954).
    """
    rows = off[: off.size // width * width].reshape(-1, width)
    x = np.arange(width) - (width - 1) / 2
    rows = rows - rows.mean(axis=1, keepdims=True)
    rest = rows - np.outer(rows @ x / float(x @ x), x)
    spread, size = (rest * rest).sum(axis=1), (rows * rows).sum(axis=1)
    kept = spread > 1e-12 * size
    if not kept.any():
        return 1.0
    rho = median((rest[kept, 1:] * rest[kept, :-1]).sum(axis=1) / spread[kept])
    rho = min(max((rho * width + 2) / (width - 4), 0.0), 0.98)
    return (1 + rho) / (1 - rho)


@dataclass(frozen=True, slots=True)
class RepetitionTrend:
    """The mean step from one repetition to the next, and the one-sided probability of such a rise without any."""

    step: float
    p_up: float
    p_down: float


def trend(level: Floats, error: Floats) -> RepetitionTrend | None:
    """Whether levels rise from repetition to repetition; each with its own standard error. None below three.

    The slope's error is the larger of that from the errors given and that from the scatter about the line.
    """
    n = level.size
    if n < 3 or not bool(np.all(np.isfinite(level) & np.isfinite(error))):
        return None
    x = np.arange(n) - (n - 1) / 2
    weight = x / float((x * x).sum())
    step = float((weight * level).sum())
    rest = level - level.mean() - step * x
    known = math.sqrt(float((weight**2 * error**2).sum()))
    seen = math.sqrt(float((rest * rest).sum()) / (n - 2) / float((x * x).sum()))
    free, size = (float(n - 2), seen) if seen > known else (1e6, known)
    t = step / size if size > 0 else math.copysign(math.inf, step) if step else 0.0
    if math.isinf(t):
        return RepetitionTrend(step, float(t < 0), float(t > 0))
    up = float(student_cdf(free, -t))
    return RepetitionTrend(step, up, 1.0 - up)
