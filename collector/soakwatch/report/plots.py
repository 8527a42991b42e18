"""The plots of a report or of a live page, made of curves: what is in them, and in which colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from soakwatch.core.formatting import printable
from soakwatch.report.curves import Curve
from soakwatch.report.flags import FindingFlag, flagged, moment
from soakwatch.report.heat_cells import MAX_ROWS, HeatMap
from soakwatch.report.palette import BLACK, DASHES, GREY, HALO, LINES, PHASES, PURPLE, VERMILION
from soakwatch.report.plot import (
    HeatCells,
    LinePoints,
    PhaseBand,
    Plot,
    PlotLine,
    PlotMoments,
    PlotPieces,
    TimeAxis,
    TrendLine,
    pieces_of,
)
from soakwatch.report.plot_axes import (
    covers,
    decade_ticks,
    decades,
    is_steep,
    name_of,
    names_of,
    numbered,
    reach,
    shortened,
    source_name,
)
from soakwatch_model.event import Event
from soakwatch_model.finding import Mark
from soakwatch_model.window import Phase, Window

_WIDE = 4.5  # pixels
_FEW_POINTS = 60  # single readings between holes would be invisible as a line
_MAX_EVENTS = 200
_MAX_NAMES, _NAMES_APART, _LONGEST_NAME = 12, 25, 22
_A_DAY = 20 * 3600.0  # from here on a time of day alone would be ambiguous
_ROW, _LOW_ROW, _FRAME = 15, 9, 110  # pixels of a heat map
_DECADES = 1e4  # of a logarithmic scale of colours


class Drawing:
    """All plots of one report: they share the time axis, the phases, the load and every line that is drawn twice.

    The shared time axis is named ``time``. ``prefix`` begins the names of the elements. With ``growing`` the run goes
    on, and the axes of values follow its readings.
    """

    def __init__(
        self,
        window: Window,
        phases: Sequence[Phase],
        events: Sequence[Event],
        load: Sequence[Curve],
        *,
        prefix: str = "plot",
        growing: bool = False,
    ) -> None:
        self._window = window
        self._phases = tuple(phases)
        self._events = tuple(events)
        self._load = tuple(load)
        self._prefix = prefix
        self._growing = growing
        self._points: dict[object, LinePoints] = {}
        self._plots: list[Plot] = []

    def draw(
        self,
        curves: Sequence[Curve],
        *,
        marks: Sequence[Mark] = (),
        flags: Sequence[FindingFlag] = (),
        judged: Window | None = None,
        limit: float | None = None,
        height: int = 260,
        names: Sequence[str] = (),
        load: bool = True,
        everywhere: bool = False,
        window: Window | None = None,
        marked: str = "finding",
        small: bool = False,
        scale_with: Sequence[Curve] = (),
        trends: Sequence[TrendLine] = (),
    ) -> str:
        """Draw curves of one unit over the load; the id of the element that will hold the plot.

        ``limit`` is in the curves' unit; ``judged`` is the window that a finding looked at. ``names`` replace the
        curves' own in the legend; without ``load`` there is no load behind them, and with ``everywhere`` the events of
        all targets are marked. ``window`` gives the plot a time axis of its own, shared with the other plots of that
        window; its ``marks`` have numbers, and ``marked`` is the word for them. Curves that are all above zero and far
        apart get a logarithmic axis. A ``small`` plot has neither legend nor tools; its scale is that of all curves in
        ``scale_with``. ``trends`` are dashed lines with their own words in the legend.
        """
        # A limit is read on a linear axis, a small plot beside others: neither is logarithmic.
        steep = limit is None and not small and is_steep(curves)
        shown = window or self._window
        words = numbered([printable(name) for name in names]) or names_of(curves)
        happened, spots = flagged(flags, self._window)
        targets = {curve.key.target for curve in curves}
        moments = [self._happened(targets, everywhere=everywhere, window=window), self._marked(marks, marked, window)]
        return self._placed(
            Plot(
                element=self._next,
                height=height,
                time=self._time(shown, own=window is not None),
                unit=printable((curves[0].unit or curves[0].key.metric.rpartition(".")[2]) if curves else ""),
                reach=decades(curves) if steep else reach(scale_with or curves, limit),
                lines=self._lines(curves, words),
                ticks=decade_ticks(curves) if steep else (),
                load=self._loaded() if load else (),
                load_high=self._load_high,
                load_words="" if small or not load else self._load_words,
                limit=limit,
                trends=tuple(trends),
                phases=self._bands(shown),
                moments=(*(some for some in moments if some.moments), *happened),
                spots=tuple(spots),
                judged=None if judged is None or self._is_whole(judged) else _ms(judged),
                small=small,
                growing=self._growing,
                bordered=bool(self._load) and not small,
            )
        )

    def draw_heat(self, heat: HeatMap, *, flags: Sequence[FindingFlag] = (), load: bool = True) -> str:
        """Draw many series as rows of colours over the same time axis; the id of the element that will hold it."""
        happened, spots = flagged(flags, self._window)
        events = self._happened({heat.target})
        rows = len(heat.names)
        row = _ROW if rows <= MAX_ROWS // 2 else _LOW_ROW
        return self._placed(
            Plot(
                element=self._next,
                height=max(rows * row, 60) + _FRAME,
                time=self._time(self._window),
                unit="",
                reach=(0, rows),
                load=self._loaded(over=True) if load else (),
                load_high=self._load_high,
                load_words=self._load_words if load else "",
                phases=self._bands(self._window, named=False),
                moments=(*([events] if events.moments else []), *happened),
                spots=tuple(spots),
                cells=_cells(heat),
                growing=self._growing,
                bordered=bool(self._load),
            )
        )

    @property
    def plots(self) -> int:
        """How many plots there are so far."""
        return len(self._plots)

    @property
    def heights(self) -> Mapping[str, int]:
        """How high the plot in each element is, in pixels."""
        return {plot.element: plot.height for plot in self._plots}

    def pieces(self) -> PlotPieces:
        """The plots as a page gets them: it paints what is in view."""
        return pieces_of(self._plots)

    @property
    def _next(self) -> str:
        return f"{self._prefix}-{len(self._plots) + 1}"

    def _placed(self, plot: Plot) -> str:
        self._plots.append(plot)
        return plot.element

    def _time(self, window: Window, *, own: bool = False) -> TimeAxis:
        begin, end = _ms(window)
        days = window.seconds > _A_DAY
        if own:
            return TimeAxis(f"time:{begin}-{end + 1}", begin, end + 1, days)
        return TimeAxis("time", begin, max(end, begin + 1), days)

    def _bands(self, window: Window, *, named: bool = True) -> tuple[PhaseBand, ...]:
        """The phases that lie in a window, at least in part."""
        touching = [p for p in self._phases if p.window.begin_ns < window.end_ns and window.begin_ns < p.window.end_ns]
        return tuple(
            PhaseBand(
                *_ms(phase.window),
                printable(phase.name) if named else "",
                PHASES.get(phase.name, GREY),
                0.13 if phase.name in PHASES else 0.0,
            )
            for phase in touching
        )

    def _is_whole(self, judged: Window) -> bool:
        """Whether a window is the whole run, up to a hundredth at either end."""
        slack = (self._window.end_ns - self._window.begin_ns) // 100
        return judged.begin_ns <= self._window.begin_ns + slack and judged.end_ns >= self._window.end_ns - slack

    @property
    def _load_high(self) -> float:
        return max((curve.high or 0.0 for curve in self._load), default=0.0) * 1.25 or 1.0

    @property
    def _load_words(self) -> str:
        return f"load, {printable(self._load[0].unit)}" if self._load else ""

    def _loaded(self, *, over: bool = False) -> tuple[PlotLine, ...]:
        """The generators' load in grey; ``over`` a heat map it has a halo and no area."""
        return tuple(
            PlotLine(
                self._points_of(curve),
                f"load: {name_of(curve)}" if len(self._load) > 1 else "load (right axis)",
                BLACK if over else GREY,
                dash=index % DASHES,
                width=1.0,
                alpha=0.9 if over else 0.75,
                area=not over and index == 0 and not bool(np.isnan(curve.value).any()),
                halo=HALO if over else "",
            )
            for index, curve in enumerate(self._load)
        )

    def _happened(self, targets: set[str], *, everywhere: bool = False, window: Window | None = None) -> PlotMoments:
        """A dashed vertical line for each of the first two hundred events, and a strip if it lasted. Its kind is
        written along the line; of several that are too close only the first is named."""
        events = [e for e in self._events if everywhere or e.target in {"", *targets}]
        if window is not None:
            events = [e for e in events if window.begin_ns <= (e.end_ns or e.begin_ns) and e.begin_ns < window.end_ns]
        apart = (self._window.end_ns - self._window.begin_ns) // _NAMES_APART
        made, named_ns = [], list[int]()
        for event in sorted(events, key=lambda e: (e.begin_ns, e.kind, e.object))[:_MAX_EVENTS]:
            named = len(named_ns) < _MAX_NAMES and (not named_ns or event.begin_ns - named_ns[-1] >= apart)
            named_ns += [event.begin_ns] if named else []
            name = printable(shortened(event.kind, _LONGEST_NAME)) if named else ""
            text = f"{event.kind} {event.object}".strip()
            made.append(moment(event.begin_ns, event.end_ns, text, 0.22, self._window, name))
        return PlotMoments("event", "event", PURPLE, tuple(made), dashed=True)

    def _marked(self, marks: Sequence[Mark], word: str, window: Window | None) -> PlotMoments:
        """A solid vertical for each moment of a finding, with its number on an axis of its own."""
        made = tuple(moment(mark.begin_ns, mark.end_ns, mark.text, 0.3, self._window) for mark in marks[:_MAX_EVENTS])
        return PlotMoments(word, word, VERMILION if window is None else BLACK, made, numbered=window is not None)

    def _lines(self, curves: Sequence[Curve], names: Sequence[str]) -> tuple[PlotLine, ...]:
        """The lines. Several carry their numbers, each further right than the one before, and are told apart without
        their colours. A line that a later one covers is drawn wide: it is seen on both sides of it."""
        lines = []
        for index, (curve, name) in enumerate(zip(curves, names, strict=True)):
            wide = any(covers(later, curve) for later in curves[index + 1 :])
            width = _WIDE if wide else 1.6 if curve.steps else 1.4
            lines.append(
                PlotLine(
                    self._points_of(curve),
                    name,
                    LINES[index % len(LINES)],
                    dash=0 if curve.steps else index // len(LINES) % DASHES,
                    width=width,
                    alpha=0.45 if wide else 1.0,
                    steps=curve.steps,
                    dots=curve.time_ms.size < _FEW_POINTS,
                    mark=_number(curve, index, len(curves)) if len(curves) > 1 else None,
                )
            )
        return tuple(lines)

    def _points_of(self, curve: Curve) -> LinePoints:
        first = float(curve.time_ms[0]) if curve.time_ms.size else 0.0
        key = (curve.key, curve.value.size, curve.scale, curve.rate, first)
        if key not in self._points:
            name = source_name(curve.key)
            self._points[key] = LinePoints(name, curve.time_ms, curve.value, curve.unit, curve.scale.factor, curve.rate)
        return self._points[key]


def _number(curve: Curve, index: int, of: int) -> tuple[float, float, str] | None:
    """Where a line's number stands."""
    good = np.flatnonzero(np.isfinite(curve.value))
    if not good.size:
        return None
    place = good[min(int((index + 0.5) / of * good.size), good.size - 1)]
    return float(curve.time_ms[place]), float(curve.value[place]), str(index + 1)


def _cells(heat: HeatMap) -> HeatCells:
    finite = heat.cells[np.isfinite(heat.cells)]
    high = float(finite.max()) if finite.size else 1.0
    low = min(float(finite.min()), 0.0) if finite.size else 0.0
    log = heat.log and high > 0
    if log:
        low = max(float(finite[finite > 0].min()), high / _DECADES)
    if not high > low:
        high = low * math.e if log else low + 1.0
    names = tuple(printable(name) for name in heat.names)
    begin, end = heat.window.begin_ns / 1e6, heat.window.end_ns / 1e6
    return HeatCells(f"heat:{heat.key}", names, heat.cells, begin, end, printable(heat.unit), heat.how, low, high, log)


def _ms(window: Window) -> tuple[int, int]:
    return window.begin_ns // 10**6, window.end_ns // 10**6
