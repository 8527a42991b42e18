"""A plot in a few strokes: what a page shows of a long run until the plot itself is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch.core.formatting import extent
from soakwatch.judge.rates import Rate
from soakwatch.record.source import ReportSource
from soakwatch.report.panels import Panel, first_panels
from soakwatch_model.finding import Finding
from soakwatch_model.window import Window

WIDTH, HEIGHT = 1000, 200
"""The box that paths are drawn in, in its own units: the whole window, and from the lowest to the highest value."""


@dataclass(frozen=True, slots=True)
class Sketch:
    """A panel of a target: ``paths`` are the ``d`` of SVG paths, one a line; ``reach`` is from the lowest to the
    highest value with the unit."""

    target: str
    title: str
    paths: tuple[str, ...]
    reach: str


def sketches(
    source: ReportSource, window: Window, findings: Sequence[Finding] = (), rates: Sequence[Rate] = ()
) -> tuple[Sketch, ...]:
    """The few panels that matter most now, without the library that draws plots."""
    return tuple(_sketch(panel, window) for panel in first_panels(source, window, findings, rates))


def _sketch(panel: Panel, window: Window) -> Sketch:
    """The lines of a panel, of which one at least has readings, in one box."""
    there = [curve for curve in panel.curves if curve.low is not None and curve.high is not None]
    low, high = min(curve.low or 0.0 for curve in there), max(curve.high or 0.0 for curve in there)
    begin_ms, span_ms = window.begin_ns / 1e6, max(window.seconds * 1e3, 1.0)
    paths = []
    for curve in there:
        x = np.clip((curve.time_ms - begin_ms) / span_ms, 0, 1) * WIDTH
        share = (curve.value.astype(np.float64) - low) / (high - low) if high > low else np.full(x.size, 0.5)
        y = HEIGHT * (1 - share)
        pen, parts = "M", []
        for across, down in zip(x.tolist(), y.tolist(), strict=True):
            if not np.isfinite(down):
                pen = "M"
                continue
            parts.append(f"{pen}{across:.0f} {down:.0f}")
            pen = "L"
        paths.append("".join(parts))
    factor = there[0].scale.factor or 1.0
    return Sketch(panel.target, panel.title, tuple(paths), extent(low / factor, high / factor, there[0].source_unit))
