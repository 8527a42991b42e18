"""A host's memory over time, the owners stacked: what each holds is the height of its band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from soakwatch.core.formatting import quantity, scale_of
from soakwatch.report.svg import (
    DAYS_S,
    LETTER,
    SvgCanvas,
    SvgDrawing,
    SvgLabel,
    SvgStroke,
    draw_grid,
    tick_texts,
    ticks_between,
)
from soakwatch_model.series import Floats, Ints, Series
from soakwatch_model.window import Window

_POINTS, _GAP = 240, 3.5
_BANDS = 7  # colours that are told apart
_SMALL = 0.01  # share of the highest sum: a smaller band is drawn with others
_TALL = 13.0  # pixels that a name needs
_HEADROOM = 1.06
FREE, _OTHERS = "free", "others"


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """An owner by the name that is shown, and what it holds (bytes); ``kind`` is a colour of its own, if it has one."""

    name: str
    series: Series
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """What is drawn: the time, the title, and the size in pixels."""

    window: Window
    title: str
    width: int
    height: int


def memory_stack(bands: Sequence[Band], frame: Frame, colours: dict[str, str]) -> SvgDrawing | None:
    """The bands from below in their order; those that are small all the time become one. None without readings.

    ``colours`` keeps the colour of a name from one drawing to the next.
    """
    time_ns = _times(bands)
    if time_ns.size < 2:
        return None
    held = {band.name: _at(time_ns, band.series) for band in bands}
    shown = _with_others(held)
    fixed = {_OTHERS: "own own-others"} | {band.name: f"own {band.kind}" for band in bands if band.kind}
    highest = float(np.max(np.sum(list(shown.values()), axis=0)))
    scale = scale_of("By", highest)
    top = highest * scale.factor * _HEADROOM
    ticks = ticks_between(0.0, top, max(3, frame.height // 45))
    left = 10.0 + max(len(text) for text in tick_texts(ticks)) * LETTER + 6
    window, width, height = frame.window, frame.width, frame.height
    canvas = SvgCanvas(width, height, window.begin_ns, window.end_ns, 0.0, top, left, width - 12.0, 22.0, height - 22.0)
    canvas.put(SvgLabel(left, 12, scale.label, "unit"))
    below = np.zeros(time_ns.size)
    names: list[tuple[float, str]] = []
    for name, value in shown.items():
        kind = fixed.get(name) or colours.setdefault(name, f"own own{len(colours) % _BANDS}")
        above = below + value * scale.factor
        words = f"{name}: {quantity(float(value[0]), 'By')} at first, {quantity(float(value[-1]), 'By')} at last"
        canvas.strokes += [
            SvgStroke(_area(canvas, time_ns[part], below[part], above[part]), kind, words)
            for part in _unbroken(time_ns)
        ]
        canvas.legend[kind] = name
        if canvas.y(float(below[-1])) - canvas.y(float(above[-1])) >= _TALL:
            names.append((canvas.y(float(below[-1] + above[-1]) / 2) + 4, name))
        below = above
    draw_grid(canvas, ticks, days=window.seconds > DAYS_S)
    for y, name in names:
        canvas.put(SvgLabel(canvas.right - 6, y, name, "band", "end"))
    return canvas.drawn(frame.title, f"{frame.title}; the table has the same figures")


def _times(bands: Sequence[Band]) -> Ints:
    """The times of the ledgers, at most so many as can be told apart."""
    every = [band.series.time_ns for band in bands]
    times: Ints = np.unique(np.concatenate(every)) if every else np.empty(0, np.int64)
    step = max(1, times.size // _POINTS)
    return times if step == 1 else np.append(times[:-1:step], times[-1])


def _at(time_ns: Ints, series: Series) -> Floats:
    series = series.finite()
    if not len(series):
        return np.zeros(time_ns.size)
    value: Floats = np.interp(time_ns.astype(np.float64), series.time_ns.astype(np.float64), series.values, left=0.0)
    return value


def _with_others(held: Mapping[str, Floats]) -> dict[str, Floats]:
    """At most ``_BANDS`` bands, in their order; the small ones as one, on top but for what is free."""
    highest = float(np.max(np.sum(list(held.values()), axis=0))) or 1.0
    peaks = {name: float(value.max()) for name, value in held.items()}
    large = sorted(peaks, key=lambda name: -peaks[name])[: _BANDS - 1]
    kept = {name: held[name] for name in held if name in large and peaks[name] >= _SMALL * highest}
    rest = [held[name] for name in held if name not in kept]
    others: Floats = np.sum(rest, axis=0) if rest else np.empty(0)
    free = {FREE: kept.pop(FREE)} if FREE in kept else {}
    return kept | ({_OTHERS: others} if rest and float(others.max()) > 0 else {}) | free


def _unbroken(time_ns: Ints) -> list[slice]:
    """The stretches without a gap."""
    apart = np.diff(time_ns)
    cuts = [0, *(np.flatnonzero(apart > _GAP * float(np.median(apart))) + 1).tolist(), time_ns.size]
    return [slice(a, b) for a, b in pairwise(cuts) if b - a > 1]


def _area(canvas: SvgCanvas, time_ns: Ints, below: Floats, above: Floats) -> str:
    xs = [canvas.x(at) for at in time_ns.tolist()]
    upper = "L".join(f"{x} {canvas.y(y)}" for x, y in zip(xs, above.tolist(), strict=True))
    lower = "L".join(f"{x} {canvas.y(y)}" for x, y in zip(reversed(xs), below[::-1].tolist(), strict=True))
    return f"M{upper}L{lower}Z"
