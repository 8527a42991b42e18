"""Key figures of runs: one number of a run by an expression such as ``max(load.latency{quantile="p99"})``.

The stretch. With ``phase="soak"`` all phases of that name; with ``phase="all"`` the whole run; without a phase the
phases ``soak``, ``stress`` and ``spike`` of the run, which are those under load, else the whole run. The search for the
capacity overloads on purpose and is none of them; what it found (``load.capacity``) is a figure of the whole run. A
reading tells of the interval before it: one that came less than an interval after the begin of a stretch tells of what
was before, and is left out where three are left without it. Counters are counted from edge to edge: a step over an edge
counts by its share.

Several series that fit (ports, flows, processes, generators): counts, rates, bytes and watts are added up, on a common
grid of time where the statistic is of readings; of shares and levels the mean; of times (latency) and temperatures the
highest; of ``max`` and ``min`` of those the highest and lowest. Percentiles are over readings, not over time. ``slope``
is the median slope of all pairs of readings in the same phase (Theil, 1950; Sen, JASA 63, 1968), per hour; it is wrong
for what grows in steps or falls back.

Missing is never zero: where less than half of the due polls were answered in the stretch there is no figure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from soakwatch.core.errors import RecordError
from soakwatch.core.formatting import number, quantity, small_share
from soakwatch.record.source import PollOutcomes, ReportSource, SeriesKey, Source
from soakwatch.runs.figure_spec import (
    ALL_PHASES,
    ALTERNATIVES,
    CAPACITY,
    CHOOSERS,
    Better,
    FigureSpec,
    FigureValue,
    better_of,
    parse_figure,
    ratio_unit,
)
from soakwatch_model.flow import BACK, PACKETS, SENT
from soakwatch_model.metric import BY_NAME, CATALOGUE, COUNTER, flows
from soakwatch_model.roles import DUT
from soakwatch_model.sample import PollOutcome, object_labels
from soakwatch_model.series import Series, Trait
from soakwatch_model.window import Window
from soakwatch_rules.stats.counted_amounts import amount
from soakwatch_rules.stats.robust_level import robust_slope
from soakwatch_rules.wording.quantities import counted

__all__ = [
    "STANDARD",
    "UNDER_LOAD",
    "Better",
    "FigureSpec",
    "FigureValue",
    "NoFigureError",
    "figure_in_parts",
    "figure_of",
    "figure_of_series",
    "figure_over",
    "figure_text",
    "fits",
    "keys_of",
    "parse_figure",
    "standard_figures",
    "stretch_of",
]

UNDER_LOAD = ("soak", "stress", "spike")
"""The phases that a figure is of where its expression names none."""
_ANYWHERE = ("load.", "monitor.", "source.")  # metrics that are not asked of devices alone
_LEAST_SHARE = 0.5
_LEAST_READINGS = 3
_EARLY = 0.9  # of an interval: polls are not to the millisecond
_MARGIN_INTERVALS = 3
_AT_THE_EDGES = 0.01  # packets under way at the edges of a stretch, as a share of those sent
_LOSS = "load.loss"
_SENT_AND_BACK = (*flows(SENT, PACKETS, kind=COUNTER), *flows(BACK, PACKETS, kind=COUNTER))
_POWER = ("system.power", "system.energy")
Floats = NDArray[np.float64]

STANDARD: tuple[FigureSpec, ...] = tuple(
    parse_figure(text)
    for _, texts in sorted(
        (metric.figures.place, metric.figures.expressions or (metric.name,))
        for metric in CATALOGUE
        if metric.figures is not None
    )
    for text in texts
)
"""What people ask of a run first, most important first."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """The parts of a run that a figure is taken from, and their name in a sentence."""

    windows: tuple[Window, ...]
    words: str
    names: str = ""


class NoFigureError(Exception):
    """The run has no such figure; ``str()`` is the reason."""


def standard_figures(view: ReportSource) -> tuple[FigureSpec, ...]:
    """The usual figures of which this run has a series, most important first, then the watts of metrics of the user's
    own. Of several with the same words (a rate that was counted, and one that the generator reports) the first."""
    present = view.keys({spec.metric for spec in STANDARD})
    roles = view.roles()
    counted_loss = {_LOSS} if {key.metric for key in present} >= set(_SENT_AND_BACK) else set()
    usual: list[FigureSpec] = []
    for spec in STANDARD:
        there = any(fits(spec, key, roles) for key in present)
        divisible = spec.per is None or any(fits(spec.per, key, roles) for key in present)
        twice = any(spec.name == other.name for other in usual)
        if (there and divisible and not twice) or (spec.metric in counted_loss and spec.statistic == "mean"):
            usual.append(spec)
    every = view.keys()
    own = sorted({key.metric for key in every if key.metric not in BY_NAME})
    watts = [metric for metric in own if _trait(view, metric).unit == "W"]
    return (*usual, *(parse_figure(f"mean({metric})") for metric in watts))


def figure_of(view: ReportSource, spec: FigureSpec) -> FigureValue:
    """The figure of a run, in the unit of its metric (a rate per second, a slope per hour of that).

    None with the reason where the run does not have it. Raises RecordError for a damaged record.
    """
    if spec.per is not None:
        return _ratio(figure_of(view, replace(spec, per=None)), figure_of(view, spec.per))
    try:
        keys = keys_of(view, spec)
    except NoFigureError as error:
        if (loss := _loss_of_counters(view, spec)) is not None:
            return loss
        unit = _unit(spec, BY_NAME[spec.metric].unit if spec.metric in BY_NAME else "", None)
        return FigureValue(None, unit, better_of(spec.metric, spec.statistic), str(error))
    return figure_of_series(view, spec, keys)


def _ratio(over: FigureValue, under: FigureValue) -> FigureValue:
    """One figure divided by another. The good direction is that of the numerator."""
    unit = ratio_unit(over.unit, under.unit)
    if over.value is None or under.value is None:
        return FigureValue(None, unit, over.better, over.reason or under.reason)
    if not under.value:
        return FigureValue(None, unit, over.better, "it would be a division by 0")
    return FigureValue(over.value / under.value, unit, over.better)


def _loss_of_counters(view: ReportSource, spec: FigureSpec) -> FigureValue | None:
    """The mean of load.loss for a generator that counts packets but reports no loss (TRex, Pktgen): packets that did
    not come back, as a share of those sent. Packets under way at the edges of the stretch count as lost or as come
    back."""
    if spec.metric != _LOSS or spec.statistic != "mean":
        return None
    counts = [replace(spec, metric=metric, statistic="total") for metric in _SENT_AND_BACK]
    if not all(any(fits(each, key, view.roles()) for key in view.keys({each.metric})) for each in counts):
        return None
    sent, back = (figure_of(view, each) for each in counts)
    better = better_of(spec.metric, spec.statistic)
    if sent.value is None or back.value is None:
        return FigureValue(None, "1", better, sent.reason or back.reason)
    if sent.value <= 0:
        return FigureValue(None, "1", better, "nothing was sent")
    lost = 1 - back.value / sent.value
    if lost < -_AT_THE_EDGES:
        return FigureValue(None, "1", better, f"{-lost:.2%} more packets came back than were sent: no loss can be told")
    return FigureValue(max(0.0, lost), "1", better)


def figure_of_series(view: ReportSource, spec: FigureSpec, keys: Sequence[SeriesKey]) -> FigureValue:
    """The figure of some series (at least one) of the spec's metric, taken together; otherwise as ``figure_of``."""
    trait = view.series(keys[0], 0, 0).trait
    unit = _unit(spec, trait.unit, trait)
    better = better_of(spec.metric, spec.statistic, trait.unit, trait.growth)
    try:
        phase = spec.labels.get("phase") or (ALL_PHASES if spec.metric.startswith(CAPACITY) else "")
        value = _value(view, spec, keys, stretch_of(view, phase))
    except NoFigureError as error:
        return FigureValue(None, unit, better, str(error))
    if not math.isfinite(value):
        return FigureValue(None, unit, better, "the readings are too large to be counted")
    return FigureValue(value, unit, better)


def figure_over(view: ReportSource, spec: FigureSpec, window: Window) -> float | None:
    """The figure over one window of the run, whatever phases its expression names; None where the window does not have
    it. Raises RecordError for a damaged record."""
    if spec.per is not None:
        over, under = figure_over(view, replace(spec, per=None), window), figure_over(view, spec.per, window)
        return over / under if over is not None and under else None
    try:
        value = _value(view, spec, keys_of(view, spec), RunParts((window,), "in a part of the run"))
    except NoFigureError:
        return None
    return value if math.isfinite(value) else None


def figure_in_parts(
    view: ReportSource, spec: FigureSpec, key: SeriesKey, windows: Sequence[Window]
) -> list[float | None]:
    """The figure of one series over each of several windows of a run. The record is read once."""
    read = _ReadOnce(view, key)
    values: list[float | None] = []
    for window in windows:
        try:
            value = _value(read, spec, [key], RunParts((window,), "in a part of the run"))
        except NoFigureError:
            values.append(None)
        else:
            values.append(value if math.isfinite(value) else None)
    return values


def figure_text(spec: FigureSpec, value: FigureValue) -> str:
    """A figure in words: a loss is "0 %" only where nothing was lost, counts are whole; "–" where there is no figure.

    >>> figure_text(parse_figure("load.loss"), FigureValue(1e-6, "1"))
    'under 0.01 %'
    """
    if value.value is None:
        return "–"
    if value.unit == "1" and spec.metric in BY_NAME and spec.statistic != "slope":
        return small_share(value.value)
    if spec.statistic == "total" and value.unit.startswith("{"):
        return number(round(value.value))
    return quantity(value.value, value.unit)


def stretch_of(view: ReportSource, phase: str = "") -> RunParts:
    """The parts of the run that the label ``phase`` of a figure means ("" where it has none). Raises NoFigureError."""
    try:
        whole = view.window()
    except RecordError as error:
        raise NoFigureError("the run holds no poll yet") from error
    phases = [each for each in view.phases() if each.window.end_ns > each.window.begin_ns]
    if phase == ALL_PHASES:
        return RunParts((whole,), "the whole run")
    names = (phase,) if phase else UNDER_LOAD
    chosen = [each for each in phases if each.name in names]
    if chosen:
        named = ", ".join(dict.fromkeys(each.name for each in chosen))
        return RunParts(tuple(each.window for each in chosen), f"in {named}", named)
    if phase:
        known = ", ".join(dict.fromkeys(each.name for each in phases))
        raise NoFigureError(f"the run has no phase {phase}" + (f"; it has {known}" if known else ""))
    return RunParts((whole,), "in the whole run")


def keys_of(view: ReportSource, spec: FigureSpec) -> tuple[SeriesKey, ...]:
    """The series of a figure, at least one. Raises NoFigureError where there is none, or where several tell the same
    thing in different ways (quantiles)."""
    available, roles = view.keys({spec.metric}), view.roles()
    keys = tuple(key for key in available if fits(spec, key, roles))
    if spec.metric in _POWER and not {"sensor", "object"} & spec.labels.keys():
        keys = _whole_power(keys)
    if not keys:
        raise NoFigureError(_why_none(spec, available, roles))
    for name in ALTERNATIVES:
        values = sorted({object_labels_of(key).get(name, "") for key in keys})
        if len(values) > 1:
            shown = ", ".join(value for value in values if value)
            raise NoFigureError(f"{spec.metric} has several values of {name} here ({shown}): choose one of them")
    return keys


_WHOLES = (
    re.compile(r"\btotal\b", re.IGNORECASE),  # what a controller or a rack PDU says of the whole
    re.compile(r"\b(?:input|inlet|p?in)\b", re.IGNORECASE),  # of each supply, at the wall
    re.compile(r"\b(?:output|p?out)\b", re.IGNORECASE),  # behind the supplies
    re.compile(r"^rapl psys$"),  # the platform, as its processor knows it
    re.compile(r"^rapl package-\d+(?: dram)?$"),  # core and uncore are parts of the package, its memory is not
)
"""Names of the sensors that together are the whole of a machine, nearest to the wall first."""


def _whole_power(keys: Sequence[SeriesKey]) -> tuple[SeriesKey, ...]:
    """Of the sensors of each target those that together are the whole of it, nearest to the wall first.

    Where no name says so all of them stay: an exporter's or a generator's sensors are of parts that add up.

    >>> key = lambda sensor: SeriesKey("dut", "system.power", f"sensor={sensor}")
    >>> names = ("rapl package-0", "rapl package-0 core", "rapl package-0 dram", "PSU 1 input", "PSU 1 output")
    >>> [each.object for each in _whole_power([key(name) for name in names])]
    ['sensor=PSU 1 input']
    >>> [each.object for each in _whole_power([key(name) for name in names[:3]])]
    ['sensor=rapl package-0', 'sensor=rapl package-0 dram']
    """
    chosen: list[SeriesKey] = []
    for target in dict.fromkeys(key.target for key in keys):
        own = [key for key in keys if key.target == target]
        chosen += next((found for whole in _WHOLES if (found := [k for k in own if whole.search(_sensor(k))])), own)
    return tuple(chosen)


def _sensor(key: SeriesKey) -> str:
    return object_labels(key.object).get("sensor", "") if "=" in key.object else key.object


def object_labels_of(key: SeriesKey) -> Mapping[str, str]:
    """The labels of a series; none where its object is a plain name."""
    return object_labels(key.object) if "=" in key.object else {}


def fits(spec: FigureSpec, key: SeriesKey, roles: Mapping[str, str]) -> bool:
    """Whether a series belongs to a figure. Without role and target, a figure is of the devices, the load and the
    monitor."""
    if key.metric != spec.metric:
        return False
    role, target = spec.labels.get("role"), spec.labels.get("target")
    if role is None and target is None and not key.metric.startswith(_ANYWHERE):
        role = DUT
    if (role is not None and roles.get(key.target) != role) or (target is not None and key.target != target):
        return False
    if spec.labels.get("object", key.object) != key.object:
        return False
    return _fits_labels(spec, key)


def _why_none(spec: FigureSpec, available: Sequence[SeriesKey], roles: Mapping[str, str]) -> str:
    """Why no series fits, in one sentence."""
    if not available:
        return f"the run has no {spec.metric}"
    anywhere = replace(spec, labels={k: v for k, v in spec.labels.items() if k not in {"role", "target", "object"}})
    targets = sorted({key.target for key in available if _fits_labels(anywhere, key)})
    if targets:
        have = ", ".join(f"{name} ({roles.get(name, 'no role')})" for name in targets)
        return f"no target that is meant has {spec.metric}; it is known of {have}"
    wanted = ", ".join(f'{k}="{v}"' for k, v in anywhere.labels.items() if k != "phase")
    there = sorted({key.object for key in available})
    shown = "; ".join(there[:6]) + (" …" if len(there) > 6 else "")
    usual = [name for name in ALTERNATIVES if name in anywhere.labels]
    if not shown and usual:
        return f'no {spec.metric} with {wanted} here; there is one that does not say it: choose it by {usual[0]}=""'
    return f"no {spec.metric} with {wanted} here; there is {shown or 'one without labels'}"


def _fits_labels(spec: FigureSpec, key: SeriesKey) -> bool:
    """Whether a series has the labels of an expression. A label that is asked for as "" has to be missing."""
    labels = object_labels_of(key)
    return all(labels.get(name, "") == value for name, value in spec.labels.items() if name not in CHOOSERS)


def _trait(view: ReportSource, metric: str) -> Trait:
    return view.series(view.keys({metric})[0], 0, 0).trait


def _unit(spec: FigureSpec, unit: str, trait: Trait | None) -> str:
    entry = BY_NAME.get(spec.metric)
    kind = trait.kind if trait is not None else entry.kind if entry is not None else ""
    per_second = kind == "counter" and spec.statistic not in {"total", "last"}
    return unit + ("/s" if per_second else "") + ("/h" if spec.statistic == "slope" else "")


# --- the number ------------------------------------------------------------------------------------------------------


def _value(view: _Readings, spec: FigureSpec, keys: Sequence[SeriesKey], stretch: RunParts) -> float:
    """The number. Raises NoFigureError with the reason."""
    series = []
    for key in keys:
        read = _read(view, key, stretch)
        _check_answered(view, key, read, stretch)
        if any(len(read.between(w.begin_ns, w.end_ns)) for w in stretch.windows):
            series.append(read)
    if not series:
        raise NoFigureError(f"no reading {stretch.words}")
    kind = series[0].trait.kind
    if spec.statistic in {"rate", "total"} and kind != "counter":
        raise NoFigureError(f"{spec.statistic} needs a counter, but {spec.metric} is a {kind}: ask for its mean")
    with np.errstate(all="ignore"):
        if kind == "counter" and spec.statistic in {"rate", "total", "mean"}:
            return _counted(series, stretch, total=spec.statistic == "total")
        if spec.statistic == "last":
            return _joined(spec, series[0].trait, [_last(each, stretch) for each in series])
        parts = [_readings(each, stretch) for each in series]
        added = _is_added(spec.metric, series[0].trait)
        if added and len(parts) > 1:
            return _taken(spec.statistic, _added(series, parts, stretch))
        return _joined(spec, series[0].trait, [_taken(spec.statistic, each) for each in parts])


class _Readings(Protocol):
    """What a number is taken from: a record, or one series of it in memory."""

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series: ...

    def source_of(self, key: SeriesKey) -> Source | None: ...

    def poll_outcomes(self, source: int) -> PollOutcomes: ...


class _ReadOnce:
    """One series of a record, and how its source was polled, in memory."""

    def __init__(self, view: ReportSource, key: SeriesKey) -> None:
        self._series, self._source = view.series(key), view.source_of(key)
        self._polls = None if self._source is None else view.poll_outcomes(self._source.id)

    def series(self, key: SeriesKey, begin_ns: int | None = None, end_ns: int | None = None) -> Series:
        """Its readings in a window."""
        del key
        return self._series.between(begin_ns or 0, 2**62 if end_ns is None else end_ns)

    def source_of(self, key: SeriesKey) -> Source | None:
        """Its source."""
        del key
        return self._source

    def poll_outcomes(self, source: int) -> PollOutcomes:
        """The polls of its source."""
        del source
        assert self._polls is not None
        return self._polls


Part = tuple[Floats, Floats]
"""Seconds since 1970 and values of the readings in one window, shapes (n,)."""


def _read(view: _Readings, key: SeriesKey, stretch: RunParts) -> Series:
    """The readings of the stretch, and a few before and after it: counters need them at the edges."""
    first = view.series(key, 0, 0)
    margin = round(_MARGIN_INTERVALS * (first.cadence_s or 60.0) * 1e9)
    return view.series(key, stretch.windows[0].begin_ns - margin, stretch.windows[-1].end_ns + margin).finite()


def _check_answered(view: _Readings, key: SeriesKey, series: Series, stretch: RunParts) -> None:
    """Raises NoFigureError where less than half of the polls of the series' source were answered, unless the series has
    half of its due readings: another source of the target may have filled the gap."""
    source = view.source_of(key)
    if source is None:
        return
    lasted = sum(window.seconds for window in stretch.windows)
    readings = sum(len(series.between(window.begin_ns, window.end_ns)) for window in stretch.windows)
    if series.cadence_s and readings * series.cadence_s >= _LEAST_SHARE * lasted:
        return
    polls = view.poll_outcomes(source.id)
    due = got = 0
    for window in stretch.windows:
        low, high = np.searchsorted(polls.due_ns, [window.begin_ns, window.end_ns])
        due += int(high - low)
        got += int((polls.outcome[low:high] == polls.words.index(PollOutcome.OK.value)).sum())
    if due and got < _LEAST_SHARE * due:
        raise NoFigureError(f"{source.label} answered {got} of {counted(due, 'poll')} {stretch.words}: less than half")


def _readings(series: Series, stretch: RunParts) -> list[Part]:
    """The readings of each window, counters as rates, without readings that tell of the time before the window."""
    rates = series.spaced().rate().finite() if series.trait.kind == "counter" else series
    early = round(_EARLY * (series.cadence_s or 0.0) * 1e9)
    parts = []
    for window in stretch.windows:
        inside = rates.between(window.begin_ns, window.end_ns)
        settled = inside.between(window.begin_ns + early, window.end_ns)
        chosen = settled if len(settled) >= _LEAST_READINGS else inside
        if len(chosen):
            parts.append((np.asarray(chosen.time_ns * 1e-9, dtype=np.float64), chosen.values))
    if not parts:
        raise NoFigureError(f"no two readings of {series.metric} {stretch.words}")
    return parts


def _counted(series: Sequence[Series], stretch: RunParts, *, total: bool) -> float:
    """What counters counted, added up: the total, or the rate over the time that each of them was read."""
    amounts = [[amount([each], w.begin_ns, w.end_ns) for w in stretch.windows] for each in series]
    known = [(sum(count for count, _ in parts), sum(seconds for _, seconds in parts)) for parts in amounts]
    if not any(seconds > 0 for _, seconds in known):
        raise NoFigureError(f"no two readings of {series[0].metric} {stretch.words}")
    return sum(count if total else count / seconds for count, seconds in known if seconds > 0)


def _last(series: Series, stretch: RunParts) -> float:
    inside = [series.between(window.begin_ns, window.end_ns) for window in stretch.windows]
    return float([part for part in inside if len(part)][-1].value[-1])


def _is_added(metric: str, trait: Trait) -> bool:
    """Whether several series are parts of a whole.

    >>> _is_added("queue.usage", Trait("By", "gauge")), _is_added("load.latency", Trait("s", "gauge"))
    (True, False)
    """
    if metric == "process.cpu.utilization":  # of cores, not of a whole
        return True
    return trait.kind == "counter" or trait.unit not in {"1", "s", "Cel", "Hz"}


def _joined(spec: FigureSpec, trait: Trait, values: Sequence[float]) -> float:
    """Combines the figures of several series into one."""
    if _is_added(spec.metric, trait):
        return sum(values)
    if spec.statistic == "min":
        return min(values)
    return max(values) if spec.statistic == "max" or trait.unit in {"s", "Cel"} else sum(values) / len(values)


def _added(series: Sequence[Series], parts: Sequence[list[Part]], stretch: RunParts) -> list[Part]:
    """The sum of several series over a common grid of time, where all of them have a reading.

    Raises NoFigureError where they share less than half of the grid.
    """
    width = max(each.cadence_s or 0.0 for each in series)
    if not width:
        steps = np.concatenate([np.diff(each.time_ns) for each in series if len(each) > 1] or [np.array([10**9])])
        width = max(float(np.median(steps)) * 1e-9, 1e-3)
    added: list[Part] = []
    whole = shared = 0
    for window in stretch.windows:
        begin, number_of = window.begin_ns * 1e-9, max(1, math.ceil(window.seconds / width))
        sums, seen = np.zeros(number_of), np.zeros(number_of, dtype=np.int64)
        for windows in parts:
            time = np.concatenate([t for t, _ in windows])
            value = np.concatenate([v for _, v in windows])
            index = np.floor((time - begin) / width).astype(np.int64)
            good = (index >= 0) & (index < number_of)
            count = np.bincount(index[good], minlength=number_of)
            sums += np.bincount(index[good], weights=value[good], minlength=number_of) / np.maximum(count, 1)
            seen += count > 0
        every = seen == len(parts)
        whole, shared = whole + int((seen > 0).sum()), shared + int(every.sum())
        if every.any():
            added.append((np.asarray(begin + (np.flatnonzero(every) + 0.5) * width, dtype=np.float64), sums[every]))
    if not added or shared < _LEAST_SHARE * whole:
        raise NoFigureError(
            f"{len(parts)} series of {series[0].metric} fit, and they were not read at the same time: choose by labels"
        )
    return added


_PERCENTILES = {"median": 50, "p50": 50, "p90": 90, "p95": 95, "p99": 99}


def _taken(statistic: str, parts: Iterable[Part]) -> float:
    """The statistic of the readings of all windows together."""
    windows = list(parts)
    if statistic == "slope":
        return _slope(windows)
    values = np.concatenate([value for _, value in windows])
    if statistic in _PERCENTILES:
        return float(np.percentile(values, _PERCENTILES[statistic]))
    taken: Mapping[str, Callable[[Floats], object]] = {"mean": np.mean, "min": np.min, "max": np.max}
    return float(np.asarray(taken[statistic](values)))


def _slope(windows: Sequence[Part]) -> float:
    """The slope per hour; of several windows the mean of their slopes, weighted by their lengths."""
    slopes = [(robust_slope(time - time[0], value), float(time[-1] - time[0])) for time, value in windows]
    known = [(slope, length) for slope, length in slopes if slope is not None]
    if not known:
        raise NoFigureError("too few readings for a slope: at least three in one phase are needed")
    return 3600.0 * sum(slope * length for slope, length in known) / sum(length for _, length in known)
