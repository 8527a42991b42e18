"""Runs as OpenMetrics text: their state, the monitor's own health, and the newest samples of one of them.

Our metrics keep their names, with underscores and the prefix ``soakwatch_``; the unit is appended
(``system.memory.usage`` in By is ``soakwatch_system_memory_usage_bytes``). Labels are the run, the target and those of
the object. Only fresh samples are exported, without times: a series that a device no longer reports is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

from soakwatch.core.formatting import printable
from soakwatch.record import SeriesKey
from soakwatch.runs.run_state import RunState
from soakwatch_model.finding import Outcome
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_model.roles import MONITOR
from soakwatch_model.sample import object_labels

MEDIA = CONTENT_TYPE_LATEST
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

    def text(self) -> bytes:
        """All metrics as OpenMetrics text, sorted by name."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Fixed([self._metrics[name] for name in sorted(self._metrics)]))
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
    own = [
        Reading(SeriesKey(MONITOR, metric, object_), entry.unit, entry.kind, value)
        for (metric, object_), value in sorted(state.own.items())
        if (entry := BY_NAME.get(metric)) is not None
    ]
    add_readings(families, state.run, own)


def add_readings(families: Families, run: str, readings: Sequence[Reading]) -> None:
    """Add the newest samples of series, counters raw."""
    for reading in readings:
        key = reading.key
        labels = {"run": run} if key.target == MONITOR else {"run": run, "target": key.target}
        name = "soakwatch_" + re.sub(r"\W", "_", key.metric, flags=re.ASCII)
        kind: Kind = "counter" if reading.kind == COUNTER else "gauge"
        if kind == "counter":
            name = name.removesuffix("_total")
        entry = BY_NAME.get(key.metric)
        about = entry.about if entry is not None else f"{printable(key.metric)} in {printable(reading.unit)}"
        families.add(name, about, kind, reading.value, labels | _labels(key.object), unit_of(reading.unit), key.metric)


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
        if name in {"run", "target"} or name[0].isdecimal() or name.startswith("__"):
            name = f"object_{name}"
        labels[name] = text
    return labels
