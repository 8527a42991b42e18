"""The subject of the one plot of a report: the lines of what failed, and the stretch of the run around the moment.

An unrelated line proves nothing: if what failed left no line, none is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from soakwatch.core.plain_names import plain_name
from soakwatch.record.source import SeriesKey
from soakwatch.report.curves import Curve, curve_of
from soakwatch.report.load import LoadTrace, TrafficGenerator
from soakwatch.report.page import IDENTITIES, POINTS, Page
from soakwatch.report.timeline import clipped
from soakwatch_model.finding import Finding
from soakwatch_model.flow import BACK, BITS, FAILED, OFFERED, PACKETS, REQUESTS, SENT
from soakwatch_model.metric import COUNTER, GAUGE, flows
from soakwatch_model.metric_queries import shown_in
from soakwatch_model.sample import object_labels
from soakwatch_model.shown import CPU, PROCESS_MEMORY
from soakwatch_model.window import Window
from soakwatch_rules.traits import Crash, Family, Marks, traits_of

MAX_LINES = 4
_AROUND_NS, _BESIDE_EVENT_NS = 300 * 10**9, 60 * 10**9
_LEAST_READINGS = 10  # on either side of the moment
_MOST = 0.5  # of the run: a longer stretch is the whole run
_OF_PROCESS = frozenset({Crash.PROCESS, Crash.CORE, Crash.MEMORY})
_FLOWS = frozenset(
    name
    for side in (OFFERED, SENT, BACK, FAILED)
    for what in (REQUESTS, PACKETS, BITS)
    for kind in (COUNTER, GAUGE)
    for name in flows(side, what, kind=kind)
)


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line with its name in words."""

    curve: Curve
    name: str


@dataclass(frozen=True, slots=True)
class ProofSubject:
    """What is drawn: lines of one unit in a stretch of the run, ``title`` for all of them."""

    lines: tuple[NamedLine, ...]
    window: Window
    title: str


def subject_of(page: Page, finding: Finding | None, failed_ns: int | None) -> ProofSubject:
    """The lines of what a finding judged, around ``failed_ns``, the moment of its cause.

    A process that died is shown by its memory; an event or lost traffic by the traffic offered and answered; a silence
    by the CPU of the target. A trend, and a finding without a moment, is shown over the whole run.
    """
    whole = page.verdict.window
    if finding is None:
        return ProofSubject((), whole, "")
    if traffic := _traffic(page, finding):
        window = _around(page, finding, failed_ns, traffic[0].series.cadence_s)
        cut = [
            (trace.series.between(window.begin_ns, window.end_ns), name) for trace, name in _named(traffic, page.load)
        ]
        found = [NamedLine(curve_of(series, POINTS), name) for series, name in cut]
        return ProofSubject(*_alike(found, window))
    keys = series_of(page, finding)
    cadence_s = page.source.series(keys[0]).cadence_s if keys else None
    window = _around(page, finding, failed_ns, cadence_s)
    if window == whole:
        curves = [page.curve(key) for key in keys]
    else:
        curves = [curve_of(page.source.series(key, window.begin_ns, window.end_ns), POINTS) for key in keys]
    found = [NamedLine(curve, _name(curve.key)) for curve in curves]
    found.sort(key=lambda line: -(line.curve.high or 0.0))
    return ProofSubject(*_alike(found, window))


def _alike(found: Sequence[NamedLine], window: Window) -> tuple[tuple[NamedLine, ...], Window, str]:
    """The lines with readings in the unit of the first, and a title for all of them."""
    drawn = [line for line in found if line.curve.low is not None]
    lines = tuple(line for line in drawn if line.curve.unit == drawn[0].curve.unit)[:MAX_LINES]
    names = ", ".join(line.name for line in lines[:2]) + (" and others" if len(lines) > 2 else "")
    unit = lines[0].curve.unit if lines else ""
    return lines, window, f"{names}, {unit}" if names and unit else names


def series_of(page: Page, finding: Finding) -> tuple[SeriesKey, ...]:
    """The series that show what failed."""
    traits = traits_of(finding.rule)
    judged = tuple(key for key in page.judged_by(finding) if key.metric not in IDENTITIES)[:50]
    if traits.crash in _OF_PROCESS:
        process = object_labels(finding.object).get("process") if "=" in finding.object else None
        return _memory_of(page, finding, process) or judged
    if (not judged and traits.family is Family.POLLS) or traits.standstill:
        cpu = SeriesKey(finding.target, shown_in(CPU)[0], "")
        return (cpu,) if cpu in page.keys else judged
    return judged


def _memory_of(page: Page, finding: Finding, process: str | None) -> tuple[SeriesKey, ...]:
    """The memory of a process by its name; of the instance that is named, where there are several."""
    for metric in shown_in(PROCESS_MEMORY):
        own = sorted(key for key in page.keys if (key.target, key.metric) == (finding.target, metric))
        exact = tuple(key for key in own if key.object == finding.object)
        named = tuple(key for key in own if process and object_labels(key.object).get("process") == process)
        if found := exact or named:
            return found
    return ()


def _traffic(page: Page, finding: Finding) -> tuple[LoadTrace, ...]:
    """The traffic offered and returned, for a finding on an event or on lost traffic that names no series."""
    of_event = "=" in finding.object and "event" in object_labels(finding.object)
    of_loss = finding.metric in _FLOWS or (
        traits_of(finding.rule).family is Family.TRAFFIC and not page.judged_by(finding)
    )
    if not of_event and not of_loss:
        return ()
    return tuple(trace for generator in page.load for trace in _both(generator))[: 2 * MAX_LINES]


def _both(generator: TrafficGenerator) -> Iterator[LoadTrace]:
    """Offered (or sent) and answered (or received) of a generator, in one unit."""
    for pair in ((generator.offered, generator.answered), generator.packets, generator.bits):
        there = [trace for trace in pair if trace is not None]
        if there:
            yield from dict.fromkeys((there[0], there[-1]))
            return


def _named(traces: Sequence[LoadTrace], load: Sequence[TrafficGenerator]) -> Iterator[tuple[LoadTrace, str]]:
    several = len({generator.target for generator in load}) > 1
    for trace in traces:
        words = f"requests {trace.word}" if trace.word in {"offered", "answered"} else trace.word
        yield trace, f"{words} ({trace.series.target})" if several else words


def _around(page: Page, finding: Finding, failed_ns: int | None, cadence_s: float | None) -> Window:
    """The stretch of the run around the moments: a minute on both sides of an event, else five, and enough readings."""
    run = page.verdict.window
    if failed_ns is None or traits_of(finding.rule).marks is Marks.WHOLE:
        return run
    ends = [mark.begin_ns if mark.end_ns is None else mark.end_ns for mark in finding.marks]
    begin_ns = min([failed_ns, *(mark.begin_ns for mark in finding.marks)])
    end_ns = max([failed_ns, *ends])
    of_event = "=" in finding.object and "event" in object_labels(finding.object)
    least_ns = round(_LEAST_READINGS * 1e9 * (cadence_s or 0.0))
    pad_ns = max(_BESIDE_EVENT_NS if of_event else max(_AROUND_NS, end_ns - begin_ns), least_ns)
    shown = clipped(begin_ns - pad_ns, end_ns + pad_ns, run)
    return run if shown.seconds > _MOST * run.seconds else shown


def _name(key: SeriesKey) -> str:
    return f"{plain_name(key.metric, key.object)} on {key.target}"
