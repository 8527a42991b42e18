"""Why the run ended before its planned end: what was decided, by which definition and data, and what it leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.event_kinds import DECIDED
from soakwatch.judge.decided import EVIDENCE_COLUMNS, evidence_cells, rows_of
from soakwatch.report.blocks import Block, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch_rules.growth.sequential import RISK_FAIL, RISK_PASS, needed
from soakwatch_rules.wording.quantities import counted, percent

ORDER = 22
TITLE = "Decided before the planned end"
_BRIEF = 8
_DEFINITION = (
    "The plan ends the run once every required rule has its final answer (stop_when: decided). Growth: the e-value of "
    "the slope of block means (corrected for their correlation) against what the rule growth allows, from the begin "
    "and from seven later starts; it is wrong with at most {fail} for all series that do not grow, and {passes} for "
    "each that does, however often the run is looked at. A failure also needs the rule growth itself, a second half "
    "that does not slow down, and more than a daily wave would lift. All other rules: as if the run had ended then."
)
_DOUBTS = (
    "What it leaves open: a cache that fills in a straight line, the first climb of a sawtooth and a part of a wave of "
    "several days look like a leak for as long as they last (not_before gives a device time); what happens later, such "
    "as a crash or a leak that begins, was not seen; the variance is estimated, so the error holds for long runs."
)


def blocks(page: Page) -> Sequence[Block] | None:
    """The sentence, its definition, the evidence by series, and the doubts; None of a run that did not end so."""
    if not page.verdict.decided:
        return None
    event = next((event for event in page.events if event.kind == DECIDED), None)
    parts: list[Block] = [Text(f"{page.verdict.course}: {page.verdict.decided}".strip(": "))]
    parts.append(Text(_DEFINITION.format(fail=percent(RISK_FAIL), passes=percent(RISK_PASS)), tone="soft"))
    rows = () if event is None else rows_of(event)
    if event is not None and rows:
        family = int(event.detail.get("series") or len(rows))
        least = f"{needed(RISK_FAIL, family):,.0f} needed for growth, {needed(RISK_PASS, family):,.0f} for none"
        columns = tuple(
            ReportColumn(name, "name" if not n else "text" if n == 1 else "number")
            for n, name in enumerate(EVIDENCE_COLUMNS)
        )
        title = f"Evidence of {counted(family, 'series')} ({least})"
        cells = [list(evidence_cells(row)) for row in rows]
        parts.append(Table(title, columns, cells, brief=_BRIEF, left_out=family - len(rows)))
    parts.append(Text(_DOUBTS, tone="soft"))
    return parts
