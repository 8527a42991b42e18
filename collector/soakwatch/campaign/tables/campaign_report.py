"""A campaign as a report: the same chapters as one page, as Markdown, on a terminal, and on a page of the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from soakwatch.campaign.campaign_model import CellRun
from soakwatch.campaign.tables.campaign_findings import CampaignFinding
from soakwatch.campaign.tables.cell_figures import CellData
from soakwatch.campaign.tables.charts import TableChart, charts_of
from soakwatch.campaign.tables.result import DEFINITION, CampaignResult, extent_words, verdict_words
from soakwatch.campaign.tables.sheet import sheets_of
from soakwatch.campaign.tables.spec import ExpectedLoss, Figure, Measured, Per, ScaleUp, Share
from soakwatch.core.formatting import utc
from soakwatch.core.units import show_seconds
from soakwatch.report.blocks import (
    BRIEF,
    CONSOLE,
    HTML,
    Banner,
    Chapter,
    Facts,
    Format,
    Layout,
    ReportCell,
    ReportColumn,
    Table,
    Text,
    shown_in,
)
from soakwatch.report.console import ConsoleWriter
from soakwatch.report.console_blocks import print_chapter
from soakwatch.report.html import html_body, html_document
from soakwatch.report.markdown import chapter_lines
from soakwatch_model.finding import Outcome

Link = Callable[[CellRun], str]
"""The address of a run's report, empty where it has none."""
_FEW, _MOST_LINKS = 12, 8
_FINDINGS = (ReportColumn("verdict"), ReportColumn("of"), ReportColumn("asked"), ReportColumn("measured", "reason"))
_RUNS = (ReportColumn("cell", "head"), ReportColumn("verdict"), ReportColumn("runs"), ReportColumn("reason", "reason"))
_METHODS = {
    "verdict": f"{DEFINITION}. The verdict of a cell is the worst of its runs.",
    "number": "The median over the runs of a cell, one number a run; of several attempts of a run the last one counts. "
    "A run without the figure is not counted, and said.",
    "interval": "Of the median, 95 %, by order statistics: no distribution is assumed, and six runs are the least "
    "(Hahn and Meeker, Statistical Intervals, 1991; Hoefler and Belli, SC 2015). Ratios of several cells: over the "
    "corners of their intervals, with Bonferroni's correction.",
    "best, worst": "Only among cells that differ in the axes that compete (rivals of the table) alone, and where the "
    "interval overlaps that of no other of them; with fewer than six runs the range of the runs stands for it.",
    "comparison": "Wilcoxon, Mann and Whitney, exact, and two one-sided tests at the margin, corrected for the number "
    "of cells and figures (Holm, 1979).",
}


def render_html(result: CampaignResult, link: Link) -> str:
    """The campaign as one HTML document. Nothing is fetched: styles and scripts are inside, and its own security policy
    forbids the rest."""
    chapters = _chapters(result, "html", link)
    tables = [chapter for chapter in chapters if chapter.name.startswith("table-")]
    others = [(chapter.name, chapter.title) for chapter in chapters if chapter.title and chapter not in tables]
    listed = [*others[:-2], *_contents(tables), *others[-2:]]
    title = f"{result.outcome.value.upper()}: campaign {result.state.name}"
    return html_document(chapters, title, result.outcome, listed)


def campaign_body(result: CampaignResult, link: Link) -> Markup:
    """The body of the page, for a page of the server."""
    return html_body(_chapters(result, "html", link))


def render_markdown(result: CampaignResult) -> str:
    """The campaign as Markdown, for a pull request or a wiki. Nothing is left out."""
    lines = [line for chapter in _chapters(result, "markdown") for line in chapter_lines(chapter)]
    return "\n".join(lines).lstrip() + "\n"


def print_result(writer: ConsoleWriter, result: CampaignResult) -> None:
    """The verdict, what is doubtful, the findings and the tables."""
    for chapter in _chapters(result, "terminal" if writer.terminal else "text"):
        print_chapter(writer, chapter)


def beside(file: Path) -> Link:
    """Links from a page to the reports of runs, as paths relative to the page."""

    def link(run: CellRun) -> str:
        if run.folder is None or not (run.folder / "report.html").is_file():
            return ""
        way = os.path.relpath((run.folder / "report.html").resolve(), file.resolve().parent)
        return quote(Path(way).as_posix())

    return link


def _chapters(result: CampaignResult, form: Format, link: Link = lambda _: "") -> list[Chapter]:
    """All that a format shows of a campaign."""
    places = {data.cell.id: f"cell-{number}" for number, data in enumerate(result.cells, 1)}

    def address(data: CellData) -> str:
        """Of a cell: of its run where it has one, of the line that lists them where it has several."""
        began = [run for run in data.runs if run.folder is not None]
        return link(began[0]) if len(began) == 1 else f"#{places[data.cell.id]}" if began else ""

    tables = [
        (table, charts)
        for views in result.tables
        for table, charts in zip(sheets_of(views, result.spec, address), charts_of(views, result.spec), strict=True)
    ]
    rows = [_row(data, link, places[data.cell.id]) for data in result.cells]
    runs = Table("The runs of each cell", _RUNS, rows, HTML)
    figures = [(result.spec.words(figure.name), _expression(figure)) for figure in result.spec.figures]
    methods = Facts([*_METHODS.items(), *figures], words=True)
    definition = Text(f"Verdict of a campaign: {DEFINITION}.", tone="soft", formats=BRIEF)
    chapters = (
        Chapter("verdict", "", _verdict(result)),
        Chapter("findings", "Findings", _findings(result.findings)),
        *(
            Chapter(f"table-{number}", table.caption, (*map(_drawn, charts), table))
            for number, (table, charts) in enumerate(tables, 1)
        ),
        Chapter("runs", "Runs", (runs,), opened=len(rows) <= _FEW),
        Chapter("how", "How it was computed", (methods, definition), opened=False),
    )
    shown = [replace(chapter, blocks=shown_in(chapter.blocks, form)) for chapter in chapters]
    return [chapter for chapter in shown if chapter.blocks]


def _drawn(chart: TableChart) -> Layout:
    return Layout("table_chart", lambda: {"chart": chart})


def _verdict(result: CampaignResult) -> tuple[Banner | Facts | Text, ...]:
    words, extent = verdict_words(result), extent_words(result)
    banner = Banner(result.outcome, words, "campaign", result.state.name, result.reason, extent)
    doubts = (Text(doubt, outcome=Outcome.WARN, word="doubt") for doubt in result.doubts)
    return (banner, Facts(_numbers(result)), *doubts)


def _findings(findings: Sequence[CampaignFinding]) -> tuple[Table | Text, ...]:
    """A table where there is room, else a sentence each. Those that passed are last, and folded."""
    if not findings:
        return ()
    rows = [
        (ReportCell(one.outcome.value, outcome=one.outcome), one.subject, ReportCell(one.asked, "soft"), one.reason)
        for one in findings
    ]
    unfolded = sum(one.outcome is not Outcome.PASS for one in findings) or len(findings)
    table = Table("Findings", _FINDINGS, rows, HTML | {"markdown"}, brief=None, folded_after=unfolded, folded="passed")
    lines = (
        Text(
            one.reason if one.kind == "comparison" else f"{one.asked}: {one.reason}",
            label=one.subject,
            outcome=one.outcome,
            formats=CONSOLE,
        )
        for one in findings
    )
    return (table, *lines)


def _contents(tables: Sequence[Chapter]) -> list[tuple[str, str]]:
    """What the list of contents names of the tables: of several views of one figure the first."""
    first: dict[str, str] = {}
    for table in tables:
        first.setdefault(table.title.partition(": ")[0].partition(" (")[0], table.name)
    return [(name, title) for title, name in first.items()][:_MOST_LINKS]


def _numbers(result: CampaignResult) -> list[tuple[str, str]]:
    begun = [run.begin_ns for run in result.state.runs if run.begin_ns is not None]
    over = [run.end_ns for run in result.state.runs if run.end_ns is not None]
    facts = [("cells", str(len(result.cells))), ("runs", str(sum(result.states.values())))]
    facts += [(state, str(number)) for state, number in sorted(result.states.items())]
    if begun:
        facts.append(("first run (UTC)", utc(min(begun))))
    if begun and over:
        facts.append(("lasted", show_seconds(max(0, max(over) - min(begun)) * 1e-9)))
    facts += [(name, text) for name, text in result.state.labels.items()]
    return facts + ([("compared with", result.earlier)] if result.earlier else [])


def _row(data: CellData, link: Link, place: str) -> tuple[ReportCell | str, ...]:
    """The line of a cell with all its runs."""
    runs = []
    for run in data.runs:
        again = f" (attempt {run.attempt})" if run.attempt > 1 else ""
        state = run.verdict if run.state == "ended" and run.verdict else run.state
        runs.append((f"{run.repetition}: {state}{again}", link(run)))
    verdict = data.verdict
    words = ", ".join(f"{axis} {value}" for axis, value in data.cell.values.items())
    said = ReportCell(verdict.words, "absent" if verdict.outcome is None else "", outcome=verdict.outcome)
    links = ReportCell(", ".join(name for name, _ in runs), links=tuple(runs))
    return (ReportCell(words, anchor=place), said, links, "" if verdict.outcome is None else verdict.reason)


def _expression(figure: Figure) -> str:
    """How a figure is made, in one line."""
    if isinstance(figure, Measured):
        at = figure.ceiling
        limit = "" if at is None else f"; at the generator's limit within {at.within:.3g} of {at.axis} {at.of}"
        return figure.spec.text + limit
    if isinstance(figure, ScaleUp):
        return f"{figure.of} at {figure.along} n / (n · {figure.of} at the least {figure.along})"
    if isinstance(figure, Share):
        ratio = f"{figure.of} / {figure.of} at {figure.along} {figure.to}"
        return f"1 - {ratio}" if figure.cost else ratio
    if isinstance(figure, Per):
        above = figure.of if figure.less is None else f"({figure.of} - {figure.less})"
        return f"{above} / {figure.per}, run by run"
    assert isinstance(figure, ExpectedLoss)
    overload = figure.overload
    expected = f"1 - capacity / {overload.offered}"
    where = f"capacity: highest {overload.received} without loss along {overload.along}"
    return f"{overload.loss} - ({expected}); {where}" if figure.excess else f"{expected}; {where}"
