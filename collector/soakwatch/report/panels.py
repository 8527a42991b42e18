"""The panels of an overview: for each target the standard topics, few series as lines and many as a heat map."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.core.formatting import Scale, natural, scale_of
from soakwatch.core.units import show_seconds
from soakwatch.judge.rates import Rate
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch.report.candidates import MAX_SERIES_READ, SeriesSummary, candidates, order_of, summaries_of
from soakwatch.report.curves import Curve, Glance, curve_of
from soakwatch.report.heat_cells import MAX_ROWS, HeatMap
from soakwatch.report.topics import TOPICS, Topic, further
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric_queries import drop_counters, usual_in
from soakwatch_model.roles import DUT, GENERATOR, MONITOR
from soakwatch_model.sample import object_labels
from soakwatch_model.shown import CPU, LATENCY, LOSS, MEMORY, PROCESS_MEMORY, THROUGHPUT
from soakwatch_model.window import Window

LINES, MOVING = 12, 6
"""Up to so many series are lines in one plot; of more, so many that move most have small plots below their heat map."""
POINTS, FEW_POINTS = 2000, 800
KEY_PLOTS = 4
"""So many plots of a running run come first: those that matter most now."""
_FEW, _MAX_PANELS, _FURTHER, _MAX_TRIED, _FEW_LINES = 3, 60, 4, 10, 5
_INSTANCE = "instance"
_ROLES = (DUT, "host", GENERATOR, MONITOR)
_OBJECTIONS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN)
_ALARMS = (Outcome.FAIL, Outcome.WARN)
_USUAL = tuple(
    frozenset(usual_in(topic)) | (frozenset(drop_counters()) if topic == LOSS else frozenset())
    for topic in (PROCESS_MEMORY, CPU, LOSS, MEMORY, THROUGHPUT, LATENCY)
)
"""What comes first where nothing speaks for anything else, in this order."""


@dataclass(frozen=True, slots=True, eq=False)
class OverviewPanel:
    """One topic of one target. ``curves`` are its lines, or, below a ``heat`` map, the series that move most.

    ``names`` belong to the curves; ``limit`` is in their unit; ``note`` says what is shown and what was left out. A
    panel without curves has only its note: there was nothing to see.
    """

    target: str
    title: str
    metrics: frozenset[str]
    curves: tuple[Curve, ...]
    names: tuple[str, ...]
    heat: HeatMap | None = None
    limit: float | None = None
    note: str = ""

    @property
    def flat(self) -> bool:
        """Whether every reading is zero."""
        drawn = [curve for curve in self.curves if curve.low is not None]
        return self.heat is None and bool(drawn) and not any(curve.low or curve.high for curve in drawn)


def panels_of(
    source: ReportSource,
    window: Window | None = None,
    findings: Sequence[Finding] = (),
    points: int = POINTS,
    seen: dict[SeriesKey, Glance] | None = None,
) -> tuple[OverviewPanel, ...]:
    """The panels of every target: devices first, those with failures before others; the monitor's own last.

    Series with ``findings`` that object are kept where not all can be shown. At most 60 panels. ``seen`` is filled with
    what was seen of each series that was read.
    """
    shown = window or source.window()
    objected = {SeriesKey(f.target, f.metric, f.object) for f in findings if f.outcome in _OBJECTIONS}
    glances = {} if seen is None else seen
    failing = {f.target for f in findings if f.outcome is Outcome.FAIL}
    keys = _keys_of(source)
    roles = source.roles()

    def rank(target: str) -> tuple[object, ...]:
        role = roles.get(target, "")
        return (_ROLES.index(role) if role in _ROLES else 1, target not in failing, natural(target))

    panels: list[OverviewPanel] = []
    for target in sorted(keys, key=rank):
        if len(panels) < _MAX_PANELS:
            panels += _of_target(source, target, keys[target], shown, objected, points, glances)
    return tuple(panels)


def _keys_of(source: ReportSource) -> dict[str, dict[str, list[SeriesKey]]]:
    """The series of each target by metric, in their order."""
    keys: dict[str, dict[str, list[SeriesKey]]] = {}
    for key in sorted(source.keys()):
        keys.setdefault(key.target, {}).setdefault(key.metric, []).append(key)
    return keys


def key_panels(
    panels: Sequence[OverviewPanel], findings: Sequence[Finding], rates: Sequence[Rate]
) -> Mapping[int, int]:
    """The panels that matter most now: their indexes, each with its rank from 1 on. First come those with a failure,
    then those with a warning, those that grow, and one of each usual kind, of several devices that with the highest
    readings. A heat map is chosen only for a finding, a flat panel never."""
    alarms = {(f.target, f.metric): _ALARMS.index(f.outcome) for f in reversed(findings) if f.outcome in _ALARMS}
    growing = {(rate.target, rate.metric) for rate in rates}
    urgency: list[tuple[int, int, int, int]] = []
    kinds: dict[int, list[tuple[float, int]]] = {}
    for place, panel in enumerate(panels):
        told = [alarms[panel.target, metric] for metric in panel.metrics if (panel.target, metric) in alarms]
        usual = next((n for n, metrics in enumerate(_USUAL) if metrics & panel.metrics), None)
        if panel.flat or all(curve.high is None for curve in panel.curves) or (panel.heat is not None and not told):
            continue
        if told:
            urgency.append((min(told), 0, usual or 0, place))
        elif any((panel.target, metric) in growing for metric in panel.metrics):
            urgency.append((len(_ALARMS), 0, usual or 0, place))
        elif usual is not None:
            peak = max(curve.high / curve.scale.factor for curve in panel.curves if curve.high is not None)
            kinds.setdefault(usual, []).append((-peak, place))
    for usual, alike in kinds.items():
        urgency += [(len(_ALARMS) + 1, turn, usual, place) for turn, (_, place) in enumerate(sorted(alike))]
    return {place: rank for rank, (*_, place) in enumerate(sorted(urgency)[:KEY_PLOTS], 1)}


def first_panels(
    source: ReportSource, window: Window, findings: Sequence[Finding] = (), rates: Sequence[Rate] = ()
) -> tuple[OverviewPanel, ...]:
    """A first guess at what ``key_panels`` will choose: at most ``KEY_PLOTS`` panels of a few series with few points,
    to be seen while all series of a long run are read.

    Which of several devices reads highest is not known yet: the first by role and name is taken.
    """
    keys = _keys_of(source)
    roles = source.roles()
    places_of = {role: place for place, role in enumerate(_ROLES)}
    targets = sorted(keys, key=lambda name: (places_of.get(roles.get(name, ""), 1), natural(name)))
    told = sorted((f for f in findings if f.outcome in _ALARMS and f.metric), key=lambda f: _ALARMS.index(f.outcome))
    wanted = [SeriesKey(f.target, f.metric, f.object) for f in told]
    wanted += [SeriesKey(rate.target, rate.metric, rate.object) for rate in rates]
    places = [(key.target, topic) for key in wanted for topic in TOPICS if key.metric in topic.metrics]
    for usual in _USUAL:
        alike = ((name, topic) for name in targets for topic in TOPICS if usual & topic.metrics & keys[name].keys())
        places += [place for place in (next(alike, None),) if place is not None]
    objected, panels = frozenset(wanted), list[OverviewPanel]()
    for target, topic in list(dict.fromkeys(places))[:_MAX_TRIED]:
        there = [key for metric, found in keys.get(target, {}).items() if metric in topic.metrics for key in found]
        few: dict[str, list[SeriesKey]] = {}
        for key in sorted(there, key=lambda key: (key not in objected, order_of(key)))[:_FEW_LINES]:
            few.setdefault(key.metric, []).append(key)
        panel = _panel(source, target, topic, few, window, objected, FEW_POINTS, {})
        if panel is not None and not panel.flat and any(curve.high is not None for curve in panel.curves):
            panels.append(replace(panel, note=""))
        if len(panels) == KEY_PLOTS:
            break
    return tuple(panels)


def _of_target(
    source: ReportSource,
    target: str,
    keys: dict[str, list[SeriesKey]],
    window: Window,
    objected: Collection[SeriesKey],
    points: int,
    glances: dict[SeriesKey, Glance],
) -> list[OverviewPanel]:
    def panel_of(topic: Topic) -> OverviewPanel | None:
        return _panel(source, target, topic, keys, window, objected, points, glances)

    panels = [panel_of(topic) for topic in TOPICS]
    if not any(panel is not None for panel in panels):
        panels = [panel_of(topic) for topic in further(keys, _FURTHER)]
    return [panel for panel in panels if panel is not None]


def _panel(
    source: ReportSource,
    target: str,
    topic: Topic,
    keys: dict[str, list[SeriesKey]],
    window: Window,
    objected: Collection[SeriesKey],
    points: int,
    glances: dict[SeriesKey, Glance],
) -> OverviewPanel | None:
    for choice in topic.choices:
        keys_found = [key for metric in choice for key in keys.get(metric, ())]
        chosen = candidates(source, keys_found, window, objected)
        many = len(chosen) > LINES
        seen: list[SeriesSummary] = []
        for summary in summaries_of(source, chosen, window, how=topic.how if many else None):
            seen.append(summary)
            glances[summary.key] = summary.glance
        if seen:
            metrics = frozenset(choice)
            shown = [summary for summary in seen if summary.high > 0] if topic.calm else seen
            if not shown:
                return OverviewPanel(target, topic.title, metrics, (), (), note=_calm(len(keys_found)))
            return _drawn(source, target, topic, shown, len(keys_found), window, objected, points, metrics)
    return None


def _drawn(
    source: ReportSource,
    target: str,
    topic: Topic,
    seen: Sequence[SeriesSummary],
    total: int,
    window: Window,
    objected: Collection[SeriesKey],
    points: int,
    metrics: frozenset[str],
) -> OverviewPanel:
    scale = _scale(seen)
    several = len({summary.key.metric for summary in seen}) > 1
    read = min(total, MAX_SERIES_READ)
    notes = [f"{read} of {total} series shown: those with findings, then the highest"] if read < total else []
    if topic.calm and read > len(seen):
        notes.append(f"{read - len(seen)} of {read} stayed at zero")
    heat = None
    shown = list(seen)
    if len(seen) > LINES:  # so many lines cover one another
        worst = sorted(seen, key=lambda summary: (summary.key not in objected, -summary.high))[:MAX_ROWS]
        rows = sorted(worst, key=lambda summary: order_of(summary.key))
        heat = _heat(target, topic, rows, scale, window, several=several, log=seen[0].unit == "By")
        notes.insert(0, f"the {topic.how} of each {show_seconds(heat.bin_s)}, hatched where samples are missing")
        if len(rows) < len(seen):
            notes.append(f"{len(rows)} of {len(seen)} series: those with findings, then the highest")
        shown = sorted(seen, key=lambda summary: (summary.key not in objected, -summary.moved, order_of(summary.key)))[
            :MOVING
        ]
        shown.sort(key=lambda summary: order_of(summary.key))
        notes.append(f"below, the {len(shown)} that varied most")
    finest = min(points, FEW_POINTS) if len(shown) > _FEW else points
    curves = [curve_of(source.series(summary.key, window.begin_ns, window.end_ns), finest, scale) for summary in shown]
    if any(curve.rate for curve in curves):
        notes.append("counters as rates")
    return OverviewPanel(
        target,
        topic.title,
        metrics,
        tuple(curves),
        labels_of([summary.key for summary in shown], several=several),
        heat,
        None if heat else _limit(source, target, topic, scale, max(summary.high for summary in seen)),
        "; ".join(notes),
    )


def _heat(
    target: str, topic: Topic, rows: Sequence[SeriesSummary], scale: Scale, window: Window, *, several: bool, log: bool
) -> HeatMap:
    """The series as rows of a heat map; ``log`` for sizes in bytes, which lie decades apart."""
    return HeatMap(
        target,
        json.dumps([target, topic.title], ensure_ascii=False, separators=(",", ":")),
        labels_of([summary.key for summary in rows], several=several),
        (np.stack([summary.row for summary in rows]) * scale.factor).astype(np.float32),
        window,
        scale.label,
        topic.how,
        log,
    )


def _scale(seen: Sequence[SeriesSummary]) -> Scale:
    """The scale of all series; if their units differ, plain values per second."""
    if len({summary.unit for summary in seen}) > 1:
        return Scale(1.0, "per second")
    return scale_of(seen[0].unit, max(abs(summary.high) for summary in seen))


def _limit(source: ReportSource, target: str, topic: Topic, scale: Scale, high: float) -> float | None:
    """The maximum that the device states, in the scale; None unless the readings come near enough to see both."""
    if not topic.limit:
        return None
    stated = source.series(SeriesKey(target, topic.limit, "")).finite()
    if not len(stated) or float(stated.value[-1]) > 3 * high:
        return None
    return float(stated.value[-1]) * scale.factor


def _calm(counted: int) -> str:
    return f"{'the counter' if counted == 1 else f'all {counted} counters'} stayed at zero"


def labels_of(keys: Sequence[SeriesKey], *, several: bool) -> tuple[str, ...]:
    """The names of the lines of one target: their labels, and with ``several`` their metrics. The instance is left out
    if there is only one.

    >>> key = lambda metric, of: SeriesKey("fw", metric, of)
    >>> labels_of([key("m", "process=httpd,instance=0"), key("m", "process=a,instance=1")], several=False)
    ('httpd', 'a 1')
    >>> labels_of([key("m", f"process=httpd,instance={number}") for number in (0, 1)], several=False)
    ('httpd 0', 'httpd 1')
    >>> labels_of([key("system.cpu.core.utilization", "core=3")], several=False)
    ('core 3',)
    """
    alike = Counter(_alike(key) for key in keys)
    return tuple(_label(key, several=several, only=alike[_alike(key)] == 1) for key in keys)


def _alike(key: SeriesKey) -> tuple[object, ...]:
    """What the instances of one thing have in common: the metric, and all labels but the instance."""
    labels = object_labels(key.object) if "=" in key.object else {"": key.object}
    return key.metric, *((name, value) for name, value in labels.items() if name != _INSTANCE)


def _label(key: SeriesKey, *, several: bool, only: bool) -> str:
    labels = object_labels(key.object) if "=" in key.object else {}
    told = {name: value for name, value in labels.items() if not (only and (name, value) == (_INSTANCE, "0"))} or labels
    words = [_word(name, value, alone=len(labels) == 1) for name, value in told.items()]
    text = " ".join(words) or key.object
    if several and not key.metric.startswith("system.cpu."):
        text = f"{key.metric.removeprefix('system.')} {text}".rstrip()
    return text or ("all" if several else key.metric)


def _word(name: str, value: str, *, alone: bool) -> str:
    """The value of a label; a bare number that stands alone gets the name of its label."""
    return f"{name} {value}" if alone and value.replace(".", "", 1).isdecimal() else value
