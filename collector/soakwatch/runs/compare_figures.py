"""The figures of a run that people ask for first, side by side with those of other runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from soakwatch.core.formatting import natural, number, quantity, small_share
from soakwatch.core.roles import DUT
from soakwatch.record import SeriesKey
from soakwatch.record.source import ReportSource
from soakwatch.runs.compare import ABSENT, Line
from soakwatch_agent.sample import object_labels
from soakwatch_rules.rule import Finding, Outcome
from soakwatch_rules.series import Series
from soakwatch_rules.stats.flow import amount
from soakwatch_rules.traits import RISE_PER_HOUR, GrowthMethod, traits_of


@dataclass(frozen=True, slots=True)
class Figure:
    """A key figure: how one series becomes a number, and how the number is said."""

    name: str
    metric: str
    take: Callable[[Series], float | None]
    say: Callable[[float, str], str]
    labels: Mapping[str, str] | None = None
    role: str = ""


def _mean(series: Series) -> float | None:
    good = series.finite().values
    return float(good.mean()) if good.size else None


def _peak(series: Series) -> float | None:
    good = series.finite().values
    return float(good.max()) if good.size else None


def _last(series: Series) -> float | None:
    good = series.finite().values
    return float(good[-1]) if good.size else None


def _sum(series: Series) -> float | None:
    good = series.increments().finite().values
    return float(good.sum()) if good.size else None


def _rate(series: Series) -> float | None:
    total, seconds = amount([series], int(series.time_ns[0]), int(series.time_ns[-1])) if len(series) > 1 else (0, 0)
    return total / seconds if seconds > 0 else None


def _per_second(value: float, unit: str) -> str:
    return quantity(value, f"{unit}/s")


def _share(value: float, _: str) -> str:
    return small_share(value)


def _plain(value: float, unit: str) -> str:
    return quantity(value, unit)


def _count(value: float, _: str) -> str:
    return number(round(value))


FIGURES = (
    Figure("packets received, mean rate", "load.rx.packets", _rate, _per_second),
    Figure("packets received, mean rate", "load.rx.packet.rate", _mean, _plain),
    Figure("packets sent, mean rate", "load.tx.packets", _rate, _per_second),
    Figure("packets sent, mean rate", "load.tx.packet.rate", _mean, _plain),
    Figure("bits received, mean rate", "load.rx.bit.rate", _mean, _plain),
    Figure("rate of answers, mean", "load.requests", _rate, _per_second),
    Figure("rate of answers, mean", "load.request.rate", _mean, _plain),
    Figure("loss, mean", "load.loss", _mean, _share),
    Figure("loss, highest", "load.loss", _peak, _share),
    Figure("packets lost", "load.lost.packets", _sum, _count),
    Figure("failed requests", "load.failures", _sum, _count),
    Figure("failed connections", "load.connections.failed", _sum, _count),
    Figure("latency p99, mean", "load.latency", _mean, _plain, {"quantile": "p99"}),
    Figure("latency p99, highest", "load.latency", _peak, _plain, {"quantile": "p99"}),
    Figure("latency p50, mean", "load.latency", _mean, _plain, {"quantile": "p50"}),
    Figure("latency, mean", "load.latency", _mean, _plain, {"quantile": "mean"}),
    Figure("CPU, mean", "system.cpu.utilization", _mean, _share, role=DUT),
    Figure("CPU, highest", "system.cpu.utilization", _peak, _share, role=DUT),
    Figure("memory in use at the end", "system.memory.usage", _last, _plain, role=DUT),
    Figure("packets dropped", "system.network.packet.dropped", _sum, _count, role=DUT),
    Figure("packets lost in forwarding", "system.forwarding.dropped", _sum, _count, role=DUT),
    Figure("dropped from queues", "queue.dropped", _sum, _count, role=DUT),
    Figure("memory of the process at the end", "process.memory.usage", _last, _plain, role=DUT),
    Figure("CPU of the process, mean", "process.cpu.utilization", _mean, _share, role=DUT),
)


def figures(views: Sequence[ReportSource], findings: Sequence[Sequence[Finding]], most: int = 60) -> tuple[Line, ...]:
    """The key figures over the whole of each run, a line for each series that two of the runs have.

    Counters count from the first reading to the last. The slope of memory is what the rule ``memory_growth`` measured.
    """
    roles: dict[str, str] = {}
    for view in views:
        roles.update(view.roles())
    known = [frozenset(view.keys({figure.metric for figure in FIGURES})) for view in views]
    lines: list[Line] = []
    for figure in FIGURES:
        keys = {key for available in known for key in available if _fits(figure, key, roles)}
        for key in sorted(keys, key=lambda k: (natural(k.target), natural(k.object))):
            if len(lines) >= most:
                return tuple(lines)
            if sum(key in available for available in known) < 2:
                continue
            cells = [
                _figure_text(figure, view, key) if key in available else ABSENT
                for view, available in zip(views, known, strict=True)
            ]
            if figure.take is _sum and set(cells) <= {"0", ABSENT}:
                continue  # nobody asks for what was never dropped
            lines.append(Line(figure.name, _of(key), tuple(cells), len(set(cells)) > 1))
    return (*lines, *_slopes(findings))


def _fits(figure: Figure, key: SeriesKey, roles: Mapping[str, str]) -> bool:
    if key.metric != figure.metric or (figure.role and roles.get(key.target) != figure.role):
        return False
    labels = object_labels(key.object) if "=" in key.object else {}
    return all(labels.get(name) == value for name, value in (figure.labels or {}).items())


def _figure_text(figure: Figure, view: ReportSource, key: SeriesKey) -> str:
    series = view.series(key)
    with np.errstate(all="ignore"):
        value = figure.take(series)
    return ABSENT if value is None or not math.isfinite(value) else figure.say(value, series.trait.unit)


def _of(key: SeriesKey) -> str:
    return f"{key.target} {key.object}".rstrip()


def _slopes(findings: Iterable[Sequence[Finding]]) -> tuple[Line, ...]:
    """What the rule measured as growth, a line a series."""
    by_run: list[dict[tuple[str, str, str], str]] = []
    for run in findings:
        slopes = {}
        for finding in run:
            rise = finding.numbers.get(RISE_PER_HOUR)
            by_stages = traits_of(finding.rule).growth is GrowthMethod.STAGES
            if by_stages and rise is not None and finding.outcome is not Outcome.NOT_APPLICABLE:
                slopes[finding.target, finding.metric, finding.object] = quantity(rise, f"{finding.unit}/h")
        by_run.append(slopes)
    keys = sorted({key for each in by_run for key in each if sum(key in other for other in by_run) > 1})
    lines = []
    for target, metric, name in keys[:20]:
        cells = tuple(each.get((target, metric, name), ABSENT) for each in by_run)
        lines.append(Line("memory slope", f"{target} {metric} {name}".rstrip(), cells, len(set(cells)) > 1))
    return tuple(lines)
