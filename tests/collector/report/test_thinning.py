"""Whatever the readings: the lowest and highest of every stretch are drawn, and no line crosses a silence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from soakwatch.report.curves import curve_of
from soakwatch_model.series import Series, Trait

GAUGE = Trait("{thing}", "gauge")
POINTS = 400


def noisy(seed: int, count: int, holes: int) -> Series:
    """Readings about once a second with noise, spikes either way and silences of a minute and more."""
    rng = np.random.default_rng(seed)
    steps = rng.integers(900_000_000, 1_100_000_000, count)
    steps[rng.choice(count - 1, holes, replace=False) + 1] += rng.integers(60, 600, holes) * 10**9
    values = rng.normal(0, 1, count)
    spikes = rng.choice(count, count // 50, replace=False)
    values[spikes] += rng.choice([-50.0, 50.0], spikes.size) * rng.random(spikes.size)
    return Series("t", "m", "", GAUGE, np.cumsum(steps), values, 1.0)


def stretches(times: NDArray[np.floating], begin: float, end: float) -> NDArray[np.int64]:
    """In which of the quarter as many equal stretches each time lies."""
    share = (times - begin) / (end - begin)
    return np.minimum((share * (POINTS // 4)).astype(np.int64), POINTS // 4 - 1)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2000, 20_000), st.integers(0, 30))
def test_the_extremes_of_every_stretch_are_drawn(seed: int, count: int, holes: int) -> None:
    """Of 100 equal stretches each keeps its lowest and its highest reading, and not many points more are drawn."""
    series = noisy(seed, count, holes)
    curve = curve_of(series, POINTS)
    times = series.time_ns // 10**6 * 1.0
    begin, end = float(times[0]), float(times[-1])
    real, drawn = stretches(times, begin, end), stretches(curve.time_ms, begin, end)
    # times are drawn in whole milliseconds: a reading at the very edge may count to the stretch beside it
    edge = np.abs((series.time_ns - series.time_ns[0]) / (series.time_ns[-1] - series.time_ns[0]) * (POINTS // 4) % 1)
    inside = (edge > 1e-4) & (edge < 1 - 1e-4)
    for stretch in np.unique(real[inside]):
        held = series.value[(real == stretch) & inside].astype(np.float32)
        shown = curve.value[(drawn == stretch) & np.isfinite(curve.value)]
        assert shown.max() >= held.max()
        assert shown.min() <= held.min()
    assert curve.time_ms.size <= POINTS + 4 * holes + 10


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(500, 20_000), st.integers(1, 400))
def test_no_line_crosses_a_silence(seed: int, count: int, holes: int) -> None:
    """Between two points of one stroke there is no silence, however many there are; and nothing is broken elsewhere."""
    series = noisy(seed, count, min(holes, count // 5))
    curve = curve_of(series, POINTS)
    silent = np.flatnonzero(np.diff(series.time_ns) > 3.5e9)
    after = series.time_ns[silent] // 10**6
    joined = np.isfinite(curve.value[:-1]) & np.isfinite(curve.value[1:])
    before = np.searchsorted(after, curve.time_ms[:-1][joined], side="left")
    behind = np.searchsorted(after, curve.time_ms[1:][joined], side="left")
    assert bool((before == behind).all())
    assert int(np.isnan(curve.value).sum()) <= silent.size


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_every_sort_of_reading_is_thinned(dtype: type[np.generic]) -> None:
    """Integers as they come from a record are thinned like floats; nothing is lost of their extremes."""
    values = (np.arange(50_000) % 977).astype(dtype)
    values[31_415] = 4_000_000
    series = Series("t", "m", "", GAUGE, np.arange(50_000) * 10**9, values, 1.0)
    curve = curve_of(series, 1000)
    assert curve.time_ms.size <= 1010
    assert curve.high == pytest.approx(4.0)
    assert 31_415_000.0 in curve.time_ms
    assert curve.unit == "M things"
