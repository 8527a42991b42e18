"""Spark lines: a series over a run in one line of text, drawn so that no spike disappears."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import extent
from soakwatch.core.plotted import as_plotted
from soakwatch_model.finding import Mark
from soakwatch_model.series import Series
from soakwatch_model.window import Window

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-=+*#@"
"""The same steps for a terminal that has no blocks."""
WIDTH = 40


def sparkline(series: Series, width: int = WIDTH, signs: str = BLOCKS, window: Window | None = None) -> str:
    """The highest value in each of ``width`` equal stretches of time, by ``signs`` from the lowest to the highest; a
    gap is a space.

    The stretches divide ``window``, or the time from the first reading to the last. Empty if there is no reading.
    """
    drawn = as_plotted(series)[0].finite()
    if window is not None:
        drawn = drawn.between(window.begin_ns, window.end_ns)
    if not len(drawn):
        return ""
    values = drawn.values
    begin_ns = int(drawn.time_ns[0]) if window is None else window.begin_ns
    length_ns = (int(drawn.time_ns[-1]) if window is None else window.end_ns) - begin_ns
    bins = _places(drawn.time_ns - begin_ns, length_ns, width)
    low, high = float(values.min()), float(values.max())
    top = np.full(width, -np.inf)
    np.maximum.at(top, bins, values)
    step = (high - low) or 1.0
    most = len(signs) - 1
    return "".join(signs[int((v - low) / step * most)] if np.isfinite(v) else " " for v in top)


def spark_words(series: Series, window: Window | None = None) -> str:
    """The lowest and the highest value of the line, with the unit."""
    drawn, note = as_plotted(series)
    part = drawn.finite() if window is None else drawn.finite().between(window.begin_ns, window.end_ns)
    if not len(part):
        return ""
    unit = "" if part.trait.kind == "state" and not note and part.trait.unit == "1" else part.trait.unit
    return extent(float(part.values.min()), float(part.values.max()), unit)


def pointers(marks: Sequence[Mark], window: Window, width: int = WIDTH, sign: str = "▲") -> str:
    """A line with a ``sign`` at the time of each mark, to stand below a spark line; empty if no mark lies in the
    window."""
    hit = np.zeros(width, dtype=bool)
    length_ns = window.end_ns - window.begin_ns
    for mark in marks:
        end_ns = mark.begin_ns if mark.end_ns is None else mark.end_ns
        if mark.begin_ns < window.end_ns and end_ns >= window.begin_ns:
            edges = np.array([mark.begin_ns, end_ns], dtype=np.int64) - window.begin_ns
            first, last = _places(np.clip(edges, 0, length_ns), length_ns, width).tolist()
            hit[first : last + 1] = True
    return "".join(sign if touched else " " for touched in hit).rstrip()


def strip(lost: Iterable[tuple[int, int]], window: Window, width: int = WIDTH, signs: str = "█░") -> str:
    """The run as one line of text: the second sign wherever a stretch (begin, end in ns) of ``lost`` touches, else the
    first."""
    marks = [Mark(begin_ns, end_ns, "") for begin_ns, end_ns in lost]
    hit = pointers(marks, window, width, "x").ljust(width)
    return "".join(signs[char == "x"] for char in hit)


def _places(since_ns: NDArray[np.int64], length_ns: int, width: int) -> NDArray[np.int64]:
    return np.clip((since_ns / max(length_ns, 1) * width).astype(np.int64), 0, width - 1)
