"""TRex's latency histogram in microseconds, by decade and first digit, and quantiles from it.

TRex counts packets below 10 µs in one bucket (key 0), then 10–19, 20–29 … 90–99, 100–199 … 900 000–999 999 µs, and none
of those that took a second or longer. A quantile is interpolated within its bucket and may be wrong by its width, up to
a factor of two at the start of a decade.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from soakwatch.sources.answer_builder import AnswerBuilder
from soakwatch_trex.json_values import count

Buckets = Mapping[int, int]
QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
SECOND_US = 1_000_000
"""TRex counts packets from here on in no bucket; the missing ones are counted under this key."""
_MAX_BUCKETS = 200


@dataclass(frozen=True, slots=True)
class Delay:
    """The latency of one stream so far as TRex reports it: µs, packets; None: not reported."""

    buckets: Buckets
    packets: int | None
    mean_us: float | None
    last_max_us: float | None
    total_max_us: float | None
    jitter_us: float | None


@dataclass(frozen=True, slots=True)
class LatencyDelta:
    """The latency of the packets between two polls."""

    buckets: Buckets
    mean_us: float | None
    max_us: float | None

    @property
    def packets(self) -> int:
        """Number of packets in the buckets."""
        return sum(self.buckets.values())


def buckets(pairs: Mapping[str, object]) -> dict[int, int]:
    """Buckets from JSON, whose keys are texts; invalid entries are skipped.

    >>> buckets({"0": 3, "20": 4, "x": 5, "-7": 1, "30": -2})
    {0: 3, 20: 4}
    """
    counts = {}
    for key, value in list(pairs.items())[:_MAX_BUCKETS]:
        many = count(value)
        if key.isdecimal() and len(key) <= 7 and many:
            counts[int(key)] = many
    return counts


def window(before: Delay, now: Delay) -> LatencyDelta | None:
    """The latency since ``before``; None if no packet came. Counts that fell mean that the stream restarted: then all
    is new. (Except below 10 µs: TRex computes those from two counters read at different times.)

    TRex reports the maximum of its last half second and that of all time. The window's maximum is the latter if it
    grew, else the larger of the former and the start of the highest bucket, which may be too small.
    """
    anew = any(now.buckets.get(key, 0) < many for key, many in before.buckets.items() if key) or _fell(before, now)
    old: Buckets = {} if anew else before.buckets
    new = {key: many - old.get(key, 0) for key, many in now.buckets.items() if many > old.get(key, 0)}
    record = 0.0 if anew else before.total_max_us or 0.0
    grew = now.total_max_us is not None and now.total_max_us > record
    seen = [now.last_max_us or 0.0, now.total_max_us or 0.0 if grew else 0.0, float(max(new, default=0))]
    came = (now.packets or 0) - (0 if anew else before.packets or 0)
    if max(seen) >= SECOND_US and came > sum(new.values()):
        new[SECOND_US] = came - sum(new.values())
    if not new and came <= 0:
        return None
    return LatencyDelta(new, now.mean_us, max(seen) or None)


def _fell(before: Delay, now: Delay) -> bool:
    return before.packets is not None and now.packets is not None and now.packets < before.packets


def merged(windows: list[LatencyDelta]) -> LatencyDelta:
    """Merge windows; means are weighted by packets."""
    sums: dict[int, int] = {}
    for each in windows:
        for key, many in each.buckets.items():
            sums[key] = sums.get(key, 0) + many
    means = [(each.mean_us, each.packets) for each in windows if each.mean_us is not None]
    weight = sum(packets for _, packets in means)
    mean = sum(mean * packets for mean, packets in means) / weight if weight else None
    return LatencyDelta(sums, mean, max((each.max_us for each in windows if each.max_us is not None), default=None))


def quantile(part: LatencyDelta, share: float) -> float | None:
    """The latency in µs that a share of the packets did not exceed; None without packets.

    >>> part = LatencyDelta({0: 50, 10: 50}, None, 15.0)
    >>> quantile(part, 0.5), quantile(part, 0.99)
    (10.0, 15.0)
    """
    wanted, passed = share * part.packets, 0
    for low in sorted(part.buckets):
        many = part.buckets[low]
        if passed + many >= wanted:
            inside = low + (wanted - passed) / many * (_above(low, part) - low)
            return max(float(low), min(inside, part.max_us or inside))
        passed += many
    return None


def put_latency(builder: AnswerBuilder, metric: str, part: LatencyDelta, **labels: object) -> None:
    """Put the latency of a window in seconds: mean, max, and quantiles from the buckets."""
    builder.put(metric, part.mean_us, scale=1e-6, **labels, quantile="mean")
    builder.put(metric, part.max_us, scale=1e-6, **labels, quantile="max")
    for name, share in QUANTILES.items():
        builder.put(metric, quantile(part, share), scale=1e-6, **labels, quantile=name)


def _above(low: int, part: LatencyDelta) -> float:
    if low >= SECOND_US:
        return max(part.max_us or 0.0, float(low))
    return low + 10.0 ** max(len(str(low)) - 1, 1)
