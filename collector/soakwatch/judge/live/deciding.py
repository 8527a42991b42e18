"""Whether a run that goes on is decided: looked at less often than it is judged, and only where its plan asks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.registry import INSTALLED
from soakwatch.core.yaml import parse
from soakwatch.judge.decided import Decider, Decision, is_final, next_look_s
from soakwatch.judge.planned import Planned
from soakwatch.judge.record_verdict import recorded_tenants, rules_for
from soakwatch.plan.stop_plan import stop_in
from soakwatch.record import RecordView
from soakwatch_model.finding import Finding, FindingName
from soakwatch_model.window import Window

_CONFIRM_NS = 60_000_000_000


@dataclass(slots=True)
class Deciding:
    """The looks at one run. It keeps no readings: each look reads the record anew."""

    path: Path
    decider: Decider
    decision: Decision | None = None
    _next_ns: int = 0
    _alarms: dict[FindingName, int] = field(default_factory=dict)  # since when each final failure stands
    _weighed: set[FindingName] = field(default_factory=set)

    def look(self, window: Window, findings: Iterable[Finding]) -> Decision | None:
        """The decision once there is one; ``findings`` are the live judge's. Raises RecordError."""
        if self.decision is not None:
            return self.decision
        alarms = self._standing(findings, window.end_ns)
        if window.end_ns < self._next_ns and not alarms:
            return None
        with RecordView.open(self.path) as view:
            self.decision = self.decider.look(view, window.end_ns, alarms)
        self._next_ns = window.end_ns + round(next_look_s(window.seconds) * 1e9)
        return self.decision

    def _standing(self, findings: Iterable[Finding], now_ns: int) -> list[Finding]:
        """Final failures that have stood for a minute, each once: what restarts is down for a moment."""
        final = {finding.name: finding for finding in findings if is_final(finding)}
        self._alarms = {name: self._alarms.get(name, now_ns) for name in final}
        standing = {name for name, since_ns in self._alarms.items() if now_ns - since_ns >= _CONFIRM_NS}
        new = standing - self._weighed
        self._weighed |= new
        return [final[name] for name in sorted(new)]


def deciding_of(view: RecordView, folder: Path) -> Deciding | None:
    """The looks at a run whose plan has ``stop_when``; None for any other. Raises PlanError."""
    text, planned = view.meta("plan"), Planned.of(view)
    stop = None if text is None else stop_in(parse(text, "plan in the record"), INSTALLED)
    if stop is None or planned is None:
        return None
    return Deciding(folder, Decider(rules_for(view), recorded_tenants(view), planned.duration_s, stop.not_before_s))
