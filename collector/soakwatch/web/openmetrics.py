"""Runs as OpenMetrics text: state, verdict, findings, the monitor's own health, and the newest samples of devices.

Our metrics keep their names, with underscores and the prefix ``soakwatch_``; the unit is appended
(``system.memory.usage`` in By is ``soakwatch_system_memory_usage_bytes``). Labels are the run, the target, the phase
and those of the object. Only fresh samples are exported, without times: a series that a device no longer reports is
left out, and of a run that is over its last samples are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import CollectorRegistry
from prometheus_client import generate_latest as generate_plain
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from soakwatch.core.formatting import printable
from soakwatch.record import SeriesKey
from soakwatch.runs.run_state import RunState
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.roles import MONITOR
from soakwatch_model.sample import object_labels

MEDIA = CONTENT_TYPE_LATEST
PLAIN_MEDIA = CONTENT_TYPE_PLAIN_0_0_4
MAX_FINDINGS = 200
"""Findings of a run that are told one by one, the worst first."""
_UNITS = {
    "By": "bytes",
    "s": "seconds",
    "1": "ratio",
    "Hz": "hertz",
    "Cel": "celsius",
    "bit": "bits",
    "V": "volts",
    "A": "amperes",
    "W": "watts",
    "J": "joules",
    "%": "percent",
}
_STATES = ("waiting", "running", "ended", "broken off")
_OUTCOMES = (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE, Outcome.PASS)
_VERDICTS = ("pass", "fail", "inconclusive")
_TOLD = frozenset({Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE})
_RESERVED = frozenset({"run", "target", "phase", "le", "quantile"})
"""Labels with a meaning of their own: one of an object is prefixed with ``object_``."""
_OTHERWISE = {"exporter.gauge": "exporter_value", "exporter.counter": "exporter_events"}
"""Metrics whose names would say their type twice, and whose unit nobody knows."""
_MAX_LABEL_VALUE = 300  # characters of a label's value
Kind = Literal["gauge", "counter"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The newest reading of a series, with its unit and kind."""

    key: SeriesKey
    unit: str
    kind: str
    value: float


@dataclass(slots=True)
class Families:
    """Metrics by name. ``left`` counts samples that were left out because their name was taken."""

    left: int = 0
    _metrics: dict[str, Metric] = field(default_factory=dict)
    _origin: dict[str, tuple[str, str]] = field(default_factory=dict)
    _exported: set[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=set)

    def add(
        self, name: str, about: str, kind: Kind, value: float, labels: dict[str, str], unit: str = "", origin: str = ""
    ) -> None:
        """Add one value. A name belongs to the first metric (``origin``) that uses it."""
        family = name if not unit or name.endswith(f"_{unit}") else f"{name}_{unit}"
        labels = {key: printable(text)[:_MAX_LABEL_VALUE] for key, text in labels.items()}
        sample = family, tuple(sorted(labels.items()))
        owner = self._origin.setdefault(family, (kind, origin))
        if owner != (kind, origin) or sample in self._exported or self._clashes(family, kind):
            self.left += 1
            return
        self._exported.add(sample)
        metric = self._metrics.setdefault(family, Metric(family, about, kind, unit))
        metric.add_sample(f"{family}_total" if kind == "counter" else family, labels, value)

    def text(self, *, plain: bool = False) -> bytes:
        """All metrics as OpenMetrics text, or as the ``plain`` one of Prometheus, sorted by name."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Fixed([self._metrics[name] for name in sorted(self._metrics)]))
        if plain:
            return generate_plain(registry)
        text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]  # prometheus_client has no type there
        return text

    def _clashes(self, family: str, kind: Kind) -> bool:
        """Whether a counter's sample name (``x_total``) is the name of another metric."""
        if kind == "counter":
            return any(f"{family}{suffix}" in self._metrics for suffix in ("_total", "_created"))
        base = re.sub(r"_(total|created)$", "", family)
        return base != family and base in self._metrics


class _Fixed:
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics


def add_state(families: Families, state: RunState) -> None:
    """Add the state of a run, its polls, its findings, and the monitor's health."""
    run = {"run": state.run}
    for word in _STATES:
        families.add(
            "soakwatch_run_state",
            "1 for the current state of the run",
            "gauge",
            float(word == state.standing),
            {**run, "state": word},
        )
    families.add("soakwatch_run_elapsed", "elapsed time of the run", "gauge", state.elapsed_s, run, "seconds")
    families.add("soakwatch_run_left", "planned time left", "gauge", state.left_s, run, "seconds")
    if state.last_ns is not None:
        families.add(
            "soakwatch_run_recorded_until",
            "time of the last recorded sample, since 1970",
            "gauge",
            state.last_ns * 1e-9,
            run,
            "seconds",
        )
    for outcome in _OUTCOMES:
        count = sum(finding.outcome is outcome for finding in state.findings)
        families.add(
            "soakwatch_findings",
            "findings of the latest evaluation by outcome",
            "gauge",
            float(count),
            {**run, "outcome": outcome.value},
        )
    for source in state.sources:
        named = {**run, "target": source.target, "source": source.label}
        for word, count in sorted(source.outcomes.items()):
            families.add("soakwatch_polls", "polls by outcome", "counter", float(count), {**named, "outcome": word})
    _add_verdict(families, state)
    own = [
        Reading(SeriesKey(MONITOR, metric, object_), entry.unit, entry.kind, value)
        for (metric, object_), value in sorted(state.own.items())
        if (entry := BY_NAME.get(metric)) is not None
    ]
    add_readings(families, state.run, own)


def _add_verdict(families: Families, state: RunState) -> None:
    """Add phase, labels and verdict of a run, and each finding that is no pass, with the phase that it lies in."""
    run = {"run": state.run}
    named = {f"label_{re.sub(r'[^0-9A-Za-z_]', '_', name)}": text for name, text in state.labels.items()}
    families.add(
        "soakwatch_run_info", "1; name and labels of the run", "gauge", 1.0, {**named, **run, "name": state.name}
    )
    if state.phase is not None:
        about = "1 for the current phase of the run"
        families.add("soakwatch_run_phase", about, "gauge", 1.0, {**run, "phase": state.phase.name})
    for word in _VERDICTS:
        families.add(
            "soakwatch_run_verdict",
            "1 for the verdict; none is 1 before the run has one",
            "gauge",
            float(word == state.verdict),
            {**run, "verdict": word},
        )
    told = sorted((f for f in state.findings if f.outcome in _TOLD), key=lambda finding: finding.outcome.rank)
    for finding in told[:MAX_FINDINGS]:
        families.add(
            "soakwatch_finding",
            "1 for each finding that is no pass",
            "gauge",
            1.0,
            {
                **run,
                "target": finding.target,
                "phase": _phase_of(finding, state),
                "rule": finding.rule,
                "metric": finding.metric,
                "object": finding.object,
                "outcome": finding.outcome.value,
            },
        )
    left = float(max(0, len(told) - MAX_FINDINGS))
    families.add("soakwatch_findings_left_out", "findings that are left out: too many", "gauge", left, run)


def _phase_of(finding: Finding, state: RunState) -> str:
    """The phase in which the whole window of a finding lies; "" where it spans several."""
    window = finding.window
    inside = (p.name for p in state.phases if p.begin_ns <= window.begin_ns and window.end_ns <= p.end_ns)
    return next(inside, "")


def add_readings(families: Families, run: str, readings: Sequence[Reading], phase: str = "") -> None:
    """Add the newest samples of series in a phase, counters raw."""
    for reading in readings:
        key = reading.key
        labels = {"run": run}
        if key.target != MONITOR:
            labels |= {"target": key.target, **({"phase": phase} if phase else {})}
        unit = "" if key.metric in _OTHERWISE else unit_of(reading.unit)
        plain = _OTHERWISE.get(key.metric) or re.sub(r"\W", "_", key.metric, flags=re.ASCII)
        name = f"soakwatch_{plain.removesuffix('_count')}"  # that is the suffix of a histogram's counter
        kind: Kind = "counter" if reading.kind == COUNTER else "gauge"
        if kind == "counter":
            name = name.removesuffix("_total")
        entry = BY_NAME.get(key.metric)
        about = entry.about if entry is not None else f"{printable(key.metric)} in {printable(reading.unit)}"
        families.add(name, about, kind, reading.value, labels | _labels(key.object), unit, key.metric)


def unit_of(unit: str) -> str:
    """The suffix of a metric's name for a UCUM unit; "" for counted things.

    >>> unit_of("By"), unit_of("By/s"), unit_of("{packet}"), unit_of("{packet}/s")
    ('bytes', 'bytes_per_second', '', 'per_second')
    """
    base, slash, per = unit.partition("/")
    word = _UNITS.get(base, "")
    return "_".join(part for part in (word, "per_second" if slash and per == "s" else "") if part)


def _labels(object_: str) -> dict[str, str]:
    if not object_:
        return {}
    if "=" not in object_:
        return {"object": object_}
    labels: dict[str, str] = {}
    for key, text in object_labels(object_).items():
        name = re.sub(r"\W", "_", key, flags=re.ASCII) or "_"
        if name in _RESERVED or name[0].isdecimal() or name.startswith("__"):
            name = f"object_{name}"
        labels[name] = text
    return labels
