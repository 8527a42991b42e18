"""A campaign as Markdown: the verdict, its findings, its doubts and its tables, for a pull request or a wiki."""

from __future__ import annotations

from soakwatch.campaign.tables.result import DEFINITION, CampaignResult, extent_words, verdict_words
from soakwatch.campaign.tables.sheet import CellText, Sheet
from soakwatch.core.formatting import SYMBOLS
from soakwatch.report.markdown import markdown_text


def sheet_lines(sheet: Sheet) -> list[str]:
    """A table with its title, the reasons of what is missing, and its legend."""
    heads = [markdown_text(head) for head in sheet.head]
    if sheet.across:
        heads[-1] = f"{heads[-1]} \\\\ {markdown_text(sheet.across)}".strip()
    titles = [*heads, *(markdown_text(column) for column in sheet.columns)]
    rule = ["---"] * len(heads) + ["---:"] * len(sheet.columns)
    lines = ["", f"### {markdown_text(sheet.title)}", "", _row(titles), f"|{'|'.join(rule)}|"]
    for row, cells in sheet.rows:
        lines.append(_row([*(markdown_text(word) for word in row), *(_cell(cell) for cell in cells)]))
    if sheet.notes:
        lines += ["", *(f"- {markdown_text(note, 400)}" for note in sheet.notes)]
    if sheet.legend:
        lines += ["", f"<sub>{markdown_text('; '.join(sheet.legend), 600)}</sub>"]
    return lines


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(words: CellText) -> str:
    if words.absent:
        return f"*{markdown_text(words.main)}*"
    if words.outcome is not None:
        return f"{SYMBOLS[words.outcome]} {markdown_text(words.main)}"
    main = markdown_text(words.main)
    if words.mark:
        main = f"**{main}** {words.mark}"
    return " ".join(part for part in (main, markdown_text(words.beside), _note(words)) if part)


def _note(words: CellText) -> str:
    return f"({markdown_text(words.note)})" if words.note else ""


def render_markdown(result: CampaignResult) -> str:
    """The campaign as Markdown. Nothing is left out."""
    outcome = result.outcome
    name = markdown_text(result.state.name)
    lines = [
        f"## {SYMBOLS[outcome]} Soakwatch campaign: {verdict_words(result).upper()} – {name}",
        "",
        f"**{markdown_text(result.reason, 400)}**",
        "",
        markdown_text(extent_words(result), 400),
    ]
    if result.doubts:
        lines += ["", *(f"- ! {markdown_text(doubt, 400)}" for doubt in result.doubts)]
    if result.findings:
        lines += ["", "### Findings", "", "| verdict | of | asked | measured |", "|---|---|---|---|"]
        for finding in result.findings:
            words = (finding.subject, finding.asked, finding.reason)
            sign = f"{SYMBOLS[finding.outcome]} {finding.outcome.value}"
            lines.append(_row([sign, *(markdown_text(word, 600) for word in words)]))
    for table in result.tables:
        for sheet in table:
            lines += sheet_lines(sheet)
    return "\n".join([*lines, "", f"<sub>Verdict of a campaign: {markdown_text(DEFINITION, 600)}.</sub>"]) + "\n"
