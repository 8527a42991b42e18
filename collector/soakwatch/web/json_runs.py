"""A run of the list, and what deleting it would lose, as JSON. Texts are not escaped, as the page sets them as text."""

from __future__ import annotations

from collections.abc import Mapping

from soakwatch.core.formatting import SYMBOLS, printable, share_text, subject, utc
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.problems import heading
from soakwatch.runs.delete_run import DeletionLoss
from soakwatch.runs.mark_event import moment_text
from soakwatch.runs.summary import RunSummary
from soakwatch.web.endpoint import Schema
from soakwatch_model.finding import Finding, Outcome

_MAX_REASON = 400

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": ["number", "null"]}
LABELS: Schema = {
    "type": "object",
    "additionalProperties": TEXT,
    "description": "labels of the run, text by name",
}
ROW: Schema = {
    "type": "object",
    "description": "unknown values are null or empty; the numbers are accompanied by texts for people",
    "properties": {
        "run": TEXT,
        "name": TEXT,
        "state": {"enum": ["running", "ended", "broken off", "unreadable"]},
        "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
        "reason": TEXT,
        "trouble": {"type": ["string", "null"]},
        "release": TEXT,
        "labels": LABELS,
        "targets": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT, "role": TEXT}}},
        "begin": {"type": ["string", "null"], "format": "date-time"},
        "began": TEXT,
        "seconds": NUMBER,
        "duration": TEXT,
        "planned_s": NUMBER,
        "planned": TEXT,
        "worst": {
            "type": ["object", "null"],
            "properties": {
                "outcome": TEXT,
                "symbol": TEXT,
                "rule": TEXT,
                "target": TEXT,
                "about": TEXT,
                "title": TEXT,
                "reason": TEXT,
            },
        },
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "coverage": NUMBER,
        "covered": TEXT,
        "uncovered": TEXT,
        "bytes": {"type": "integer"},
        "size": TEXT,
        "samples": {"type": "integer"},
        "seal": TEXT,
        "note": TEXT,
        "spark": {
            "type": ["object", "null"],
            "properties": {
                "target": TEXT,
                "about": TEXT,
                "reach": TEXT,
                "path": TEXT,
            },
        },
    },
    "required": ["run", "name", "state", "verdict", "trouble", "bytes"],
}


def row_data(summary: RunSummary) -> Mapping[str, object]:
    """One row of the runs page, without characters that reverse or hide the text next to them."""
    line, spark = summary.line, summary.spark
    row: dict[str, object] = {
        "run": line.folder.name,
        "name": line.name,
        "state": line.state,
        "verdict": line.verdict,
        "reason": summary.reason,
        "trouble": line.trouble,
        "release": summary.release,
        "labels": dict(line.labels),
        "targets": [{"name": name, "role": role} for name, role in summary.targets],
        "begin": None if line.begin_ns is None else moment_text(line.begin_ns),
        "began": utc(line.begin_ns),
        "seconds": line.seconds,
        "duration": "" if line.seconds is None else show_seconds(line.seconds),
        "planned_s": summary.planned_s,
        "planned": "" if summary.planned_s is None else show_seconds(summary.planned_s),
        "worst": None if summary.worst is None else finding_data(summary.worst),
        "counts": dict(summary.counts),
        "coverage": summary.coverage,
        "covered": "" if summary.coverage is None else share_text(summary.coverage),
        "uncovered": summary.uncovered,
        "bytes": line.bytes,
        "size": show_bytes(line.bytes),
        "samples": summary.samples,
        "seal": summary.sealed,
        "note": summary.note,
        "spark": None
        if spark is None
        else {
            "target": spark.target,
            "about": subject(spark.metric, spark.object),
            "reach": spark.reach,
            "path": spark.path,
        },
    }
    return {name: _harmless(value) for name, value in row.items()}


def _harmless(value: object) -> object:
    """Make every text in a value printable."""
    if isinstance(value, str):
        return value if value.isprintable() else printable(value)  # the check is a hundred times as fast
    if isinstance(value, list):
        return [_harmless(inner) for inner in value]
    return {name: _harmless(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def finding_data(finding: Finding) -> Mapping[str, object]:
    """A finding in brief."""
    return {
        "outcome": finding.outcome.value,
        "symbol": SYMBOLS[finding.outcome],
        "rule": finding.rule,
        "target": finding.target,
        "about": subject(finding.metric, finding.object),
        "title": heading(finding),
        "reason": finding.sentence[:_MAX_REASON],
    }


LOSS: Schema = {
    "type": "object",
    "properties": {
        "run": TEXT,
        "name": TEXT,
        "verdict": {"type": ["string", "null"]},
        "reason": TEXT,
        "lost": {
            "type": "array",
            "items": TEXT,
            "description": "what is lost, in words",
        },
        "samples": {"type": "integer"},
        "seconds": NUMBER,
        "findings": {"type": "integer"},
        "bytes": {"type": "integer"},
        "files": {"type": "integer"},
        "others": {"type": "array", "items": TEXT},
        "lends_to": {"type": "array", "items": TEXT},
        "refusal": TEXT,
    },
    "required": ["run", "lost", "bytes", "refusal"],
}


def loss_data(loss: DeletionLoss) -> Mapping[str, object]:
    """What deleting a run would lose, as numbers and text."""
    line = loss.summary.line
    findings = sum(count for word, count in loss.summary.counts.items() if word != Outcome.NOT_APPLICABLE)
    failed = loss.summary.counts.get(Outcome.FAIL, 0)
    lost = [
        _count(loss.summary.samples, "sample") + ("" if line.seconds is None else f" of {show_seconds(line.seconds)}"),
        _count(findings, "finding") + (f", {failed} of them failed" if failed else ""),
        *([_count(loss.events, "event")] if loss.events else []),
        *([f"{_count(loss.artifacts, 'file')} stored with the run (captures, logs)"] if loss.artifacts else []),
        f"{show_bytes(loss.bytes)} in {_count(loss.files, 'file')} of its folder",
    ]
    data: dict[str, object] = {
        "run": line.folder.name,
        "name": line.name,
        "verdict": line.verdict,
        "reason": loss.summary.reason,
        "lost": lost,
        "samples": loss.summary.samples,
        "seconds": line.seconds,
        "findings": findings,
        "bytes": loss.bytes,
        "files": loss.files,
        "others": list(loss.others),
        "lends_to": list(loss.lends_to),
        "refusal": loss.refusal,
    }
    return {name: _harmless(value) for name, value in data.items()}


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" + ("" if number == 1 else "s")
