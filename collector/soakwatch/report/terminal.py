"""The report on a terminal: findings, what every section says in brief, and the verdict last, where it is read."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.console import Console

from soakwatch.core.formatting import SYMBOLS, quantity, subject, utc
from soakwatch.core.labels import labels_words
from soakwatch.core.plain_names import plain_name
from soakwatch.core.units import show_seconds
from soakwatch.judge.problems import thing_of
from soakwatch.judge.record_trust import seal_words
from soakwatch.judge.verdict import Verdict
from soakwatch.record.source import ReportSource
from soakwatch.report.answer import answer_of, outlook_words
from soakwatch.report.blocks import Format
from soakwatch.report.console import ConsoleWriter, Part
from soakwatch.report.console_blocks import STYLES, head, print_chapter
from soakwatch.report.headline import headline
from soakwatch.report.page import Page, open_page
from soakwatch.report.proof_subject import series_of
from soakwatch.report.section import all_sections
from soakwatch.report.sections import findings as findings_section
from soakwatch.report.sections import verdict as verdict_section
from soakwatch.report.sparks import pointers, spark_words, sparkline
from soakwatch.report.summaries import (
    about,
    chain,
    confidence_text,
    figures,
    has_own_frame,
    kind_words,
    members,
    outcome_words,
    undecided,
)
from soakwatch_model.finding import Finding, Outcome
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.quantities import counted, cut_to, first_few

_QUIET = {
    Outcome.PASS: "passed",
    Outcome.INCONCLUSIVE: "undecided",
    Outcome.NOT_APPLICABLE: "not applicable",
}
_MAX_CAUSES, _MAX_RULES, _MAX_MOMENTS, _MAX_REASON, _MAX_LINES = 12, 5, 6, 200, 3
_BRIEF_CAUSES, _BRIEF_FAILING = 3, 6
_INDENT = 4


def print_verdict(
    source: ReportSource,
    verdict: Verdict,
    console: Console,
    earlier: ReportSource | None = None,
    *,
    named: str = "",
    verbose: bool = False,
) -> None:
    """Print the report; its last lines, where a reader looks, are the verdict, its reason and what to do next.

    On a terminal it is brief: what failed or warned, what makes it doubtful, and the number of checks that passed or
    could not be judged; ``verbose`` shows these too. If ``console`` is no terminal everything is printed in plain,
    uncut lines without colour: a log is read with a search. The verdict and the findings are drawn here, every other
    section by its blocks. ``earlier`` is a run to compare this one with. ``named`` is what commands call the run, "" if
    they would not find it.
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
            form: Format = "terminal" if writer.terminal else "text"
            print_chapter(writer, section.chapter(page, form), verdict.window)
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
    if outlook := outlook_words(page):
        writer.say(("Outlook:", "bold"), f" {outlook}", hang=2)
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


def print_causes(writer: ConsoleWriter, page: Page, causes: Sequence[Cause], *, brief: bool) -> None:
    """Print the first twelve causes (in brief three, or all that fail up to six), and count the others. In brief a
    cause has no more than a reader needs to understand and to believe it."""
    failing = sum(cause.outcome is Outcome.FAIL for cause in causes)
    most = min(max(failing, _BRIEF_CAUSES), _BRIEF_FAILING) if brief else _MAX_CAUSES
    for cause in causes[:most]:
        if has_own_frame(page.verdict, cause):
            _cause(writer, page, cause, brief=brief)
        else:
            _finding(writer, page, cause, brief=brief)
    if len(causes) > most:
        left = sum(len(cause.findings) for cause in causes[most:])
        writer.say(f"… and {counted(len(causes) - most, 'more cause')} ({counted(left, 'finding')}) in the report")


def _finding(writer: ConsoleWriter, page: Page, cause: Cause, *, brief: bool) -> None:
    finding = page.verdict.findings[cause.leading]
    writer.say(
        head(finding.outcome, outcome_words(finding)),
        (f"  {finding.target}  {finding.rule}", "bold"),
        f"  {thing_of(finding) if brief else subject(finding.metric, finding.object)}",
        hang=_INDENT,
    )
    writer.say(cause.headline, indent=_INDENT)
    _evidence(writer, page, finding, brief=brief)


def _cause(writer: ConsoleWriter, page: Page, cause: Cause, *, brief: bool) -> None:
    """What happened, its moments with offsets, the figures of the leading finding, and the others in a line each."""
    lead, *others = members(page.verdict, cause)
    sure = "" if brief or cause.confidence is None else f", confidence {confidence_text(cause.confidence)}"
    writer.say(
        head(cause.outcome, cause.outcome.value),
        (f"  {cause.target or 'several targets'}  {lead.rule}", "bold"),
        f"  {kind_words(cause)}{sure}",
        hang=_INDENT,
    )
    writer.say(cause.headline, indent=_INDENT)
    for when, mark in () if brief else chain(cause, _MAX_MOMENTS):  # in brief they stand in the timeline
        writer.say(f"{when:>19}  {mark.text}", indent=_INDENT, hang=_INDENT + 21)
    if len(cause.timeline) > _MAX_MOMENTS and not brief:
        writer.say(f"{'':>19}  and {len(cause.timeline) - _MAX_MOMENTS} more moments", indent=_INDENT)
    if cause.kind is CauseKind.UNSETTLED:
        named = first_few(
            [(thing_of(f) if brief else subject(f.metric, f.object)) or f.target for f in (lead, *others)]
        )
        writer.say(f"of {named}", indent=_INDENT)
        return
    _evidence(writer, page, lead, brief=brief)
    if brief:  # what else found it stands in the headline
        return
    by_rule: dict[tuple[str, Outcome, str], list[Finding]] = {}
    for finding in others:
        by_rule.setdefault((finding.rule, finding.outcome, finding.target), []).append(finding)
    for (rule, outcome, target), own in list(by_rule.items())[:_MAX_RULES]:
        subjects = f"{rule} ({len(own)})" if len(own) > 1 else about(own[0])
        text = " ".join(part for part in ("" if cause.target else target, f"{subjects}: {own[0].sentence}") if part)
        text = cut_to(text, _MAX_REASON)
        writer.say(head(outcome, outcome_words(own[0])), f"  {text}", indent=_INDENT, hang=_INDENT + 2)
    if len(by_rule) > _MAX_RULES:
        left = sum(len(own) for own in list(by_rule.values())[_MAX_RULES:])
        writer.say(f"… and {left} more findings of this cause in the report", indent=_INDENT)


def _evidence(writer: ConsoleWriter, page: Page, finding: Finding, *, brief: bool) -> None:
    """Figures, forecast, remedy, context and the judged series; in brief a warning has its sentence alone."""
    if brief and finding.outcome is Outcome.WARN:
        return
    told = replace(finding, smallest_detectable=None) if brief else finding
    writer.say("; ".join(figures(told)), indent=_INDENT)
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        writer.say(("forecast: ", "bold"), words, indent=_INDENT)
    if finding.settle:
        writer.say(f"to resolve: {finding.settle}", indent=_INDENT)
    _context(writer, finding, page, brief=brief)
    window, width = page.verdict.window, writer.spark_width
    keys = series_of(page, finding)  # of a process that died its memory: that it was there is no line to look at
    for series in (page.source.series(key) for key in keys[: 1 if brief else _MAX_LINES]):
        line = sparkline(series, width, writer.steps, window)
        if not line or (brief and not np.ptp(series.values[np.isfinite(series.values)])):
            continue  # a line that never moves shows nothing
        same = (series.metric, series.object) == (finding.metric, finding.object)
        other = "" if same else f"  {plain_name(series.metric, series.object)}"
        writer.say((line, "cyan"), f"  {spark_words(series, window)}{other}", indent=_INDENT)
        if below := pointers(finding.marks, window, width, "▲" if writer.blocks else "^"):
            writer.say((below, STYLES[finding.outcome]), indent=_INDENT)


def _context(writer: ConsoleWriter, finding: Finding, page: Page, *, brief: bool) -> None:
    """The load in a finding's window, and who acknowledged it."""
    if finding.outcome in {Outcome.FAIL, Outcome.WARN} and not brief:
        loads = []
        for line in page.load_in(finding.window):
            known = [f"{f.word} {quantity(f.mean, f.unit)}" for f in line.figures if f.readings]
            loads += [f"{line.name}: {', '.join(known)}"] if known else []
        if loads:
            writer.say(f"load at that time (means): {'; '.join(loads[:_MAX_LINES])}", indent=_INDENT)
    for acknowledgement in page.acknowledged(finding):
        writer.say(("acknowledged: ", "bold"), acknowledgement.words, indent=_INDENT)
