"""Series: the readings of one metric of one object of one target in time order."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from soakwatch_model.metric import BY_NAME
from soakwatch_model.shared_times import seconds_since, strictly_rising

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Kind = Literal["gauge", "counter", "state"]
Growth = Literal["up", "down"]

_WRAP_BITS = (32, 64)
_MIN_STEP = 0.05  # of the usual distance between readings
_FASTER = 10.0  # times the fastest other step: a wrap that implies more was a reset
_SMALL_WRAP = 65_536.0  # a wrap with so small an increment is more likely a burst than a reset just before the wrap
_OFTEN = 0.25  # of the steps: a counter that falls this often wraps


@dataclass(frozen=True, slots=True)
class Trait:
    """What the catalogue and the device say of a metric; rules take unit, direction and limits only from here.

    ``low``/``high`` bound possible readings; ``quantum`` is the source's resolution. ``floor`` is the growth within a
    run that does not matter (one page, one descriptor), ``ceiling`` the maximum that the device states (its memory, the
    size of its table); all in ``unit``, None or 0 if unknown. ``worse`` is the direction in which one run is worse than
    another, for metrics without growth: lower throughput, higher latency.
    """

    unit: str
    kind: Kind
    growth: Growth | None = None
    low: float | None = None
    high: float | None = None
    quantum: float | None = None
    floor: float = 0.0
    ceiling: float | None = None
    worse: Growth | None = None


KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}
GROWTHS: Final[dict[str, Growth]] = {growth: growth for growth in get_args(Growth)}


def trait_of(metric: str, unit: str = "1", kind: str = "gauge", growth: Growth | None = None) -> Trait:
    """The trait of a catalogue metric; of any other the given values.

    >>> trait_of("process.threads").growth, trait_of("load.rx.packets").worse, trait_of("a.user's").unit
    ('up', 'down', '1')
    """
    entry = BY_NAME.get(metric)
    if entry is None:
        return Trait(unit, KINDS[kind], growth)
    growth = None if entry.growth is None else GROWTHS[entry.growth]
    worse = None if entry.worse is None else GROWTHS[entry.worse]
    return Trait(entry.unit, KINDS[entry.kind], growth, entry.low, entry.high, entry.quantum, entry.floor, worse=worse)


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Readings of one (target, metric, object), strictly increasing in time.

    ``time_ns`` is int64 ns since 1970 UTC, shape (n,); ``value`` float64, int64 or uint64, shape (n,), in
    ``trait.unit``; counters are raw. ``cadence_s`` is the planned interval in seconds, None if unknown (an imported
    file). Raises ValueError if lengths differ or times are out of order.
    """

    target: str
    metric: str
    object: str
    trait: Trait
    time_ns: Ints
    value: Floats | Ints | NDArray[np.uint64]
    cadence_s: float | None = None

    def __post_init__(self) -> None:
        if self.time_ns.shape != self.value.shape or self.time_ns.ndim != 1:
            raise ValueError(f"{self.metric}: {self.time_ns.shape} times for {self.value.shape} values")
        if self.time_ns.size > 1 and not strictly_rising(self.time_ns):
            raise ValueError(f"{self.metric} of {self.target}: times are not strictly increasing")

    def __len__(self) -> int:
        return int(self.time_ns.size)

    @property
    def seconds(self) -> Floats:
        """Times in seconds since the first reading (an offset of all times has no effect); they cannot be written."""
        if not len(self):
            return np.empty(0)
        return seconds_since(self.time_ns, int(self.time_ns[0]))

    @property
    def values(self) -> Floats:
        """The readings as float64; they may be shared and cannot be written."""
        if self.value.dtype != np.float64 or self.value.strides != (self.value.itemsize,):
            return self.value.astype(np.float64)
        shared: Floats = self.value.view(np.float64)
        shared.flags.writeable = False
        return shared

    @property
    def held_bytes(self) -> int:
        """The memory that the readings take, without their times."""
        return self.value.itemsize if self.value.strides == (0,) else self.value.nbytes

    def thin(self) -> Series:
        """The same, whose readings take next to no memory if all are the same: a pid, an error counter at rest."""
        value = self.value
        if value.size < 2 or value.strides != (8,):
            return self
        bits = value.view(np.int64)  # a zero and a negative zero differ
        if bits[0] != bits[-1] or not bool((bits == bits[0]).all()):
            return self
        alike: Floats = np.broadcast_to(value[:1].copy(), value.shape)
        return _part(self, self.time_ns, alike)

    def between(self, begin_ns: int, end_ns: int) -> Series:
        """The readings with begin <= time < end."""
        low, high = np.searchsorted(self.time_ns, [begin_ns, end_ns])
        return self if high - low == len(self) else _part(self, self.time_ns[low:high], self.value[low:high])

    def finite(self) -> Series:
        """The readings without NaN and infinities."""
        if self.value.dtype.kind != "f":
            return self
        good = np.isfinite(self.value)
        return self if bool(good.all()) else _part(self, self.time_ns[good], self.value[good])

    def increments(self) -> Series:
        """A counter's increments, each at the time of the later reading; length n - 1.

        A fall counts as a wrap at 2**32 or 2**64 if the counter was in the upper half before and is in the lower half
        after (increment below half the range), and the increment is at most ten times the fastest step without a wrap,
        or at most 65,536; any other fall is a restart: NaN. For a counter that falls in at least every fourth step,
        each such fall is a wrap. Wrong if a counter wraps more than once between readings (poll faster), or is reset
        while counting so fast that a wrap was likely: up to ten usual steps too many are counted.
        """
        if len(self) < 2:
            return _part(self, self.time_ns[1:], np.empty(0))
        before, after = self.value[:-1], self.value[1:]
        fell = after < before
        if self.value.dtype.kind == "f":
            step = (after - before).astype(np.float64)
        else:
            step = np.where(fell, np.float64(0), (after - before).astype(np.float64))
        at = np.flatnonzero(fell)
        for index in at:
            step[index] = _wrapped(before[index].item(), after[index].item())
        if at.size and at.size < _OFTEN * step.size:
            seconds = np.diff(self.time_ns) * 1e-9
            with np.errstate(invalid="ignore"):
                fastest = float(np.nanmax(step[~fell] / seconds[~fell], initial=0.0))
            surprise = step[at] > np.maximum(_FASTER * fastest * seconds[at], _SMALL_WRAP)
            step[at[surprise]] = np.nan
        return _part(self, self.time_ns[1:], step)

    def spaced(self) -> Series:
        """The series without readings less than 1/20 of the usual interval after another (two from one poll): no rate
        can be computed over so short a time."""
        steps = np.diff(self.time_ns)
        if not steps.size:
            return self
        usual = (self.cadence_s or 0.0) * 1e9 or float(np.median(steps))
        near = steps < _MIN_STEP * usual
        if not bool(near.any()):
            return self
        kept = np.concatenate([[True], ~near])
        return _part(self, self.time_ns[kept], self.value[kept])

    def rate(self) -> Series:
        """Increments per second, NaN across a restart; the trait becomes a gauge in unit/s."""
        steps = self.increments()
        span = np.diff(self.time_ns) * 1e-9
        trait = replace(self.trait, kind="gauge", unit=f"{self.trait.unit}/s", low=None, high=None, quantum=None)
        return replace(steps, value=steps.values / span if len(steps) else steps.value, trait=trait)


_FIELDS = tuple(field.name for field in fields(Series))


def _part(of: Series, time_ns: Ints, value: Floats | Ints | NDArray[np.uint64]) -> Series:
    """Some readings of a series, without checking their order again."""
    series = object.__new__(Series)
    for name in _FIELDS:
        object.__setattr__(series, name, getattr(of, name))
    object.__setattr__(series, "time_ns", time_ns)
    object.__setattr__(series, "value", value)
    return series


def _wrapped(before: float, after: float) -> float:
    if isinstance(before, int) and isinstance(after, int):
        for bits in _WRAP_BITS:
            top = 1 << bits
            if top // 2 <= before < top and after < top // 2:
                return float(after - before + top)
    return float("nan")
