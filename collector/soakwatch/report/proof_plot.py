"""The one plot that proves a verdict: phases, load, limit, the thirds or the slope that was found, silences, and the
moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from soakwatch.core.formatting import Scale, quantity, scale_of, source_name, utc
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve
from soakwatch.report.page import Page
from soakwatch.report.proof_subject import NamedLine, subject_of
from soakwatch.report.svg import (
    DAYS_S,
    LETTER,
    ROW,
    SvgBox,
    SvgCanvas,
    SvgDrawing,
    SvgLabel,
    SvgStroke,
    draw_grid,
    path_of,
    tick_texts,
    ticks_between,
)
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.traits import GrowthMethod, Marks, traits_of
from soakwatch_rules.wording.quantities import three_digits

_POINTS, _MAX_LOADS, _MAX_EVENTS, _MAX_MOMENTS = 600, 3, 40, 40
_ROOM = 1.15  # above the highest load
_LEAST_SPAN = 0.1  # share of a level: a smaller span is noise, which must not fill the plot


def proof_plot(
    page: Page, finding: Finding | None, width: int, height: int, failed_ns: int | None = None
) -> SvgDrawing | None:
    """The plot of the finding that decides; without one, of the finding that came nearest to its limit.

    ``failed_ns`` is the moment of its cause. None if the record holds neither what failed nor a load.
    """
    subject = subject_of(page, finding, failed_ns)
    curves = [line.curve for line in subject.lines]
    loads = _loads(page, subject.window, {curve.key for curve in curves})
    silent = any(_silent(page, finding, subject.window))
    if not curves and not loads and not silent:
        return None
    limit = _limit(finding, curves)
    low, high = _reach(curves, limit)
    unit = curves[0].unit if curves else ""
    ticks = ticks_between(low, high, max(3, height // 45)) if curves else ()
    load_scale = scale_of(loads[0].trait.unit, max(_peak(load) for load in loads)) if loads else None
    load_top = _ROOM * max(_peak(load) for load in loads) * load_scale.factor if load_scale else 0.0
    load_ticks = ticks_between(0.0, load_top, max(2, height // 70)) if load_top else ()
    days = page.verdict.window.seconds > DAYS_S
    # The margins are as wide as the words of the axes: they are known before the drawing is.
    left, right = (10.0 + _room_for(each) for each in (ticks, load_ticks))
    window = subject.window
    ends = window.begin_ns, window.end_ns, low, high
    canvas = SvgCanvas(width, height, *ends, left, width - right, 2.0 * ROW + 8, height - 22.0)
    # What is painted first lies below: load, grid, phases, silences, moments, and the lines last.
    canvas.strokes += [
        stroke for load in loads for stroke in _load_strokes(canvas, load, _top_of(load_top, load_scale))
    ]
    paths = [SvgStroke(path_of(canvas, curve), f"line{number}") for number, curve in enumerate(curves)]
    draw_grid(canvas, ticks, days=days)
    if load_scale is not None:
        _load_axis(canvas, load_ticks, load_top, load_scale.label, loads)
    _phases(canvas, page)
    _silences(canvas, page, finding, window)
    _moments(canvas, page, finding, failed_ns, days=days)
    canvas.strokes += paths
    if len(curves) > 1:
        canvas.legend |= {f"line{number}": line.name for number, line in enumerate(subject.lines)}
    if limit is not None and curves and low <= limit <= high:
        _limit_line(canvas, limit, unit)
    if finding is not None and curves:
        _thirds(canvas, finding, curves[0])
        _slope(canvas, finding, curves[0])
    title = subject.title or _title_without_lines(loads, silent=silent)
    return canvas.drawn(title, _words(title, subject.lines, canvas))


def _title_without_lines(loads: Sequence[Series], *, silent: bool) -> str:
    return "Load of the run" if loads and not silent else "When nothing was answered"


def _room_for(ticks: Sequence[float]) -> float:
    widest = max((len(text) for text in tick_texts(ticks)), default=0)
    return widest * LETTER + 6 if widest else 0.0


def _limit(finding: Finding | None, curves: Sequence[Curve]) -> float | None:
    """The limit in the unit of the line; None if it limits something else."""
    if finding is None or finding.limit is None or not curves or finding.unit != curves[0].source_unit:
        return None
    if finding.metric != curves[0].key.metric:
        return None
    if traits_of(finding.rule).growth is GrowthMethod.SHAPE:
        return None
    return finding.limit * curves[0].scale.factor


def _reach(curves: Sequence[Curve], limit: float | None) -> tuple[float, float]:
    """The ends of the axis of values: around the lines and a limit near them; a percentage ends at 100."""
    if not curves:
        return 0.0, 1.0
    lows = [curve.low for curve in curves if curve.low is not None]
    highs = [curve.high for curve in curves if curve.high is not None]
    low, high = min(lows), max(highs)
    if curves[0].unit == "%":
        return 0.0, 100.0 if high <= 100 else high * 1.05
    span = (high - low) or abs(high) or 1.0
    near = max(3 * span, abs(high))  # what passed is seen below its limit, however quiet it was
    if limit is not None and low - near <= limit <= high + near:
        low, high = min(low, limit), max(high, limit)
    if low >= 0 and (low < 0.5 * high or curves[0].source_unit.endswith("/s")):
        return 0.0, high * 1.06 or 1.0
    if high - low < _LEAST_SPAN * abs(high):
        low, high = ((low + high + sign * _LEAST_SPAN * abs(high)) / 2 for sign in (-1, 1))
    pad = 0.08 * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def _phases(canvas: SvgCanvas, page: Page) -> None:
    """The phases, shaded in turn. A name that would cover another moves to the second row, or only the tooltip has
    it."""
    phases = page.verdict.phases or page.source.phases()
    for number, phase in enumerate(phases):
        if phase.window.end_ns <= canvas.begin or canvas.end <= phase.window.begin_ns:
            continue
        x0, x1 = canvas.x(phase.window.begin_ns), canvas.x(phase.window.end_ns)
        canvas.boxes.append(
            SvgBox(x0, canvas.top, round(x1 - x0, 1), canvas.bottom - canvas.top, f"phase{number % 2}", phase.name)
        )
        places = ((x0 + 2, 11, "start"), (x0 + 2, 11 + ROW, "start"), (x1 - 1, 11 + ROW, "end"))
        canvas.put(*(SvgLabel(x, y, phase.name, "phase", side) for x, y, side in places))


def _loads(page: Page, window: Window, drawn_keys: set[SeriesKey]) -> list[Series]:
    """The load of each generator in the window, all in one unit, without those that are drawn as lines already."""
    rates = [generator.rate.series for generator in page.load if generator.rate is not None]
    there = [rate.between(window.begin_ns, window.end_ns).finite() for rate in rates]
    named = [rate for rate in there if len(rate)]
    if any(SeriesKey(rate.target, rate.metric, rate.object) in drawn_keys for rate in named):
        return []
    return [rate for rate in named if rate.trait.unit == named[0].trait.unit][:_MAX_LOADS]


def _peak(load: Series) -> float:
    return float(load.values.max())


def _top_of(shown: float, scale: Scale | None) -> float:
    """The highest rate of the axis in the unit of the record."""
    return shown / scale.factor if scale else 1.0


def _load_strokes(canvas: SvgCanvas, load: Series, top: float) -> list[SvgStroke]:
    """A load as a grey line over a light area, from zero to ``top`` at the height of the plot."""
    step = max(len(load) // _POINTS, 1)
    high = canvas.bottom - canvas.top
    points = [
        f"{canvas.x(int(time_ns))} {canvas.bottom - high * max(float(value), 0.0) / (top or 1.0):.1f}"
        for time_ns, value in zip(load.time_ns[::step], load.values[::step], strict=True)
    ]
    first, last = canvas.x(int(load.time_ns[0])), canvas.x(int(load.time_ns[-1]))
    area = f"M{first} {canvas.bottom}L{'L'.join(points)}L{last} {canvas.bottom}Z"
    return [SvgStroke(area, "load-area"), SvgStroke(f"M{'L'.join(points)}", "load", f"load of {load.target}")]


def _load_axis(canvas: SvgCanvas, ticks: Sequence[float], top: float, unit: str, loads: Sequence[Series]) -> None:
    """The axis of the load on the right, with its unit; its name in the legend."""
    high = canvas.bottom - canvas.top
    canvas.put(SvgLabel(canvas.width - 4, canvas.top - 6, f"load, {unit}", "load", "end"))
    for tick, text in zip(ticks, tick_texts(ticks), strict=True):
        y = round(canvas.bottom - high * tick / top, 1)
        canvas.strokes.append(SvgStroke(f"M{canvas.right} {y}h4", "axis"))
        canvas.put(SvgLabel(canvas.right + 6, y + 4, text, "load"))
    names = ", ".join(dict.fromkeys(load.target for load in loads))
    canvas.legend["load"] = f"load of {names}, {unit} (right axis)"


def _silent(page: Page, finding: Finding | None, window: Window) -> Iterator[tuple[Window, str]]:
    """The silences of the target's sources in the window, each with the name of its source."""
    target = "" if finding is None else finding.target
    for ledger in page.verdict.ledgers:
        if target and ledger.target != target:
            continue
        for silence in ledger.silences[:_MAX_EVENTS]:
            if silence.window.begin_ns < window.end_ns and window.begin_ns < silence.window.end_ns:
                yield silence.window, source_name(ledger)


def _silences(canvas: SvgCanvas, page: Page, finding: Finding | None, shown: Window) -> None:
    for window, name in _silent(page, finding, shown):
        x0, x1 = canvas.x(window.begin_ns), canvas.x(window.end_ns)
        height, title = canvas.bottom - canvas.top, f"{name} did not answer"
        canvas.boxes.append(SvgBox(x0, canvas.top, max(round(x1 - x0, 1), 1.5), height, "silence", title))
        canvas.legend["silence"] = "no answer"


def _moments(canvas: SvgCanvas, page: Page, finding: Finding | None, failed_ns: int | None, *, days: bool) -> None:
    """Where the finding points, and what else happened to the target; only ``failed_ns`` has its time written."""
    if finding is None:
        return
    pointed = [] if traits_of(finding.rule).marks is Marks.WHOLE else list(finding.marks)
    pointed = [mark for mark in pointed if canvas.begin <= mark.begin_ns <= canvas.end]
    first_ns = failed_ns if failed_ns is not None and pointed else min((m.begin_ns for m in pointed), default=None)
    for event in page.events_in(finding.target, Window(int(canvas.begin), int(canvas.end)))[:_MAX_EVENTS]:
        x = canvas.x(event.begin_ns)
        title = f"{event.kind} {event.object} {utc(event.begin_ns)}"
        canvas.strokes.append(SvgStroke(f"M{x} {canvas.top}V{canvas.bottom}", "event", title))
        canvas.legend["event"] = "event"
        name = SvgLabel(x + 3, canvas.top + 12, event.kind, "event")
        canvas.put(name, SvgLabel(x - 3, canvas.top + 12, event.kind, "event", "end"))
    moments = {mark.begin_ns: mark.text for mark in pointed[:_MAX_MOMENTS]}
    if first_ns is not None:
        moments.setdefault(first_ns, "")
    for begin_ns, text in sorted(moments.items()):
        x = canvas.x(begin_ns)
        canvas.strokes.append(SvgStroke(f"M{x} {canvas.top}V{canvas.bottom}", "moment", text))
        canvas.legend["moment"] = _moment_words(finding)
        if begin_ns == first_ns:
            form, y = "%d %b %H:%M:%S" if days else "%H:%M:%S", canvas.bottom - 6
            at = datetime.fromtimestamp(begin_ns // 10**9, UTC).strftime(form)
            rows = (y, canvas.top + 26, canvas.top + 40)
            sides = ((3, "start"), (-3, "end"))
            canvas.put(*(SvgLabel(x + by, row, at, "moment", side) for row in rows for by, side in sides))


def _moment_words(finding: Finding) -> str:
    """What the line at a moment says, for the legend."""
    if finding.outcome is not Outcome.FAIL:
        return "where"
    return traits_of(finding.rule).words.plain or "what failed"


def _thirds(canvas: SvgCanvas, finding: Finding, curve: Curve) -> None:
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
        canvas.boxes.append(SvgBox(x0, top, round(x1 - x0, 1), max(round(bottom - top, 1), 1.0), "third", title))
        canvas.strokes.append(SvgStroke(f"M{x0} {y}H{x1}", "third"))
        text = f"{word} third {three_digits(mean)} {curve.unit}"
        x, anchor = (x0 + 4, "start") if word == "first" else (x1 - 4, "end")
        heights = [height for at_x, height in canvas.taken if x0 <= at_x <= x1]
        above, below = min([top, *heights]) - 5, max([bottom, *heights]) + 13
        sides = ((x, anchor), (x1 + 4, "start") if word == "first" else (x0 - 4, "end"))
        rows = [(top - 5, sides[0]), (bottom + 13, sides[0]), (y + 4, sides[1]), (above, sides[0]), (below, sides[0])]
        canvas.put(
            *(
                SvgLabel(at_x, row, text, "third", side)
                for row, (at_x, side) in rows
                if canvas.top + 10 < row < canvas.bottom - 2
            )
        )


def _slope(canvas: SvgCanvas, finding: Finding, curve: Curve) -> None:
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
        max(finding.window.begin_ns, at - (canvas.end - canvas.begin) / 2),
        finding.window.end_ns,
    )
    ends = [(t, level + rate * (t - at) / 3.6e12) for t in (begin, end)]
    (x0, y0), (x1, y1) = ((canvas.x(t), canvas.y(v)) for t, v in ends)
    canvas.strokes.append(SvgStroke(f"M{x0} {y0}L{x1} {y1}", "third"))
    canvas.legend["third"] = f"slope at the end, {quantity(finding.measured, finding.unit)}"


def _limit_line(canvas: SvgCanvas, limit: float, unit: str) -> None:
    y = canvas.y(limit)
    canvas.strokes.append(SvgStroke(f"M{canvas.left} {y}H{canvas.right}", "limit"))
    text = f"limit {three_digits(limit)} {unit}".rstrip()
    rows = (y - 4, y + 13)
    choices = [SvgLabel(canvas.right - 2, row, text, "limit", "end") for row in rows]
    middle = (canvas.left + canvas.right) / 2
    choices += [SvgLabel(middle, row, text, "limit", "middle") for row in rows]
    choices += [SvgLabel(canvas.left + 4, row, text, "limit") for row in rows]
    canvas.put(*choices)
    steps = int((canvas.right - canvas.left) // 6)
    canvas.taken += [(canvas.left + 6 * step, y) for step in range(steps)]


def _words(title: str, lines: Sequence[NamedLine], canvas: SvgCanvas) -> str:
    """The plot in words, for readers who cannot see it."""
    texts = [
        f"{line.name} from {three_digits(line.curve.low or 0.0)} to {three_digits(line.curve.high or 0.0)} "
        f"{line.curve.unit}".rstrip()
        for line in lines
    ]
    rest = [label.text for label in canvas.labels if label.kind in {"third", "limit"}]
    rest += [text for kind, text in canvas.legend.items() if not kind.startswith("line")]
    return "; ".join([*texts, *rest]) or title
