"""The report on a terminal: the verdict, each target, the findings, and what every section says in brief."""

from __future__ import annotations

from rich.console import Console

from soakwatch.core.formatting import SYMBOLS, utc
from soakwatch.core.labels import labels_words
from soakwatch.core.units import show_seconds
from soakwatch.judge.record_trust import seal_words
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.answer import answer_of
from soakwatch.report.console import ConsoleWriter, Part
from soakwatch.report.console_blocks import STYLES, head, print_section
from soakwatch.report.headline import headline
from soakwatch.report.page import Page, open_page
from soakwatch.report.section import all_sections
from soakwatch.report.sections import findings as findings_section
from soakwatch.report.sections import verdict as verdict_section
from soakwatch.report.summaries import undecided
from soakwatch.report.terminal_findings import print_causes
from soakwatch_model.finding import Outcome


def print_verdict(
    source: ReportSource, verdict: Verdict, console: Console, earlier: ReportSource | None = None
) -> None:
    """Print the report; plain lines without colour, uncut, where ``console`` is not a terminal.

    The verdict and the findings are drawn here, every other section by its blocks. ``earlier`` is a run that this one
    is compared with.
    """
    writer = ConsoleWriter(console)
    page = open_page(source, verdict, earlier)
    for section in all_sections():
        if section.order == verdict_section.ORDER and not section.foreign:
            _head(writer, page)
            _targets(writer, verdict)
        elif section.order == findings_section.ORDER and not section.foreign:
            _findings(writer, page)
        else:
            print_section(writer, section, page)
    if writer.terminal:
        writer.gap()


def _head(writer: ConsoleWriter, page: Page) -> None:
    verdict = page.verdict
    window, outcome = verdict.window, verdict.outcome
    writer.say((f"{SYMBOLS[outcome]} {verdict.words}", STYLES[outcome]), (f"  {verdict.run}", "bold"), hang=2)
    writer.say((headline(verdict, page.load), "bold"))
    if outcome is not Outcome.FAIL or verdict.preliminary:  # of a failure it is the same sentence
        writer.say(verdict.reason)
    writer.say(f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}")
    if verdict.labels:
        writer.say(labels_words(verdict.labels), hang=2)
    for name, reason in page.unread_labels:
        writer.say(f"label {name} not read: {reason}", hang=2)
    if seal := seal_words(verdict.checked):
        writer.say(seal, hang=2)
    for name, text in answer_of(page).lines:
        writer.say(f"{name}{'' if name.endswith('?') else ':'} {text}", hang=2)


def _targets(writer: ConsoleWriter, verdict: Verdict) -> None:
    writer.gap()
    if not writer.terminal:
        for target in verdict.targets:
            writer.say(f"{target.outcome.value}: {target.target} ({target.role}): {target.reason}")
        return
    rows: list[list[Part]] = [
        [head(target.outcome, target.outcome.value), (target.target, "bold"), target.role, target.reason]
        for target in verdict.targets
    ]
    writer.table(["verdict", "target", "role", "reason"], rows)


def _findings(writer: ConsoleWriter, page: Page) -> None:
    causes = [cause for cause in page.verdict.causes if not undecided(cause)]
    if causes:
        writer.title(findings_section.TITLE)
        print_causes(writer, page, causes)
