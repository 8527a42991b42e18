"""Lines of a sink as metrics of OpenTelemetry: gauges, and counters as monotonic sums with a start time.

A counter is raw: it counts since the device says so, not since the run began. Its stream starts with the run; when the
value falls, what counts began anew, and the stream starts again at the last sample before that. What an earlier process
of this sink sent is recalled from the record.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_otlp.line_parts import LineParts, parts_of

_STAMP = re.compile(r"(\d{8}T\d{6}Z)-")
_OWN = "soakwatch_"
_MAX_INTEGER = 2**63 - 1
_MOST_STARTS = 100  # of a counter, the last of them: no more is sent again
_FIELDS: Mapping[str, Mapping[str, tuple[str, str, str]]] = {
    "soakwatch_poll": {
        "ok": ("soakwatch.poll.ok", "1", "1 for a poll that was answered, 0 for one that was lost"),
        "duration_s": ("soakwatch.poll.duration", "s", "how long a poll took"),
        "late_s": ("soakwatch.poll.late", "s", "how late a poll began"),
    },
    "soakwatch_finding": {
        "rank": ("soakwatch.finding.rank", "1", "3 fail, 2 warn, 1 inconclusive, 0 pass"),
        "measured": ("soakwatch.finding.measured", "", "what a rule measured, in the unit of its metric"),
        "limit": ("soakwatch.finding.limit", "", "the limit of a rule, in the unit of its metric"),
    },
    "soakwatch_verdict": {
        "rank": ("soakwatch.verdict.rank", "1", "3 fail, 1 inconclusive, 0 pass, -1 running, -2 not judged"),
        "failed": ("soakwatch.verdict.failed", "{finding}", "findings that failed"),
        "warned": ("soakwatch.verdict.warned", "{finding}", "findings that warn"),
        "doubtful": ("soakwatch.verdict.inconclusive", "{finding}", "findings that are inconclusive"),
    },
    "soakwatch_load": {"value": ("soakwatch.load", "", "a generator's load per second, users as they are")},
}
"""Numbers of lines about the run that are metrics, too; texts (phases, events, reasons) are none."""
_OF_NOW = frozenset({"soakwatch_finding", "soakwatch_verdict"})
"""Lines whose time is that of their window, though what they say changes: it is said as of the newest sample."""
_SCOPE = InstrumentationScope("soakwatch", "1")

Attributes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Point:
    """One value of one metric of one object, and of which resource: a run, mostly with a target."""

    of: tuple[str, str]
    resource: Attributes
    metric: str
    unit: str
    about: str
    attributes: Attributes
    time_ns: int
    value: float
    counter: bool = False


@dataclass(slots=True)
class _Stream:
    """A counter as it was sent: when it began to count, ascending, and its last sample."""

    starts_ns: list[int]
    time_ns: int
    value: float

    def take(self, time_ns: int, value: float) -> None:
        """A sample; one that is sent again says nothing new."""
        if time_ns <= self.time_ns:
            return
        if value < self.value:
            self.starts_ns.append(self.time_ns)
            del self.starts_ns[1:-_MOST_STARTS]
        self.time_ns, self.value = time_ns, value

    def start_ns(self, time_ns: int) -> int:
        """Since when what counted at that time had counted: also of a sample that is sent again."""
        before = bisect_left(self.starts_ns, time_ns)
        return self.starts_ns[before - 1] if before else time_ns


@dataclass(slots=True)
class Points:
    """Makes metrics of lines; it remembers the labels of runs, and the counters that it sent."""

    resource: Mapping[str, str] = field(default_factory=dict)
    _labels: dict[str, Attributes] = field(default_factory=dict)
    _streams: dict[tuple[tuple[str, str], str, Attributes], _Stream] = field(default_factory=dict)
    _newest_ns: dict[str, int] = field(default_factory=dict)

    def data(self, lines: Iterable[bytes]) -> tuple[MetricsData, int]:
        """The metrics of some lines, and how many points they are."""
        grouped: dict[Attributes, dict[tuple[str, str, str, bool], list[NumberDataPoint]]] = defaultdict(dict)
        count = 0
        for line in lines:
            for point in self._points(parts_of(line)):
                kind = point.metric, point.unit, point.about, point.counter
                grouped[point.resource].setdefault(kind, []).append(self._made(point))
                count += 1
        return MetricsData([_resource(resource, metrics) for resource, metrics in grouped.items()]), count

    def recall(self, lines: Iterable[bytes]) -> None:
        """Take note of the counters in lines that were sent before."""
        for line in lines:
            for point in self._points(parts_of(line)):
                if point.counter:
                    self._stream(point).take(point.time_ns, point.value)

    def _points(self, line: LineParts) -> Iterator[_Point]:
        tags = dict(line.tags)
        run = tags.pop("run", "")
        if line.name == "soakwatch_verdict":
            labels = {key: tags.pop(key) for key in [*tags] if key.startswith("label_")}
            self._labels[run] = tuple(
                sorted((f"soakwatch.label.{key.removeprefix('label_')}", value) for key, value in labels.items())
            )
        of = run, tags.pop("target", "")
        resource = self._resource(*of, tags.pop("role", ""))
        if not line.name.startswith(_OWN):
            self._newest_ns[run] = max(line.time_ns, self._newest_ns.get(run, 0))
            known = BY_NAME.get(line.name)
            value = line.fields.get("value")
            if isinstance(value, int | float):
                unit, about = ("", "") if known is None else (known.unit, known.about)
                counter = known is not None and known.kind == COUNTER
                attributes = tuple(sorted(tags.items()))
                yield _Point(of, resource, line.name, unit, about, attributes, line.time_ns, value, counter)
            return
        time_ns = max(line.time_ns, self._newest_ns.get(run, 0)) if line.name in _OF_NOW else line.time_ns
        for word in ("verdict", "outcome"):  # what the rank stands for
            if isinstance(said := line.fields.get(word), str) and line.name == "soakwatch_verdict":
                tags.setdefault(word, said)
        attributes = tuple(sorted(tags.items()))
        for key, (metric, unit, about) in _FIELDS.get(line.name, {}).items():
            value = line.fields.get(key)
            if isinstance(value, int | float):
                yield _Point(of, resource, metric, unit, about, attributes, time_ns, value)

    def _resource(self, run: str, target: str, role: str) -> Attributes:
        own = {
            "service.name": "soakwatch",
            "service.instance.id": f"{run}/{target}" if target else run,
            "soakwatch.run": run,
            "soakwatch.target": target,
            "soakwatch.role": role,
        }
        named = {**dict(self._labels.get(run, ())), **{key: value for key, value in own.items() if value}}
        return tuple(sorted({**named, **self.resource}.items()))

    def _made(self, point: _Point) -> NumberDataPoint:
        start_ns = self._start_ns(point) if point.counter else 0  # 0: a gauge has none
        value = point.value
        if isinstance(value, int) and abs(value) > _MAX_INTEGER:
            value = float(value)
        return NumberDataPoint(dict(point.attributes), start_ns, point.time_ns, value)

    def _start_ns(self, point: _Point) -> int:
        stream = self._stream(point)
        stream.take(point.time_ns, point.value)
        return stream.start_ns(point.time_ns)

    def _stream(self, point: _Point) -> _Stream:
        # The phase is an attribute of a point, and its counter goes on through all phases; labels may come later.
        plain = tuple(pair for pair in point.attributes if pair[0] != "phase")
        key = point.of, point.metric, plain
        if key not in self._streams:
            self._streams[key] = _Stream([_run_start_ns(point.of[0], point.time_ns)], 0, point.value)
        return self._streams[key]


def _resource(
    attributes: Attributes, metrics: Mapping[tuple[str, str, str, bool], list[NumberDataPoint]]
) -> ResourceMetrics:
    made = [
        Metric(
            name,
            about,
            unit,
            Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True) if counter else Gauge(points),
        )
        for (name, unit, about, counter), points in metrics.items()
    ]
    return ResourceMetrics(Resource(dict(attributes)), [ScopeMetrics(_SCOPE, made, "")], "")


def _run_start_ns(run: str, time_ns: int) -> int:
    """When the run began, by its name; else the time of the first sample."""
    stamp = _STAMP.match(run)
    if stamp is None:
        return time_ns
    began = datetime.strptime(stamp[1], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    return round(began.timestamp()) * 10**9
