"""What is packed for a page is unpacked there without loss, however well it could be compressed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.browser.tab import Tab

from soakwatch.report.plot import LinePoints, Plot, PlotLine, TimeAxis, pieces_of

BEGIN = 1_795_000_000_000.0
UNPACKED = """(held) => {
  const [points] = soakwatchFigure.shared(held);
  return [[...points.time], [...points.value].map((one) => Number.isNaN(one) ? null : one)];
}"""


@pytest.fixture(scope="module")
def lines() -> list[LinePoints]:
    """Noise, levels, repeats, steps, holes; few, many, none; each kind of block that deflate writes."""
    rng = np.random.default_rng(4)
    made = []
    for size in (0, 1, 2, 9, 300, 2000, 20_000):
        second: NDArray[np.float64] = 1000.0 * np.cumsum(rng.integers(1, 400, size)).astype(np.float64)
        for value in (
            rng.normal(0, 1e9, size),
            rng.integers(0, 3, size),
            np.zeros(size),
            np.arange(size) % 50,
            rng.integers(0, 2**32, size, dtype=np.uint32).view(np.float32),
        ):
            held = value.astype(np.float32)
            held[~np.isfinite(held)] = 0
            held[3::7] = np.nan
            made.append(LinePoints("line", BEGIN + second, held, "s"))
        made.append(LinePoints("hours", second / 3.6e6, np.ones(size, dtype=np.float32), "h"))
    return made


def test_a_page_reads_the_numbers_that_were_packed(small: Tab, lines: list[LinePoints]) -> None:
    """Every time and every value, holes included."""
    for points in lines:
        line = PlotLine(points, "line", "#0072b2")
        axis = TimeAxis("time", BEGIN, BEGIN + 1)
        plots = [Plot(name, 260, axis, "s", (0, 1), (line,)) for name in ("one", "two")]
        time, value = small.page.evaluate(f"({UNPACKED})({pieces_of(plots).shared})")
        assert time == points.time.tolist()
        assert np.array_equal(np.array(value, dtype=np.float64), points.value.astype(np.float64), equal_nan=True)
