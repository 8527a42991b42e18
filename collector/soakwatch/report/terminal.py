"""The verdict on a terminal: what held, what broke first and why, headroom, doubts, coverage, load, set-up."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from soakwatch.core.formatting import SYMBOLS, utc
from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.record import ArtifactEntry
from soakwatch.record.source import ReportSource
from soakwatch.report.artifacts import files_text
from soakwatch.report.closer import CloserLook, closer_text
from soakwatch.report.headline import headline
from soakwatch.report.page import Page, open_page
from soakwatch.report.paper import ConsoleWriter, Part
from soakwatch.report.sinks import SinkAccount
from soakwatch.report.sparks import sparkline
from soakwatch.report.terminal_findings import STYLES, drawn_of, head, print_causes
from soakwatch.report.terminal_tables import (
    print_chain,
    print_compared,
    print_coverage,
    print_doubts,
    print_headroom,
    print_load,
    print_setup,
)
from soakwatch.report.told import Withdrawn, passed, withdrawn_text
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.rule import Outcome
from soakwatch_rules.series import Series

__all__ = ["print_verdict", "sparkline"]

_FEW = 5


def print_verdict(
    verdict: Verdict,
    console: Console,
    series: Sequence[Series] = (),
    withdrawn: Withdrawn = (),
    closer: Sequence[CloserLook] = (),
    files: Sequence[ArtifactEntry] = (),
    sinks: Sequence[SinkAccount] = (),
    source: ReportSource | None = None,
    earlier: ReportSource | None = None,
) -> None:
    """Print the verdict; plain lines without colour, uncut, where ``console`` is not a terminal.

    Findings are told by their causes. With ``source``, the record, there is also what only it can tell: the chain of
    moments with the load, lines of the judged series, headroom, strips of lost polls, load and set-up, this held
    against ``earlier``. Without it ``series`` are drawn beside the findings that judge them. ``withdrawn`` are the
    warnings of live judging that did not last, ``closer`` what the flight recorders were asked for, ``sinks`` how the
    databases beside the run fared.
    """
    paper = ConsoleWriter(console)
    page = None if source is None else open_page(source, verdict, earlier)
    _head(paper, verdict, page)
    _targets(paper, verdict)
    if page is not None:
        print_chain(paper, page)
    doubtful = [cause for cause in verdict.causes if _doubtful(cause)]
    against = [cause for cause in verdict.causes if cause not in doubtful]
    if against:
        paper.title("Findings, by their causes")
        print_causes(paper, verdict, against, drawn_of(page, series), page)
    if page is not None:
        print_compared(paper, page)
        print_headroom(paper, page)
    print_doubts(paper, verdict.findings, doubtful)
    _passed(paper, verdict)
    for at_ns, finding in withdrawn[:_FEW]:
        paper.say(f"withdrawn: {withdrawn_text(at_ns, finding)}", hang=4)
    if len(withdrawn) > _FEW:
        paper.say(f"… and {len(withdrawn) - _FEW} more withdrawn warnings in the report")
    _accounts(paper, verdict, page, closer, files, sinks)
    if page is not None:
        print_load(paper, page)
        print_setup(paper, page)
    if paper.terminal:
        paper.gap()


def _head(paper: ConsoleWriter, verdict: Verdict, page: Page | None) -> None:
    window, outcome = verdict.window, verdict.outcome
    paper.say((f"{SYMBOLS[outcome]} {verdict.words}", STYLES[outcome]), (f"  {verdict.run}", "bold"), hang=2)
    if page is not None:
        paper.say((headline(verdict, page.load), "bold"))
    paper.say(verdict.reason)
    paper.say(f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}")


def _targets(paper: ConsoleWriter, verdict: Verdict) -> None:
    paper.gap()
    if not paper.terminal:
        for target in verdict.targets:
            paper.say(f"{target.outcome.value}: {target.target} ({target.role}): {target.reason}")
        return
    rows: list[list[Part]] = [
        [head(one.outcome, one.outcome.value), (one.target, "bold"), one.role, one.reason] for one in verdict.targets
    ]
    paper.table(["verdict", "target", "role", "why"], rows)


def _doubtful(cause: Cause) -> bool:
    """Whether it says that something could not be judged, rather than what happened."""
    if cause.outcome is not Outcome.INCONCLUSIVE:
        return False
    return cause.kind is CauseKind.UNSETTLED or cause.waived


def _passed(paper: ConsoleWriter, verdict: Verdict) -> None:
    told = passed(verdict.findings)
    if told:
        paper.title("Passed")
    for one in told:
        paper.say(head(Outcome.PASS, "pass"), f"  {one.words}", hang=4)


def _accounts(
    paper: ConsoleWriter,
    verdict: Verdict,
    page: Page | None,
    closer: Sequence[CloserLook],
    files: Sequence[ArtifactEntry],
    sinks: Sequence[SinkAccount],
) -> None:
    """What was watched how well, and what else the record holds."""
    if not paper.terminal:
        paper.gap()
    print_coverage(paper, verdict, page)
    if closer:
        paper.say(closer_text(closer), hang=4)
    if files:
        paper.say(files_text(files), hang=4)
    for account in sinks:
        paper.say((f"sink {account.words}", "" if account.well else "yellow"), hang=4)
