"""What could not be judged, and why: missing data is never a pass."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.judge.verdict import NOT_OBSERVABLE, NOT_REQUIRED
from soakwatch.report.blocks import CONSOLE, HTML, Block, Folded, Format, ReportCell, ReportColumn, Table, Text
from soakwatch.report.page import Page, worst_first
from soakwatch.report.summaries import undecided
from soakwatch_model.finding import Finding, InconclusiveReason, Outcome
from soakwatch_rules.causes import ReasonRow, rows_by_reason
from soakwatch_rules.wording.quantities import counted, first_few

ORDER = 28
TITLE = "What could not be judged"
_BRIEF, _MAX_RULES = 10, 8
_MARKDOWN: frozenset[Format] = frozenset({"markdown"})


def blocks(page: Page) -> Sequence[Block]:
    """What is inconclusive or not applicable, a row for each reason, and targets without any finding."""
    return (*_page_blocks(page), *_console_blocks(page), *_markdown_blocks(page.verdict.findings))


def _page_blocks(page: Page) -> list[Block]:
    findings, unjudged = page.verdict.findings, {Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE}
    indices = sorted(
        (index for index, f in enumerate(findings) if f.outcome in unjudged), key=lambda i: worst_first(findings[i])
    )
    columns = (
        ReportColumn("outcome"),
        ReportColumn("target", "name"),
        ReportColumn("rule", "time"),
        ReportColumn("object", "name"),
        ReportColumn("reason"),
        ReportColumn("to resolve"),
    )
    rows: list[list[ReportCell | str]] = [
        [
            ReportCell(row.outcome.value, outcome=row.outcome),
            ", ".join(row.targets),
            row.rule,
            (f"{row.count}: " if len(row.indexes) > 1 else "") + (row.about or "the target"),
            row.why,
            row.settle or "–",
        ]
        for row in rows_by_reason(findings, indices)
    ]
    drawn: list[Block] = [Table("What could not be judged, and how to resolve it", columns, rows, HTML)]
    if not rows:
        drawn = [Text("Every rule had the data it needs on every target.", formats=HTML)]
    judged = {finding.target for finding in findings}
    silent = sorted(target.target for target in page.verdict.targets if target.target not in judged)
    if silent:
        drawn.append(Text(", ".join(silent), label="No rule applied to:", formats=HTML))
    return drawn


def _console_blocks(page: Page) -> list[Block]:
    findings = page.verdict.findings
    causes = [cause for cause in page.verdict.causes if undecided(cause)]
    waived = {index for cause in causes if cause.waived for index in cause.findings}
    rows = rows_by_reason(findings, [index for cause in causes for index in cause.findings])
    idle = rows_by_reason(findings, _not_applicable(findings))
    texts = [
        Text(
            f"{', '.join(row.targets)}  {row.words}{_note(row, findings, waived)}",
            outcome=row.outcome,
            detail=f"of {row.about or 'the target'}",
            formats=CONSOLE,
        )
        for row in rows[:_BRIEF]
    ]
    if len(rows) > _BRIEF:
        texts.append(Text(f"… and {len(rows) - _BRIEF} more undecided in the report", tone="soft", formats=CONSOLE))
    texts += [
        Text(f"{', '.join(row.targets)}  {row.words}", outcome=row.outcome, formats=CONSOLE) for row in idle[:_BRIEF]
    ]
    if len(idle) > _BRIEF:
        texts.append(Text(f"… and {len(idle) - _BRIEF} more not applicable", tone="soft", formats=CONSOLE))
    return list(texts)


def _note(row: ReasonRow, findings: Sequence[Finding], waived: set[int]) -> str:
    """Whether an undecided row was required for a pass."""
    if not waived.issuperset(row.indexes):
        return ""
    coarse = all(findings[index].why is InconclusiveReason.CADENCE for index in row.indexes)
    return f" {NOT_OBSERVABLE if coarse else NOT_REQUIRED}"


def _markdown_blocks(findings: Sequence[Finding]) -> list[Block]:
    idle = _not_applicable(findings)
    if not idle:
        return []
    rules = first_few(sorted({findings[index].rule for index in idle}), _MAX_RULES)
    text = Text(f"{rules} ({counted(len(idle), 'finding')})", outcome=Outcome.NOT_APPLICABLE)
    return [Folded(f"{len(idle)} not applicable", (text,), _MARKDOWN)]


def _not_applicable(findings: Sequence[Finding]) -> list[int]:
    return [index for index, finding in enumerate(findings) if finding.outcome is Outcome.NOT_APPLICABLE]
