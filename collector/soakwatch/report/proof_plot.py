"""The one plot that proves a verdict, as lines and boxes of a drawing that needs no script: it paints with the text and
prints as it is. Phases, load, limit, the thirds or the slope that was found, silences, and the moment.

Coordinates are pixels of the drawing. Names stand where there is room for them: none covers another.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np

from soakwatch.core.formatting import quantity, source_name, utc
from soakwatch.core.plain_names import plain_name
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve
from soakwatch.report.page import IDENTITIES, Page
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric_queries import shown_in
from soakwatch_model.roles import DUT
from soakwatch_model.shown import CPU, LATENCY, MEMORY, PROCESS_MEMORY
from soakwatch_model.window import Window
from soakwatch_rules.traits import GrowthMethod, Marks, traits_of
from soakwatch_rules.wording.words import counted, three_digits

_POINTS, _MAX_LINES, _MAX_EVENTS, _MAX_MOMENTS = 400, 4, 40, 40
_LETTER, _ROW = 6.8, 14  # pixels that a letter and a line of text take
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
_USUAL = tuple(shown_in(topic)[0] for topic in (PROCESS_MEMORY, MEMORY, CPU, LATENCY))


@dataclass(frozen=True, slots=True)
class Box:
    """A filled stretch: of a phase, a silence, the spread of a third."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line or path by its SVG path data."""

    path: str
    kind: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text; ``anchor`` is start, middle or end."""

    x: float
    y: float
    text: str
    kind: str
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class ProofPlot:
    """A drawing, the words that stand for it, and the names of its lines: each with the kind that colours it."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    strokes: tuple[Stroke, ...]
    labels: tuple[Label, ...]
    legend: tuple[tuple[str, str], ...]
    words: str
    title: str


@dataclass
class _Canvas:
    """What is drawn so far, and where."""

    width: int
    height: int
    window: Window
    low: float
    high: float
    left: float
    right: float
    top: float
    bottom: float
    boxes: list[Box] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)
    taken: list[tuple[float, float]] = field(default_factory=list)  # points of lines: no name is written over them

    def x(self, time_ns: float) -> float:
        """Where a time is, within the drawing."""
        share = (time_ns - self.window.begin_ns) / max(self.window.end_ns - self.window.begin_ns, 1)
        return round(self.left + min(max(share, 0.0), 1.0) * (self.right - self.left), 1)

    def y(self, value: float) -> float:
        """Where a value is, within the drawing."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top), 1)

    def fits(self, label: Label) -> bool:
        """Whether a label lies inside and touches no other."""
        mine = _extent(label)
        if mine[0] < 0 or mine[1] > self.width:
            return False
        return all(
            mine[1] + 4 < other[0] or other[1] + 4 < mine[0] or abs(label.y - one.y) >= _ROW - 1
            for one in self.labels
            for other in (_extent(one),)
        )

    def clear(self, label: Label) -> bool:
        """Whether no line runs through a label."""
        begin, end = _extent(label)
        return not any(begin - 2 < x < end + 2 and label.y - _ROW + 2 < y < label.y + 4 for x, y in self.taken)

    def put(self, *choices: Label) -> None:
        """Write the first of the labels that fits and is clear of lines, else the first that fits; none where all of
        them would cover another."""
        fitting = [label for label in choices if self.fits(label)]
        label = next((label for label in fitting if self.clear(label)), fitting[0] if fitting else None)
        if label is not None:
            self.labels.append(label)


def proof_plot(page: Page, finding: Finding | None, width: int, height: int) -> ProofPlot | None:
    """The plot of the finding that decides; of a run without one, of what came nearest to its limit.

    None where the record holds neither a series nor a load.
    """
    window = page.verdict.window
    curves = _curves(page, finding)
    if not curves and not page.load and not page.keys:
        return None
    limit = _limit(finding, curves)
    low, high = _reach(curves, limit)
    unit = curves[0].unit if curves else ""
    ticks = _ticks(low, high, max(3, height // 45))
    widest = max((len(three_digits(tick)) for tick in ticks), default=1)
    left = 10.0 + (widest * _LETTER + 6 if curves else 0)
    canvas = _Canvas(width, height, window, low, high, left, width - 10.0, 2.0 * _ROW + 8, height - 22.0)
    _grid(canvas, ticks if curves else ())
    _phases(canvas, page)
    _load(canvas, page, {curve.key for curve in curves})
    _silences(canvas, page, finding)
    _moments(canvas, page, finding)
    for number, curve in enumerate(curves):
        kind = f"line{number}"
        canvas.strokes.append(Stroke(_path(canvas, curve), kind))
        if len(curves) > 1:
            canvas.legend[kind] = _name(curve.key)
    if limit and curves and low <= limit <= high:
        _limit_line(canvas, limit, unit)
    if finding is not None and curves:
        _thirds(canvas, finding, curves[0])
        _slope(canvas, finding, curves[0])
    names = ", ".join(_name(curve.key) for curve in curves[:2]) + (" and others" if len(curves) > 2 else "")
    title = f"{names}, {unit}" if names and unit else names or "Phases and load of the run"
    return ProofPlot(
        width,
        height,
        tuple(canvas.boxes),
        tuple(canvas.strokes),
        tuple(canvas.labels),
        tuple(canvas.legend.items()),
        _words(title, curves, canvas),
        title,
    )


def _curves(page: Page, finding: Finding | None) -> list[Curve]:
    """The lines of what the finding judged, the highest first; else something that shows how the target did."""
    keys: Sequence[SeriesKey] = ()
    if finding is not None:
        keys = [key for key in page.judged_by(finding) if key.metric not in IDENTITIES]
    if not keys:
        devices = {t.target for t in page.verdict.targets if t.role == DUT}
        whose = {finding.target} if finding is not None and finding.target else devices
        for metric in _USUAL:
            if keys := sorted(key for key in page.keys if key.metric == metric and key.target in whose)[:1]:
                break
    drawn = [curve for key in keys[:50] if (curve := page.curve(key)).low is not None]
    drawn.sort(key=lambda curve: -(curve.high or 0.0))
    return [curve for curve in drawn if curve.unit == drawn[0].unit][:_MAX_LINES]


def _name(key: SeriesKey) -> str:
    return f"{plain_name(key.metric, key.object)} on {key.target}"


def _limit(finding: Finding | None, curves: Sequence[Curve]) -> float | None:
    """The limit as it is drawn; None where it is of another kind than the line."""
    if finding is None or finding.limit is None or not curves or finding.unit != curves[0].source_unit:
        return None
    if traits_of(finding.rule).growth is GrowthMethod.SHAPE:
        return None
    return finding.limit * curves[0].scale.factor


def _reach(curves: Sequence[Curve], limit: float | None) -> tuple[float, float]:
    """From where to where the axis runs: around the lines and a limit near them; a percentage ends at 100."""
    if not curves:
        return 0.0, 1.0
    lows = [curve.low for curve in curves if curve.low is not None]
    highs = [curve.high for curve in curves if curve.high is not None]
    low, high = min(lows), max(highs)
    if curves[0].unit == "%":
        return 0.0, 100.0 if high <= 100 else high * 1.05
    span = (high - low) or abs(high) or 1.0
    if limit is not None and low - 3 * span <= limit <= high + 3 * span:
        low, high = min(low, limit), max(high, limit)
    if 0 <= low < 0.5 * high:
        return 0.0, high * 1.06 or 1.0
    pad = 0.08 * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def _ticks(low: float, high: float, most: int) -> tuple[float, ...]:
    """Round values between the ends."""
    raw = (high - low) / most
    power = 10.0 ** math.floor(math.log10(raw)) if raw > 0 else 1.0
    step = next((power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw), power * 10)
    first = math.ceil(low / step - 1e-9)
    return tuple(round(n * step, 10) for n in range(first, math.floor(high / step + 1e-9) + 1))


def _grid(canvas: _Canvas, ticks: Sequence[float]) -> None:
    for tick in ticks:
        y = canvas.y(tick)
        canvas.strokes.append(Stroke(f"M{canvas.left} {y}H{canvas.right}", "grid"))
        canvas.put(Label(canvas.left - 6, y + 4, three_digits(tick), "tick", "end"))
    window = canvas.window
    room = (canvas.right - canvas.left) / (8 * _LETTER + 14)
    raw = window.seconds / max(room, 1)
    step = next((step for step in _STEPS_S if step >= raw), 604800) * 10**9
    form = "%m-%d %H:%M" if step >= 43200 * 10**9 else "%H:%M:%S" if step < 60 * 10**9 else "%H:%M"
    for time_ns in range(-(-window.begin_ns // step) * step, window.end_ns + 1, step):
        x = canvas.x(time_ns)
        canvas.strokes.append(Stroke(f"M{x} {canvas.bottom}v4", "axis"))
        text = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime(form)
        canvas.put(Label(x, canvas.height - 5, text, "tick", "middle"))
    canvas.strokes.append(Stroke(f"M{canvas.left} {canvas.bottom}H{canvas.right}", "axis"))


def _phases(canvas: _Canvas, page: Page) -> None:
    """Shaded in turn; a name that would cover another moves to the second row, or is left to the shade's title."""
    phases = page.verdict.phases or page.source.phases()
    for number, phase in enumerate(phases):
        x0, x1 = canvas.x(phase.window.begin_ns), canvas.x(phase.window.end_ns)
        canvas.boxes.append(
            Box(x0, canvas.top, round(x1 - x0, 1), canvas.bottom - canvas.top, f"phase{number % 2}", phase.name)
        )
        places = ((x0 + 2, 11, "start"), (x0 + 2, 11 + _ROW, "start"), (x1 - 1, 11 + _ROW, "end"))
        canvas.put(*(Label(x, y, phase.name, "phase", side) for x, y, side in places))


def _load(canvas: _Canvas, page: Page, drawn_keys: Collection[SeriesKey]) -> None:
    """The load as a grey area in the lower third, unless it is the line; its highest rate is told in the legend."""
    loads = [generator for generator in page.load if generator.rate is not None]
    if not loads:
        return
    rate = loads[0].rate
    assert rate is not None
    key = SeriesKey(rate.series.target, rate.series.metric, rate.series.object)
    drawn = rate.series.finite()
    if not len(drawn) or key in drawn_keys:
        return
    peak = float(drawn.values.max())
    step = max(len(drawn) // _POINTS, 1)
    height = (canvas.bottom - canvas.top) * 0.3
    points = [
        f"{canvas.x(int(time_ns))} {canvas.bottom - height * float(value) / (peak or 1.0):.1f}"
        for time_ns, value in zip(drawn.time_ns[::step], drawn.values[::step], strict=True)
    ]
    first, last = canvas.x(int(drawn.time_ns[0])), canvas.x(int(drawn.time_ns[-1]))
    canvas.strokes.append(Stroke(f"M{first} {canvas.bottom}L{'L'.join(points)}L{last} {canvas.bottom}Z", "load"))
    more = f", {counted(len(loads) - 1, 'more load')}" if len(loads) > 1 else ""
    canvas.legend["load"] = f"load of {key.target}, up to {quantity(peak, rate.series.trait.unit)}{more}"


def _silences(canvas: _Canvas, page: Page, finding: Finding | None) -> None:
    target = "" if finding is None else finding.target
    for ledger in page.verdict.ledgers:
        if target and ledger.target != target:
            continue
        for silence in ledger.silences[:_MAX_EVENTS]:
            x0, x1 = canvas.x(silence.window.begin_ns), canvas.x(silence.window.end_ns)
            title = f"{source_name(ledger)} did not answer"
            height = canvas.bottom - canvas.top
            canvas.boxes.append(Box(x0, canvas.top, max(round(x1 - x0, 1), 1.5), height, "silence", title))
            canvas.legend["silence"] = "no answer"


def _moments(canvas: _Canvas, page: Page, finding: Finding | None) -> None:
    """Where the finding points, and what else happened to the target; only the first moment has its time written."""
    if finding is None:
        return
    pointed = () if traits_of(finding.rule).marks is Marks.WHOLE else finding.marks
    for event in page.events_in(finding.target, canvas.window)[:_MAX_EVENTS]:
        x = canvas.x(event.begin_ns)
        title = f"{event.kind} {event.object} {utc(event.begin_ns)}"
        canvas.strokes.append(Stroke(f"M{x} {canvas.top}V{canvas.bottom}", "event", title))
        canvas.legend["event"] = "event"
        name = Label(x + 3, canvas.top + 12, event.kind, "event")
        canvas.put(name, Label(x - 3, canvas.top + 12, event.kind, "event", "end"))
    for number, mark in enumerate(pointed[:_MAX_MOMENTS]):
        x = canvas.x(mark.begin_ns)
        canvas.strokes.append(Stroke(f"M{x} {canvas.top}V{canvas.bottom}", "moment", mark.text))
        canvas.legend["moment"] = "what failed" if finding.outcome is Outcome.FAIL else "where"
        if number == 0:
            at, y = utc(mark.begin_ns)[11:], canvas.bottom - 6
            canvas.put(Label(x + 3, y, at, "moment"), Label(x - 3, y, at, "moment", "end"))


def _path(canvas: _Canvas, curve: Curve) -> str:
    """A line that breaks where samples are missing."""
    time, value = curve.time_ms * 1e6, curve.value.astype(np.float64)
    parts: list[str] = []
    down, before = False, 0.0
    for time_ns, number in zip(time.tolist(), value.tolist(), strict=True):
        if math.isnan(number):
            down = False
            continue
        x, y = canvas.x(time_ns), canvas.y(number)
        canvas.taken.append((x, y))
        if not down:
            parts.append(f"M{x} {y}")
        elif curve.steps and y != before:
            parts.append(f"H{x}V{y}")
        else:
            parts.append(f"L{x} {y}")
        down, before = True, y
    return "".join(parts)


def _thirds(canvas: _Canvas, finding: Finding, curve: Curve) -> None:
    """The means of the first and the last third of the decisive lifetime with their spread."""
    numbers = finding.numbers
    if traits_of(finding.rule).growth is not GrowthMethod.STAGES or not {"mean_first", "mean_last"} <= numbers.keys():
        return
    begin, end = finding.window.begin_ns, finding.window.end_ns
    if finding.marks:
        begin, end = finding.marks[0].begin_ns, finding.marks[0].end_ns or end
    third = (end - begin) / 3
    for word, at in (("first", begin), ("last", end - third)):
        mean = numbers[f"mean_{word}"] * curve.scale.factor
        spread = numbers.get(f"sd_{word}", 0.0) * curve.scale.factor
        x0, x1, y = canvas.x(at), canvas.x(at + third), canvas.y(mean)
        top, bottom = canvas.y(mean + spread), canvas.y(mean - spread)
        title = f"mean and spread of the {word} third"
        canvas.boxes.append(Box(x0, top, round(x1 - x0, 1), max(round(bottom - top, 1), 1.0), "third", title))
        canvas.strokes.append(Stroke(f"M{x0} {y}H{x1}", "third"))
        text = f"{word} third {three_digits(mean)} {curve.unit}"
        x, anchor = (x0 + 4, "start") if word == "first" else (x1 - 4, "end")
        heights = [height for at_x, height in canvas.taken if x0 <= at_x <= x1]
        above, below = min([top, *heights]) - 5, max([bottom, *heights]) + 13
        sides = ((x, anchor), (x1 + 4, "start") if word == "first" else (x0 - 4, "end"))
        rows = [(top - 5, sides[0]), (bottom + 13, sides[0]), (y + 4, sides[1]), (above, sides[0]), (below, sides[0])]
        canvas.put(
            *(
                Label(at_x, row, text, "third", side)
                for row, (at_x, side) in rows
                if canvas.top + 10 < row < canvas.bottom - 2
            )
        )


def _slope(canvas: _Canvas, finding: Finding, curve: Curve) -> None:
    """The slope at the end of the run as a straight line through its last readings."""
    if traits_of(finding.rule).growth is not GrowthMethod.SHAPE or finding.measured is None or not curve.value.size:
        return
    good = np.isfinite(curve.value)
    tail = curve.value[good][-max(len(curve.value) // 8, 1) :].astype(np.float64)
    times = curve.time_ms[good][-len(tail) :] * 1e6
    level, at = float(np.median(tail)), float(np.median(times))
    unit = finding.unit.removesuffix("/h")
    rate = finding.measured * (curve.scale.factor if unit == curve.source_unit else level)
    begin, end = (
        max(finding.window.begin_ns, at - (canvas.window.end_ns - canvas.window.begin_ns) / 2),
        finding.window.end_ns,
    )
    ends = [(t, level + rate * (t - at) / 3.6e12) for t in (begin, end)]
    (x0, y0), (x1, y1) = ((canvas.x(t), canvas.y(v)) for t, v in ends)
    canvas.strokes.append(Stroke(f"M{x0} {y0}L{x1} {y1}", "third"))
    canvas.legend["third"] = f"slope at the end, {quantity(finding.measured, finding.unit)}"


def _limit_line(canvas: _Canvas, limit: float, unit: str) -> None:
    y = canvas.y(limit)
    canvas.strokes.append(Stroke(f"M{canvas.left} {y}H{canvas.right}", "limit"))
    text = f"limit {three_digits(limit)} {unit}".rstrip()
    rows = (y - 4, y + 13)
    choices = [Label(canvas.right - 2, row, text, "limit", "end") for row in rows]
    middle = (canvas.left + canvas.right) / 2
    choices += [Label(middle, row, text, "limit", "middle") for row in rows]
    choices += [Label(canvas.left + 4, row, text, "limit") for row in rows]
    canvas.put(*choices)
    steps = int((canvas.right - canvas.left) // 6)
    canvas.taken += [(canvas.left + 6 * step, y) for step in range(steps)]


def _extent(label: Label) -> tuple[float, float]:
    width = len(label.text) * _LETTER
    before = {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
    return label.x - before, label.x - before + width


def _words(title: str, curves: Sequence[Curve], canvas: _Canvas) -> str:
    """What the plot shows, for who cannot see it."""
    lines = [
        f"{_name(c.key)} from {three_digits(c.low or 0.0)} to {three_digits(c.high or 0.0)} {c.unit}".rstrip()
        for c in curves
    ]
    rest = [label.text for label in canvas.labels if label.kind in {"third", "limit"}]
    rest += [text for kind, text in canvas.legend.items() if not kind.startswith("line")]
    return "; ".join([*lines, *rest]) or title
