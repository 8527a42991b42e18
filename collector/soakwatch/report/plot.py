"""A plot as data: its axes, lines, load, limits, phases, events, findings, and the JSON of it that a browser gets.

Nothing here draws. ``plots.js`` paints a plot on a page with uPlot; ``plots.Drawing`` makes plots of curves. Times are
in ms since 1970, or on an axis with a ``unit`` in that.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LONGEST_MS = 2**32 - 1
_EFFORT = 9  # of deflate


@dataclass(frozen=True, slots=True, eq=False)
class LinePoints:
    """The points of a line; NaN where it breaks. ``name`` is ``series:`` and the JSON of target, metric and object, by
    which a page can fetch more points. The values are those of the record times ``factor``; with ``rate`` they are
    increments per second of a counter."""

    name: str
    time: NDArray[np.float64]
    value: NDArray[np.float32]
    unit: str
    factor: float = 1.0
    rate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlotLine:
    """A line and its words in the legend. With ``dots`` each reading is drawn; ``mark`` is where its number stands.

    ``area`` fills the space below it; ``halo`` is the colour of an edge that keeps it visible over other colours.
    """

    points: LinePoints
    words: str
    colour: str
    dash: int = 0
    width: float = 1.4
    alpha: float = 1.0
    steps: bool = False
    dots: bool = False
    area: bool = False
    halo: str = ""
    mark: tuple[float, float, str] | None = None


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The axis of time. Plots whose axes have one ``name`` are zoomed together. ``days`` puts the day beside the time
    of day. With a ``unit`` (``h``, ``min`` or ``s``) it counts from a begin instead."""

    name: str
    begin: float
    end: float
    days: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class PhaseBand:
    """A stretch of time with its name: a phase in its colour."""

    begin: float
    end: float
    name: str
    colour: str
    alpha: float


@dataclass(frozen=True, slots=True)
class PlotMoment:
    """Something that happened, and until when if it lasted; ``name`` is written along it, ``text`` is its tooltip."""

    begin: float
    end: float | None
    text: str
    name: str = ""
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class PlotMoments:
    """Moments of one kind: a vertical line each, and a strip if it lasted. ``numbered`` ones carry their numbers;
    without ``words`` they are not in the legend."""

    words: str
    tip: str
    colour: str
    moments: tuple[PlotMoment, ...]
    dashed: bool = False
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class FindingSpots:
    """Findings of one outcome at a height (0 to 1) of the plot: a sign at each begin, with its numbers and its tooltip,
    and a bar along each window that was judged as a whole."""

    words: str
    colour: str
    shape: str
    height: float
    spots: tuple[tuple[float, str, str], ...]
    bars: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class TrendLine:
    """A straight line between two points (ms, and the unit of the curves), and its words in the legend."""

    begin_ms: float
    end_ms: float
    begin: float
    end: float
    words: str


@dataclass(frozen=True, slots=True, eq=False)
class HeatCells:
    """A heat map: a row of colours for each name, from ``begin`` to ``end``; NaN is a hatched gap, never zero.

    ``low`` and ``high`` are the ends of the scale of colours; ``how`` says how a cell sums up its readings.
    """

    name: str
    names: tuple[str, ...]
    cells: NDArray[np.float32]
    begin: float
    end: float
    unit: str
    how: str
    low: float
    high: float
    log: bool


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """One plot. ``reach`` are the ends of the axis of values; with ``ticks`` it is logarithmic. ``load_words`` name an
    axis of the load on the right, from 0 to ``load_high``; without them there is none.

    In a ``growing`` plot the axes follow the readings that are added. ``bordered`` keeps the room of the load's axis,
    so that a moment stands at the same place in all plots. A ``small`` plot has neither legend nor tools.
    """

    element: str
    height: int
    time: TimeAxis
    unit: str
    reach: tuple[float, float]
    lines: tuple[PlotLine, ...] = ()
    ticks: tuple[float, ...] = ()
    load: tuple[PlotLine, ...] = ()
    load_high: float = 1.0
    load_words: str = ""
    limit: float | None = None
    trends: tuple[TrendLine, ...] = ()
    phases: tuple[PhaseBand, ...] = ()
    moments: tuple[PlotMoments, ...] = ()
    spots: tuple[FindingSpots, ...] = ()
    judged: tuple[float, float] | None = None
    cells: HeatCells | None = None
    small: bool = False
    growing: bool = False
    bordered: bool = False


@dataclass(frozen=True, slots=True)
class PlotPiece:
    """One plot: the element that will hold it, and the plot as JSON that is safe inside a script element."""

    element: str
    text: str


@dataclass(frozen=True, slots=True)
class PlotPieces:
    """The plots of a page in its order; ``shared`` is the JSON list of points and phases that several of them
    hold."""

    shared: str
    parts: tuple[PlotPiece, ...]

    @property
    def text(self) -> str:
        """All of them as one JSON text."""
        plots = ",".join(f"{json.dumps(piece.element)}:{piece.text}" for piece in self.parts)
        return f'{{"shared":{self.shared},"plots":{{{plots}}}}}'


def pieces_of(plots: Sequence[Plot]) -> PlotPieces:
    """The plots as a browser gets them, each a JSON text of its own: a page parses and paints only what is in view.

    Points and phases that several plots use are sent once; each plot has their number.
    """
    times: Counter[object] = Counter(
        key for plot in plots for key in {plot.phases, *(line.points for line in (*plot.lines, *plot.load))}
    )
    held: list[object] = []
    places: dict[object, int] = {}

    def tree(value: object) -> object:
        if (isinstance(value, LinePoints) or (isinstance(value, tuple) and value)) and times[value] > 1:
            if value not in places:
                places[value] = len(held)
                held.append(_fields(value, tree) if isinstance(value, LinePoints) else [tree(each) for each in value])
            return places[value]
        if is_dataclass(value) and not isinstance(value, type):
            return _fields(value, tree)
        if isinstance(value, np.ndarray):
            return _times(value) if value.dtype == np.float64 else _packed(value, "<f4")
        return [tree(each) for each in value] if isinstance(value, tuple) else value

    parts = tuple(PlotPiece(plot.element, _text(tree(plot))) for plot in plots)
    return PlotPieces(_text(held), parts)


def _fields(value: DataclassInstance, tree: Callable[[object], object]) -> dict[str, object]:
    """The fields of a dataclass by name, without those that have their default."""
    return {
        each.name: tree(getattr(value, each.name))
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
    }


def _times(time: NDArray[np.float64]) -> list[object]:
    """The first time, the largest unit in ms that all steps are multiples of, and the steps; the times themselves if
    they are not whole, or too far apart."""
    if time.size and bool((time == np.floor(time)).all()) and time[-1] - time[0] <= _LONGEST_MS:
        steps = np.diff(time, prepend=time[0]).astype(np.int64)
        if bool((steps >= 0).all()):
            unit = max(1, int(np.gcd.reduce(steps)))
            return [float(time[0]), unit, _packed(steps // unit, "<u4")]
    return [None, 1, _packed(time, "<f8")]


def _packed(values: NDArray[np.generic], kind: str) -> str:
    """Numbers as text: their bytes, those of one weight together, deflated, in base64."""
    numbers = np.ascontiguousarray(values, dtype=kind)
    planes = numbers.view(np.uint8).reshape(numbers.size, numbers.itemsize).T.tobytes()
    deflate = zlib.compressobj(_EFFORT, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(deflate.compress(planes) + deflate.flush()).decode()


def _text(tree: object) -> str:
    """JSON that is safe in a page: nothing in it ends the script element or reverses the direction of text."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
