"""Events, findings, phases and the verdict as lines: what a dashboard shows beside the readings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from soakwatch.core.roles import DUT
from soakwatch.record import RecordView
from soakwatch.record.model import StoredEvent
from soakwatch.sinks.lines import Value, key, line
from soakwatch_rules.rule import Finding, Outcome

SEVERITY = {Outcome.PASS: 0.0, Outcome.WARN: 1.0, Outcome.INCONCLUSIVE: 2.0, Outcome.FAIL: 3.0}
RUNNING, WITHDRAWN = "running", "withdrawn"
_HOUR_NS = 3_600 * 10**9


def phase_lines(run: str, phases: Iterable[tuple[str, int, int | None]], now_ns: int) -> list[bytes]:
    """The phases; one that is open ends now."""
    return [
        line(
            key("soakwatch_phase", {"run": run, "phase": name}, {}),
            {"text": name, "begin_ms": _ms(begin_ns), "end_ms": _ms(max(begin_ns, end_ns or now_ns))},
            begin_ns,
        )
        for name, begin_ns, end_ns in phases
    ]


@dataclass(slots=True)
class Events:
    """Events as lines; two that would be one point are moved apart by a nanosecond, always the later one."""

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
                "begin_ms": _ms(event.begin_ns),
                "end_ms": _ms(end_ns),
                "open": 1.0 if event.end_ns is None else 0.0,
            }
            lines.append(line(head, fields, time_ns))
        return lines


@dataclass(slots=True)
class FindingLines:
    """Findings and the verdict as lines, and of them only what is new since the last time."""

    run: str
    _written: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def lines(self, view: RecordView) -> list[bytes]:
        """What a record says now: the final findings, or the live ones while it has no verdict."""
        ended = view.meta("verdict") is not None
        current = view.findings(live=not ended)
        gone = [finding for _, finding in view.withdrawn()]
        if ended:
            gone += view.findings(live=True)
        lines: dict[tuple[str, int], bytes] = {}
        for finding in current:
            if finding.outcome in SEVERITY:
                head, time_ns = _point(self.run, finding, lines)
                lines[head, time_ns] = line(head, _finding_fields(finding, live=not ended), time_ns)
        for finding in gone:
            head, time_ns = _finding_key(self.run, finding), finding.window.begin_ns
            if finding.outcome in SEVERITY and (head, time_ns) not in lines:
                lines[head, time_ns] = line(head, _withdrawn(finding.reason), time_ns)
        for head, time_ns in self._written.keys() - lines.keys():
            lines[head, time_ns] = line(head, _withdrawn(""), time_ns)
        fresh = [text for point, text in lines.items() if self._written.get(point) != text]
        self._written = lines
        if view.last_ns is None:
            return fresh
        return [*fresh, verdict_line(self.run, view, current, ended=ended)]


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
        "reason": finding.reason,
        "unit": finding.unit,
        "measured": finding.measured,
        "limit": finding.limit,
        "forecast_after_s": None if forecast is None else forecast.after_s,
        "forecast_low_s": None if forecast is None else forecast.low_s,
        "forecast_high_s": None if forecast is None else forecast.high_s,
        "forecast_what": None if forecast is None else forecast.what,
        "begin_ms": _ms(finding.window.begin_ns),
        "end_ms": _ms(finding.window.end_ns),
        "live": 1.0 if live else 0.0,
    }


def _withdrawn(reason: str) -> dict[str, Value]:
    return {"outcome": WITHDRAWN, "severity": 0.0, "live": 0.0, "reason": reason or None}


def verdict_line(run: str, view: RecordView, findings: Sequence[Finding], *, ended: bool) -> bytes:
    """The one point of a run: its verdict, or that it goes on, with the numbers of findings."""
    window = view.window()
    verdict = view.meta("verdict") if ended else None
    counts = {outcome: sum(f.outcome is outcome for f in findings) for outcome in SEVERITY}
    bad = [f for f in findings if SEVERITY.get(f.outcome, 0.0) > 0]
    # An inconclusive finding is no worse than a warning when the cause is searched for.
    worst = max(bad, key=lambda f: (f.outcome is Outcome.FAIL, f.outcome is Outcome.WARN), default=None)
    fields: dict[str, Value] = {
        "verdict": verdict or RUNNING,
        "severity": -1.0 if verdict is None else SEVERITY[Outcome(verdict)],
        "headline": (view.meta("reason") if ended else None) or (worst.reason if worst else "nothing found so far"),
        "hours": (window.end_ns - window.begin_ns) / _HOUR_NS,
        "begin_ms": _ms(window.begin_ns),
        "end_ms": _ms(window.end_ns),
        "failed": float(counts[Outcome.FAIL]),
        "warned": float(counts[Outcome.WARN]),
        "doubtful": float(counts[Outcome.INCONCLUSIVE]),
        "worst": "" if worst is None else " ".join(part for part in (worst.rule, worst.target, worst.object) if part),
        "devices": ", ".join(name for name, role in view.roles().items() if role == DUT),
    }
    return line(key("soakwatch_verdict", {"run": run}, {}), fields, window.begin_ns)


def _ms(time_ns: int) -> float:
    return float(time_ns // 1_000_000)
