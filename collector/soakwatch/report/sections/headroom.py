"""Headroom to each limit, and when the limit is reached at the present rate: the worst first."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import subject
from soakwatch.report.blocks import CONSOLE, HTML, Block, ReportCell, ReportColumn, Table, Text
from soakwatch.report.headroom import Headroom
from soakwatch.report.page import Page
from soakwatch_model.finding import Outcome
from soakwatch_model.roles import MONITOR
from soakwatch_rules.wording.quantities import counted

ORDER = 26
TITLE = "Headroom"
_MAX_ROWS, _FOLDED_AFTER, _BRIEF = 120, 20, 12
_INTRO = (
    "How much of each limit was left at the highest measured value. Exceeded limits come first, then what runs out "
    "within a week, limits of the device, and limits of rules. For a limit of a rule, “highest” is the rule's own "
    "measure; “at the end” is the median of the last 5 % of the run. “Full in” carries the pace of the run on to the "
    "limit, by its highest readings; it is given for growth that cannot be chance. “Not before” holds with 95 % if the "
    "load and what it does stay as they were: growth that begins later is not in it. Zero-tolerance limits (restarts, "
    "crashes, drops) are listed under Findings."
)
_COLUMNS = (
    ReportColumn("target", "name"),
    ReportColumn("object", "name"),
    ReportColumn("highest", "number"),
    ReportColumn("at the end", "number"),
    ReportColumn("limit", "number"),
    ReportColumn("limit set by"),
    ReportColumn("headroom", "number"),
    ReportColumn("forecast"),
)
_BRIEF_COLUMNS = (
    ReportColumn("headroom", "number"),
    ReportColumn("highest", "number"),
    ReportColumn("limit", "number"),
    ReportColumn("object, who set the limit, forecast"),
)


def blocks(page: Page) -> Sequence[Block]:
    """The rows, the worst first."""
    headrooms, unread = page.headroom
    blocks: list[Block] = [Text(_INTRO, tone="soft", formats=HTML)]
    if headrooms:
        rows = [_row(room, page) for room in headrooms[:_MAX_ROWS]]
        more = len(headrooms) - len(rows)
        words = "with still more headroom are in verdict.json"
        blocks.append(
            Table("Headroom to each limit", _COLUMNS, rows, HTML, folded_after=_FOLDED_AFTER, left_out=more, more=words)
        )
        blocks += _brief(headrooms)
    else:
        blocks.append(Text("Neither a rule nor a device stated a limit.", formats=HTML))
    if unread:
        blocks.append(Text(f"{unread} further series with a stated limit were not read.", tone="soft", formats=HTML))
    zeros = sum(f.limit == 0 and f.measured == 0 and f.outcome is Outcome.PASS for f in page.verdict.findings)
    if zeros:
        blocks.append(Text(f"{counted(zeros, 'zero-tolerance counter')} stayed at zero.", formats=HTML))
    return blocks


def _row(room: Headroom, page: Page) -> list[ReportCell | str]:
    over = room.room < 0
    return [
        room.target,
        subject(*room.about) or "the target",
        room.measured,
        room.at_end or "–",
        room.limit,
        ReportCell(room.of, link=page.finding_anchors.get(id(room.finding), "")),
        ReportCell(room.room_text, "bad" if over else "", meter=None if over else min(max(1 - room.room, 0), 1)),
        room.forecast or "–",
    ]


def _brief(headrooms: Sequence[Headroom]) -> list[Block]:
    """The devices' own limits that were used at all; the monitor's and those far away are counted."""
    near = [room for room in headrooms if room.target != MONITOR and room.room < 1]
    rows: list[list[ReportCell | str]] = [
        [
            ReportCell(room.room_text, "bad" if room.room < 0 else ""),
            room.measured,
            room.limit,
            f"{room.target} {subject(*room.about)} ({room.of})" + (f"; {room.forecast}" if room.forecast else ""),
        ]
        for room in near
    ]
    blocks: list[Block] = [Table("Headroom to each limit", _BRIEF_COLUMNS, rows, CONSOLE, _BRIEF)] if rows else []
    if ample := sum(room.room >= 1 for room in headrooms):
        blocks.append(Text(f"{counted(ample, 'more limit')} with ample headroom", tone="soft", formats=CONSOLE))
    return blocks
