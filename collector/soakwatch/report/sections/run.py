"""The run and its targets: times, sizes, labels, and the verdict of each target by the rules."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import number, share_text, utc
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.judge.record_trust import seal_words
from soakwatch.report.blocks import HTML, Block, Facts, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_model.finding import Outcome

ORDER = 11
TITLE = "Run and targets"
_COLUMNS = (
    ReportColumn("target", "name"),
    ReportColumn("role"),
    ReportColumn("verdict"),
    ReportColumn("reason", "reason"),
    ReportColumn("findings", "count"),
)


def blocks(page: Page) -> Sequence[Block]:
    """Times, sizes and the coverage of the whole run, and its targets."""
    verdict, counts = page.verdict, page.source.counts()
    due = sum(ledger.due for ledger in verdict.ledgers)
    got = sum(ledger.got for ledger in verdict.ledgers)
    run = [
        ("start (UTC)", utc(verdict.window.begin_ns)),
        ("end (UTC)", utc(verdict.window.end_ns)),
        ("duration", show_seconds(verdict.window.seconds)),
        ("samples", number(counts.samples)),
        ("polls answered", f"{number(got)} of {number(due)} ({share_text(got / due)})" if due else "none was due"),
        ("record on disk", show_bytes(counts.bytes)),
        *((f"label {name}", text) for name, text in verdict.labels.items()),
        *((f"label {name}", f"not read: {reason}") for name, reason in page.unread_labels),
    ]
    if seal := seal_words(verdict.checked):
        run.append(("record", seal))
    failed_ns = verdict.first_failure_ns
    if failed_ns is not None:
        run.append(("first failure (UTC)", utc(failed_ns)))
    rows: list[list[ReportCell | str]] = [
        [
            ReportCell(target.target, link=f"target-{place}"),
            target.role,
            ReportCell(target.outcome.value, outcome=target.outcome),
            target.reason,
            _counts(page, target.target),
        ]
        for place, target in enumerate(verdict.targets, 1)
    ]
    return (
        Text(f"By the rules: {verdict.reason}", formats=HTML),
        Facts(run),
        Table("The verdict of each target", _COLUMNS, rows, HTML),
    )


def _counts(page: Page, target: str) -> str:
    own = [finding.outcome for finding in page.verdict.findings if finding.target == target]
    return ", ".join(f"{own.count(outcome)} {outcome.value}" for outcome in Outcome if own.count(outcome)) or "none"
