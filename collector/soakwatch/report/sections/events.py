"""Every event of the run, planned or not."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import utc
from soakwatch.report.blocks import HTML, Block, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_model.event import Event

ORDER = 60
TITLE = "Events"
_MAX_ROWS = 500
_COLUMNS = (
    ReportColumn("start (UTC)", "time"),
    ReportColumn("end (UTC)", "time"),
    ReportColumn("target", "name"),
    ReportColumn("kind"),
    ReportColumn("object", "name"),
    ReportColumn("source"),
    ReportColumn("detail"),
)


def blocks(page: Page) -> Sequence[Block]:
    """The events in the order in which they began."""
    stored = sorted(page.source.events(), key=lambda each: (each.event.begin_ns, each.id))
    if not stored:
        return (Text("No event was recorded.", formats=HTML),)
    rows: list[list[ReportCell | str]] = [
        [
            utc(each.event.begin_ns),
            utc(each.event.end_ns) if each.event.end_ns else "–",
            each.event.target or "the run",
            ReportCell(each.event.kind, "strong"),
            each.event.object,
            each.origin,
            _detail(each.event),
        ]
        for each in stored[:_MAX_ROWS]
    ]
    left_out = len(stored) - len(rows)
    return (Table("Events in order of time", _COLUMNS, rows, HTML, left_out=left_out, more="events are in the record"),)


def _detail(event: Event) -> str:
    """What is known of an event, and what a plan expected of it by when."""
    parts = [", ".join(f"{key} {value}" for key, value in sorted(event.detail.items()))]
    if event.expect:
        parts.append(f"expected: {', '.join(f'{value} {key}' for key, value in sorted(event.expect.items()))}")
    if event.deadline_ns:
        parts.append(f"by {utc(event.deadline_ns)}")
    return " ".join(part for part in parts if part)
