"""What changed in the set-up since an earlier run: versions, machines, plan, identities of the devices."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.record.source import ReportSource
from soakwatch.report.blocks import BRIEF, HTML, Block, Preformatted, ReportColumn, Table, Text
from soakwatch.report.page import Page
from soakwatch.runs.release_under_test import release_in
from soakwatch.runs.setup_changes import changed
from soakwatch_rules.wording.quantities import counted

ORDER = 48
TITLE = "Changed since the earlier run"
ALWAYS = True
_MAX_ROWS, _BRIEF, _MAX_LINES = 200, 8, 200


def blocks(page: Page) -> Sequence[Block] | None:
    """How many facts differ and which; None where there is no earlier run."""
    difference = changed(page.source, page.earlier)
    if difference is None:
        return None
    number = len(difference.changes) + bool(difference.plan)
    differences = counted(number, "difference") + " in the set-up" if number else "the same set-up in both records"
    shown = [[change.about, change.before or "–", change.now or "–"] for change in difference.changes[:_MAX_ROWS]]
    drawn: list[Block] = [Text(f"Compared with {difference.run}{_release(page.earlier)}: {differences}.")]
    if shown:
        columns = (ReportColumn("fact", "name"), ReportColumn("then", "name"), ReportColumn("now", "name"))
        more = len(difference.changes) - len(shown)
        drawn.append(
            Table("What differs from the earlier run", columns, shown, brief=_BRIEF, left_out=more, more="differences")
        )
    if difference.plan:
        summary = f"The plan differs in {counted(len(difference.plan), 'line')}"
        drawn += [Preformatted(summary, difference.plan[:_MAX_LINES], HTML), Text(f"{summary}.", formats=BRIEF)]
    return drawn


def _release(earlier: ReportSource | None) -> str:
    release = "" if earlier is None else release_in(earlier)
    return f" (release {release})" if release else ""
