"""Findings on a terminal by their causes: what happened with lags, figures, the load then, the series as a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from soakwatch.core.formatting import SYMBOLS, quantity, subject
from soakwatch.judge.verdict import Verdict
from soakwatch.report.page import IDENTITIES, Page
from soakwatch.report.paper import ConsoleWriter, Part
from soakwatch.report.sparks import pointers, spark_words, sparkline
from soakwatch.report.told import about, chain, confidence_text, figures, framed, kind_words, members, standing
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.rule import Finding, Outcome
from soakwatch_rules.series import Series
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.words import some

STYLES = {
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold magenta",
    Outcome.WARN: "yellow",
    Outcome.PASS: "green",
    Outcome.NOT_APPLICABLE: "dim",
}
Drawn = Callable[[Finding], Sequence[Series]]
"""The series that a finding judged."""
MOST_CAUSES = 12
_FEW, _MOMENTS, _CUT, _LINES = 5, 6, 200, 3
_IN = 4


def drawn_of(page: Page | None, given: Sequence[Series]) -> Drawn:
    """What is drawn beside a finding: of the page's record, else of the series that were given."""

    def drawn(finding: Finding) -> Sequence[Series]:
        if page is not None:
            keys = [key for key in page.judged_by(finding) if key.metric not in IDENTITIES]
            return [page.source.series(key) for key in keys[:_LINES]]
        about = (finding.target, finding.metric, finding.object)
        return [one for one in given if (one.target, one.metric, one.object) == about]

    return drawn


def print_causes(
    paper: ConsoleWriter, verdict: Verdict, chosen: Sequence[Cause], drawn: Drawn, page: Page | None = None
) -> None:
    """The causes in their order; the first ``MOST_CAUSES``, and how many there are beyond."""
    for cause in chosen[:MOST_CAUSES]:
        if framed(verdict, cause):
            _cause(paper, verdict, cause, drawn, page)
        else:
            _finding(paper, verdict, cause, drawn, page)
    if len(chosen) > MOST_CAUSES:
        left = sum(len(cause.findings) for cause in chosen[MOST_CAUSES:])
        paper.say(f"… and {len(chosen) - MOST_CAUSES} more causes ({left} findings) in the report")


def head(outcome: Outcome, words: str) -> Part:
    """Sign and word of an outcome, in its colour."""
    return f"{SYMBOLS[outcome]} {words}", STYLES[outcome]


def _finding(paper: ConsoleWriter, verdict: Verdict, cause: Cause, drawn: Drawn, page: Page | None) -> None:
    finding = verdict.findings[cause.leading]
    what = subject(finding.metric, finding.object)
    paper.say(
        head(finding.outcome, standing(finding)),
        (f"  {finding.target}  {finding.rule}", "bold"),
        f"  {what}",
        hang=_IN,
    )
    paper.say(cause.headline, indent=_IN)
    _evidence(paper, verdict, finding, drawn, page)


def _cause(paper: ConsoleWriter, verdict: Verdict, cause: Cause, drawn: Drawn, page: Page | None) -> None:
    """What happened, its time line with lags, the figures of the leading finding, and the others in a line each."""
    lead, *others = members(verdict, cause)
    sure = "" if cause.confidence is None else f", confidence {confidence_text(cause.confidence)}"
    paper.say(
        head(cause.outcome, cause.outcome.value),
        (f"  {cause.target or 'several targets'}  {lead.rule}", "bold"),
        f"  {kind_words(cause)}{sure}",
        hang=_IN,
    )
    paper.say(cause.headline, indent=_IN)
    for when, mark in chain(cause, _MOMENTS):
        paper.say(f"{when:>19}  {mark.text}", indent=_IN, hang=_IN + 21)
    if len(cause.timeline) > _MOMENTS:
        paper.say(f"{'':>19}  and {len(cause.timeline) - _MOMENTS} more moments", indent=_IN)
    if cause.kind is CauseKind.UNSETTLED:
        named = some([subject(f.metric, f.object) or f.target for f in (lead, *others)])
        paper.say(f"of {named}", indent=_IN)
        return
    _evidence(paper, verdict, lead, drawn, page)
    by_rule: dict[tuple[str, Outcome, str], list[Finding]] = {}
    for finding in others:
        by_rule.setdefault((finding.rule, finding.outcome, finding.target), []).append(finding)
    for (rule, outcome, target), own in list(by_rule.items())[:_FEW]:
        many = f"{rule} ({len(own)})" if len(own) > 1 else about(own[0])
        text = " ".join(part for part in ("" if cause.target else target, f"{many}: {own[0].reason}") if part)
        text = text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"
        paper.say(head(outcome, standing(own[0])), f"  {text}", indent=_IN, hang=_IN + 2)
    if len(by_rule) > _FEW:
        left = sum(len(own) for own in list(by_rule.values())[_FEW:])
        paper.say(f"… and {left} more findings of this cause in the report", indent=_IN)


def _evidence(paper: ConsoleWriter, verdict: Verdict, finding: Finding, drawn: Drawn, page: Page | None) -> None:
    paper.say("; ".join(figures(finding)), indent=_IN)
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        paper.say(("if it goes on: ", "bold"), words, indent=_IN)
    if finding.settle:
        paper.say(f"to resolve: {finding.settle}", indent=_IN)
    if page is not None:
        _beside(paper, finding, page)
    width = min(max(paper.width - 40, 20), 60) if paper.terminal else 40
    for one in drawn(finding):
        line = sparkline(one, width, paper.steps, verdict.window)
        if not line:
            continue
        other = "" if one.object == finding.object else f"  {one.object}"
        paper.say((line, "cyan"), f"  {spark_words(one, verdict.window)}{other}", indent=_IN)
        if below := pointers(finding.marks, verdict.window, width, "▲" if paper.blocks else "^"):
            paper.say((below, STYLES[finding.outcome]), indent=_IN)


def _beside(paper: ConsoleWriter, finding: Finding, page: Page) -> None:
    """The load in its window, and what somebody said of it."""
    if finding.outcome in {Outcome.FAIL, Outcome.WARN}:
        told = []
        for one in page.load_in(finding.window):
            known = [f"{f.word} {quantity(f.mean, f.unit)}" for f in one.figures if f.readings]
            told += [f"{one.name}: {', '.join(known)}"] if known else []
        if told:
            paper.say(f"load meanwhile (means): {'; '.join(told[:_LINES])}", indent=_IN)
    for said in page.acknowledged(finding):
        paper.say(("acknowledged: ", "bold"), said.words, indent=_IN)
