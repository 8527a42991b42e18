"""The overview drawn: the panels of each target over one time axis, with phases, load, events and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from soakwatch.core.event_kinds import WINDOW
from soakwatch.core.formatting import natural, printable
from soakwatch.judge.rates import Rate
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.flags import FindingFlag
from soakwatch.report.load import generators
from soakwatch.report.panels import OverviewPanel, first_panels, key_panels, panels_of
from soakwatch.report.plot import TrendLine
from soakwatch.report.plots import Drawing
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.window import Window

HEIGHT, KEY_HEIGHT, SMALL, LIVE_POINTS = 260, 205, 140, 2000
_MAX_FLAGS, _MARKS = 40, 3
_OBJECTIONS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN)


class PanelPlot(NamedTuple):
    """A plot of a panel, and the element that holds it. ``small`` plots stand side by side below the heat map before
    them. ``rank`` is the place among the plots that come first, 0 for others; a ``flat`` plot shows only zeros."""

    target: str
    title: str
    element: str
    height: int
    small: bool
    note: str
    rank: int = 0
    flat: bool = False


class LiveDocument(NamedTuple):
    """The overview of a running run: the plots as ``plots.js`` takes them (JSON), and where they go."""

    plots: str
    panels: tuple[PanelPlot, ...]


def draw_panel(
    drawing: Drawing,
    panel: OverviewPanel,
    flags: Sequence[FindingFlag] = (),
    rank: int = 0,
    trends: Sequence[TrendLine] = (),
) -> tuple[PanelPlot, ...]:
    """Draw the plots of a panel; () if it has none."""
    if panel.heat is not None:
        first = drawing.draw_heat(panel.heat, flags=flags)
        elements = [(panel.title, first, False)]
        for curve, name in zip(panel.curves, panel.names, strict=True):
            small = drawing.draw([curve], height=SMALL, small=True, scale_with=panel.curves, names=[name])
            elements.append((name, small, True))
    elif panel.curves:
        element = drawing.draw(
            panel.curves,
            names=panel.names,
            flags=flags,
            height=KEY_HEIGHT if rank else HEIGHT,
            limit=panel.limit,
            trends=trends,
            load=not all(curve.key.metric.startswith("load.") and not _late(curve) for curve in panel.curves),
        )
        elements = [(panel.title, element, False)]
    else:
        return ()
    heights = drawing.heights
    return tuple(
        PanelPlot(
            panel.target,
            title,
            element,
            heights[element],
            small,
            "" if small else panel.note,
            0 if small else rank,
            panel.flat,
        )
        for title, element, small in elements
    )


def numbered_findings(findings: Iterable[Finding]) -> tuple[tuple[int, Finding], ...]:
    """The findings that object, numbered from the worst on; at most 40."""
    flagged = [f for f in findings if f.outcome in _OBJECTIONS]
    flagged.sort(key=lambda f: (f.outcome.rank, f.target, f.rule, f.metric, natural(f.object)))
    return tuple(enumerate(flagged[:_MAX_FLAGS], 1))


def flags_of(panel: OverviewPanel, findings: Sequence[tuple[int, Finding]], window: Window) -> tuple[FindingFlag, ...]:
    """Flags for the numbered findings on the metrics of a panel: at their moments, or along the window of one without a
    moment."""
    flags = []
    for number, finding in findings:
        if finding.target != panel.target or (finding.metric and finding.metric not in panel.metrics):
            continue
        text = printable(" ".join(part for part in (finding.outcome.value, finding.rule, finding.object) if part))
        spots = [(mark.begin_ns, mark.end_ns) for mark in finding.marks[:_MARKS]]
        flags += [FindingFlag(number, finding.outcome, text, max(begin, window.begin_ns), end) for begin, end in spots]
        if not spots:
            begin, end = max(finding.window.begin_ns, window.begin_ns), min(finding.window.end_ns, window.end_ns)
            flags.append(FindingFlag(number, finding.outcome, text, begin, end, moment=False))
    return tuple(flags)


def live_document(
    source: ReportSource,
    window: Window,
    findings: Sequence[Finding] = (),
    rates: Sequence[Rate] = (),
    *,
    first: bool = False,
) -> LiveDocument:
    """The overview of a running run in ``window``; it has no panel if nothing was read.

    ``rates`` (what grows so far) are drawn as trends. With ``first`` only the few panels that matter most are made, of
    few points and quickly. Elements are named ``panel-1`` (or ``first-1``) and so on; the axes of values follow the
    readings that a page adds.
    """
    load = _load(source, window)
    events = tuple(stored.event for stored in source.events() if stored.event.kind != WINDOW)
    drawing = Drawing(window, source.phases(), events, load, prefix="first" if first else "panel", growing=True)
    numbered = numbered_findings(findings)
    plots: list[PanelPlot] = []
    ranks: Mapping[int, int]
    if first:
        panels = first_panels(source, window, findings, rates)
        ranks = {place: place + 1 for place in range(len(panels))}
    else:
        panels = panels_of(source, window, findings, LIVE_POINTS)
        ranks = key_panels(panels, findings, rates)
    for place, panel in enumerate(panels):
        rank, trends = ranks.get(place, 0), trends_of(panel, rates, window)
        plots += draw_panel(drawing, panel, flags_of(panel, numbered, window), rank, trends)
    return LiveDocument(drawing.pieces().text, tuple(plots))


def trends_of(panel: OverviewPanel, rates: Sequence[Rate], window: Window) -> tuple[TrendLine, ...]:
    """The growth so far of the lines of a panel: straight lines through the middle of the readings that the rates are
    made of."""
    trends = []
    for curve in panel.curves:
        for rate in rates:
            if SeriesKey(rate.target, rate.metric, rate.object) != curve.key or curve.rate:
                continue
            begin_ms, end_ms = max(rate.since_ns, window.begin_ns) / 1e6, window.end_ns / 1e6
            since = curve.value[(curve.time_ms >= begin_ms) & np.isfinite(curve.value)]
            if not since.size:
                continue
            half = rate.per_hour * curve.scale.factor * (end_ms - begin_ms) / 3.6e6 / 2
            middle = float(np.median(since))
            trends.append(TrendLine(begin_ms, end_ms, middle - half, middle + half, rate.short_words))
    return tuple(trends)


def _load(source: ReportSource, window: Window) -> list[Curve]:
    rates = [part.rate.series.between(window.begin_ns, window.end_ns) for part in generators(source) if part.rate]
    alike = [rate for rate in rates if rate.trait.unit == rates[0].trait.unit and len(rate.finite())]
    return [curve_of(part, LIVE_POINTS) for part in alike[:4]]


def _late(curve: Curve) -> bool:
    """Whether a line of a generator is a result of its load (latency, loss, failures) and not the load itself."""
    return curve.source_unit in {"s", "1"} or "lost" in curve.key.metric or "fail" in curve.key.metric
