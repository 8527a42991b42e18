"""A plot as data: its axes, lines, load, limits, phases, events, findings, and what a browser is given of it.

Nothing here draws. ``plots.js`` paints a plot on a page with uPlot; ``drawing`` makes plots of curves. Times are in ms
since 1970, or on an axis with a ``unit`` in that.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_LONGEST_MS = 2**32 - 1


@dataclass(frozen=True, slots=True, eq=False)
class LinePoints:
    """What a line goes through: NaN where it breaks. ``name`` is ``series:`` and the JSON of target, metric and object,
    so that a page can fetch more of it; its values are ``factor`` times those of the record, increments per second of a
    counter where ``rate``."""

    name: str
    time: NDArray[np.float64]
    value: NDArray[np.float32]
    unit: str
    factor: float = 1.0
    rate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlotLine:
    """A line and its words in the legend. A line of few ``dots`` shows each; ``mark`` is where its number stands.

    ``area`` fills below it; ``halo`` is its edge over colours.
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
    """What a plot shows of the time; plots whose axes have one ``name`` move together. ``days`` puts the day beside the
    time of day. With a ``unit`` it counts from a begin instead: ``h``, ``min`` or ``s``."""

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
    """Something that happened, and until when if it lasted; ``name`` is written along it, ``text`` told by its tip."""

    begin: float
    end: float | None
    text: str
    name: str = ""
    alpha: float = 0.0


@dataclass(frozen=True, slots=True)
class PlotMoments:
    """Moments of one kind: a vertical each, and a strip where they lasted. Those with a ``number`` carry it; without
    ``words`` the legend does not name them."""

    words: str
    tip: str
    colour: str
    moments: tuple[PlotMoment, ...]
    dashed: bool = False
    numbered: bool = False


@dataclass(frozen=True, slots=True)
class FindingSpots:
    """Findings of one outcome at a height (0 to 1) of the plot: a sign at each begin with its numbers and what its tip
    says, and a bar along each window that was judged as a whole."""

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

    ``low`` and ``high`` are the ends of the scale of colours; ``how`` says what a cell is of its readings.
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
    """One plot. ``reach`` are the ends of the axis of values; ``ticks`` make it a logarithmic one. The load has an axis
    of its own on the right, from 0 to ``load_high``; ``load_words`` are beside it, and without them it has none.

    Of a run that goes on the axes follow what is added (``growing``). ``bordered`` keeps room for the axis of the load,
    so that moments stand below one another. A ``small`` plot has neither legend nor tools.
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
    """The plots of a page in its order; ``shared`` is the JSON list of points that several of them hold."""

    shared: str
    parts: tuple[PlotPiece, ...]

    @property
    def text(self) -> str:
        """All of them as one JSON text."""
        plots = ",".join(f"{json.dumps(piece.element)}:{piece.text}" for piece in self.parts)
        return f'{{"shared":{self.shared},"plots":{{{plots}}}}}'


def pieces_of(plots: Sequence[Plot]) -> PlotPieces:
    """The plots as a browser takes them, each by itself: a page parses and paints what is looked at.

    Points that several plots hold (the load) stand once; a number stands for them in each plot.
    """
    times = Counter(key for plot in plots for key in {id(line.points) for line in (*plot.lines, *plot.load)})
    held: list[object] = []
    places: dict[int, int] = {}

    def tree(value: object) -> object:
        if isinstance(value, LinePoints) and times[id(value)] > 1:
            if id(value) not in places:
                places[id(value)] = len(held)
                held.append(_fields(value, tree))
            return places[id(value)]
        if is_dataclass(value) and not isinstance(value, type):
            return _fields(value, tree)
        if isinstance(value, np.ndarray):
            return _times(value) if value.dtype == np.float64 else _packed(value, "<f4")
        return [tree(each) for each in value] if isinstance(value, tuple) else value

    parts = tuple(PlotPiece(plot.element, _text(tree(plot))) for plot in plots)
    return PlotPieces(_text(held), parts)


def _fields(value: DataclassInstance, tree: Callable[[object], object]) -> dict[str, object]:
    """The fields of a dataclass by their names, but for those that are as they mostly are."""
    return {
        each.name: tree(getattr(value, each.name))
        for each in fields(value)
        if each.default is MISSING or getattr(value, each.name) != each.default
    }


def _times(time: NDArray[np.float64]) -> list[object]:
    """A begin with distances from it in whole ms, in half the bytes of the times themselves where these have none."""
    if time.size and bool((time == np.floor(time)).all()) and time[-1] - time[0] <= _LONGEST_MS:
        return [float(time[0]), _packed(time - time[0], "<u4")]
    return [None, _packed(time, "<f8")]


def _packed(values: NDArray[np.floating[Any]], kind: str) -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()


def _text(tree: object) -> str:
    """JSON that ends no script element, and holds no sign that turns the text of a page around."""
    return json.dumps(tree, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
