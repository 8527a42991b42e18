"""Warnings of the live judge that did not last: given while the run went on, and withdrawn later."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import subject, utc
from soakwatch.report.blocks import BRIEF, HTML, Block, Folded, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.summaries import withdrawn_text

ORDER = 55
TITLE = "Withdrawn warnings"
_MAX_ROWS, _BRIEF = 200, 5


def blocks(page: Page) -> Sequence[Block] | None:
    """The withdrawn warnings in the order in which they were withdrawn; None where there was none."""
    withdrawn = page.source.withdrawn()
    if not withdrawn:
        return None
    columns = (
        ReportColumn("warning"),
        ReportColumn("withdrawn (UTC)", "time"),
        ReportColumn("target", "name"),
        ReportColumn("rule"),
        ReportColumn("object", "name"),
        ReportColumn("what was reported"),
    )
    rows: list[list[ReportCell | str]] = [
        [
            ReportCell(f.outcome.value, outcome=f.outcome),
            utc(time_ns),
            f.target,
            f.rule,
            subject(f.metric, f.object) or "the target",
            f.sentence,
        ]
        for time_ns, f in withdrawn[:_MAX_ROWS]
    ]
    intro = (
        "Reported while the run went on and not confirmed later: a warm-up looks like a leak until it levels off. The "
        "verdict rests on the whole run only."
    )
    more = len(withdrawn) - len(rows)
    texts = tuple(Text(f"withdrawn: {withdrawn_text(time_ns, f)}") for time_ns, f in withdrawn)
    return (
        Text(intro, tone="soft", formats=HTML),
        Table("Withdrawn warnings", columns, rows, HTML, left_out=more, more="warnings are in the record"),
        Folded(f"{len(withdrawn)} withdrawn during the run", texts, BRIEF, _BRIEF, "withdrawn warnings in the report"),
    )
