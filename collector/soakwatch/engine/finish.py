"""The end of a run: judged, and its reports written."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from soakwatch.judge.record_verdict import ALARMS, judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record, RecordView
from soakwatch.report.files import write_reports
from soakwatch_rules.rule import Finding


def _without_withdrawn(live: Iterable[Finding], verdict: Iterable[Finding]) -> list[Finding]:
    """The live findings without the alarms that the verdict does not share: those are withdrawn."""
    alarms = {(f.rule, f.target, f.metric, f.object) for f in verdict if f.outcome in ALARMS}
    return [f for f in live if f.outcome not in ALARMS or (f.rule, f.target, f.metric, f.object) in alarms]


def conclude(
    folder: Path,
    record: Record,
    end_ns: int,
    on_progress: Callable[[str], None] | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> Verdict:
    """Judge a run that has ended, store the findings in its record, close it, and write its reports next to it.

    ``on_verdict`` gets the verdict before the record is closed, so that what it triggers can still be recorded.
    """
    try:
        with RecordView.open(folder) as view:
            verdict, live = judge_record(view, progress=on_progress, ended=True), view.findings(live=True)
        record.put_findings(_without_withdrawn(live, verdict.findings), live=True, judged_ns=end_ns)
        record.put_findings(verdict.findings, live=False, judged_ns=end_ns)
        record.set_meta("verdict", verdict.outcome.value)
        record.set_meta("reason", verdict.reason)
        if on_verdict is not None:
            on_verdict(verdict)
    finally:
        record.finish()
    with RecordView.open(folder) as view:
        write_reports(view, verdict, folder)
    return verdict
