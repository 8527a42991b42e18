"""A list of runs for programs: ``soakwatch runs --json``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from soakwatch.core.formatting import iso
from soakwatch.core.labels import RELEASE, has_labels, labels_words
from soakwatch.runs.summary import RunSummary
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.tree import Tree
from soakwatch_rules.wording.quantities import counted

_MAX_SHOWN = 8


def run_document(summary: RunSummary) -> dict[str, Tree]:
    """One run with keys that do not change; what is not known is null, times are ISO 8601 in UTC.

    ``coverage`` is the lowest share of answered polls of a required source, ``uncovered`` the name of that source.
    ``findings`` counts them by outcome; ``trouble`` says why the record cannot be read.
    """
    line = summary.line
    end_ns = None if line.begin_ns is None or line.seconds is None else line.begin_ns + round(line.seconds * 1e9)
    return {
        "run": line.folder.name,
        "folder": str(line.folder.absolute()),
        "name": line.name,
        "labels": dict[str, Tree](line.labels),
        "release": summary.release or None,
        "state": line.state,
        "verdict": line.verdict,
        "reason": summary.reason or None,
        "worst": None if summary.worst is None else _finding(summary.worst),
        "findings": {outcome.value: summary.counts.get(outcome.value, 0) for outcome in Outcome},
        "start": None if line.begin_ns is None else iso(line.begin_ns),
        "end": None if end_ns is None else iso(end_ns),
        "seconds": line.seconds,
        "planned_seconds": summary.planned_s,
        "coverage": summary.coverage,
        "uncovered": summary.uncovered or None,
        "targets": dict[str, Tree](summary.targets),
        "samples": summary.samples,
        "bytes": line.bytes,
        "seal": summary.sealed or None,
        "note": summary.note or None,
        "trouble": line.trouble,
    }


def labelled(runs: Iterable[RunSummary], wanted: Mapping[str, str]) -> list[RunSummary]:
    """The runs that have these labels; ``release`` may also be what the devices reported."""
    return [run for run in runs if has_labels(_texts(run), wanted)]


def no_run_has(runs: Iterable[RunSummary], wanted: Mapping[str, str], folder: str) -> str:
    """The sentence that none of the runs of a folder has these labels, with what is there instead."""
    every = list(runs)
    here = [
        f"{name} is {', '.join(texts[:_MAX_SHOWN])}{' …' if len(texts) > _MAX_SHOWN else ''}"
        if (texts := list(dict.fromkeys(text for run in every if (text := _texts(run).get(name)))))
        else f"no run has {name}"
        for name in wanted
    ]
    return f"none of {counted(len(every), 'run')} in {folder} has {labels_words(wanted)}: {'; '.join(here)}"


def _texts(run: RunSummary) -> dict[str, str]:
    return {RELEASE: run.release, **run.line.labels}


def _finding(finding: Finding) -> dict[str, Tree]:
    return {
        "outcome": finding.outcome.value,
        "rule": finding.rule,
        "target": finding.target,
        "metric": finding.metric,
        "object": finding.object,
        "reason": finding.sentence,
    }
