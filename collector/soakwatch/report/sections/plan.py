"""The plan of the run, as it was written."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import utc
from soakwatch.core.units import show_seconds
from soakwatch.report.blocks import HTML, Block, Preformatted, ReportColumn, Table, Text
from soakwatch.report.page import Page

ORDER = 70
TITLE = "Plan"
_COLUMNS = (
    ReportColumn("phase"),
    ReportColumn("start (UTC)"),
    ReportColumn("end (UTC)"),
    ReportColumn("length", "number"),
)


def blocks(page: Page) -> Sequence[Block]:
    """Phases as they were run, the command and the plan's text."""
    drawn: list[Block] = []
    if phases := page.verdict.phases or page.source.phases():
        rows = [
            [phase.name, utc(phase.window.begin_ns), utc(phase.window.end_ns), show_seconds(phase.window.seconds)]
            for phase in phases
        ]
        drawn.append(Table("Phases", _COLUMNS, rows, HTML, narrow=True))
    if command := page.source.meta("command"):
        drawn += [Text("Started with", formats=HTML), Preformatted("", tuple(command.splitlines()), HTML)]
    if plan := page.source.meta("plan"):
        drawn.append(Preformatted("", tuple(plan.splitlines()), HTML))
    else:
        drawn.append(Text("The record has no plan.", formats=HTML))
    return drawn
