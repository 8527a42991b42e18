"""Events and findings as lines, for annotations on dashboards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from soakwatch.record.model import StoredEvent
from soakwatch.transfer.sinks.lines import Value, key, line, milliseconds
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.causes.moments import since_ns

SEVERITY = {Outcome.PASS: 0.0, Outcome.WARN: 1.0, Outcome.INCONCLUSIVE: 2.0, Outcome.FAIL: 3.0}
RANK = {Outcome.PASS: 0.0, Outcome.INCONCLUSIVE: 1.0, Outcome.WARN: 2.0, Outcome.FAIL: 3.0}
"""Higher is worse: a warning was decided, an inconclusive finding was not."""
WITHDRAWN = "withdrawn"


@dataclass(slots=True)
class Events:
    """Events as lines; of two with the same point the later one is moved by a nanosecond."""

    run: str
    _points: dict[tuple[str, int], int] = field(default_factory=dict)
    _times: dict[int, int] = field(default_factory=dict)

    def lines(self, events: Iterable[StoredEvent]) -> list[bytes]:
        """One line an event; an event that comes again keeps its time."""
        lines = []
        for stored in sorted(events, key=lambda stored: stored.id):
            event = stored.event
            tags = {"run": self.run, "kind": event.kind, "origin": stored.origin, "object": event.object}
            head = key("soakwatch_event", {**tags, "target": event.target}, {})
            time_ns = self._times.get(stored.id, event.begin_ns)
            while self._points.setdefault((head, time_ns), stored.id) != stored.id:
                time_ns += 1
            self._times[stored.id] = time_ns
            end_ns = event.begin_ns if event.end_ns is None else event.end_ns
            words = " ".join([event.kind, event.object]).strip()
            details = " ".join(f"{name}={value}" for name, value in event.detail.items())
            fields: dict[str, Value] = {
                "text": f"{words}: {details}" if details else words,
                "begin_ms": milliseconds(event.begin_ns),
                "end_ms": milliseconds(end_ns),
                "open": 1.0 if event.end_ns is None else 0.0,
            }
            lines.append(line(head, fields, time_ns))
        return lines


@dataclass(slots=True)
class FindingLines:
    """Findings as lines; only those that changed since the last call."""

    run: str
    _written: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def lines(self, current: Sequence[Finding], gone: Sequence[Finding], *, live: bool) -> list[bytes]:
        """``current`` are the newest findings, ``gone`` those that were withdrawn."""
        lines: dict[tuple[str, int], bytes] = {}
        for finding in current:
            if finding.outcome in SEVERITY:
                head, time_ns = _point(self.run, finding, lines)
                lines[head, time_ns] = line(head, _finding_fields(finding, live=live), time_ns)
        for finding in gone:
            head, time_ns = _finding_key(self.run, finding), finding.window.begin_ns
            if finding.outcome in SEVERITY and (head, time_ns) not in lines:
                fields = {**_withdrawn(finding.sentence), **_moment_fields(finding)}
                lines[head, time_ns] = line(head, fields, time_ns)
        for head, time_ns in self._written.keys() - lines.keys():
            lines[head, time_ns] = line(head, _withdrawn(""), time_ns)
        fresh = [text for point, text in lines.items() if self._written.get(point) != text]
        self._written = lines
        return fresh


@dataclass(slots=True)
class MomentLines:
    """The first times of failures and warnings as lines, only those that changed. They are marks at the time of the
    failure, while the line of a finding stands at the start of its window."""

    run: str
    _written: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def lines(self, current: Sequence[Finding], gone: Sequence[Finding]) -> list[bytes]:
        """``current`` are the newest findings, ``gone`` those that were withdrawn."""
        lines: dict[tuple[str, int], bytes] = {}
        for finding in current:
            if RANK.get(finding.outcome, 0.0) >= RANK[Outcome.WARN]:
                head, time_ns = self._head(finding), _at_ns(finding)
                while (head, time_ns) in lines:
                    time_ns += 1
                fields: dict[str, Value] = {
                    "text": " ".join(part for part in (finding.object, finding.sentence) if part),
                    "outcome": finding.outcome.value,
                    "rank": RANK[finding.outcome],
                    "at_ms": milliseconds(time_ns),
                }
                lines[head, time_ns] = line(head, fields, time_ns)
        before = {(self._head(finding), _at_ns(finding)) for finding in gone if finding.outcome in RANK}
        for head, time_ns in (before | self._written.keys()) - lines.keys():
            lines[head, time_ns] = line(head, {"outcome": WITHDRAWN, "rank": 0.0}, time_ns)
        fresh = [text for point, text in lines.items() if self._written.get(point) != text]
        self._written = lines
        return fresh

    def _head(self, finding: Finding) -> str:
        return key("soakwatch_moment", {"run": self.run, "rule": finding.rule, "target": finding.target}, {})


def _finding_key(run: str, finding: Finding) -> str:
    tags = {"run": run, "rule": finding.rule, "target": finding.target, "metric": finding.metric}
    return key("soakwatch_finding", {**tags, "object": finding.object}, {})


def _point(run: str, finding: Finding, taken: dict[tuple[str, int], bytes]) -> tuple[str, int]:
    head, time_ns = _finding_key(run, finding), finding.window.begin_ns
    while (head, time_ns) in taken:
        time_ns += 1
    return head, time_ns


def _finding_fields(finding: Finding, *, live: bool) -> dict[str, Value]:
    forecast = finding.forecast
    return {
        "outcome": finding.outcome.value,
        "severity": SEVERITY[finding.outcome],
        "rank": RANK[finding.outcome],
        "reason": finding.sentence,
        "unit": finding.unit,
        "measured": finding.measured,
        "limit": finding.limit,
        "forecast_after_s": None if forecast is None else forecast.after_s,
        "forecast_low_s": None if forecast is None else forecast.low_s,
        "forecast_high_s": None if forecast is None else forecast.high_s,
        "forecast_what": None if forecast is None else forecast.what,
        "begin_ms": milliseconds(finding.window.begin_ns),
        "end_ms": milliseconds(finding.window.end_ns),
        **_moment_fields(finding),
        "live": 1.0 if live else 0.0,
    }


def _moment_fields(finding: Finding) -> dict[str, Value]:
    """The first time that a finding marks, as the report shows it; else the start of its window."""
    window = finding.window
    return {
        "at_ms": milliseconds(_at_ns(finding)),
        "moment": 1.0 if since_ns(finding) is not None or window.end_ns <= window.begin_ns else 0.0,
    }


def _at_ns(finding: Finding) -> int:
    moment_ns = since_ns(finding)
    return finding.window.begin_ns if moment_ns is None else moment_ns


def _withdrawn(reason: str) -> dict[str, Value]:
    return {"outcome": WITHDRAWN, "severity": 0.0, "rank": 0.0, "live": 0.0, "reason": reason or None}
