"""The report on a terminal: findings, what every section says in brief, and the verdict last, where it is read."""

from __future__ import annotations

import shlex
from collections import Counter

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

_QUIET = {
    Outcome.PASS: "passed",
    Outcome.INCONCLUSIVE: "undecided",
    Outcome.NOT_APPLICABLE: "not applicable",
}


def print_verdict(
    source: ReportSource,
    verdict: Verdict,
    console: Console,
    earlier: ReportSource | None = None,
    *,
    named: str = "",
    verbose: bool = False,
) -> None:
    """Print the report, with the verdict, its reason and what to do next as its last lines, where they are seen.

    On a terminal it is brief: what failed or warned, what makes it doubtful, and how many checks passed or could not
    be judged, which ``verbose`` shows. Where ``console`` is no terminal all of it is printed, in plain lines without
    colour, uncut: a log is read with a search. The verdict and the findings are drawn here, every other section by its
    blocks. ``earlier`` is a run that this one is compared with, ``named`` is what commands call the run, "" where it
    is none that they find again.
    """
    writer = ConsoleWriter(console)
    page = open_page(source, verdict, earlier)
    brief = writer.terminal and not verbose
    for section in all_sections():
        if section.order == verdict_section.ORDER and not section.foreign:
            if not brief:
                _targets(writer, verdict)
        elif section.order == findings_section.ORDER and not section.foreign:
            _findings(writer, page, brief=brief)
        elif section.always or section.foreign or not brief:
            print_section(writer, section, page)
    if brief:
        _unseen(writer, verdict)
    writer.gap()
    _head(writer, page, brief=brief)
    _commands(writer, named, brief=brief)


def _head(writer: ConsoleWriter, page: Page, *, brief: bool) -> None:
    verdict = page.verdict
    window, outcome = verdict.window, verdict.outcome
    if verdict.labels:
        writer.say(labels_words(verdict.labels), hang=2)
    for name, reason in page.unread_labels:
        writer.say(f"label {name} not read: {reason}", hang=2)
    if (seal := seal_words(verdict.checked)) and not brief:
        writer.say(seal, hang=2)
    writer.say(
        (f"{SYMBOLS[outcome]} {verdict.words}", STYLES[outcome]),
        (f"  {verdict.run}", "bold"),
        f"  {utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}",
        hang=2,
    )
    writer.say((headline(verdict, page.load), "bold"))
    if outcome is not Outcome.FAIL or verdict.preliminary:  # of a failure it is the same sentence
        writer.say(verdict.reason)
    for name, text in answer_of(page).lines:
        writer.say((f"{name}{'' if name.endswith('?') else ':'}", "bold"), f" {text}", hang=2)


def _unseen(writer: ConsoleWriter, verdict: Verdict) -> None:
    """How many checks there are that a brief report does not show."""
    numbers = Counter(finding.outcome for finding in verdict.findings)
    parts = [f"{numbers[outcome]:,} {words}" for outcome, words in _QUIET.items() if numbers[outcome]]
    if parts:
        writer.gap()
        writer.say((f"Checks not shown: {', '.join(parts)}", "dim"), hang=2)


def _commands(writer: ConsoleWriter, named: str, *, brief: bool) -> None:
    """The commands that show more of the run, each on a line of its own that no wrapping cuts."""
    if not named:
        return
    run = shlex.quote(named)
    lines = {"page": f"soakwatch open {run}"}
    if brief:
        lines["all checks"] = f"soakwatch report {run} --verbose"
    for what, command in lines.items():
        writer.uncut((f"{what + ':':<12}", "dim"), command)


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


def _findings(writer: ConsoleWriter, page: Page, *, brief: bool) -> None:
    decides = brief and page.verdict.outcome is Outcome.INCONCLUSIVE  # what left the verdict open is shown in any case
    causes = [cause for cause in page.verdict.causes if not undecided(cause) or (decides and not cause.waived)]
    if causes:
        writer.title(findings_section.TITLE)
        print_causes(writer, page, causes, brief=brief)
