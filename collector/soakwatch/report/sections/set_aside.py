"""Impossible readings: which no rule saw, and why."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import number, subject, utc
from soakwatch.report.blocks import BRIEF, HTML, Block, Folded, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_rules.wording.quantities import counted

ORDER = 31
TITLE = "Readings set aside"
ALWAYS = True
_MAX_ROWS, _BRIEF = 200, 3


def blocks(page: Page) -> Sequence[Block] | None:
    """A row for each series with impossible readings; None if there was none."""
    aside = page.verdict.set_aside
    if not aside:
        return None
    columns = (
        ReportColumn("target", "name"),
        ReportColumn("readings of", "name"),
        ReportColumn("set aside", "number"),
        ReportColumn("of", "number"),
        ReportColumn("first (UTC)", "time"),
        ReportColumn("last (UTC)", "time"),
        ReportColumn("why it cannot be"),
        ReportColumn("what that leaves open"),
    )
    rows = [
        [
            found.target,
            subject(found.metric, found.object),
            number(found.count),
            number(found.of),
            utc(found.begin_ns),
            utc(found.end_ns),
            "; ".join(found.why),
            found.undecided or "nothing",
        ]
        for found in aside[:_MAX_ROWS]
    ]
    intro = "The source showed what cannot be. No rule saw these readings; record and plots have them as they came."
    texts = tuple(Text(f"{found.target}  {found.text}") for found in aside)
    total = counted(sum(found.count for found in aside), "reading")
    return (
        Text(intro, tone="soft", formats=HTML),
        Table("Readings set aside", columns, rows, HTML, left_out=len(aside) - len(rows), more="series"),
        Folded(f"{total} set aside: the source showed what cannot be", texts, BRIEF, _BRIEF, "series in the report"),
    )
