"""What the flight recorders of the devices captured around events and findings, ten times a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from soakwatch.core.formatting import natural, quantity, subject
from soakwatch.record.source import SeriesKey
from soakwatch.report.blocks import BRIEF, Block, Layout, Text
from soakwatch.report.captures import Capture, captures_text
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.page import Page, worst_first
from soakwatch_model.finding import Outcome
from soakwatch_model.sample import object_labels

ORDER = 27
TITLE = "Flight-recorder captures"
HEIGHT, LOW = 230, 180
_MAX_CARDS, _MAX_ROWS, _MAX_LINES, _MAX_FINDINGS, _POINTS = 12, 200, 7, 3, 2000
_CPU = "recorder.cpu.utilization"
_DROPPED = "recorder.dropped"
_QUEUE = "recorder.queue.usage"


def _facts(page: Page) -> Mapping[str, object] | None:
    """A card for each of the first captures, those that relate to a failure before others; the rest as a table."""
    if not page.captures:
        return None
    failing = [f for f in page.verdict.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}]
    failing.sort(key=worst_first)
    shown = {capture: [f for f in failing if capture.shows(f)] for capture in page.captures}
    ranks = [Outcome.FAIL, Outcome.WARN]
    ranked = sorted(page.captures, key=lambda capture: min((ranks.index(f.outcome) for f in shown[capture]), default=2))
    chosen = set(ranked[:_MAX_CARDS])
    drawn = []
    for capture in page.captures:
        if capture in chosen:
            plots, still = _plots(page, capture)
            related = [
                (f.rule, subject(f.metric, f.object), f.outcome, page.finding_anchors.get(id(f), ""))
                for f in shown[capture][:_MAX_FINDINGS]
            ]
            drawn.append({"capture": capture, "findings": related, "plots": plots, "still": still})
    return {
        "drawn": drawn,
        "others": [capture for capture in page.captures if capture not in chosen],
        "rows": _MAX_ROWS,
    }


def blocks(page: Page) -> Sequence[Block] | None:
    """Cards with plots; where nothing can be plotted one sentence: how many captures there are, and the first few."""
    text = captures_text(page.captures)
    return (Layout("captures", partial(_facts, page)), Text(text, formats=BRIEF)) if text else None


def _plots(page: Page, capture: Capture) -> tuple[list[tuple[str, str, int]], list[str]]:
    """CPU always; drops and queues where there is something to see, and otherwise in words."""
    plots, still = [], []
    marks = [mark for mark in capture.moments if capture.window.begin_ns <= mark.begin_ns < capture.window.end_ns]
    for metric, caption, height in (
        (_CPU, "CPU use: all cores, and the busiest", HEIGHT),
        (_DROPPED, "packets dropped, by cause", LOW),
        (_QUEUE, "memory of socket queues", LOW),
    ):
        curves = _curves(page, capture, metric)
        moving = [curve for curve in curves if metric == _CPU or not curve.constant]
        resting = [curve for curve in curves if curve not in moving]
        if resting and metric == _DROPPED:
            still.append(f"no packet was dropped ({', '.join(_name(curve.key) for curve in resting)})")
        elif resting:
            still += [_at_rest(curve) for curve in resting]
        if moving:
            names = [_name(curve.key) for curve in moving]
            element = page.drawing.draw(
                moving,
                marks=marks,
                height=height,
                names=names,
                load=False,
                window=capture.window,
                marked="reason for the capture",
            )
            plots.append((element, caption, height))
    return plots, still


def _curves(page: Page, capture: Capture, metric: str) -> list[Curve]:
    """The lines of one metric in one scale; of the cores the busiest."""
    begin_ns, end_ns = capture.window.begin_ns, capture.window.end_ns
    keys = sorted((k for k in page.keys if (k.target, k.metric) == (capture.target, metric)), key=_order)
    read = [page.source.series(key, begin_ns, end_ns).finite() for key in keys]
    readable = [series for series in read if len(series) > 1]
    if metric == _CPU:
        cores = [series for series in readable if series.object != "core=all"]
        cores.sort(key=lambda series: -float(np.mean(series.values)))
        readable = [series for series in readable if series.object == "core=all"] + cores[: _MAX_LINES - 1]
    if not readable:
        return []
    peaks = [curve_of(series, _POINTS) for series in readable]
    top = max(peaks, key=lambda curve: 0.0 if curve.high is None else curve.high / curve.scale.factor)
    return [curve_of(series, _POINTS, top.scale) for series in readable]


def _order(key: SeriesKey) -> tuple[bool, Sequence[tuple[int, str]]]:
    return key.object != "core=all", natural(key.object)


def _name(key: SeriesKey) -> str:
    label = ", ".join(object_labels(key.object).values()) or key.object
    if key.metric == _CPU:
        return "all cores" if label == "all" else f"core {label}"
    return label.upper() if key.metric == _QUEUE else label


def _at_rest(curve: Curve) -> str:
    value = None if curve.low is None else curve.low / curve.scale.factor
    return f"queues of {_name(curve.key)}: {quantity(value, curve.source_unit)} throughout"
