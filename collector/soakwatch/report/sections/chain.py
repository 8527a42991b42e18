"""What failed or warned first and what followed: the moments of all causes in order of time, with the load then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from soakwatch.core.formatting import span_text, zoom_of
from soakwatch.judge.problems import clause
from soakwatch.report.blocks import CONSOLE, Block, Layout, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.report.timeline import ChainRow, MomentChain, chain_of, clipped

ORDER = 12
TITLE = "Timeline of failures and warnings"
ALWAYS = True
_SHOWN, _MAX_LASTING, _BRIEF = 12, 12, 10


def _facts(page: Page, chain: MomentChain) -> Mapping[str, object] | None:
    """What the page draws of the chain; None where nothing failed or warned."""
    if not chain.rows and not chain.lasting:
        return None
    run = page.verdict.window
    return {
        "rows": chain.rows,
        "shown": _SHOWN,
        "more": chain.left_out,
        "lasting": chain.lasting,
        "max_lasting": _MAX_LASTING,
        "loaded": chain.loaded,
        "failed": chain.failed,
        "links": page.cause_anchors,
        "to": "overview" if page.keys else "findings",
        "zooms": {index: zoom_of(clipped(cause.begin_ns, cause.end_ns, run)) for index, cause in chain.lasting},
        "spans": {index: span_text(cause.begin_ns, cause.end_ns) for index, cause in chain.lasting},
    }


def blocks(page: Page) -> Sequence[Block] | None:
    """A table, for a console a shorter one with a sentence for each cause without a moment."""
    chain = chain_of(page)
    blocks_found: list[Block] = [Layout("chain", partial(_facts, page, chain))]
    blocks_found += [_table(chain)] if chain.rows else []
    for _, cause in chain.lasting[:_BRIEF]:
        lead = page.verdict.findings[cause.leading]
        stretch = f"over {span_text(cause.begin_ns, cause.end_ns)} UTC"
        text = f"{cause.target or 'several targets'}  {stretch}: {clause(lead, where=False)}"
        blocks_found.append(Text(text, outcome=cause.outcome, formats=CONSOLE))
    return blocks_found


def _table(chain: MomentChain) -> Table:
    """The moments; the day is in the heading where it is the same for all."""
    one_day = len({row.when[:10] for row in chain.rows}) == 1
    columns = [
        ReportColumn(f"{chain.rows[0].when[:10]} UTC" if one_day else "UTC", "time"),
        ReportColumn("offset", "number"),
        *([ReportColumn("load then")] if chain.loaded else []),
        ReportColumn("target", "name"),
        ReportColumn("what happened"),
    ]
    rows: list[list[ReportCell | str]] = [
        [
            row.when[11:19] if one_day else row.when[:19],
            ReportCell(row.lag, "strong"),
            *([row.load or "–"] if chain.loaded else []),
            _whose(row),
            ReportCell(row.text, "strong" if row.first else ""),
        ]
        for row in chain.rows
    ]
    return Table("What happened", tuple(columns), rows, CONSOLE, _SHOWN, left_out=chain.left_out)


def _whose(row: ChainRow) -> ReportCell:
    """The target of a moment, with its outcome; an event and a silence are no findings and have none."""
    name = row.target or "several targets"
    return ReportCell(f"· {name}", "soft") if row.outcome is None else ReportCell(name, outcome=row.outcome)
