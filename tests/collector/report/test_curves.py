"""What is drawn of a series, and how numbers are shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from soakwatch.core.formatting import extent, number, printable, quantity, share_text
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.plot_axes import covers, decade_ticks
from soakwatch_model.series import Series, Trait

GAUGE = Trait("By", "gauge")
COUNTER = Trait("{packet}", "counter")


def series(
    values: list[float] | NDArray[np.float64] | NDArray[np.int64],
    trait: Trait = GAUGE,
    times: NDArray[np.int64] | None = None,
) -> Series:
    """Readings once a second unless told otherwise."""
    seconds = np.arange(len(values)) if times is None else times
    return Series("t", "m", "", trait, seconds.astype(np.int64) * 10**9, np.asarray(values), 1.0)


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(0, 99_999), st.sampled_from([-1.0, 1.0]))
def test_a_single_spike_survives_thinning(index: int, sign: float) -> None:
    """One odd reading among 100,000 is drawn, wherever it is and whichever way it points."""
    values = np.full(100_000, 2.0**20)
    values[index] += sign * 2**19
    curve = curve_of(series(values), 2000)
    assert curve.time_ms.size <= 2010
    assert np.nanmax(np.abs(curve.value - np.float32(1.0 if sign > 0 else 1024.0))) > 0.4
    assert index * 1000.0 in curve.time_ms


def test_a_gap_breaks_the_line() -> None:
    """A silence is a NaN in the line, also after thinning, and an even rhythm has none."""
    times = np.concatenate([np.arange(5000), np.arange(5600, 9000)])
    thin = curve_of(series(np.ones(times.size), times=times), 500)
    assert int(np.isnan(thin.value).sum()) == 1
    gap = int(np.flatnonzero(np.isnan(thin.value))[0])
    assert (thin.time_ms[gap - 1], thin.time_ms[gap]) == (4_999_000.0, 5_600_000.0)
    assert not np.isnan(curve_of(series(np.ones(9000)), 500).value).any()


def test_a_counter_is_drawn_as_a_rate_with_a_gap_at_its_restart() -> None:
    """Increments per second; the restart of the counter is a gap and not a fall."""
    curve = curve_of(series(np.array([0, 10, 20, 5, 15, 25], dtype=np.int64), COUNTER), 100)
    assert curve.unit == "packets/s"
    assert np.nanmax(curve.value) == np.nanmin(curve.value) == 10.0
    assert int(np.isnan(curve.value).sum()) == 1


def test_infinite_readings_are_left_out_of_a_line() -> None:
    """NaN and infinities break the line instead of stretching its axis."""
    curve = curve_of(series([1.0, np.nan, 2.0, np.inf, 3.0]), 100)
    assert curve.high == 3.0
    assert int(np.isnan(curve.value).sum()) == 2


@pytest.mark.parametrize("values", [[], [1.0], [np.nan]])
def test_a_series_with_hardly_any_reading_makes_a_line(values: list[float]) -> None:
    """No reading, one reading and only unusable readings give a curve without extremes or with one."""
    curve: Curve = curve_of(series(values), 100)
    assert curve.high == (1.0 if values == [1.0] else None)


def test_memory_is_drawn_in_human_units() -> None:
    """21 million bytes are drawn as 20 MiB."""
    curve = curve_of(series([20 * 2.0**20, 19 * 2.0**20]), 100)
    assert (curve.unit, curve.high) == ("MiB", 20.0)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "By", "not known"),
        (float("nan"), "1", "not known"),
        (0.0, "By", "0 B"),
        (1.5e-5, "s", "15 µs"),
        (16.2 * 2**20, "By/h", "16.2 MiB/h"),
        (-3 * 2**20, "By", "-3 MiB"),
        (2.4e9, "Hz", "2.4 GHz"),
        (1, "{restart}", "1 restart"),
        (0, "{context switch}", "0 context switches"),
        (1e6, "{packet}/s", "1 M packets/s"),
        (1, "By/{packet}", "1 B/packet"),
        (2, "{query}", "2 queries"),
        (1, "{}", "1 {}"),
        (41.5, "Cel", "41.5 °C"),
        (3, "{restart}", "3 restarts"),
        (0, "", "0"),
        (12.5, "%", "12.5 %"),
    ],
)
def test_quantities_as_people_read_them(value: float | None, unit: str, text: str) -> None:
    """Units of the catalogue are shown in human size, unknown ones as they are, missing values in words."""
    assert quantity(value, unit) == text


@given(st.one_of(st.none(), st.floats()), st.text(max_size=8))
@example(5e-324, "")
@settings(derandomize=True, max_examples=300, deadline=None)
def test_no_number_and_no_unit_breaks_the_text(value: float | None, unit: str) -> None:
    """Any float in any unit has a text, and no text says nan or inf."""
    assert quantity(value, unit)
    assert extent(0.0, value, unit)
    assert "nan" not in number(value)
    assert "nan" not in share_text(value)


@given(st.text())
@settings(derandomize=True, max_examples=200, deadline=None)
def test_printable_text_has_no_control_characters(text: str) -> None:
    """What is printable can be encoded and moves no cursor."""
    kept = printable(text)
    kept.encode("utf-8")
    assert not any(ord(char) < 32 or char == "\x7f" for char in kept)


def test_two_readings_at_once_are_no_rate() -> None:
    """A counter that was read twice within a nanosecond has no pace in between."""
    times = np.array([0, 10**9, 2 * 10**9, 2 * 10**9 + 1, 3 * 10**9])
    twice = Series("t", "m", "", COUNTER, times, np.array([0, 100, 200, 205, 300], dtype=np.int64), 1.0)
    curve = curve_of(twice, 100)
    assert curve.high == pytest.approx(100.0)
    assert not np.isnan(curve.value).any()
    unplanned = Series("t", "m", "", COUNTER, times, np.array([0, 100, 200, 205, 300], dtype=np.int64))
    assert curve_of(unplanned, 100).high == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (4.0, 70.0, [5, 10, 20, 50]),
        (0.9, 700.0, [1, 3, 10, 30, 100, 300]),
        (0.002, 900.0, [0.01, 0.1, 1, 10, 100]),
    ],
)
def test_ticks_of_a_logarithmic_axis_do_not_lie_on_one_another(low: float, high: float, shown: list[float]) -> None:
    """Of 4 to 70 ms it had 10, 20, 30 ... 70, of which the last four were one smear."""
    ticks = decade_ticks([curve_of(series([low, high]), 10)])
    assert [float(f"{tick:.3g}") for tick in ticks if low <= tick <= high] == shown


def test_a_line_that_another_hides_is_known() -> None:
    """The longest of a second's few answers is its 99th percentile too: one line lay under the other."""
    p99 = curve_of(series([30.0, 31.0, 35.0, 32.0]), 10)
    longest = curve_of(series([30.0, 31.0, 99.0, 32.0]), 10)
    p50 = curve_of(series([3.0, 3.1, 35.0, 3.2]), 10)
    assert covers(p99, longest)
    assert not covers(p99, p50)
    assert not covers(p99, curve_of(series([30.0, 31.0, 35.0]), 10)), "of other times"
