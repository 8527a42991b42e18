"""A plot as data: what a browser is given of it can be read back, shares what it can, and ends no script element."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.packed_points import points_of

from soakwatch.report.plot import LinePoints, PhaseBand, Plot, PlotLine, PlotMoment, PlotMoments, TimeAxis, pieces_of

HOSTILE = "</script> \u2028 <b>"
BEGIN = 1_795_000_000_000.0
Json = dict[str, object]


def points(time: NDArray[np.float64], name: str = "series:[]") -> LinePoints:
    """A line through these times, with a hole."""
    value = np.arange(time.size, dtype=np.float32)
    value[1] = np.nan
    return LinePoints(name, time, value, "MiB", 2.0**-20)


def plot(element: str, *lines: PlotLine, **more: object) -> Plot:
    """A plot of an hour."""
    return Plot(element, 260, TimeAxis("time", BEGIN, BEGIN + 3.6e6), "MiB", (0.0, 5.0), lines, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "time",
    [
        BEGIN + np.array([0.0, 1000.0, 2500.0, 3.0e9]),  # whole ms
        np.array([0.0, 0.25, 0.5, 1.0]),  # hours since the begin
        BEGIN + np.array([0.0, 1.0, 2.0, 2.0**33]),  # longer than 49 days
        np.array([BEGIN, BEGIN, BEGIN, BEGIN]),
        BEGIN + np.array([0.0, 5000.0, 4000.0, 9000.0]),  # not in order
    ],
)
def test_what_a_browser_reads_is_what_was_drawn(time: NDArray[np.float64]) -> None:
    """Each time to the ms, each value to a float32, and a hole where there is one."""
    line = PlotLine(points(time), "memory", "#0072b2")
    (piece,) = pieces_of([plot("plot-1", line)]).parts
    held = json.loads(piece.text)["lines"][0]["points"]
    got, value = points_of(held)
    np.testing.assert_array_equal(got, time)
    np.testing.assert_array_equal(value, line.points.value)
    assert (held["name"], held["unit"], held["factor"]) == ("series:[]", "MiB", 2.0**-20)


def test_points_of_several_plots_are_held_once() -> None:
    """The load behind two plots is one entry that both name by its number."""
    load = PlotLine(points(BEGIN + np.arange(9.0)), "load", "#767676")
    pieces = pieces_of([plot("plot-1", load=(load,)), plot("plot-2", load=(load,))])
    assert len(json.loads(pieces.shared)) == 1
    assert [json.loads(piece.text)["load"][0]["points"] for piece in pieces.parts] == [0, 0]
    assert list(json.loads(pieces.text)["plots"]) == ["plot-1", "plot-2"]


def test_phases_of_several_plots_are_held_once() -> None:
    """Most plots of a report show those of the run."""
    phases = (PhaseBand(BEGIN, BEGIN + 1e6, "soak", "#767676", 0.0),)
    pieces = pieces_of([plot("plot-1", phases=phases), plot("plot-2", phases=phases), plot("plot-3")])
    assert [[phase["name"] for phase in held] for held in json.loads(pieces.shared)] == [["soak"]]
    assert [json.loads(piece.text).get("phases") for piece in pieces.parts] == [0, 0, None]
    (alone,) = pieces_of([plot("plot-1", phases=phases)]).parts
    assert json.loads(alone.text)["phases"][0]["name"] == "soak"


def test_a_line_takes_few_bytes() -> None:
    """What makes a report of a thousand series one file that can be mailed: two bytes a time, three a noisy value."""
    steps = np.random.default_rng(1).integers(1, 260, 2000)
    time: NDArray[np.float64] = BEGIN + 1000.0 * np.cumsum(steps).astype(np.float64)
    noise = np.random.default_rng(2).normal(100, 5, 2000).astype(np.float32)
    (piece,) = pieces_of([plot("plot-1", PlotLine(LinePoints("n", time, noise, "s"), "n", "#0072b2"))]).parts
    assert len(piece.text) < 2000 * (2 + 3) * 4 / 3
    (still,) = pieces_of(
        [plot("plot-1", PlotLine(LinePoints("n", time, np.zeros_like(noise), "s"), "n", "#0072b2"))]
    ).parts
    assert len(still.text) < 2000 * 2 * 4 / 3


def test_text_from_outside_ends_no_script() -> None:
    """Names may hold anything; what is left as it mostly is takes no room."""
    line = PlotLine(points(BEGIN + np.arange(3.0), f"series:{HOSTILE}"), HOSTILE, "#0072b2")
    happened = PlotMoments("event", "event", "#cc79a7", (PlotMoment(BEGIN, None, HOSTILE),), dashed=True)
    text = pieces_of([plot("plot-1", line, moments=(happened,))]).text
    assert "<" not in text
    assert "\u2028" not in text
    shown = json.loads(text)["plots"]["plot-1"]
    assert shown["lines"][0]["words"] == HOSTILE
    assert shown["moments"][0]["moments"][0]["text"] == HOSTILE
    assert "spots" not in shown
    assert "alpha" not in shown["lines"][0]


def test_nothing_to_draw_is_nothing() -> None:
    """A page without plots."""
    assert pieces_of([]).text == '{"shared":[],"plots":{}}'
