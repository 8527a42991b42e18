"""Drawings that need no script: they appear with the text and can be printed. svg.html.jinja draws all of them.

Coordinates are pixels of the drawing. Names stand where there is room for them: none covers another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from soakwatch.report.curves import Curve

LETTER, ROW = 6.8, 14
"""Pixels that a letter and a line of text take."""
DAYS_S = 20 * 3600.0
"""From this length on a time of day alone would be ambiguous."""
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True, slots=True)
class SvgBox:
    """A filled rectangle: a phase, a silence, the spread of a third of the run."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class SvgStroke:
    """A line or path by its SVG path data."""

    path: str
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class SvgDot:
    """A point; its ``kind`` colours it."""

    x: float
    y: float
    size: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class SvgLabel:
    """A text; ``anchor`` is start, middle or end. ``time_ms`` is what a time on the axis stands for (UTC)."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "start"
    time_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SvgDrawing:
    """A drawing, the words that stand for it, and the names of its lines: each with the kind that colours it."""

    width: int
    height: int
    boxes: tuple[SvgBox, ...]
    strokes: tuple[SvgStroke, ...]
    dots: tuple[SvgDot, ...]
    labels: tuple[SvgLabel, ...]
    legend: tuple[tuple[str, str], ...]
    words: str
    title: str


@dataclass
class SvgCanvas:
    """What is drawn so far, and where: from ``begin`` to ``end`` (mostly ns) between left and right, from ``low`` to
    ``high`` between bottom and top."""

    width: int
    height: int
    begin: float
    end: float
    low: float
    high: float
    left: float
    right: float
    top: float
    bottom: float
    boxes: list[SvgBox] = field(default_factory=list)
    strokes: list[SvgStroke] = field(default_factory=list)
    dots: list[SvgDot] = field(default_factory=list)
    labels: list[SvgLabel] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    taken: list[tuple[float, float]] = field(default_factory=list)  # points of lines: no name is written over them

    def x(self, at: float) -> float:
        """Where a time is, within the drawing."""
        share = (at - self.begin) / ((self.end - self.begin) or 1)
        return round(self.left + min(max(share, 0.0), 1.0) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Where a value is, within the drawing."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top), 1)

    def fits(self, label: SvgLabel) -> bool:
        """Whether a label lies inside and touches no other."""
        mine = extent(label)
        if mine[0] < 0 or mine[1] > self.width:
            return False
        return all(
            mine[1] + 4 < other[0] or other[1] + 4 < mine[0] or abs(label.y - one.y) >= ROW - 1
            for one in self.labels
            for other in (extent(one),)
        )

    def clear(self, label: SvgLabel) -> bool:
        """Whether no line runs through a label."""
        begin, end = extent(label)
        return not any(begin - 2 < x < end + 2 and label.y - ROW + 2 < y < label.y + 4 for x, y in self.taken)

    def put(self, *choices: SvgLabel) -> None:
        """Write the first of the labels that fits and is clear of lines, else the first that fits; none where all of
        them would cover another."""
        fitting = [label for label in choices if self.fits(label)]
        label = next((label for label in fitting if self.clear(label)), fitting[0] if fitting else None)
        if label is not None:
            self.labels.append(label)

    def drawn(self, title: str, words: str) -> SvgDrawing:
        """The drawing as it is; ``words`` stand for it."""
        return SvgDrawing(
            self.width,
            self.height,
            tuple(self.boxes),
            tuple(self.strokes),
            tuple(self.dots),
            tuple(self.labels),
            tuple(self.legend.items()),
            words,
            title,
        )


def ticks_between(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round values between the ends."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw), power * 10)
    first = math.ceil(low / step - 1e-9)
    return tuple(round(n * step, 10) for n in range(first, math.floor(high / step + 1e-9) + 1))


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """The ticks in words, with as many decimals as tell them apart.

    >>> tick_texts((20.75, 20.8, 20.85)), tick_texts((0.0, 500.0, 1000.0))
    (['20.75', '20.80', '20.85'], ['0', '500', '1,000'])
    """
    for decimals in range(10):
        texts = [f"{tick:,.{decimals}f}" for tick in ticks]
        if all(abs(float(text.replace(",", "")) - tick) < 1e-9 for text, tick in zip(texts, ticks, strict=True)):
            break
    else:
        texts = [f"{tick:.3g}" for tick in ticks]
    return ["0" if not tick else text for tick, text in zip(ticks, texts, strict=True)]


def draw_grid(canvas: SvgCanvas, ticks: Sequence[float], *, days: bool) -> None:
    """Lines at the ticks of the values with their numbers, and the axis of time; ``days``: its texts have the date."""
    for tick, text in zip(ticks, tick_texts(ticks), strict=True):
        y = canvas.y(tick)
        canvas.strokes.append(SvgStroke(f"M{canvas.left} {y}H{canvas.right}", "grid"))
        canvas.put(SvgLabel(canvas.left - 6, y + 4, text, "tick", "end"))
    begin_ns, end_ns = int(canvas.begin), int(canvas.end)
    room = (canvas.right - canvas.left) / ((12 if days else 8) * LETTER + 14)
    raw = (end_ns - begin_ns) * 1e-9 / max(room, 1)
    step = next((step for step in _STEPS_S if step >= raw), 604800) * 10**9
    form = "%d %b %H:%M" if days else "%H:%M:%S" if step < 60 * 10**9 else "%H:%M"
    for time_ns in range(-(-begin_ns // step) * step, end_ns + 1, step):
        x = canvas.x(time_ns)
        canvas.strokes.append(SvgStroke(f"M{x} {canvas.bottom}v4", "axis"))
        text = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime(form)
        canvas.put(SvgLabel(x, canvas.height - 5, text, "tick", "middle", time_ns // 10**6))
    canvas.strokes.append(SvgStroke(f"M{canvas.left} {canvas.bottom}H{canvas.right}", "axis"))


def path_of(canvas: SvgCanvas, curve: Curve) -> str:
    """A line that breaks where samples are missing."""
    time, value = curve.time_ms * 1e6, curve.value.astype(np.float64)
    parts: list[str] = []
    down, before = False, 0.0
    for time_ns, number in zip(time.tolist(), value.tolist(), strict=True):
        if math.isnan(number):
            down = False
            continue
        x, y = canvas.x(time_ns), canvas.y(number)
        canvas.taken += between(canvas.taken[-1], (x, y)) if down else [(x, y)]
        if not down:
            parts.append(f"M{x} {y}")
        elif curve.steps and y != before:
            parts.append(f"H{x}V{y}")
        else:
            parts.append(f"L{x} {y}")
        down, before = True, y
    return "".join(parts)


def between(one: tuple[float, float], other: tuple[float, float]) -> list[tuple[float, float]]:
    """Points of a straight line, close enough that no letter fits between two of them; the last is ``other``."""
    steps = max(int(math.dist(one, other) // LETTER), 1)
    return [
        (one[0] + (other[0] - one[0]) * n / steps, one[1] + (other[1] - one[1]) * n / steps)
        for n in range(1, steps + 1)
    ]


def extent(label: SvgLabel) -> tuple[float, float]:
    """The left and the right end of a label."""
    width = len(label.text) * LETTER
    before = {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
    return label.x - before, label.x - before + width
