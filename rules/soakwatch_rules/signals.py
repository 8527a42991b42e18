"""Makes synthetic series and plants known changes in series, for the drill, examples and tests.

All randomness is seeded; every function returns a new series.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from soakwatch_model.series import Floats, Ints, Series, trait_of
from soakwatch_model.window import Window

PROCESS: Final = "process=web,instance=0"
LEVEL: Final = 100.0 * 2**20


def readings(
    metric: str,
    value: Floats | Ints | NDArray[np.uint64],
    cadence_s: float,
    *,
    object: str = "",  # noqa: A002 - the word of Series
    begin_ns: int = 0,
) -> Series:
    """A series of these values, one every ``cadence_s`` seconds from ``begin_ns``."""
    time_ns = begin_ns + (np.arange(value.size) * (cadence_s * 1e9)).astype(np.int64)
    return Series("dut", metric, object, trait_of(metric), time_ns, value, cadence_s)


def noise(
    seed: int,
    metric: str = "process.memory.usage",
    seconds: float = 86400.0,
    cadence_s: float = 60.0,
    level: float = LEVEL,
    sd: float = 0.01,
    phi: float = 0.0,
) -> Series:
    """A level with AR(1) noise; ``sd`` is relative to the level, ``phi`` the lag-one correlation (0: white noise)."""
    rng, n = np.random.default_rng(seed), int(seconds / cadence_s)
    steps = rng.standard_normal(n) * math.sqrt(1 - phi * phi)
    wander: Floats
    wander, _ = lfilter([1.0], [1.0, -phi], steps, zi=[phi * rng.standard_normal()])
    return readings(
        metric, level * (1 + sd * wander), cadence_s, object=PROCESS if metric.startswith("process.") else ""
    )


def leak(series: Series, rate: float, onset: float = 0.0) -> Series:
    """Adds growth of ``rate`` per second after the share ``onset`` of the time."""
    since = onset * series.seconds[-1]
    return replace(series, value=series.values + rate * np.clip(series.seconds - since, 0, None))


def step(series: Series, height: float, at_s: float = 0.5) -> Series:
    """Adds a lasting step of ``height`` at the share ``at_s`` of the time."""
    return replace(series, value=series.values + height * (series.seconds >= at_s * series.seconds[-1]))


def sawtooth(series: Series, height: float, period_s: float, seed: int = 0) -> Series:
    """Adds ramps from 0 to ``height`` that drop every ``period_s`` seconds, as a garbage-collected heap does."""
    phase = np.random.default_rng(seed).random()
    return replace(series, value=series.values + height * ((series.seconds / period_s + phase) % 1.0))


def warm_up(series: Series, height: float, tau_s: float) -> Series:
    """Subtracts ``height``·exp(-t/tau): a start that approaches its level."""
    return replace(series, value=series.values - height * np.exp(-series.seconds / tau_s))


def wave(series: Series, height: float, period_s: float = 86400.0, seed: int = 0) -> Series:
    """Adds a sine of amplitude ``height``."""
    phase = np.random.default_rng(seed).random()
    return replace(series, value=series.values + height * np.sin(2 * np.pi * (series.seconds / period_s + phase)))


def quantised(series: Series, quantum: float) -> Series:
    """Rounds the readings to steps of ``quantum``."""
    coarse = replace(series.trait, quantum=quantum)
    return replace(series, value=np.round(series.values / quantum) * quantum, trait=coarse)


def gappy(series: Series, share: float, hole: tuple[float, float] = (0.0, 0.0), seed: int = 0) -> Series:
    """Drops a random ``share`` of the readings, and all those between the two shares of the readings in ``hole``."""
    indices = np.linspace(0, 1, len(series), endpoint=False)
    keep = (np.random.default_rng(seed).random(len(series)) >= share) & ~((indices >= hole[0]) & (indices < hole[1]))
    return replace(series, time_ns=series.time_ns[keep], value=series.value[keep])


def counter(metric: str, steps: Ints, cadence_s: float, *, start: int = 0, bits: int = 64) -> Series:
    """A counter that adds ``steps`` and wraps at 2**bits."""
    total = [start]
    for add in steps.tolist():
        total.append((total[-1] + add) % (1 << bits))
    return readings(metric, np.array(total, dtype=np.uint64), cadence_s)


def busy(
    seed: int,
    level: float = 0.3,
    sd: float = 0.06,
    seconds: float = 86400.0,
    cadence_s: float = 1.0,
    metric: str = "system.cpu.utilization",
    tau_s: float = 30.0,
) -> Series:
    """A utilisation around ``level``, clipped to 0..1; its noise has a correlation time of ``tau_s`` seconds."""
    object_text = "core=0" if metric.endswith("core.utilization") else ""
    phi = math.exp(-cadence_s / tau_s) if tau_s > 0 else 0.0
    base = noise(seed, metric, seconds, cadence_s, 1.0, 1.0, phi)
    return replace(base, value=np.clip(level + sd * (base.values - 1), 0, 1), object=object_text)


def raised(series: Series, at_s: float, lasting_s: float, to: float = 1.0) -> Series:
    """Raises a utilisation to ``to`` for ``lasting_s``; a reading whose interval spans an edge is raised in part."""
    apart = series.cadence_s or 1.0
    end = series.seconds
    inside = np.clip(np.minimum(end, at_s + lasting_s) - np.maximum(end - apart, at_s), 0, apart) / apart
    return replace(series, value=series.values * (1 - inside) + to * inside)


def uptimes(cadence_s: float, n: int, begin_s: float = 86400.0, reboot_at: int | None = None) -> Series:
    """Uptime readings; the device boots half a cadence before reading ``reboot_at``."""
    value = begin_s + cadence_s * np.arange(n, dtype=np.float64)
    if reboot_at is not None:
        value[reboot_at:] = (np.arange(n - reboot_at) + 0.5) * cadence_s
    return readings("system.uptime", value, cadence_s)


def inside(series: Series, window: Window) -> Floats:
    """For each reading, the share of its interval (since the previous reading) inside the window; 0 for the first.

    >>> at = np.arange(4, dtype=np.int64) * 10**10
    >>> series = Series("dut", "system.uptime", "", trait_of("system.uptime"), at, np.ones(4))
    >>> inside(series, Window(5 * 10**9, 12 * 10**9)).tolist()
    [0.0, 0.5, 0.2, 0.0]
    """
    time_ns = series.time_ns
    if time_ns.size < 2:
        return np.zeros(time_ns.size)
    before, after = time_ns[:-1], time_ns[1:]
    overlap = np.minimum(after, window.end_ns) - np.maximum(before, window.begin_ns)
    return np.concatenate([[0.0], np.clip(overlap, 0, None) / (after - before)])


def missing(series: Series, share: float, window: Window) -> Floats:
    """How many events fewer each interval of a counter counts when the window loses ``share`` of them; whole numbers.

    An interval in which the counter restarted loses none.
    """
    steps = np.concatenate([[0.0], series.increments().values])[: len(series)]
    gone: Floats = np.floor(np.nan_to_num(steps) * share * inside(series, window))
    return gone


def thinned(series: Series, share: float, window: Window) -> Series:
    """A counter or rate that loses ``share`` of its events in a window; a counter stays lower from then on."""
    if series.trait.kind != "counter":
        return replace(series, value=series.values * (1.0 - share * inside(series, window)))
    return counted(series, -missing(series, share, window))


def counted(series: Series, more: Floats) -> Series:
    """A counter that counts ``more`` (negative: fewer) at each reading, with its restarts and its wrap kept."""
    steps = series.increments()
    restarts = np.concatenate([[False], ~np.isfinite(steps.values)])[: len(series)]
    total = np.cumsum(more)
    carried = np.maximum.accumulate(np.where(restarts, np.arange(len(series)), 0))
    total = total - np.where(carried > 0, total[carried], 0.0)
    if series.value.dtype.kind == "f":
        return replace(series, value=series.values + total)
    moved = series.value + total.astype(np.int64).astype(series.value.dtype)  # modulo 2**64, as counters are
    wraps = bool(np.any(series.value[1:] < series.value[:-1])) and not bool(np.any(restarts))
    if wraps and int(series.value.max()) < 1 << 32:
        moved = moved % (1 << 32)
    return replace(series, value=moved)


def risen(series: Series, factor: float, window: Window) -> Series:
    """A gauge multiplied by ``factor`` inside a window."""
    within = (series.time_ns >= window.begin_ns) & (series.time_ns < window.end_ns)
    return replace(series, value=np.where(within, series.values * factor, series.values))


def unread(series: Series, window: Window) -> Series:
    """A series without the readings of a window."""
    kept = (series.time_ns < window.begin_ns) | (series.time_ns >= window.end_ns)
    return replace(series, time_ns=series.time_ns[kept], value=series.value[kept])
