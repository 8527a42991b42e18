"""The verdict of a record, kept in it: what pages, lists, sinks and reports of the run show."""

from __future__ import annotations

from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record


def keep(record: Record, verdict: Verdict, judged_ns: int) -> None:
    """Write the findings, the verdict and its reason; those of before are replaced. Raises RecordError."""
    record.put_findings(verdict.findings, live=False, judged_ns=judged_ns)
    record.set_meta("verdict", verdict.outcome.value)
    record.set_meta("reason", verdict.reason)
