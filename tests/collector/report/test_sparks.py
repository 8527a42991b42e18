"""Spark lines: no spike disappears, a gap is seen, marks lie where they were."""

from __future__ import annotations

import numpy as np

from soakwatch.report.sparks import BLOCKS, PLAIN, pointers, spark_words, sparkline, strip
from soakwatch_model.finding import Mark
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window

SECOND = 10**9
DAY = Window(0, 86_400 * SECOND)


def gauge(values: list[float] | np.ndarray[tuple[int], np.dtype[np.float64]], unit: str = "1") -> Series:
    """Readings once a second from the begin of the day."""
    value = np.asarray(values, dtype=np.float64)
    time_ns = np.arange(value.size, dtype=np.int64) * SECOND
    return Series("dut", "system.cpu.utilization", "", Trait(unit, "gauge"), time_ns, value, 1.0)


def test_one_spike_in_a_day_is_seen_where_it_was() -> None:
    """One reading of 86 400: the highest sign in its cell, and nowhere else."""
    value = np.full(86_400, 0.1)
    value[43_200] = 0.99
    line = sparkline(gauge(value), 60, window=DAY)
    assert len(line) == 60
    assert line[30] == BLOCKS[-1]
    assert line.replace(BLOCKS[-1], "", 1) == BLOCKS[0] * 59
    assert spark_words(gauge(value), DAY) == "10 to 99 %"


def test_a_gap_and_what_was_not_read_are_spaces() -> None:
    """Readings that are no numbers tell nothing; a run that ended early leaves the rest of the line empty."""
    value = np.linspace(0, 1, 43_200)
    value[10_000:20_000] = np.nan
    line = sparkline(gauge(value), 40, window=DAY)
    assert line[6:9] == "   "
    assert line[20:] == " " * 20
    assert line[0] == BLOCKS[0]
    assert sparkline(gauge([float("nan")] * 5)) == ""
    assert spark_words(gauge([]), DAY) == ""


def test_plain_signs_stand_in_for_blocks() -> None:
    """As many steps, each of one ASCII letter."""
    assert len(PLAIN) == len(BLOCKS)
    line = sparkline(gauge([0.0, 1.0]), 2, PLAIN)
    assert line == PLAIN[0] + PLAIN[-1]


def test_marks_point_at_their_cells() -> None:
    """A moment is one cell, a stretch all of its own; what lies outside is not pointed at."""
    marks = [Mark(43_200 * SECOND, None, "a"), Mark(0, 8640 * SECOND, "b"), Mark(-9 * SECOND, -5 * SECOND, "before")]
    assert pointers(marks, DAY, 10, "^") == "^^   ^"
    assert pointers([], DAY, 10) == ""


def test_a_short_loss_is_seen_in_the_strip() -> None:
    """One lost poll of a day."""
    assert strip([(86_399 * SECOND, 86_399 * SECOND)], DAY, 10, "#.") == "#########."
