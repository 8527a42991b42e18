"""Time to full: when something finite is used up at the pace of a run, and before when it is not, with 95 %.

A straight line through block means, whose error is corrected for their correlation (``ar1.slope``), is carried on to
the limit. What is carried on is the highest reading: the line is raised by what the readings rise above it, so a daily
wave is full at its crest, and a sawtooth at its tip.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from soakwatch_model.series import Floats
from soakwatch_rules.stats.ar1 import Slope, slope
from soakwatch_rules.stats.daily import DAY_S
from soakwatch_rules.stats.distributions import student_quantile
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.time_blocks import MIN_SAMPLES, Blocks, blocks, how_many

RISK: Final = 0.05
FARTHEST_S: Final = 3652.5 * DAY_S
"""Ten years: a bound is never later, for no run of days shows what is beyond."""
_FEWEST: Final = 24  # blocks of a part of the run that has its own slope
_HALVINGS: Final = 2
_BENT: Final = 0.01  # risk of taking a straight series for one that bends
_EXPLAINED: Final = 0.5  # share of the movement about the line that a sine of a day must explain to be taken out
_BENDS: Final = 15  # places at which a line may bend
_SEEN_WHOLE: Final = 0.8  # share of a day from which a sine of it can be told from a line
_KEPT: Final = 0.7  # share of its slope that a slowing part must keep in its second half for a time to be given
_MAX_RHO: Final = 0.98
_MISSING: Final = 0.5
_BEYOND: Final = 0.25  # share of their rise by which later readings may exceed the highest of the run


@dataclass(frozen=True, slots=True)
class TimeToFull:
    """When the limit is reached, in seconds after the end of the run; each at most ``FARTHEST_S``.

    ``not_before_s`` holds with 95 %. ``after_s`` is the time at the measured pace; None if that cannot be told from
    zero, or slows down. ``rate`` per second with its 95 % bounds on either side, of the last ``span_s`` seconds.
    ``highest`` is the highest reading there, ``correlation`` that of neighbouring blocks, ``wave`` whether a daily wave
    was taken out.
    """

    after_s: float | None
    not_before_s: float
    rate: float
    rate_low: float
    rate_high: float
    span_s: float
    highest: float
    correlation: float
    wave: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A line through a part of the blocks, with the wave beside it, if any."""

    part: Blocks
    line: Slope
    wave: Floats
    is_wave: bool
    slows: bool = False


def time_to_full(
    time_s: Floats, value: Floats, limit: float, *, span_s: tuple[float, float], unseen: float = 0.0
) -> TimeToFull | None:
    """When finite readings at increasing times reach ``limit``; None with too few of them.

    ``span_s`` is the window on the axis of ``time_s``; ``unseen`` is what may be added in such a time without a
    reading that shows it.

    >>> t = np.arange(0.0, 86400.0, 60.0)
    >>> noise = np.random.default_rng(1).standard_normal(t.size)
    >>> full = time_to_full(t, 50 + t / 86400 + 0.1 * noise, 100.0, span_s=(0.0, 86400.0))
    >>> round(full.after_s / 86400), round(full.not_before_s / 86400)
    (48, 47)
    >>> time_to_full(t, 50 + 0.1 * noise, 100.0, span_s=(0.0, 86400.0)).after_s is None
    True
    """
    begin_s, end_s = span_s
    size = float(np.max(np.abs(value), initial=0.0)) or 1.0
    if value.size < MIN_SAMPLES or not end_s > begin_s or not (limit > 0 and math.isfinite(size)):
        return None
    number = how_many(value.size)
    # what is no longer read, or is read late, has no blocks there: they would be flat
    block_s, first_s, last_s = (end_s - begin_s) / number, float(time_s[0]), float(time_s[-1])
    from_s = begin_s if first_s - begin_s < block_s else first_s
    to_s = end_s if end_s - last_s < block_s else last_s
    if to_s - from_s < (1 - _MISSING) * (end_s - begin_s):
        return None
    cut = blocks(time_s, value / size, begin_s=from_s, end_s=to_s, number=number)
    if cut.missing > _MISSING or len(cut) < MIN_SAMPLES:
        return None
    with np.errstate(all="ignore"):
        return _carried_on(_fit(cut), time_s, value / size, limit / size, (to_s, end_s), unseen / size, size)


def _fit(cut: Blocks) -> _Fit:
    """The line through the last part of the blocks that does not bend: all, the second half, or the last quarter."""
    whole = _line(cut)
    for _ in range(_HALVINGS):
        half = len(whole.part) // 2
        if half < _FEWEST or (whole.is_wave and whole.part.span_s < 2 * _SEEN_WHOLE * DAY_S):
            break  # half of a wave bends
        if not _bends(whole, half):
            break
        rest = _line(_part(whole.part, half))
        whole = replace(rest, slows=rest.line.slope < whole.line.slope)
    late = _line(_part(whole.part, len(whole.part) // 2)).line.slope
    return replace(whole, slows=whole.slows and late < _KEPT * whole.line.slope)


def _part(of: Blocks, first: int) -> Blocks:
    return Blocks(of.time_s[first:], of.value[first:], of.missing)


def _bends(whole: _Fit, half: int) -> bool:
    """Whether the second half has a slope that differs from that of the whole by more than chance, by the error of the
    half: that of a whole that bends says nothing."""
    late = _line(_part(whole.part, half)).line
    return abs(whole.line.slope - late.slope) > student_quantile(late.freedom, 1 - _BENT / 2) * late.error


def _line(part: Blocks) -> _Fit:
    """The line; beside a sine of a day if one explains half of what the line does not, and more than a bend does: a
    warm-up looks like a part of a sine too."""
    plain = slope(part.time_s, part.value)
    none = np.zeros(len(part))
    if part.span_s < _SEEN_WHOLE * DAY_S:
        return _Fit(part, plain, none, is_wave=False)
    turn = 2 * np.pi * part.time_s / DAY_S
    basis = np.stack([np.ones(len(part)), np.sin(turn), np.cos(turn)], axis=1)

    def without(column: Floats) -> Floats:
        return np.asarray(column - basis @ np.linalg.lstsq(basis, column, rcond=None)[0])

    # Frisch-Waugh: the slope beside the wave is that of what the wave leaves of time and value
    time_s, value = without(part.time_s), without(part.value)
    beside = _with_two_more(slope(time_s, value), len(part))
    left = value - beside.slope * time_s
    since = part.time_s - part.time_s.mean()
    straight = part.value - part.value.mean() - plain.slope * since
    least = min(_EXPLAINED * float(straight @ straight), _bent(part))
    if not float(left @ left) < least:
        return _Fit(part, plain, none, is_wave=False)
    wave = part.value - beside.slope * since - left
    return _Fit(part, beside, wave - wave.mean(), is_wave=True)


def _bent(part: Blocks) -> float:
    """The sum of squares that the best line with one bend leaves."""
    ones, left = np.ones(len(part)), math.inf
    for bend in np.linspace(part.time_s[0], part.time_s[-1], _BENDS + 2)[1:-1].tolist():
        basis = np.stack([ones, part.time_s, np.maximum(part.time_s - bend, 0.0)], axis=1)
        rest = part.value - basis @ np.linalg.lstsq(basis, part.value, rcond=None)[0]
        left = min(left, float(rest @ rest))
    return left


def _with_two_more(line: Slope, n: int) -> Slope:
    """A slope that was fitted beside a wave: two more parameters make the errors look smaller and less correlated."""
    rho = min(line.correlation + (2 + 4 * line.correlation) / n, _MAX_RHO)
    alike, seen = (n * (1 - r) / (1 + r) for r in (rho, line.correlation))
    left = max(alike - 4, 1.0)
    return replace(line, error=line.error * math.sqrt(seen / alike * (left + 2) / left), freedom=left, correlation=rho)


def _carried_on(
    fit: _Fit, time_s: Floats, value: Floats, limit: float, ends_s: tuple[float, float], unseen: float, size: float
) -> TimeToFull:
    """The line carried on to the limit; all but ``size`` is in shares of it. ``ends_s``: of the readings, and of the
    window."""
    part, line, (read_s, end_s) = fit.part, fit.line, ends_s
    centre_s, span_s = float(part.time_s.mean()), part.span_s
    used = time_s >= read_s - span_s - 1e-6
    above = value[used] - part.value.mean() - line.slope * (time_s[used] - centre_s)
    top = float(above.max())
    highest = float(value[used].max())
    low, high = float(line.low(RISK)), float(line.high(RISK))
    if span_s < _SEEN_WHOLE * DAY_S:
        high = max(high, abs(line.slope) + (high - line.slope))  # what falls may be a wave's other half
    high = max(high, unseen / span_s)
    # The level's own error: that of a mean of correlated blocks; it is independent of that of the slope.
    rest = part.value - part.value.mean() - fit.wave - line.slope * (part.time_s - centre_s)
    level = float(np.sqrt(np.mean(rest**2) / len(part) * (1 + line.correlation) / (1 - line.correlation)))
    level *= student_quantile(line.freedom, 1 - RISK)
    room = limit - float(part.value.mean()) - top
    since = end_s - centre_s

    def reached(rate: float, less: float = 0.0) -> float:
        return float(min(max((room - less) / rate - since, 0.0), FARTHEST_S)) if rate > 0 else FARTHEST_S

    spread = top - median(above)
    full = highest >= limit
    grows = low > 0 and not fit.slows
    return TimeToFull(
        after_s=0.0 if full else reached(line.slope) if grows else None,
        not_before_s=0.0 if full else reached(high, level + _BEYOND * spread),
        rate=float(line.slope) * size,
        rate_low=low * size,
        rate_high=high * size,
        span_s=span_s,
        highest=highest * size,
        correlation=float(line.correlation),
        wave=fit.is_wave,
    )
