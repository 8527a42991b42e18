"""The state of a run as JSON: numbers for programs, and the texts on its page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import isnan

from soakwatch.core.event_kinds import ACKNOWLEDGED, LIVE_FORGOT, START_WARNING, STOP, is_internal
from soakwatch.core.formatting import natural, printable, quantity, share_text, span_text, subject
from soakwatch.judge.problems import Problem, fail_words, heading, problem_words, problems_of
from soakwatch.judge.rates import Rate
from soakwatch.record import StoredEvent
from soakwatch.record.model import USER_ORIGIN
from soakwatch.report.matrix import live_matrix
from soakwatch.runs.load_figures import LATE, RATES, SHARES
from soakwatch.runs.mark_event import moment_text
from soakwatch.runs.run_state import RunState, SourceState
from soakwatch_model.event import Event
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.roles import DUT
from soakwatch_model.sample import object_labels
from soakwatch_model.window import Phase, Window
from soakwatch_rules.causes import causes
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import counted

MAX_ALARMS, MAX_INCONCLUSIVE, _MAX_EVENTS, _MAX_MARKS, _MAX_KINDS = 150, 50, 30, 20, 20
_MAX_DEVICES = 100
_JUDGING_NS = 600 * 10**9  # a run that ended longer ago is not about to be judged
_SHOWN = frozenset({STOP, ACKNOWLEDGED, LIVE_FORGOT, START_WARNING, "gap", "clock.step"})
_SILENT, _SLACK_S = 3.5, 3.0  # intervals without an answer, plus seconds, as the record lags a little
_ORDER = (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE)
# several objects are folded by sum or maximum
_LOAD: tuple[tuple[str, str, str, Callable[[list[float]], float]], ...] = (
    *((figure.metric, figure.unit, figure.word, sum) for figure in RATES),
    *((figure.metric, figure.unit, figure.word, max) for figure in SHARES),
    (LATE, "s", "latency p99", max),
)


def state_data(state: RunState, *, report: bool, load_at: Callable[[int], str] = lambda _: "") -> dict[str, object]:
    """The state of a run. ``report``: whether its report is written; ``load_at`` gives the load at a time (UTC ns) in
    words. Times are ISO 8601 in UTC."""
    counts = {outcome.value: 0 for outcome in (Outcome.FAIL, Outcome.WARN, Outcome.INCONCLUSIVE, Outcome.PASS)}
    for finding in state.findings:
        if finding.outcome.value in counts:
            counts[finding.outcome.value] += 1
    phase, coming = state.phase, state.coming
    stop = next((s for s in reversed(state.events) if s.event.kind == STOP and s.origin == USER_ORIGIN), None)
    return {
        "run": state.run,
        "name": printable(state.name),
        "labels": {name: printable(text) for name, text in state.labels.items()},
        "state": state.standing,
        "now": moment_text(state.now_ns),
        "begin": _time(state.begin_ns),
        "end_planned": _time(state.end_ns),
        "until": _time(state.last_ns),
        "elapsed_s": round(state.elapsed_s, 3),
        "left_s": round(state.left_s, 3),
        "phase": None if phase is None else _phase(phase.name, phase.begin_ns, phase.end_ns, phase.state),
        "phases": [_phase(entry.name, entry.begin_ns, entry.end_ns, entry.state) for entry in state.phases],
        "next": None
        if coming is None
        else {
            "kind": coming.kind,
            "what": coming.what,
            "in_s": round((coming.at_ns - state.now_ns) * 1e-9, 3),
        },
        "sources": [_source(state, entry) for entry in state.sources],
        "self": _monitor(state),
        "load": _loads(state),
        "verdict": state.verdict,
        "reason": state.reason,
        "line": _line(state, load_at),
        "stopping": None if stop is None or state.standing != "running" else stop.event.detail.get("reason", ""),
        "events": state.last_event,
        "findings": {"judged": _time(state.judged_ns), "counts": counts},
        "rates": [_rate(rate) for rate in state.rates],
        "growing": any(rate.is_strong for rate in state.rates),
        "series": state.series,
        "report": report,
    }


def shown_data(state: RunState, known: str) -> dict[str, object]:
    """What a page also shows: alarms, events, and the kinds and targets that events can be marked with.

    ``alarms`` is null if the page has them already (``known`` is their digest).
    """
    alarms = _alarms(state)
    digest = hashlib.sha256(json.dumps(alarms).encode()).hexdigest()[:16]
    visible = [stored for stored in state.events if not _is_hidden(stored)]
    kinds = [
        s.event.kind for s in reversed(visible) if s.origin in {USER_ORIGIN, "plan"} and not is_internal(s.event.kind)
    ]
    return {
        "digest": digest,
        "alarms": None if digest == known else alarms,
        "told": [_event(stored) for stored in sorted(visible, key=lambda s: (-s.event.begin_ns, -s.id))[:_MAX_EVENTS]],
        "kinds": list(dict.fromkeys(kinds))[:_MAX_KINDS],
        "targets": list(state.targets),
        "fleet": _fleet(state),
        "drawn": f"{state.last_event}-{len(state.phases)}-{state.series}-{_flagged(state)}",
    }


def _fleet(state: RunState) -> dict[str, object] | None:
    """The devices by kind of trouble, worst first; None if they are few, or nothing was judged yet."""
    devices = sorted({source.target for source in state.sources if source.role == DUT}, key=natural)
    table = None if state.judged_ns is None else live_matrix(devices, state.findings)
    if table is None:
        return None
    marked = [row for row in table.rows if row.outcome is not Outcome.PASS]
    return {
        "families": list(table.families),
        "rows": [
            {
                "target": printable(row.target),
                "outcome": row.outcome.value,
                "cells": [
                    None
                    if cell.outcome is None
                    else {"outcome": cell.outcome.value, "count": cell.count, "rules": cell.rules}
                    for cell in row.cells
                ],
            }
            for row in marked[:_MAX_DEVICES]
        ],
        "calm": len(table.rows) - len(marked),
        "more": max(0, len(marked) - _MAX_DEVICES),
    }


def _is_hidden(stored: StoredEvent) -> bool:
    """Whether an event is not shown: identities and the like are recorded once per source."""
    return is_internal(stored.event.kind) and stored.event.kind not in _SHOWN


def _flagged(state: RunState) -> str:
    flagged = sorted(f"{f.rule} {f.target} {f.metric} {f.object}" for f in state.findings if f.outcome in _ORDER[:2])
    return hashlib.sha256(json.dumps(flagged).encode()).hexdigest()[:8]


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else moment_text(time_ns)


def _phase(name: str, begin_ns: int, end_ns: int, state: str) -> dict[str, object]:
    return {"name": printable(name), "begin": moment_text(begin_ns), "end": moment_text(end_ns), "state": state}


def _source(state: RunState, source: SourceState) -> dict[str, object]:
    return {
        "target": printable(source.target),
        "source": printable(source.label),
        "kind": source.source,
        "role": source.role,
        "interval_s": source.interval_s,
        "due": source.due,
        "got": source.got,
        "failed": source.due - source.got,
        "outcomes": dict(source.outcomes),
        "last_ok": _time(source.last_ok_ns),
        "failing_since": _time(source.failing_since_ns),
        "state": _source_state(state, source),
    }


def _source_state(state: RunState, source: SourceState) -> str:
    if state.standing != "running":
        return "over" if state.standing in {"ended", "broken off"} else "waiting"
    if source.failing_since_ns is not None and source.due:
        return "failing"
    last_ns = source.last_ok_ns if source.last_ok_ns is not None else state.begin_ns
    if last_ns is not None and (state.now_ns - last_ns) * 1e-9 > _SILENT * source.interval_s + _SLACK_S:
        return "silent"
    return "answering" if source.due else "waiting"


def _monitor(state: RunState) -> dict[str, object]:
    own = state.own
    sinks: dict[str, dict[str, object]] = {}
    for (metric, object_), value in own.items():
        if metric.startswith("monitor.sink."):
            name = object_labels(object_).get("sink", object_) if "=" in object_ else object_
            sinks.setdefault(name, {"sink": printable(name)})[metric.rpartition(".")[2]] = value
    missed = [own.get(("monitor.polls", f"outcome={word}")) for word in ("missed", "overrun")]
    known = [value for value in missed if value is not None]
    return {
        "rss_bytes": own.get(("monitor.memory.usage", "")),
        "cpu": state.own_cpu,
        "lag_s": own.get(("monitor.loop.lag", "")),
        "missed": sum(known) if known else None,
        "disk_free_bytes": own.get(("monitor.disk.free", "")),
        "record_bytes": own.get(("monitor.record.size", "")),
        "sinks": [sinks[name] for name in sorted(sinks)],
    }


def _loads(state: RunState) -> list[dict[str, object]]:
    """A few load figures for each generator."""
    figures: list[dict[str, object]] = []
    for target in dict.fromkeys(target for target, _, _ in state.load):
        for metric, unit, word, fold in _LOAD:
            values = [
                value
                for (of, name, object_), value in state.load.items()
                if (of, name) == (target, metric) and (metric != LATE or "p99" in object_)
            ]
            if values:
                folded = float(fold(values))
                figures.append(
                    {
                        "target": printable(target),
                        "metric": metric,
                        "value": folded,
                        "what": word,
                        "words": f"{quantity(folded, unit)} {word}".rstrip(),
                    }
                )
    return figures


def _rate(rate: Rate) -> dict[str, object]:
    """How fast something grows so far."""
    return {
        "target": printable(rate.target),
        "metric": rate.metric,
        "object": printable(rate.object),
        "unit": rate.unit,
        "since": moment_text(rate.since_ns),
        "per_hour": rate.per_hour,
        "low": rate.low,
        "high": rate.high,
        "limit": rate.limit,
        "limit_s": rate.limit_s,
        "soonest_s": rate.soonest_s,
        "latest_s": rate.latest_s,
        "change": rate.change,
        "words": printable(rate.words),
    }


def _line(state: RunState, load_at: Callable[[int], str]) -> str:
    """The verdict so far in one line."""
    if state.verdict is not None:
        return printable(state.reason or "")
    if state.standing == "broken off":
        return (
            "The monitor ended without a verdict: resume the run with soakwatch resume, or judge what was recorded "
            "with soakwatch judge."
        )
    if state.standing == "ended":
        if state.last_ns is not None and state.now_ns - state.last_ns > _JUDGING_NS:
            return "The run has ended without a verdict: judge it with soakwatch judge."
        return "The run has ended and is being judged."
    if state.standing == "waiting":
        return "Waiting for the start of the run."
    if state.judged_ns is None:
        return "Not judged yet: first findings within a minute."
    window, phases = _so_far(state)
    if failed := _problems(state, phases, Outcome.FAIL):
        since_ns = failed[0].since_ns
        return printable(fail_words(failed, window, phases, "" if since_ns is None else load_at(since_ns)))
    warned, fresh = _problems(state, phases, Outcome.WARN), _fresh(state, state.judged_ns)
    parts = [printable(problem_words(warned[0], window, phases))] if warned else []
    more = sum(f.outcome is Outcome.WARN for f in state.findings) - 1
    if more > 0:
        parts.append(counted(more, "more warning"))
    if fresh:
        parts.append(f"{fresh} event{'s' if fresh > 1 else ''} not judged yet")
    strong = max(
        (rate for rate in state.rates if rate.is_strong), key=lambda rate: abs(rate.change or 0.0), default=None
    )
    if strong is not None:
        parts.insert(0, printable(strong.brief) + ", which may be a warm-up")
    return "; ".join(["No failure so far", *parts]) + "."


def _so_far(state: RunState) -> tuple[Window, tuple[Phase, ...]]:
    """The window of the run so far, and the phases that have begun."""
    begin_ns = state.begin_ns or 0
    phases = (Phase(p.name, Window(p.begin_ns, p.end_ns)) for p in state.phases if p.state != "planned")
    return Window(begin_ns, max(begin_ns, state.last_ns or begin_ns)), tuple(phases)


def _problems(state: RunState, phases: Sequence[Phase], outcome: Outcome) -> tuple[Problem, ...]:
    """What went wrong so far, in the order of the report."""
    found = [f for f in _sorted(state.findings) if f.outcome is outcome]
    return problems_of(found, causes(found, [stored.event for stored in state.events], phases), outcome)


def _fresh(state: RunState, judged_ns: int) -> int:
    """How many events are newer than the last evaluation."""
    return sum(s.event.begin_ns > judged_ns and not is_internal(s.event.kind) for s in state.events)


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    """Worst first; warnings by how soon they are forecast to come true."""

    def rank(finding: Finding) -> tuple[object, ...]:
        soon = float("inf") if finding.forecast is None or isnan(finding.forecast.after_s) else finding.forecast.after_s
        return _ORDER.index(finding.outcome), soon, finding.target, finding.rule

    return sorted((f for f in findings if f.outcome in _ORDER), key=rank)


def _alarms(state: RunState) -> list[dict[str, object]]:
    known = _acknowledged(state.events)
    findings = _sorted(state.findings)
    failed = [f for f in findings if f.outcome is Outcome.FAIL]
    made = causes(failed, [stored.event for stored in state.events], _so_far(state)[1])
    raised = [failed[place] for cause in made for place in cause.findings]  # causes before their effects
    raised = [*raised, *(f for f in findings if f.outcome is Outcome.WARN)][:MAX_ALARMS]
    inconclusive = [f for f in findings if f.outcome is Outcome.INCONCLUSIVE][:MAX_INCONCLUSIVE]
    return [_alarm(finding, known) for finding in (*raised, *inconclusive)]


def _acknowledged(events: Sequence[StoredEvent]) -> Mapping[tuple[str, ...], tuple[str, str]]:
    acknowledgements = [stored.event for stored in events if stored.event.kind == ACKNOWLEDGED]
    return {
        (e.detail.get("rule", ""), e.target, e.detail.get("metric", ""), e.object): (
            e.detail.get("reason", ""),
            _acknowledged_at(e),
        )
        for e in acknowledgements
    }


def _alarm(finding: Finding, known: Mapping[tuple[str, ...], tuple[str, str]]) -> dict[str, object]:
    f = finding
    acknowledged = known.get(f.name)
    return {
        "key": json.dumps(f.name, ensure_ascii=False),
        "rule": f.rule,
        "target": f.target,
        "metric": f.metric,
        "object": f.object,
        "outcome": f.outcome.value,
        "about": printable(subject(f.metric, f.object)),
        "title": printable(heading(f)),
        "reason": printable(f.sentence),
        "definition": printable(f.definition),
        "measured": quantity(f.measured, f.unit),
        "limit": None if f.limit is None else quantity(f.limit, f.unit),
        "forecast": "" if f.forecast is None else printable(forecast_words(f.forecast)),
        "window": [f.window.begin_ns // 10**6, f.window.end_ns // 10**6],
        "stretch": span_text(f.window.begin_ns, f.window.end_ns),
        "marks": [
            [mark.begin_ns // 10**6, None if mark.end_ns is None else mark.end_ns // 10**6, printable(mark.text)]
            for mark in f.marks[:_MAX_MARKS]
        ],
        "samples": f.samples,
        "coverage": share_text(f.coverage),
        "detectable": None if f.smallest_detectable is None else quantity(f.smallest_detectable, f.detectable_unit),
        "settle": printable(f.settle),
        "why": None if f.why is None else f.why.value,
        "doubts": [printable(reason) for reason in f.doubts],
        "acknowledged": None
        if acknowledged is None
        else {"reason": printable(acknowledged[0]), "at": printable(acknowledged[1])},
    }


def _event(stored: StoredEvent) -> dict[str, object]:
    event = stored.event
    detail = {key: value for key, value in event.detail.items() if value}
    return {
        "id": stored.id,
        "origin": stored.origin,
        "kind": event.kind,
        "target": printable(event.target),
        "object": printable(event.object),
        "begin": event.begin_ns // 10**6,
        "at": _clock(event.begin_ns),
        "open": event.end_ns is None and stored.origin == USER_ORIGIN,
        "lasted_s": None if event.end_ns is None else round((event.end_ns - event.begin_ns) * 1e-9, 3),
        "detail": printable(", ".join(f"{key} {value}" for key, value in sorted(detail.items())))[:300],
    }


def _clock(time_ns: int) -> str:
    return f"{datetime.fromtimestamp(time_ns // 10**9, UTC):%Y-%m-%d %H:%M:%S}"


def _acknowledged_at(event: Event) -> str:
    """When a finding was acknowledged, which may be after the end of the run, unlike the event itself."""
    return event.detail.get("said", "")[:19].replace("T", " ") or _clock(event.begin_ns)
