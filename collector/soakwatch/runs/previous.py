"""The run of the same plan before this one, as its verdict.json tells of it: no record is opened for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.formatting import iso
from soakwatch.judge.verdict import Verdict
from soakwatch.runs.catalog import STAMP, may_be_called
from soakwatch.runs.trend_runs import CELL
from soakwatch_model.finding import FindingName, Outcome
from soakwatch_rules.traits import RISE_PER_HOUR

VERDICT_FILE = "verdict.json"
_MAX_READ, _MAX_BYTES = 50, 64 << 20


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """An earlier run: its folder's name, when it began (ISO 8601), its verdict in a word, its labels, and the findings
    that failed or warned (``objections``) or passed (``passed``) by what they are of; ``figures`` are what those that
    failed or warned measured, with its unit: of growth the rate per hour."""

    folder: str
    start: str
    verdict: str
    labels: Mapping[str, str]
    objections: Mapping[FindingName, Outcome]
    passed: frozenset[FindingName]
    figures: Mapping[FindingName, tuple[float, str]] = field(default_factory=dict)


def previous_run(record: Path, verdict: Verdict) -> PreviousRun | None:
    """The latest run of this plan that began before this one and lies beside it; None where there is none.

    ``record`` is the file of this run's record. Runs of other cells of a campaign do not count, and none that cannot be
    read. A folder with a time in its name has the plan's name there: others are not opened.
    """
    found = []
    for folder, alone in _candidates(record.parent, verdict.run):
        run = written_run(folder, verdict.run)
        if run is None or run.start >= iso(verdict.window.begin_ns):
            continue
        if run.labels.get(CELL, "") == verdict.labels.get(CELL, ""):
            found.append(run)
            if alone:
                break
    return max(found, key=lambda run: run.start, default=None)


def _candidates(mine: Path, run: str) -> list[tuple[Path, bool]]:
    """The folders beside this one that may hold a run of this plan; with whether the first that does is the latest."""
    try:
        beside = sorted((p for p in mine.parent.iterdir() if p.name != mine.name and p.name[0] != "."), reverse=True)
    except OSError:
        return []
    if STAMP.match(mine.name) is None:
        return [(folder, False) for folder in beside if (folder / VERDICT_FILE).is_file()][:_MAX_READ]
    return [(p, True) for p in beside if STAMP.match(p.name) and may_be_called(p.name, run)]


def written_run(folder: Path, plan: str | None = None) -> PreviousRun | None:
    """The run of a folder; None where no final verdict can be read there, or only one of another plan."""
    file = folder / VERDICT_FILE
    try:
        if file.stat().st_size > _MAX_BYTES:
            return None
        document = json.loads(file.read_text(encoding="utf-8"))
        if plan not in {None, document["run"]} or document.get("preliminary"):
            return None
        objections: dict[FindingName, Outcome] = {}
        figures: dict[FindingName, tuple[float, str]] = {}
        passed: set[FindingName] = set()
        for finding in document["findings"]:
            key = (finding["rule"], finding["target"], finding["metric"], finding["object"])
            outcome = Outcome(finding["outcome"])
            if outcome in {Outcome.FAIL, Outcome.WARN}:
                objections[key] = outcome
                if (figure := _figure(finding)) is not None:
                    figures[key] = figure
            elif outcome is Outcome.PASS:
                passed.add(key)
        labels = {str(name): str(text) for name, text in document.get("labels", {}).items()}
        start, outcome_word = str(document["start"]), str(document["verdict"])
        return PreviousRun(folder.name, start, outcome_word, labels, objections, frozenset(passed), figures)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _figure(finding: Mapping[str, object]) -> tuple[float, str] | None:
    """What a finding of verdict.json measured; None where it measured nothing."""
    numbers, measured, unit = finding.get("numbers"), finding.get("measured"), str(finding.get("unit") or "")
    rate = numbers.get(RISE_PER_HOUR) if isinstance(numbers, dict) else None
    if isinstance(rate, int | float):
        return float(rate), f"{unit}/h"
    return (float(measured), unit) if isinstance(measured, int | float) else None
