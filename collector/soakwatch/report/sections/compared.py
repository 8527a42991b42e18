"""This run beside earlier ones: what the rule run_difference measured, the figures of the load first."""

from __future__ import annotations

from collections.abc import Sequence

from soakwatch.core.formatting import natural, quantity, subject
from soakwatch.judge.verdict import Verdict
from soakwatch.report.blocks import CONSOLE, HTML, Block, ReportCell, ReportColumn, Table
from soakwatch.report.page import Page
from soakwatch.runs.compare.figure_rows import FigureSide, figures
from soakwatch.runs.compare.phase_slots import slots_of
from soakwatch.runs.compare.targets import target_map
from soakwatch_model.finding import Finding
from soakwatch_model.metric import BY_NAME, COUNTER
from soakwatch_rules.detectors.run_difference import RunDifference
from soakwatch_rules.wording.quantities import counted, percent

ORDER = 24
TITLE = "Compared with earlier runs"
ALWAYS = True
_RULE = RunDifference.name
_BRIEF = 20


def blocks(page: Page) -> Sequence[Block] | None:
    """What the rule compared; without that rule the figures of both runs; None if no earlier run was named.

    What could not be compared has no row here: it is among what could not be judged.
    """
    judged = _judged(page.verdict)
    columns = [ReportColumn("figure"), ReportColumn("this run", "number"), ReportColumn("earlier", "number")]
    rows = judged or _figures(page)
    if rows:
        columns += [ReportColumn("change", "number"), ReportColumn("result", formats=HTML | CONSOLE)]
    if not rows:
        return None
    table = Table("Figures of this run and of earlier ones", tuple(columns), rows, formats=HTML | CONSOLE, brief=_BRIEF)
    return (table,)


def _judged(verdict: Verdict) -> list[list[ReportCell | str]]:
    """What was compared with earlier runs, in the order in which people ask: throughput, loss, latency, device."""
    compared = [f for f in verdict.findings if f.rule == _RULE and "new" in f.numbers]
    return [_row(finding) for finding in sorted(compared, key=_order)]


def _figures(page: Page) -> list[list[ReportCell | str]]:
    """The figures of this run and of the one it is compared with; empty where there is none."""
    if page.earlier is None:
        return []
    views = (page.earlier, page.source)
    roles = [view.roles() for view in views]
    sides = [FigureSide(view, (), target_map(own, roles[0])) for view, own in zip(views, roles, strict=True)]
    slots = slots_of([(view.window(), view.phases()) for view in views])
    rows: list[list[ReportCell | str]] = []
    for row in figures(sides, slots):
        change = row.changes[1]
        words, result = ("–", "–") if change is None else (change.words, change.result or "–")
        rows.append([f"{row.head}, {row.of}".rstrip(", "), row.cells[1], row.cells[0], words, result])
    return rows


def _order(finding: Finding) -> tuple[object, ...]:
    return RunDifference.metrics.index(finding.metric), natural(finding.target), natural(finding.object)


def _row(finding: Finding) -> list[ReportCell | str]:
    entry, numbers = BY_NAME[finding.metric], finding.numbers
    unit = f"{entry.unit}/s" if entry.kind == COUNTER else entry.unit
    p = numbers.get("p")
    return [
        f"{finding.target} {subject(finding.metric, finding.object)}",
        quantity(numbers["new"], unit),
        f"{quantity(numbers['old'], unit)} ({counted(int(numbers['runs']), 'run')})",
        percent(numbers["change"], sign=True),
        ReportCell(finding.outcome.value + ("" if p is None else f" (p = {p:.2g})"), outcome=finding.outcome),
    ]
