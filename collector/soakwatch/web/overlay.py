"""The same series of several runs in one plot, phase by phase over one another, or from the start of each run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.formatting import printable, scale_of
from soakwatch.core.plotted import as_plotted
from soakwatch.record import RecordView, SeriesKey
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import generators
from soakwatch.report.palette import DASHES, GREY, LINES, PHASES
from soakwatch.report.plot import LinePoints, PhaseBand, Plot, PlotLine, PlotPieces, TimeAxis, pieces_of
from soakwatch.report.plot_axes import reach, shortened
from soakwatch.runs.compare.phase_slots import PhaseSlot
from soakwatch.runs.compare.targets import TargetMap
from soakwatch_model.series import Series
from soakwatch_model.window import Window

Floats = NDArray[np.floating[Any]]
MAX_PLOTS = 16
"""Maximum number of plots on one page."""
POINTS, HEIGHT, _MIN_POINTS_FOR_LINE = 1200, 260, 15
_GAP = 0.02
"""A hole in a line that is wider than this share of the plot is drawn as a gap."""
_STEPS = ((3 * 3600.0, 3600.0, "h"), (180.0, 60.0, "min"), (0.0, 1.0, "s"))


@dataclass(frozen=True, slots=True)
class Overlaid:
    """A run to draw: its name in legends, its record, its window, and its targets beside those of the reference."""

    name: str
    view: RecordView
    window: Window
    targets: TargetMap


@dataclass(frozen=True, slots=True)
class Overlay:
    """Where the plot of one series goes, and which runs have no sample of it."""

    element: str
    key: SeriesKey
    missing: tuple[str, ...]


def overlays(
    runs: Sequence[Overlaid], keys: Sequence[SeriesKey], slots: Sequence[PhaseSlot]
) -> tuple[PlotPieces, tuple[Overlay, ...]]:
    """Plots of the series (named after the reference's targets) of which at least two runs have samples, in the order
    of the keys; at most ``MAX_PLOTS``.

    The phases of ``slots`` follow one another, and each run's readings of a phase begin where the phase begins; times
    are in hours, minutes or seconds, depending on the length. What a run has beyond the length of a phase's slot is not
    drawn.
    """
    span_s = sum(slot.seconds for slot in slots)
    _, step_s, unit = next(row for row in _STEPS if span_s >= row[0])
    drawn = _Axis(slots, step_s, unit, span_s)
    load = _loads(runs)
    load_lines = _load_lines(load, drawn)
    plots: list[Plot] = []
    shown_plots: list[Overlay] = []
    for key in keys:
        if len(plots) == MAX_PLOTS:
            break
        series = [run.view.series(replace(key, target=run.targets.own(key.target))) for run in runs]
        curves = _curves(series)
        if sum(curve is not None for curve in curves) < 2:
            continue
        element = f"plot-{len(plots) + 1}"
        plot = _plot(element, runs, curves, drawn)
        if load_lines and not key.metric.startswith("load."):
            there = [curve for curve in load if curve is not None]
            high = 1.25 * max(curve.high or 0.0 for curve in there) or 1.0
            words = f"load, {printable(there[0].unit)}"
            plot = replace(plot, load=load_lines, load_high=high, load_words=words)
        plots.append(replace(plot, bordered=bool(load_lines)))
        absent = tuple(run.name for run, curve in zip(runs, curves, strict=True) if curve is None)
        shown_plots.append(Overlay(element, key, absent))
    return pieces_of(plots), tuple(shown_plots)


@dataclass(frozen=True, slots=True)
class _Axis:
    """The time of the plots: phases one after another, in units of ``step_s`` seconds."""

    slots: Sequence[PhaseSlot]
    step_s: float
    unit: str
    span_s: float

    def laid(self, number: int, curve: Curve) -> tuple[Floats, Floats]:
        """Places and values of a run's curve; NaN breaks the line where its next phase does not follow."""
        begin_s, times, values = 0.0, list[Floats](), list[Floats]()
        for slot in self.slots:
            window = slot.windows[number]
            if window is not None:
                since_s = curve.time_ms / 1e3 - window.begin_ns / 1e9
                longest_s = min(slot.seconds, window.seconds)
                inside = (since_s >= 0) & ((since_s < longest_s) | (slot is self.slots[-1]) & (since_s <= longest_s))
                times += [(begin_s + since_s[inside]) / self.step_s, np.array([np.nan])]
                values += [curve.value[inside], np.array([np.nan])]
            begin_s += slot.seconds
        if not times:
            return np.empty(0), np.empty(0)
        return _without_needless_breaks(np.concatenate(times), np.concatenate(values), self.span_s / self.step_s)


def _without_needless_breaks(x: Floats, y: Floats, span: float) -> tuple[Floats, Floats]:
    """A break is kept only where the line would otherwise run over a phase that the run does not have."""
    keep = np.ones(x.size, dtype=bool)
    for place in np.flatnonzero(np.isnan(x)):
        before, after = x[place - 1] if place else np.nan, x[place + 1] if place + 1 < x.size else np.nan
        keep[place] = np.isfinite(after) and np.isfinite(before) and after - before > _GAP * span
    x, y = x[keep], y[keep]
    x = np.where(np.isnan(x), np.roll(x, 1), x)  # a place of its own, where nothing is drawn
    return x, y


def _curves(series: Sequence[Series]) -> list[Curve | None]:
    """All in one scale; None for a run without samples, and for all runs if the series is always zero."""
    drawn = [as_plotted(unscaled)[0].finite() for unscaled in series]
    peaks = [float(np.abs(unscaled.values).max()) if len(unscaled) else 0.0 for unscaled in drawn]
    if not max(peaks, default=0.0) > 0:
        return [None] * len(series)
    scale = scale_of(drawn[peaks.index(max(peaks))].trait.unit, max(peaks))
    return [
        curve_of(unscaled, POINTS, scale) if len(good) else None for unscaled, good in zip(series, drawn, strict=True)
    ]


def _loads(runs: Sequence[Overlaid]) -> list[Curve | None]:
    """The load of each run, that of its first generator, in the unit and scale of the first run that has one."""
    rates = [next((part.rate.series for part in generators(run.view) if part.rate is not None), None) for run in runs]
    some = [rate for rate in rates if rate is not None and len(rate.finite())]
    if not some:
        return [None] * len(runs)
    unit = some[0].trait.unit
    scale = scale_of(unit, max(float(rate.finite().values.max()) for rate in some if rate.trait.unit == unit))
    return [
        curve_of(rate, POINTS, scale) if rate is not None and len(rate.finite()) and rate.trait.unit == unit else None
        for rate in rates
    ]


def _load_lines(load: Sequence[Curve | None], axis: _Axis) -> tuple[PlotLine, ...]:
    """The load of each run in grey with the dashes of the run; the legend names it once."""
    lines: list[PlotLine] = []
    for number, curve in enumerate(load):
        if curve is not None:
            points = LinePoints("load", *_columns(*axis.laid(number, curve)), curve.unit)
            words = "" if lines else "load (right axis)"
            lines.append(PlotLine(points, words, GREY, dash=number % DASHES, width=1.0, alpha=0.75))
    return tuple(lines)


def _plot(element: str, runs: Sequence[Overlaid], curves: Sequence[Curve | None], axis: _Axis) -> Plot:
    there = [curve for curve in curves if curve is not None]
    lines = []
    for index, (run, curve) in enumerate(zip(runs, curves, strict=True)):
        if curve is None:
            continue
        x, y = axis.laid(index, curve)
        good = np.flatnonzero(np.isfinite(y))
        if not good.size:
            continue
        middle = good[int((index + 0.5) / len(curves) * good.size)]
        lines.append(
            PlotLine(
                LinePoints(_name(run, curve), *_columns(x, y), curve.unit),
                printable(f"{index + 1} {shortened(run.name, 60)}"),
                LINES[index % len(LINES)],
                dash=index % DASHES,
                width=1.5,
                dots=x.size < _MIN_POINTS_FOR_LINE,
                mark=(float(x[middle]), float(y[middle]), str(index + 1)),
            )
        )
    return Plot(
        element,
        HEIGHT,
        TimeAxis("time", 0.0, max(axis.span_s, 1.0) / axis.step_s, unit=axis.unit),
        printable(there[0].unit),
        reach(there, None),
        tuple(lines),
        phases=_bands(axis),
    )


def _columns(x: Floats, y: Floats) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    return x.astype(np.float64), y.astype(np.float32)


def _bands(axis: _Axis) -> tuple[PhaseBand, ...]:
    """The phases behind the lines, with their names."""
    edges = np.concatenate([[0.0], np.cumsum([slot.seconds for slot in axis.slots])]) / axis.step_s
    return tuple(
        PhaseBand(
            float(edges[place]),
            float(edges[place + 1]),
            printable(slot.name),
            PHASES.get(slot.name, GREY),
            0.13 if slot.name in PHASES else 0.0,
        )
        for place, slot in enumerate(axis.slots)
        if slot.name
    )


def _name(run: Overlaid, curve: Curve) -> str:
    key = [run.name, curve.key.target, curve.key.metric, curve.key.object]
    return "compared:" + json.dumps(key, ensure_ascii=False, separators=(",", ":"))
