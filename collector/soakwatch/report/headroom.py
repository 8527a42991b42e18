"""How far each series stayed from its limit, and how long until it is reached: limits of rules, and of the device."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from soakwatch.core.formatting import natural, quantity, share_text
from soakwatch.judge.cases import stretch
from soakwatch.record.source import ReportSource, SeriesKey
from soakwatch_model.event import Event
from soakwatch_model.fact import FullIn, Growth
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric import CATALOGUE, UP
from soakwatch_model.metric_queries import finite
from soakwatch_model.roles import MONITOR
from soakwatch_model.series import Series
from soakwatch_rules.detectors.forecast import Forecast
from soakwatch_rules.outlook import Outlook, outlook_of
from soakwatch_rules.traits import Judges, Limit, traits_of
from soakwatch_rules.wording.forecast import forecast_words, full_words

_UNITS = {metric.name: metric.unit for metric in CATALOGUE}
_STATED = {
    used: limit
    for limit in sorted(name for name in _UNITS if name.endswith(".limit"))
    for used in (
        f"{limit.removesuffix('limit')}usage",
        f"{limit.removesuffix('limit')}count",
        f"{limit.removesuffix('limit')}depth",
        limit.removesuffix(".limit"),
    )
    if _UNITS.get(used) == _UNITS[limit]
}
"""The metrics of what is used, each with the metric (of the same unit) in which the device states how much there is."""
_SHARES = tuple(metric.name for metric in CATALOGUE if metric.unit == "1" and metric.growth == UP)
_PROCESSORS = ("system.cpu.utilization", "system.cpu.module.utilization")
_MAX_SERIES_READ, _END = 200, 0.05  # series; the part of a run that is its end
_RULE = "rule "
_SOON_S = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Headroom:
    """How far one thing is from one limit. ``room`` is the share of it that is left, negative beyond it; ``full``
    is when a finite resource is used up; None of anything else, and where that is not known."""

    target: str
    about: tuple[str, str]
    measured: str
    at_end: str
    limit: str
    of: str
    room: float
    forecast: str
    after_s: float
    finding: Finding | None = None
    full: FullIn | None = None
    highest: float = math.nan  # in ``unit``, as ``most``; only of what a device states
    most: float = math.nan
    unit: str = ""

    @property
    def room_text(self) -> str:
        """The share that is left as a percentage that is never rounded up."""
        if self.room < 0:
            return f"{quantity(-self.room, '1')} over the limit"
        return share_text(self.room) if math.isfinite(self.room) else "–"


def rooms(
    source: ReportSource, findings: Iterable[Finding], events: Sequence[Event] = ()
) -> tuple[tuple[Headroom, ...], int]:
    """All headrooms, the worst first; and how many series were not read. ``events`` restart what fills up."""
    all_findings = tuple(findings)
    growing = _forecasts(all_findings)
    stated, left_out = _stated(source, growing, events)
    judged = [room for finding in all_findings if (room := _judged(finding)) is not None]
    every = [*stated, *judged]
    return tuple(sorted(every, key=_worst_first)), left_out


def nearest_limit(findings: Iterable[Finding]) -> Headroom | None:
    """What came nearest to a limit of a rule; None where no rule measured against a limit."""
    judged = [room for finding in findings if (room := _judged(finding)) is not None and room.target != MONITOR]
    return min(judged, key=lambda room: (room.room, room.target, room.about), default=None)


def first_full(headrooms: Iterable[Headroom]) -> Headroom | None:
    """The finite resource that is full first; where nothing grows, the one with the nearest bound. None where nothing
    has a forecast."""
    known = [(room.full, room) for room in headrooms if room.full is not None and room.target != MONITOR]
    by_time = [(math.inf if f.after_s is None else f.after_s, f.not_before_s, n) for n, (f, _) in enumerate(known)]
    return known[min(by_time)[2]][1] if by_time else None


def _worst_first(room: Headroom) -> tuple[object, ...]:
    """Sorting key: what is beyond its limit, then what is used up within a week, then other limits of the device, then
    limits of rules."""
    soon_s = room.after_s if room.after_s < _SOON_S else math.inf
    ruled = room.of.startswith(_RULE)
    return (room.room >= 0, soon_s, ruled, room.room, room.target, room.about[0], natural(room.about[1]))


def _judged(finding: Finding) -> Headroom | None:
    """The headroom of a finding below the upper limit of its rule; None if there is no such limit, or it is zero."""
    measured, limit = finding.measured, finding.limit
    if measured is None or not limit or _without_row(finding.rule) or finding.outcome is Outcome.NOT_APPLICABLE:
        return None
    if finding.fact(FullIn) is not None:  # its row is that of the resource
        return None
    if (measured <= limit) is (finding.outcome is Outcome.FAIL):  # a floor, or failed for another reason
        return None
    words = "" if finding.forecast is None else forecast_words(finding.forecast)
    after_s = math.inf if finding.forecast is None or not words else finding.forecast.after_s
    return Headroom(
        finding.target,
        (finding.metric, finding.object),
        quantity(measured, finding.unit),
        "",
        quantity(limit, finding.unit),
        f"{_RULE}{finding.rule}",
        _left(finding, measured, limit),
        words,
        after_s,
        finding,
    )


def _left(finding: Finding, measured: float, limit: float) -> float:
    """The share of the limit that is left. Growth is compared with the growth that is allowed, and not with the level:
    that limit is so near to the level that even a flat process would seem to have little left."""
    grew = finding.fact(Growth)
    if grew is not None and grew.change is not None and grew.tolerance:
        return 1 - abs(grew.change) / grew.tolerance if (grew.change > 0) == (limit > 0) else 1.0
    return (limit - measured) / abs(limit)


def _without_row(rule: str) -> bool:
    """Whether a rule has no row: one on polls, the set-up or other runs, or one whose limit is here already as the
    device's."""
    traits = traits_of(rule)
    return traits.judges is not Judges.DEVICE or traits.limit in {Limit.ROOM, Limit.RUNS}


Key = tuple[str, str, str]


def _forecasts(findings: Iterable[Finding]) -> Mapping[Key, Finding]:
    """The finding on the growth of each series; of several the gravest."""
    by_series: dict[Key, Finding] = {}
    for finding in findings:
        key = finding.subject
        traits = traits_of(finding.rule)
        if (traits.growth is not None or traits.limit is Limit.ROOM) and finding.outcome is not Outcome.NOT_APPLICABLE:
            before = by_series.get(key)
            if before is None or _weight(finding) < _weight(before):
                by_series[key] = finding
    return by_series


def _weight(finding: Finding) -> tuple[bool, int]:
    return (finding.forecast is None, finding.outcome.rank)


def _stated(
    source: ReportSource, growing: Mapping[Key, Finding], events: Sequence[Event]
) -> tuple[list[Headroom], int]:
    roles = source.roles()
    window = stretch(source.phases(), Forecast.phases) or source.window()
    every: tuple[SeriesKey, ...] = source.keys()
    keys = [key for key in every if roles.get(key.target) != MONITOR]
    keys.sort(key=lambda key: (key.metric, natural(key.object), key.target))
    there = set(keys)
    pairs = [
        (key, limit)
        for key in keys
        if key.metric in _STATED and (limit := SeriesKey(key.target, _STATED[key.metric], key.object)) in there
    ]
    alone = [key for key in keys if key.metric in _SHARES or (key.metric in _PROCESSORS)]
    wanted: list[tuple[SeriesKey, SeriesKey | None]] = [*((key, None) for key in alone), *pairs]
    rooms = []
    for key, limit_key in wanted[:_MAX_SERIES_READ]:
        most = 1.0 if limit_key is None else _last(source.series(limit_key))
        growth = growing.get((key.target, key.metric, key.object))
        series = source.series(key)
        bounded = replace(series, trait=replace(series.trait, ceiling=most))
        own = [event for event in events if event.target in {"", key.target}]
        outlook = outlook_of(bounded, window, own) if key.metric in finite() else None
        if most and (room := _room(series, most, growth, outlook)) is not None:
            rooms.append(room)
    return rooms, len(wanted[_MAX_SERIES_READ:])


def _last(series: Series) -> float:
    good = series.finite().value
    return float(good[-1]) if good.size else 0.0


def _room(series: Series, limit: float, growth: Finding | None, outlook: Outlook | None) -> Headroom | None:
    good = series.finite()
    if not len(good):
        return None
    values, unit = good.value, series.trait.unit
    end = values[int(len(values) * (1 - _END)) :]
    high = float(values.max())
    full = None
    if outlook is not None and outlook.full is not None:
        full = FullIn(outlook.full.not_before_s, outlook.full.after_s)
        words, after_s = full_words(full), math.inf if full.after_s is None else full.after_s
    else:
        words, after_s = _outlook(series.metric, growth)
    return Headroom(
        series.target,
        (series.metric, series.object),
        quantity(high, unit),
        quantity(float(np.median(end)), unit),
        quantity(limit, unit),
        "the device" if series.metric in _STATED else "all cores" if series.metric in _PROCESSORS else "the capacity",
        (limit - high) / limit,
        words,
        after_s,
        growth,
        full,
        high,
        limit,
        unit,
    )


def _outlook(metric: str, growth: Finding | None) -> tuple[str, float]:
    """When it will be used up, in words and in seconds."""
    if metric in _PROCESSORS:
        return "", math.inf
    if growth is None:
        return "not judged", math.inf
    if growth.forecast is not None and (words := forecast_words(growth.forecast)):
        return words, growth.forecast.after_s
    if growth.outcome is Outcome.INCONCLUSIVE:
        return f"not judged: {growth.why.value if growth.why is not None else 'undecided'}", math.inf
    if growth.outcome is Outcome.PASS:
        return "no growth found", math.inf
    return "grows; time to the limit unknown", math.inf
