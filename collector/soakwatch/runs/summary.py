"""What a list of runs shows of each: enough to find the right one, and to see which needs attention."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.formatting import iso
from soakwatch.core.labels import RELEASE, has_labels, labels_words
from soakwatch.core.sparkline import Sparkline, sparkline
from soakwatch.judge.baseline import META as BASELINE
from soakwatch.judge.baseline import parse_baseline
from soakwatch.judge.planned import PLANNED_KEY
from soakwatch.judge.rates import META as SO_FAR
from soakwatch.judge.rates import LiveSnapshot, Rate, snapshot_of
from soakwatch.record import RecordView, SeriesKey
from soakwatch.record.model import source_label
from soakwatch.runs.catalog import RunLine, line_of, unreadable
from soakwatch.runs.release_under_test import release_in
from soakwatch.runs.run_note import note_of
from soakwatch_model.finding import Finding, Outcome
from soakwatch_model.metric import BY_NAME
from soakwatch_model.metric_queries import shown_in, usual_in
from soakwatch_model.roles import DUT, MONITOR
from soakwatch_model.sample import PollOutcome
from soakwatch_model.shown import CPU, LATENCY, MEMORY, PROCESS_CPU, PROCESS_MEMORY
from soakwatch_model.tree import Tree
from soakwatch_rules.traits import traits_of
from soakwatch_rules.wording.quantities import counted

_OBJECTIONS = (Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN)
_USUAL = tuple(
    metric
    for topic in (MEMORY, PROCESS_MEMORY, CPU, PROCESS_CPU, LATENCY)
    for metric in sorted(usual_in(topic), key=lambda name: BY_NAME[name].unit != "1")
)
"""What is shown of a run without findings: what is mostly most useful, first; a share says how near the end is."""
_MIN_SAMPLES, _MAX_TRIED = 10, 30
_MAX_SHOWN = 8


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of a list. Of a run that cannot be read there is only ``line``, with the trouble.

    ``targets`` are names with roles, devices first; ``release`` is that of its labels, else what software the devices
    said they run. ``worst`` is the worst finding, None where the run has none; ``counts`` are findings by outcome.
    ``coverage`` is the lowest of the required sources, ``uncovered`` the name of that source. ``baseline_run`` is the
    run whose baseline this one was compared with. ``sealed`` is "sealed", "signed" or "", as the record says of itself
    (``soakwatch verify`` checks it); ``note`` is what somebody wrote about the run.
    """

    line: RunLine
    reason: str = ""
    planned_s: float | None = None
    targets: tuple[tuple[str, str], ...] = ()
    release: str = ""
    worst: Finding | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    coverage: float | None = None
    uncovered: str = ""
    samples: int = 0
    baseline_run: str = ""
    spark: Sparkline | None = None
    sealed: str = ""
    note: str = ""


def summary_of(folder: Path, *, drawn: bool = True) -> RunSummary:
    """The summary of a run; where it cannot be read, the reason. Without ``drawn`` no series is read."""
    try:
        with RecordView.open(folder) as view:
            return summary_in(view, folder, drawn=drawn)
    except (RecordError, OSError) as error:
        return RunSummary(unreadable(folder, str(error).replace(f"{folder}/", "")))


def summary_in(view: RecordView, folder: Path, *, drawn: bool) -> RunSummary:
    """The summary of the run in ``folder``, whose record is open. Raises RecordError."""
    line = line_of(view, folder)
    metas, roles = view.metas(), view.roles()
    findings = view.findings(live="verdict" not in metas)
    coverage, uncovered = _coverage(view)
    frozen = parse_baseline(metas.get(BASELINE))
    return RunSummary(
        line=line,
        reason=metas.get("reason", ""),
        planned_s=_planned(metas.get(PLANNED_KEY)),
        targets=tuple(sorted(roles.items(), key=lambda item: (item[1] != DUT, item[0]))),
        release=release_in(view),
        worst=worst_of(findings, passed=metas.get("verdict") == Outcome.PASS),
        counts=Counter(finding.outcome.value for finding in findings),
        coverage=coverage,
        uncovered=uncovered,
        samples=view.counts().samples,
        baseline_run="" if frozen is None else frozen.run,
        spark=_spark(view, findings, roles, snapshot_of(metas.get(SO_FAR))) if drawn else None,
        sealed=_sealed(view),
        note=note_of(folder),
    )


def _sealed(view: RecordView) -> str:
    seals = view.seals()
    return "" if not seals else "signed" if seals[-1].signature else "sealed"


def worst_of(findings: Iterable[Finding], *, passed: bool) -> Finding | None:
    """The first of the worst findings of a run; None without a fail, a warning or an inconclusive one. In a run that
    ``passed``, inconclusive findings were not required, so none of them is the worst."""
    ordered = list(findings)
    order = (Outcome.FAIL, Outcome.WARN) if passed else _OBJECTIONS
    return next((f for outcome in order for f in ordered if f.outcome is outcome), None)


def _planned(text: str | None) -> float | None:
    try:
        return float(json.loads(text or "")["duration_s"])
    except (ValueError, TypeError, KeyError):
        return None


def _coverage(view: RecordView) -> tuple[float | None, str]:
    shares: list[tuple[float, str]] = []
    for source in view.sources():
        if not source.required:
            continue
        polls = view.poll_outcomes(source.id)
        if polls.due_ns.size:
            got = int((polls.outcome == polls.words.index(PollOutcome.OK.value)).sum())
            shares.append((got / polls.due_ns.size, source_label(source, view.sources())))
    return min(shares, default=(None, ""))


def _spark(
    view: RecordView, findings: Sequence[Finding], roles: Mapping[str, str], so_far: LiveSnapshot | None
) -> Sparkline | None:
    """The series to draw beside a run: that of the worst finding, or the one that grows most so far; of a healthy run,
    the series of a device that is nearest to its limit. The monitor's own series are never the worst.

    A series of few readings, or one that never moved, is drawn only where there is no other.
    """
    known = frozenset(view.keys())
    dull: Sparkline | None = None
    tried: set[SeriesKey] = set()
    for key in _candidates(findings, sorted(known), roles, () if so_far is None else so_far.rates):
        if key not in known or key in tried:
            continue
        tried.add(key)
        series = view.series(key)
        line = sparkline(series)
        if line is not None and line.moves and len(series) >= _MIN_SAMPLES:
            return line
        dull = dull or line
        if len(tried) == _MAX_TRIED:
            break
    return dull


def _candidates(
    findings: Sequence[Finding], known: Sequence[SeriesKey], roles: Mapping[str, str], rates: Sequence[Rate]
) -> Iterable[SeriesKey]:
    with_metric = [f for f in findings if f.metric and roles.get(f.target) != MONITOR]
    yield from (key for f in with_metric if f.outcome is Outcome.FAIL for key in _shown_by(f))
    for rate in sorted(rates, key=lambda rate: -abs(rate.change or 0.0)):
        yield SeriesKey(rate.target, rate.metric, rate.object)
    yield from (key for f in with_metric if f.outcome is Outcome.WARN for key in _shown_by(f))
    near = [
        (f.measured / f.limit, _key(f))
        for f in with_metric
        if f.outcome is Outcome.PASS and roles.get(f.target) == DUT and f.measured and f.limit
    ]
    yield from (key for _, key in sorted(near, key=lambda item: (-item[0], item[1])))
    for metric in _USUAL:
        yield from (key for key in known if key.metric == metric and roles.get(key.target) == DUT)
    yield from [key for key in known if roles.get(key.target) != MONITOR][:1]


def _shown_by(finding: Finding) -> Iterable[SeriesKey]:
    """The series to draw for a finding. For a process that crashed this is its memory: a line between up and down says
    nothing."""
    if traits_of(finding.rule).crash is not None:
        yield from (SeriesKey(finding.target, metric, finding.object) for metric in shown_in(PROCESS_MEMORY))
    yield _key(finding)


def _key(finding: Finding) -> SeriesKey:
    return SeriesKey(finding.target, finding.metric, finding.object)


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
