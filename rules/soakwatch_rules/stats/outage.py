"""Outages: how long nothing came through, by what was lost at a known rate and by the times of readings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from soakwatch_model.series import Floats, Ints, Mask
from soakwatch_model.window import Window
from soakwatch_rules.stats.hysteresis import true_runs
from soakwatch_rules.stats.medians import median

_SIGMAS = 5.0  # of the calm, above which a bin lost something
_SEARCHED = 1.3  # factor on the error of a sum over the bins that lost most, since they were selected
_SHARE = 0.005  # of what was sent in a bin
_MIN_LOST = 2.0  # packets: one or two are in flight when counters are read
_CALM_BINS = 3
_LATE_S = 1.0
_SOME = 0.5  # packets: less comes from counters that were read at slightly different times
_NEAR = 2  # bins around a span in which queued packets still arrive
_ALL = 0.9  # share of what was sent that a full stop loses
_IDLE = 0.5  # share of the rate before: below it the generator sent less
_MAD_TO_SIGMA = 1.4826
_RARE = 0.98  # quantile of the calm bins' losses that counts as scatter


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """What was sent and lost between neighbouring ``edges_ns``; NaN if unknown."""

    edges_ns: Ints
    sent: Floats
    lost: Floats

    @property
    def seconds(self) -> Floats:
        """The length of each bin in seconds."""
        return np.asarray(np.diff(self.edges_ns) * 1e-9, dtype=np.float64)

    def within(self, window: Window) -> Bins:
        """The bins that lie entirely in a window."""
        first = int(np.searchsorted(self.edges_ns, window.begin_ns))
        last = max(first, int(np.searchsorted(self.edges_ns, window.end_ns, side="right")) - 1)
        return Bins(self.edges_ns[first : last + 1], self.sent[first:last], self.lost[first:last])


@dataclass(frozen=True, slots=True)
class DownTime:
    """A time down as known from readings: at least ``low_s``, at most ``high_s``, which is all of ``window``.

    ``over`` is False if the last reading was still down. ``likely_s`` places the edges within the first and the last
    reading by the share that each lost; without it the middle is taken.
    """

    window: Window
    low_s: float
    high_s: float
    over: bool = True
    likely_s: float | None = None

    @property
    def seconds(self) -> float:
        """The likely length, else the middle of the bounds."""
        return (self.low_s + self.high_s) / 2 if self.likely_s is None else self.likely_s

    @property
    def down_ns(self) -> int:
        """The last time at which it was certainly down: the last reading but one; in a span within one, its begin."""
        return self.window.end_ns - round((self.error_s if self.low_s > 0 else 2 * self.error_s) * 1e9) * self.over

    @property
    def error_s(self) -> float:
        """Half of the difference of the bounds: about one distance of readings."""
        return (self.high_s - self.low_s) / 2


@dataclass(frozen=True, slots=True)
class Outage:
    """What an event cost: ``lost`` at ``rate`` per second makes ``loss_s`` ± ``loss_error_s`` seconds (RFC 2544 section
    26, RFC 6201: lost frames over the offered rate); ``spans`` are the same by time stamps.

    ``share`` is the lost share within the spans (None unless one is longer than two readings), ``unsent_s`` how long
    under half of the rate before was sent, ``unseen_s`` what was not counted, ``step_s`` the distance of readings.
    ``blind_s``: the calm scattered so much that a shorter full stop would not be seen; 0 if any would.
    """

    lost: float
    rate: float
    loss_s: float
    loss_error_s: float
    spans: tuple[DownTime, ...]
    share: float | None
    unsent_s: float
    unseen_s: float
    step_s: float
    blind_s: float = 0.0

    @property
    def time_s(self) -> float:
        """The total length of all spans."""
        return sum(span.seconds for span in self.spans)

    @property
    def time_error_s(self) -> float:
        """The error of that; without a span, a distance of readings."""
        return sum(span.error_s for span in self.spans) or self.step_s

    @property
    def over(self) -> bool:
        """Whether everything came back."""
        return all(span.over for span in self.spans)


def outage(calm: Bins, observed: Bins, least_share: float = _SHARE) -> Outage | None:
    """The outage in ``observed``; ``calm`` shows what is lost without it. None if nothing is known to be sent.

    A bin lost something if its loss beyond the usual share exceeds each of these: 5 sigma of the calm (by its MAD), the
    loss of one calm bin in fifty, ``least_share`` of what was sent, and two packets. What is back within a second or
    one reading was late and not lost. Bins in a row that lost nine tenths are compared with the scatter together.

    Neighbouring such bins are one span. It began in the first and ended in the last, so by time stamps it lasts at
    least from the end of the first to the begin of the last. Of these two the share counts that they lost relative to
    the bins between them (without any: to all that is sent), and likewise of the bins beside it if usually nothing is
    lost; the middle would be wrong by half a bin if outage and readings keep step. Lost is summed over all
    ``observed``; with a usual loss or scatter, over the spans and two bins around.

    For counts with random scatter (Poisson, 10, 100, 1,000 a second for 175 s) 1.2, .3, .2 % of 600 seem to lose more
    than the error without any loss; a full stop of 4 s is seen in 97, 100, 100 %, of 2 s in 32, 100, 100 %.

    >>> at, sent = np.arange(101) * 10**9, np.full(100, 1000.0)
    >>> lost = np.zeros(100)
    >>> lost[40:45] = [500, 1000, 1000, 1000, 250]
    >>> bins = Bins(at, sent, lost)
    >>> made = outage(bins.within(Window(0, 30 * 10**9)), bins.within(Window(30 * 10**9, 100 * 10**9)))
    >>> made.loss_s, made.time_s, made.time_error_s
    (3.75, 3.75, 1.0)
    """
    known = np.isfinite(observed.sent) & np.isfinite(observed.lost)
    width = observed.seconds
    if int(known.sum()) < 2 or float(observed.sent[known].sum()) <= _MIN_LOST:
        return None
    share, sigma, rate = _usual(calm)
    beyond = np.where(known, observed.lost - share * observed.sent, 0.0)
    kept = lost_for_good(beyond, observed)
    limit = np.maximum(_SIGMAS * sigma, np.maximum(least_share * observed.sent, _MIN_LOST))
    lossy = known & (kept > limit)
    lossy |= _stood(observed, known, kept, limit)
    edge = known & (kept >= _SOME) & (share <= 0) & (sigma <= 0)
    spans = _spans(observed, lossy, edge, kept, 1 - min(share, 1.0))
    here = known.copy()
    if share > 0 or sigma > 0:
        near = np.convolve(lossy, np.ones(2 * _NEAR + 1), mode="same") > 0
        here &= near
    sent_s = float(width[lossy].sum())
    offered = float(observed.sent[lossy].sum()) / sent_s if sent_s > 0 else 0.0
    offered = offered if offered > 0 else rate or float(observed.sent[known].sum() / width[known].sum())
    # packets in flight at the end are not lost
    here[here.size - _ahead(observed) :] &= lossy[here.size - _ahead(observed) :]
    lost = max(0.0, float(kept[here].sum()))
    error = max(_MIN_LOST, _SEARCHED * _SIGMAS * sigma * math.sqrt(max(int(here.sum()), 1)))
    thin = known & (observed.sent < _IDLE * rate * width)
    return Outage(
        lost,
        offered,
        lost / offered,
        error / offered,
        spans,
        _within(observed, lossy),
        float(width[thin].sum()),
        float(width[~known].sum()),
        median(width),
        _blind_s(observed, known, sigma),
    )


def _stood(observed: Bins, known: Mask, lost: Floats, limit: Floats) -> Mask:
    """Bins in a row that lost nearly everything and together exceed a scatter that no single one exceeds."""
    result = np.zeros(known.size, dtype=np.bool_)
    still = known & (lost >= _ALL * observed.sent) & (observed.sent > 0)
    for first, after in true_runs(still).tolist():
        if float(lost[first:after].sum()) > float(limit[first:after].max()) * math.sqrt(after - first):
            result[first:after] = True
    return result


def _blind_s(observed: Bins, known: Mask, sigma: float) -> float:
    """How long a full stop must last to exceed the scatter, in seconds; 0 if one bin does."""
    usual = median(observed.sent[known])
    if usual <= 0 or _SIGMAS * sigma < _ALL * usual:
        return 0.0
    return min(1e9, math.ceil((_SIGMAS * sigma / (_ALL * usual)) ** 2) * median(observed.seconds))


def _usual(calm: Bins) -> tuple[float, float, float]:
    """The usual loss in the calm: its share, its scatter per bin, and the rate sent; 0 if unknown."""
    good = np.isfinite(calm.sent) & np.isfinite(calm.lost) & (calm.sent > 0)
    if int(good.sum()) < _CALM_BINS:
        return 0.0, 0.0, 0.0
    sent, lost = calm.sent[good], calm.lost[good]
    share = max(0.0, median(lost / sent))
    beyond = np.where(np.isfinite(calm.lost - share * calm.sent), calm.lost - share * calm.sent, 0.0)
    kept = np.abs(lost_for_good(beyond, calm)[good])
    # At a slow, uneven rate most bins lose nothing and some repeatedly lose a little, which the median does not see.
    sigma = max(_MAD_TO_SIGMA * median(kept), float(np.quantile(kept, _RARE)) / _SIGMAS)
    return share, sigma, median(sent / calm.seconds[good])


def _ahead(bins: Bins) -> int:
    """The number of bins within which late packets come back."""
    return min(bins.sent.size, max(1, round(_LATE_S / max(median(bins.seconds), 1e-3))))


def lost_for_good(beyond: Floats, bins: Bins) -> Floats:
    """What each bin lost for good: minus what came back within a second (at least a reading), which was only late."""
    if not beyond.size:
        return beyond
    ahead = _ahead(bins)
    total = np.append(np.append(0.0, np.cumsum(beyond)), np.full(ahead, np.inf))
    least = np.lib.stride_tricks.sliding_window_view(total, ahead + 1).min(axis=1)
    result: Floats = np.diff(least)
    return result


def _spans(observed: Bins, lossy: Mask, edge: Mask, lost: Floats, whole: float) -> tuple[DownTime, ...]:
    """A span for each run of ``lossy`` bins, extended by what the bins beside it lost if ``edge`` allows; ``whole`` is
    the share that can be lost beyond the usual loss."""
    turn = np.diff(lossy.astype(np.int8), prepend=0, append=0)
    width, positions = observed.seconds, observed.edges_ns
    result: list[DownTime] = []
    taken = 0  # bins that belong to the span before
    for first, after in zip(np.flatnonzero(turn > 0).tolist(), np.flatnonzero(turn < 0).tolist(), strict=True):
        inner = slice(first + 1, after - 1)
        sent, over = float(observed.sent[inner].sum()), after < lossy.size
        usual = min(whole, float(lost[inner].sum()) / sent) if sent > 0 else whole
        share = np.clip(lost / np.maximum(usual * observed.sent, _SOME), 0, 1)
        before = after_s = 0.0
        if first > taken and edge[first - 1]:
            before = float(share[first - 1] * width[first - 1])
        taken = after
        if over and edge[after] and not lossy[after + 1 : after + 2].any():
            after_s, taken = float(share[after] * width[after]), after + 1
        likely_s = before + after_s + float(width[inner].sum())
        likely_s += sum(
            float(width[i]) * (float(share[i]) if over or i < after - 1 else 1.0) for i in {first, after - 1}
        )
        begin, end = int(positions[first]) - round(before * 1e9), int(positions[after]) + round(after_s * 1e9)
        low = max(0, int(positions[after - 1]) - int(positions[first + 1]))
        result.append(DownTime(Window(begin, end), low * 1e-9, (end - begin) * 1e-9, over, likely_s))
    return tuple(result)


def _within(observed: Bins, lossy: Mask) -> float | None:
    """The lost share of the bins inside of spans, without their first and last bins; None if there are none."""
    inner = lossy & np.append(False, lossy[:-1]) & np.append(lossy[1:], False)
    sent = float(observed.sent[inner].sum())
    return min(1.0, float(observed.lost[inner].sum()) / sent) if sent > 0 else None


def unanswered(time_ns: Ints, up: Floats, window: Window) -> tuple[DownTime, ...]:
    """The times in which a peer did not answer, at most from the last answer before to the first after.

    >>> made = unanswered(np.arange(10) * 10**9, np.array([1, 1, 1, 0, 0, 0, 1, 1, 1, 1.0]), Window(0, 10**10))
    >>> [(span.seconds, span.low_s, span.high_s) for span in made]
    [(3.0, 2.0, 4.0)]
    """
    here = (time_ns >= window.begin_ns) & (time_ns < window.end_ns)
    index, down = time_ns[here].tolist(), (up[here] <= 0).astype(np.int8)
    turn = np.diff(down, prepend=0, append=0)
    result = []
    for first, after in zip(np.flatnonzero(turn > 0).tolist(), np.flatnonzero(turn < 0).tolist(), strict=True):
        begin = index[first - 1] if first else index[first]
        over = after < len(index)
        end = index[after] if over else index[-1]
        result.append(
            DownTime(Window(begin, end), (index[after - 1] - index[first]) * 1e-9, (end - begin) * 1e-9, over)
        )
    return tuple(result)
