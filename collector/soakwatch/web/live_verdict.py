"""The verdict of a run for the HTTP API: the final one, or the preliminary one of its record so far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from soakwatch.core.errors import PlanError
from soakwatch.judge.planned import Planned
from soakwatch.judge.record_verdict import recorded_rules
from soakwatch.judge.verdict import Verdict, fold
from soakwatch.record import RecordView
from soakwatch.record.writer_lock import is_written
from soakwatch.report.files import REPORT_FILES
from soakwatch.report.json import render_json
from soakwatch_model.finding import Outcome

_OUTCOMES = {outcome.value: outcome for outcome in Outcome}
_MAX_BYTES = 64 * 2**20


def verdict_text(folder: Path) -> str:
    """verdict.json of a run that ended, else a preliminary one made of the findings so far.

    A run that is not over cannot have passed: it is inconclusive, and the reason says so. Raises RecordError.
    """
    with RecordView.open(folder) as view:
        if view.meta("verdict") is not None:
            written = _written(folder)
            if written is not None:
                return written
        return render_json(verdict_so_far(view, goes_on=is_written(folder)))


def verdict_so_far(view: RecordView, *, goes_on: bool) -> Verdict:
    """The fold of the findings in a record, without judging again: of the final ones if there are any."""
    final = view.meta("verdict")
    window, planned = view.window(), Planned.of(view)
    verdict = fold(
        view.meta("run") or "run",
        window,
        view.roles(),
        view.findings(live=final is None),
        view.ledgers(window),
        view.phases(),
        _optional(view),
        None if planned is None else planned.duration_s,
        events=tuple(stored.event for stored in view.events()),
        goes_on=goes_on and final is None,
    )
    verdict = replace(verdict, labels=view.labels)
    if final is not None:
        return replace(verdict, outcome=_OUTCOMES.get(final, Outcome.INCONCLUSIVE), reason=view.meta("reason") or "")
    if goes_on:
        return verdict
    outcome = Outcome.FAIL if verdict.outcome is Outcome.FAIL else Outcome.INCONCLUSIVE
    return replace(verdict, outcome=outcome, reason=f"the monitor ended without a verdict; so far: {verdict.reason}")


def report_file(folder: Path) -> Path | None:
    """The report that was written at the end of a run; None if there is none."""
    file = folder / REPORT_FILES["html"]
    with RecordView.open(folder) as view:
        return file if view.meta("verdict") is not None and file.is_file() else None


def _optional(view: RecordView) -> frozenset[str]:
    try:
        return frozenset(rule.name for rule in recorded_rules(view) if rule.required is False)
    except PlanError:  # of rules that are not installed here
        return frozenset()


def _written(folder: Path) -> str | None:
    file = folder / REPORT_FILES["json"]
    try:
        return file.read_text(encoding="utf-8") if file.is_file() and file.stat().st_size <= _MAX_BYTES else None
    except (OSError, ValueError):
        return None
