"""verdict.json: the verdict for programs. Its schema is ``verdict.schema.json`` beside this file.

Keys are stable within a schema version; what is not known is null, and nothing is ever NaN.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import resources

from soakwatch.core.formatting import iso
from soakwatch.core.ssh_signature import key_of
from soakwatch.judge.capacity import CapacitySearch
from soakwatch.judge.proved import ProvedMtbf, proved_by
from soakwatch.judge.verdict import TargetVerdict, Verdict
from soakwatch.record.seal import Checked
from soakwatch.report.answer import ReportAnswer
from soakwatch.report.headroom import Headroom
from soakwatch.runs.setup_changes import Changed
from soakwatch_model.case import Ledger
from soakwatch_model.fact import Fact
from soakwatch_model.finding import Finding, Forecast, Mark
from soakwatch_model.sample import object_labels
from soakwatch_model.set_aside import SetAside
from soakwatch_model.tree import Tree
from soakwatch_model.window import Phase
from soakwatch_rules.causes import Cause
from soakwatch_rules.stats.mtbf import CONFIDENCE
from soakwatch_rules.stats.time_to_full import RISK

SCHEMA = 8


def verdict_document(
    verdict: Verdict,
    difference: Changed | None = None,
    answer: ReportAnswer | None = None,
    headroom: Iterable[Headroom] | None = None,
) -> dict[str, Tree]:
    """The verdict as JSON-able data in the published schema; with what differs from an earlier run, if there is one,
    and with the first screen of the report and its forecasts where its ``answer`` and ``headroom`` are given."""
    return {
        "schema": SCHEMA,
        "verdict": verdict.outcome.value,
        "preliminary": verdict.preliminary,
        "reason": verdict.reason,
        "first": None if answer is None else _first(answer),
        "run": verdict.run,
        "labels": dict[str, Tree](verdict.labels),
        "start": iso(verdict.window.begin_ns),
        "end": iso(verdict.window.end_ns),
        "coverage": [_coverage(ledger) for ledger in verdict.ledgers],
        "phases": [_phase(phase) for phase in verdict.phases],
        "targets": {target.target: _target(target) for target in verdict.targets},
        "findings": [finding_document(finding) for finding in verdict.findings],
        "causes": [_cause(cause) for cause in verdict.causes],
        "capacity": [_capacity(search) for search in verdict.capacity],
        "changed": None if difference is None else _changed(difference),
        "seal": _seal(verdict.checked),
        "set_aside": [_set_aside(found) for found in verdict.set_aside],
        "forecasts": None if headroom is None else [_outlook(room) for room in headroom if room.full is not None],
        "mtbf": [_mtbf(proof) for proof in proved_by(verdict)],
        "decided": verdict.decided or None,
    }


def render_json(
    verdict: Verdict,
    difference: Changed | None = None,
    answer: ReportAnswer | None = None,
    headroom: Iterable[Headroom] | None = None,
) -> str:
    """verdict.json as text, with the keys in the order of the schema."""
    return json_text(verdict_document(verdict, difference, answer, headroom))


def json_text(document: Tree) -> str:
    """JSON of a report, as it is written: two spaces, one newline at the end; always UTF-8."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda lone: f"\\u{ord(lone[0]):04x}", text) + "\n"


def verdict_schema() -> str:
    """The published JSON Schema (2020-12) of verdict.json, as text."""
    return resources.files(__package__).joinpath("verdict.schema.json").read_text(encoding="utf-8")


def _first(answer: ReportAnswer) -> dict[str, Tree]:
    """What the first screen of the report says, in the same words, with its moment and load as data."""
    finding, then = answer.finding, answer.then
    return {
        "sentence": answer.sentence,
        "target": None if finding is None else finding.target,
        "rule": None if finding is None else finding.rule,
        "metric": None if finding is None else finding.metric,
        "object": None if finding is None else finding.object,
        "since": None if answer.since_ns is None else iso(answer.since_ns),
        "until": None if answer.until_ns is None else iso(answer.until_ns),
        "load": None if then is None or then.rate is None else {"rate": _known(then.rate), "unit": then.unit},
        "phase": None if then is None or not then.phase else then.phase,
        "facts": dict[str, Tree](answer.facts),
        "next": answer.next_step,
    }


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _coverage(ledger: Ledger) -> dict[str, Tree]:
    return {
        "target": ledger.target,
        "source": ledger.source,
        "interval_seconds": ledger.interval_s,
        "due": ledger.due,
        "got": ledger.got,
        "recovered": ledger.recovered,
        "lost": dict[str, Tree](sorted(ledger.lost.items())),
        "coverage": _known(ledger.coverage),
        "required": ledger.required,
        "longest_gap_seconds": None if ledger.longest_gap is None else round(ledger.longest_gap.seconds, 6),
        "errors": list[Tree](ledger.errors),
    }


def _changed(difference: Changed) -> dict[str, Tree]:
    return {
        "run": difference.run,
        "setup": [
            {"fact": change.about, "before": change.before or None, "now": change.now or None}
            for change in difference.changes
        ],
        "plan": list[Tree](difference.plan),
    }


def _set_aside(found: SetAside) -> Tree:
    """Impossible readings of one series, which no rule saw."""
    return {
        "target": found.target,
        "metric": found.metric,
        "object": found.object,
        "count": found.count,
        "of": found.of,
        "start": iso(found.begin_ns),
        "end": iso(found.end_ns),
        "why": list[Tree](found.why),
        "undecided": found.undecided,
        "text": found.text,
    }


def _outlook(room: Headroom) -> Tree:
    """When one finite resource is full."""
    full = room.full
    return {
        "target": room.target,
        "metric": room.about[0],
        "object": room.about[1],
        "unit": room.unit,
        "highest": room.highest,
        "limit": room.most,
        "not_before_seconds": None if full is None else full.not_before_s,
        "after_seconds": None if full is None else full.after_s,
        "confidence": 1 - RISK,
        "text": room.forecast,
    }


def _mtbf(proof: ProvedMtbf) -> Tree:
    """What the hours of one device prove."""
    return {
        "target": proof.target,
        "seconds": proof.watched_s,
        "failures": proof.failures,
        "at_least_seconds": proof.at_least_s,
        "confidence": CONFIDENCE,
    }


def _seal(checked: Checked | None) -> Tree:
    """The seal of the record; null of one that has none and shows no change."""
    if checked is None or (checked.seal is None and not checked.changed):
        return None
    seal = checked.seal
    return {
        "digest": None if seal is None else seal.digest,
        "time": None if seal is None or not seal.sealed.endswith("Z") else f"{seal.sealed[:-1]}.000Z",
        "links": checked.links if seal is None else seal.links,
        "signed_by": None if seal is None else key_of(seal.signature) or None,
        "changed": [str(change) for change in checked.changes],
    }


def _phase(phase: Phase) -> dict[str, Tree]:
    return {"name": phase.name, "start": iso(phase.window.begin_ns), "end": iso(phase.window.end_ns)}


def _capacity(search: CapacitySearch) -> dict[str, Tree]:
    """One search: loads are shares of the full load, rates in packets or requests per second."""
    return {
        "state": search.state.value,
        "reason": search.reason,
        "start": iso(search.begin_ns),
        "end": None if search.end_ns is None else iso(search.end_ns),
        "counted": search.unit,
        "loss_by": search.basis,
        "notes": list[Tree](search.notes),
        "goals": [
            {
                "loss": goal.loss,
                "bound": goal.bound(search.state),
                "rate": _known(goal.rate),
                "load": _known(goal.throughput),
                "lower": _known(goal.lower),
                "upper": _known(goal.upper),
                "limit": goal.limit,
                "directions": [{"port": way.port, "to": way.to, "rate": way.offered} for way in goal.ways],
            }
            for goal in search.goals
        ],
        "trials": [
            {
                "start": iso(trial.begin_ns),
                "load": trial.level,
                "seconds": round(trial.sent_s, 6),
                "offered": trial.offered,
                "lost": trial.lost,
                "loss": trial.loss,
                "rate": trial.rate,
                "warm_up": trial.warmup,
                "repeats": trial.repeats,
                "retries": trial.retries,
                "refused": trial.refused,
                "directions": [
                    {"port": way.port, "to": way.to, "offered": way.offered, "lost": way.lost} for way in trial.ways
                ],
            }
            for trial in search.trials
        ],
    }


def _target(target: TargetVerdict) -> dict[str, Tree]:
    return {"verdict": target.outcome.value, "role": target.role, "reason": target.reason}


def _mark(mark: Mark) -> dict[str, Tree]:
    return {
        "start": iso(mark.begin_ns),
        "end": None if mark.end_ns is None else iso(mark.end_ns),
        "text": mark.text,
    }


def _labels(text: str) -> dict[str, Tree]:
    """The labels of an object that has some; a source's name (``local``) has none."""
    return dict[str, Tree](object_labels(text)) if "=" in text else {}


def _numbers(numbers: Mapping[str, float]) -> dict[str, Tree]:
    return {name: _known(float(value)) for name, value in sorted(numbers.items())}


def _fact(fact: Fact) -> dict[str, Tree]:
    """A fact with the name of its kind. Programs may rely on facts; the reason is for people."""
    values: dict[str, Tree] = {each.name: getattr(fact, each.name) for each in fields(fact)}
    known = {name: _known(value) if isinstance(value, float) else value for name, value in values.items()}
    return {"fact": type(fact).__name__} | known


def _forecast(forecast: Forecast | None) -> Tree:
    if forecast is None:
        return None
    return {
        "what": forecast.what,
        "after_seconds": _known(forecast.after_s),
        "low_seconds": _known(forecast.low_s),
        "high_seconds": _known(forecast.high_s),
        "confidence": _known(forecast.confidence),
    }


def finding_document(finding: Finding) -> dict[str, Tree]:
    """One finding with the keys that it has in verdict.json."""
    interval: Tree = None
    if finding.interval is not None:
        interval = [_known(finding.interval[0]), _known(finding.interval[1])]
    return {
        "rule": finding.rule,
        "version": finding.version,
        "outcome": finding.outcome.value,
        "target": finding.target,
        "metric": finding.metric,
        "object": finding.object,
        "labels": _labels(finding.object),
        "start": iso(finding.window.begin_ns),
        "end": iso(finding.window.end_ns),
        "measured": _known(finding.measured),
        "limit": _known(finding.limit),
        "unit": finding.unit,
        "interval": interval,
        "samples": finding.samples,
        "expected": finding.expected,
        "coverage": _known(finding.coverage),
        "smallest_detectable": _known(finding.smallest_detectable),
        "detectable_unit": finding.detectable_unit,
        "definition": finding.definition,
        "reason": finding.sentence,
        "rulings": [
            {"by": ruling.by, "outcome": ruling.outcome.value, "text": ruling.text} for ruling in finding.rulings
        ],
        "facts": [_fact(fact) for fact in finding.facts],
        "why": None if finding.why is None else finding.why.value,
        "settle": finding.settle,
        "forecast": _forecast(finding.forecast),
        "doubts": list[Tree](finding.doubts),
        "marks": [_mark(mark) for mark in finding.marks],
        "numbers": _numbers(finding.numbers),
    }


def _cause(cause: Cause) -> dict[str, Tree]:
    return {
        "kind": cause.kind.value,
        "outcome": cause.outcome.value,
        "target": cause.target,
        "start": iso(cause.begin_ns),
        "end": iso(cause.end_ns),
        "since": None if cause.since_ns is None else iso(cause.since_ns),
        "until": None if cause.until_ns is None else iso(cause.until_ns),
        "headline": cause.headline,
        "findings": list[Tree](cause.findings),
        "confidence": _known(cause.confidence),
        "timeline": [_mark(mark) for mark in cause.timeline],
        "owner": cause.owner,
        "share": _known(cause.share),
    }
