"""Markdown: the verdict for a pull request, at most 75 lines."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby

from soakwatch.core.formatting import SYMBOLS, printable, quantity, subject
from soakwatch.judge.record_trust import seal_words
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.answer import ReportAnswer, answer_of, chain_title
from soakwatch.report.blocks import (
    NO_TIME,
    Banner,
    Block,
    Chapter,
    Curves,
    Facts,
    Folded,
    Heading,
    Preformatted,
    ReportCell,
    Table,
    Text,
    columns_in,
    stands_alone,
)
from soakwatch.report.page import Page, open_page
from soakwatch.report.section import ReportSection, all_sections
from soakwatch.report.sections import findings as findings_section
from soakwatch.report.sections import verdict as verdict_section
from soakwatch.report.sparks import spark_words, sparkline
from soakwatch.report.summaries import chain, confidence_text, has_own_frame, outcome_words
from soakwatch_model.roles import DUT
from soakwatch_model.window import Window
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import cut_to

_MAX_LINES = 75
_MAX_TARGETS, _MAX_CAUSES, _MAX_FOLDED, _MAX_MOMENTS, _MAX_ROWS = 6, 8, 5, 5, 5
_ESCAPED = str.maketrans({char: "\\" + char for char in "\\`*_[]|~"})


def render_markdown(source: ReportSource, verdict: Verdict, earlier: ReportSource | None = None) -> str:
    """The verdict, the targets, the findings, and what every section says in brief; what is left out is counted.

    What passed, does not apply or was withdrawn is folded at the end. Sections of plug-ins that do not fit into 75
    lines are counted.
    """
    return markdown_of(open_page(source, verdict, earlier))


def markdown_of(page: Page) -> str:
    """The report of an open page."""
    verdict = page.verdict
    parts: list[tuple[ReportSection, list[str]]] = []
    folded: list[Folded] = []
    for section in all_sections():
        if section.foreign or section.order not in {verdict_section.ORDER, findings_section.ORDER}:
            chapter = section.chapter(page, "markdown")
            folded += [block for block in chapter.blocks if isinstance(block, Folded)]
            lines = chapter_lines(chapter, verdict.window)
        else:
            lines = _head(page) if section.order == verdict_section.ORDER else _findings(verdict)
        parts.append((section, lines))
    last = _folded(folded)
    room = _MAX_LINES - 2 - len(last) - sum(len(lines) for section, lines in parts if not section.foreign)
    kept: list[str] = []
    left_out = 0
    for section, lines in parts:
        if section.foreign and len(lines) > room:
            left_out += 1
            continue
        room -= len(lines) if section.foreign else 0
        kept += lines
    if left_out:
        kept += ["", f"… and {left_out} more sections in the report."]
    return "\n".join([*kept, *last]) + "\n"


def _head(page: Page) -> list[str]:
    """The answer: the same facts in the same words as on the first screen of the page; then each target."""
    verdict, answer = page.verdict, answer_of(page)
    lines = [
        f"## {SYMBOLS[answer.outcome]} Soakwatch: {answer.word} – {markdown_text(answer.run)}",
        "",
        f"**{markdown_text(answer.sentence, 400)}**",
        "",
        f"{markdown_text(answer.when, 400)}{_unread(page)}{_seal(page)}",
        "",
        *_facts(answer),
    ]
    if answer.steps:
        more = f" ({answer.more_steps} more in the report)" if answer.more_steps else ""
        lines += ["", f"{chain_title(answer)}{more}:", ""]
        for number, step in enumerate(answer.steps, 1):
            after = f" ({step.after})" if step.after else ""
            sign = "" if step.outcome is None else f"{SYMBOLS[step.outcome]} "
            told = markdown_text(f"{step.when}{after} {step.target}: {step.text}", 300)
            lines.append(f"{number}. {sign}{told}")
    lines += ["", *(f"- **{name}** {markdown_text(text, 400)}" for name, text in answer.lines), ""]
    lines += ["| target | role | verdict | reason |", "|---|---|---|---|"]
    lines += [
        f"| {markdown_text(t.target)} | {markdown_text(t.role)} | {SYMBOLS[t.outcome]} {t.outcome.value} |"
        f" {markdown_text(t.reason, 200)} |"
        for t in sorted(verdict.targets, key=lambda t: (t.role != DUT, t.outcome.rank))[:_MAX_TARGETS]
    ]
    return lines + _more(verdict.targets, _MAX_TARGETS, "targets")


def _facts(answer: ReportAnswer) -> list[str]:
    """The facts, two a line: a comment on a pull request should be short."""
    told = [f"{name}: {markdown_text(text, 300)}" for name, text in answer.facts]
    return [f"- {'; '.join(told[first : first + 2])}" for first in range(0, len(told), 2)]


def _unread(page: Page) -> str:
    """The labels that could not be read, on the line of the run's times."""
    return "".join(f"; {markdown_text(f'label {n} not read: {why}', 400)}" for n, why in page.unread_labels)


def _seal(page: Page) -> str:
    """The seal of the record, on the same line."""
    words = seal_words(page.verdict.checked)
    return f"; {markdown_text(words, 400)}" if words else ""


def _findings(verdict: Verdict) -> list[str]:
    if not verdict.causes:
        return []
    lines = ["", f"### {findings_section.TITLE}", ""]
    lines += [_cause_line(verdict, cause) for cause in verdict.causes[:_MAX_CAUSES]]
    return lines + _more(verdict.causes, _MAX_CAUSES, "causes")


def chapter_lines(chapter: Chapter, window: Window = NO_TIME) -> list[str]:
    """A chapter's lines without what is folded: several sentences are a list; a single one needs no heading.

    ``window`` is the run's, over which spark lines are drawn.
    """
    blocks = [block for block in chapter.blocks if not isinstance(block, Folded)]
    if not blocks:
        return []
    lines = [] if stands_alone(blocks) or not chapter.title else ["", f"### {markdown_text(chapter.title)}"]
    for sentences, group in groupby(blocks, key=lambda block: isinstance(block, Text)):
        some = list(group)
        lines.append("")
        if sentences:
            bullet = "" if len(blocks) == 1 else "- "
            lines += [bullet + _sentence(block) for block in some if isinstance(block, Text)]
        else:
            for block in some:
                lines += _block(block, window)
    return lines


def _block(block: Block, window: Window) -> list[str]:
    if isinstance(block, Banner):
        word = f"{SYMBOLS[block.outcome]} Soakwatch {block.kind}: {block.word.upper()}"
        reason, extent = markdown_text(block.reason, 400), markdown_text(block.extent, 400)
        return [f"## {word} – {markdown_text(block.name)}", "", f"**{reason}**", "", extent]
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Curves):
        names = block.names or tuple(series.object or series.metric for series in block.series)
        shown = [
            (line, spark_words(series, window), name)
            for series, name in zip(block.series, names, strict=True)
            if (line := sparkline(series, window=block.window or window))
        ]
        return [
            f"- {markdown_text(block.title)}: `{line}` {markdown_text(f'{words} {name}')}"
            for line, words, name in shown
        ]
    if isinstance(block, Heading):
        return [f"#### {markdown_text(block.text)}"]
    if isinstance(block, Facts):
        return [f"- **{markdown_text(name)}** {markdown_text(text, 400)}" for name, text in block.pairs]
    if isinstance(block, Preformatted) and block.summary:
        return [markdown_text(block.summary)]
    return []


def _table(table: Table) -> list[str]:
    columns, rows = columns_in(table, "markdown")
    rule = "|".join("---:" if column.kind in {"number", "figure"} else "---" for column in columns)
    lines = [f"| {' | '.join(markdown_text(column.title) for column in columns)} |", f"|{rule}|"]
    most, length = (len(rows), 600) if table.brief is None else (min(table.brief, _MAX_ROWS), 160)
    lines += [f"| {' | '.join(_cell(cell, length) for cell in row)} |" for row in rows[:most]]
    left_out = max(len(rows) - most, 0) + table.left_out
    lines += ["", f"… and {left_out} more in the report."] if left_out else []
    lines += ["", *(f"- {markdown_text(note, 400)}" for note in table.footnotes)] if table.footnotes else []
    return lines + (["", f"<sub>{markdown_text('; '.join(table.legend), 600)}</sub>"] if table.legend else [])


def _cell(cell: ReportCell, length: int) -> str:
    main, beside = markdown_text(cell.text, length), markdown_text(cell.beside)
    main = f"*{main}*" if cell.tone == "absent" else f"**{main}** {cell.mark}" if cell.mark else main
    sign = "" if cell.outcome is None else SYMBOLS[cell.outcome]
    return " ".join(filter(None, (sign, main, beside, cell.note and f"({markdown_text(cell.note)})")))


def _sentence(text: Text) -> str:
    sign = "" if text.outcome is None else f"{SYMBOLS[text.outcome]} {markdown_text(text.word)} ".replace("  ", " ")
    label = f"**{markdown_text(text.label)}** " if text.label else ""
    return f"{sign}{label}{markdown_text(text.text, 400)}"


def _folded(blocks: Sequence[Folded]) -> list[str]:
    """All that is folded, behind one summary."""
    if not blocks:
        return []
    lines = ["", f"<details><summary>{', '.join(markdown_text(block.summary) for block in blocks)}</summary>", ""]
    for block in blocks:
        most = min(block.brief, _MAX_FOLDED)
        lines += [f"- {_sentence(text)}" for text in block.texts[:most]]
        if len(block.texts) > most:
            lines.append(f"- … and {len(block.texts) - most} {block.more}.")
    return [*lines, "", "</details>"]


def _more(items: Sequence[object], shown: int, word: str) -> list[str]:
    return ["", f"… and {len(items) - shown} more {word} in the report."] if len(items) > shown else []


def markdown_text(text: str, most: int = 160) -> str:
    """Text that no Markdown reader takes for markup: one line, escaped, without mentions and links."""
    line = cut_to(" ".join(printable(text).split()), most)
    escaped = html.escape(line.translate(_ESCAPED), quote=False)
    return escaped.replace("@", "@\u200b").replace("://", ":\u200b//").replace("#", "#\u200b")


def _cause_line(verdict: Verdict, cause: Cause) -> str:
    """One line: outcome, target, what happened, its moments, figures and forecast of the leading finding."""
    lead = verdict.findings[cause.leading]
    what = "" if len(cause.findings) > 1 else markdown_text(subject(lead.metric, lead.object))
    outcome = outcome_words(lead) if len(cause.findings) == 1 else cause.outcome.value
    line = (
        f"- {SYMBOLS[cause.outcome]} **{outcome}** {markdown_text(cause.target) or 'several targets'}"
        f" {markdown_text(lead.rule)}{': ' if what else ''}{what} – {markdown_text(cause.headline, 400)}"
    )
    if lead.measured is not None and cause.kind is not CauseKind.UNSETTLED:
        limit = f", limit {quantity(lead.limit, lead.unit)}" if lead.limit is not None else ""
        line += " " + markdown_text(f"({quantity(lead.measured, lead.unit)}{limit})")
    if lead.forecast is not None and (words := forecast_words(lead.forecast)):
        line += f"; forecast: {markdown_text(words)}"
    if has_own_frame(verdict, cause) and cause.timeline:
        sure = "" if cause.confidence is None else f" (one cause with {confidence_text(cause.confidence)} confidence)"
        steps = [f"{when} {mark.text}" for when, mark in chain(cause, _MAX_MOMENTS)]
        left = len(cause.timeline) - len(steps)
        steps += [f"and {left} more moments"] if left else []
        line += f"; {markdown_text(' → '.join(steps), 500)}{sure}"
    elif lead.settle and cause.kind is not CauseKind.UNSETTLED:
        line += f"; to resolve: {markdown_text(lead.settle)}"
    return line.rstrip()
