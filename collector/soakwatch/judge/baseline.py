"""The frozen baseline of a run: level, noise and period of each series, and samples imported from an earlier run.

Rules use the samples of the baseline phase (``Before.baseline``). The snapshot, frozen at the end of that phase, is for
people and audits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from soakwatch.record import SeriesKey
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.rule import Input, Rule, metrics_read
from soakwatch_rules.stats.medians import median
from soakwatch_rules.stats.time_blocks import MAD

META = "baseline"
"""Record meta: the frozen baseline as JSON with its hash."""
PHASE = "baseline"
MAX_SERIES = 2000
_MIN_SAMPLES = 8
_QUANTILES = (0.05, 0.25, 0.75, 0.95)
_BINS, _MIN_BINS, _MIN_CYCLES = 512, 48, 3
_CHANCE = 1e-4  # chance that noise alone shows such a period
_FLOATS = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Level:
    """One series in the baseline; counters as rates. ``sd`` is 1.4826 times the median absolute deviation,
    ``quantiles`` are at 5, 25, 75 and 95 %, ``period_s`` is None where it does not swing."""

    target: str
    metric: str
    object: str
    unit: str
    count: int
    median: float
    sd: float
    quantiles: tuple[float, float, float, float]
    period_s: float | None


@dataclass(frozen=True, slots=True)
class BaselineSnapshot:
    """A frozen baseline. ``run`` is the earlier run that it was imported from ("" for the run's own), ``left_out`` the
    number of series beyond ``MAX_SERIES``."""

    run: str
    window: Window
    levels: tuple[Level, ...]
    left_out: int = 0

    def text(self) -> str:
        """As JSON for the record, with a hash over all of it."""
        document: dict[str, object] = {
            "run": self.run,
            "begin_ns": self.window.begin_ns,
            "end_ns": self.window.end_ns,
            "left_out": self.left_out,
            "series": [asdict(level) for level in self.levels],
        }
        return json.dumps({**document, "sha256": _hash(document)}, sort_keys=True)


class BaselineSource(Protocol):
    """What making a baseline reads of a record."""

    def phases(self) -> tuple[Phase, ...]:
        """The phases so far."""
        ...

    def keys(self, metrics: Sequence[str] | None = None) -> tuple[SeriesKey, ...]:
        """The keys of its series."""
        ...

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """One series."""
        ...


def baseline_window(phases: Iterable[Phase]) -> Window | None:
    """From the start of the first baseline phase to the end of the last; None if there is none."""
    windows = [phase.window for phase in phases if phase.name == PHASE]
    return (
        Window(min(window.begin_ns for window in windows), max(window.end_ns for window in windows))
        if windows
        else None
    )


def metrics_of(rules: Iterable[Rule]) -> tuple[str, ...]:
    """The metrics that these rules compare with the baseline."""
    return tuple(
        sorted({metric for rule in rules if Input.BASELINE in rule.spec.inputs for metric in metrics_read(rule)})
    )


def freeze_baseline(record: BaselineSource, rules: Iterable[Rule]) -> BaselineSnapshot | None:
    """The run's own baseline; None if it had none, or no rule uses it."""
    window = baseline_window(record.phases())
    if window is None:
        return None
    keys = sorted(record.keys(metrics_of(rules)))
    read = (record.series(key, window.begin_ns, window.end_ns) for key in keys[:MAX_SERIES])
    return BaselineSnapshot("", window, levels_of(read), max(0, len(keys) - MAX_SERIES))


def parse_baseline(text: str | None) -> BaselineSnapshot | None:
    """The baseline stored in a record; None if there is none, or its hash does not match."""
    try:
        document = json.loads(text or "{}")
        digest = document.pop("sha256")
        if digest != _hash(document):
            return None
        levels = tuple(Level(**{**entry, "quantiles": tuple(entry["quantiles"])}) for entry in document["series"])
        window = Window(int(document["begin_ns"]), int(document["end_ns"]))
        return BaselineSnapshot(str(document["run"]), window, levels, int(document["left_out"]))
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def levels_of(series: Iterable[Series]) -> tuple[Level, ...]:
    """The level of each series that has at least 8 finite readings."""
    levels = map(_level, series)
    return tuple(level for level in levels if level is not None)


def _level(series: Series) -> Level | None:
    counted = series.trait.kind == "counter"
    with np.errstate(all="ignore"):
        read = (series.rate() if counted else series).finite()
    value = read.values
    if value.size < _MIN_SAMPLES or not bool((np.abs(value) < 1e150).all()):
        return None
    middle = median(value)
    low, quarter, upper, high = (float(bound) for bound in np.quantile(value, _QUANTILES))
    return Level(
        series.target,
        series.metric,
        series.object,
        read.trait.unit,
        int(value.size),
        middle,
        MAD * median(np.abs(value - middle)),
        (low, quarter, upper, high),
        period(read.seconds, value),
    )


def period(time_s: _FLOATS, value: _FLOATS) -> float | None:
    """The period of a swing in seconds, or None.

    The highest line of the spectrum of the residuals of an AR(1) fit, if noise alone would show one so high once in
    10,000 (R. Fisher, Proc. Roy. Soc. A 125, 1929). Needs three swings and 48 readings. Misses a swing much smaller
    than the noise, and one shorter than two of 512 equal stretches.

    >>> at = np.arange(600.0)
    >>> period(at, 5 + np.sin(at * 2 * np.pi / 50) + np.random.default_rng(1).normal(size=600))
    49.8
    >>> period(at, np.random.default_rng(2).normal(size=600)) is None
    True
    """
    length_s = float(time_s[-1] - time_s[0]) if time_s.size else 0.0
    bins = min(_BINS, time_s.size)
    if bins < _MIN_BINS or length_s <= 0:
        return None
    bin_of = np.minimum((time_s - time_s[0]) * (bins / length_s), bins - 1).astype(np.int64)
    count = np.bincount(bin_of, minlength=bins)
    filled = count > 0
    if 2 * int(filled.sum()) < bins:
        return None
    means = np.bincount(bin_of, weights=value, minlength=bins)[filled] / count[filled]
    grid = np.interp(np.arange(bins), np.flatnonzero(filled), means)
    grid = grid - np.polynomial.Polynomial.fit(np.arange(bins), grid, 1)(np.arange(bins))
    spread = float(np.abs(grid).max())
    if not spread > 1e-9 * float(np.abs(value).max()):
        return None
    grid = grid / spread
    tied = float(np.dot(grid[1:], grid[:-1]) / np.dot(grid, grid))
    power = np.abs(np.fft.rfft(grid[1:] - tied * grid[:-1]))[1:] ** 2
    power = power[:-1] if bins % 2 else power
    total = float(power.sum())
    if not total > 0:
        return None
    line = int(np.argmax(power))
    chance = power.size * (1.0 - float(power[line]) / total) ** (power.size - 1)
    cycles = line + 1
    if chance > _CHANCE or cycles < _MIN_CYCLES:
        return None
    return _rounded(length_s / cycles * (bins - 1) / bins)


def _rounded(value: float) -> float:
    return round(value, 2 - math.floor(math.log10(value))) if value > 0 else value


def _hash(document: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
