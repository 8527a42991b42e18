"""The verdict on a terminal: headline, targets, what failed and why, coverage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soakwatch.record import ArtifactEntry
from soakwatch.report.artifacts import files_text
from soakwatch.report.closer import CloserLook, closer_text
from soakwatch.report.show import SYMBOLS, printable, share_text, source_name, subject, utc
from soakwatch.report.sinks import SinkAccount
from soakwatch.report.told import (
    Withdrawn,
    about,
    chain,
    confidence_text,
    figures,
    framed,
    kind_words,
    members,
    passed,
    standing,
    withdrawn_text,
)
from soakwatch.units import show_seconds
from soakwatch.verdict import Verdict
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.forecast_words import forecast_words
from soakwatch_rules.rule import Finding, Outcome
from soakwatch_rules.series import Series
from soakwatch_rules.words import some

_STYLES = {
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold magenta",
    Outcome.WARN: "yellow",
    Outcome.PASS: "green",
    Outcome.NOT_APPLICABLE: "dim",
}
_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST, _FEW, _MOMENTS, _CUT = 12, 5, 6, 200


def print_verdict(
    verdict: Verdict, console: Console, series: Sequence[Series] = (), withdrawn: Withdrawn = (),
    closer: Sequence[CloserLook] = (), files: Sequence[ArtifactEntry] = (), sinks: Sequence[SinkAccount] = (),
) -> None:  # fmt: skip
    """Print the verdict; plain lines without colour and box where ``console`` is not a terminal.

    Findings are told by their causes. ``series`` are drawn as sparklines beside the failing findings that judge them;
    ``withdrawn`` are the warnings of live judging that did not last, ``closer`` what the flight recorders were asked
    for, ``sinks`` how the databases beside the run fared.
    """
    window = verdict.window
    headline = Text(f"{SYMBOLS[verdict.outcome]} {verdict.outcome.value.upper()}", style=_STYLES[verdict.outcome])
    _line(console, headline.append(f"  {printable(verdict.run)}", style="bold"))
    _line(console, printable(verdict.reason))
    _line(console, f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}")
    _line(console, "")
    _targets(verdict, console)
    for cause in verdict.causes[:_MOST]:
        if framed(verdict, cause):
            _cause(verdict, cause, console, series)
        else:
            _finding(verdict.findings[cause.leading], cause.headline, console, series)
    if len(verdict.causes) > _MOST:
        left = sum(len(cause.findings) for cause in verdict.causes[_MOST:])
        _line(console, f"… and {len(verdict.causes) - _MOST} more causes ({left} findings) in the report")
    for one in passed(verdict.findings):
        _line(
            console,
            Text(f"{SYMBOLS[Outcome.PASS]} pass", style=_STYLES[Outcome.PASS]).append(
                f"  {one.words}", style="default"
            ),
        )
    for at_ns, finding in withdrawn[:_FEW]:
        _line(console, f"withdrawn: {printable(withdrawn_text(at_ns, finding))}")
    if len(withdrawn) > _FEW:
        _line(console, f"… and {len(withdrawn) - _FEW} more withdrawn warnings in the report")
    if closer:
        _line(console, printable(closer_text(closer)))
    if files:
        _line(console, printable(files_text(files)))
    for account in sinks:
        _line(console, Text(printable(f"sink {account.words}"), style="default" if account.well else "yellow"))
    for ledger in verdict.ledgers:
        lost = ", ".join(f"{count} {how}" for how, count in sorted(ledger.lost.items()) if count)
        gap = ledger.longest_gap
        gap_text = "no answer ever" if gap is None else f"longest gap {show_seconds(gap.seconds)}"
        name = printable(source_name(ledger))
        _line(
            console,
            f"coverage {name}: {ledger.got} of {ledger.due} polls ({share_text(ledger.coverage)}), {gap_text}"
            + (f"; {ledger.recovered} of them recovered late" if ledger.recovered else "")
            + (f"; {lost}" if lost else ""),
        )


def sparkline(series: Series, width: int = 40) -> str:
    """The highest value of each of ``width`` stretches of time as blocks, lowest to highest; a hole is a space."""
    good = (series.rate() if series.trait.kind == "counter" else series).finite()
    if not len(good):
        return ""
    seconds, values = good.seconds, good.values
    place = np.minimum((seconds / max(float(seconds[-1]), 1e-9) * width).astype(np.int64), width - 1)
    low, high = float(values.min()), float(values.max())
    top = np.full(width, -np.inf)
    np.maximum.at(top, place, values)
    step = (high - low) or 1.0
    return "".join(_BLOCKS[int((v - low) / step * 7)] if np.isfinite(v) else " " for v in top)


def _line(console: Console, text: str | Text) -> None:
    """One line, never wrapped where a program may read it, and never read as markup."""
    console.print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _targets(verdict: Verdict, console: Console) -> None:
    if not console.is_terminal:
        for target in verdict.targets:
            word, name = target.outcome.value, printable(target.target)
            _line(console, f"{word}: {name} ({printable(target.role)}): {printable(target.reason)}")
        _line(console, "")
        return
    table = Table("target", "role", "verdict", "reason", title=None, pad_edge=False)
    for target in verdict.targets:
        mark = Text(f"{SYMBOLS[target.outcome]} {target.outcome.value}", style=_STYLES[target.outcome])
        table.add_row(Text(printable(target.target)), Text(target.role), mark, Text(printable(target.reason)))
    console.print(table)


def _finding(finding: Finding, reason: str, console: Console, series: Sequence[Series]) -> None:
    head = _head(finding.outcome, standing(finding)).append(
        f"  {printable(finding.target)}  {finding.rule}", style="bold"
    )
    what = subject(finding.metric, finding.object)
    _line(console, head.append(f"  {printable(what)}", style="default"))
    _line(console, f"    {printable(reason)}")
    _evidence(finding, console, series)


def _cause(verdict: Verdict, cause: Cause, console: Console, series: Sequence[Series]) -> None:
    """What happened, its time line with lags, the figures of the leading finding, and the others in a line each."""
    lead, *others = members(verdict, cause)
    head = _head(cause.outcome, cause.outcome.value)
    head.append(f"  {printable(cause.target) or 'several targets'}  {lead.rule}", style="bold")
    sure = "" if cause.confidence is None else f", confidence {confidence_text(cause.confidence)}"
    _line(console, head.append(f"  {kind_words(cause)}{sure}", style="default"))
    _line(console, f"    {printable(cause.headline)}")
    for when, mark in chain(cause, _MOMENTS):
        _line(console, f"    {when:>19}  {printable(mark.text)}")
    if len(cause.timeline) > _MOMENTS:
        _line(console, f"    {'':>19}  and {len(cause.timeline) - _MOMENTS} more moments")
    if cause.kind is CauseKind.UNSETTLED:
        _line(console, f"    of {printable(some([subject(f.metric, f.object) or f.target for f in (lead, *others)]))}")
        return
    _evidence(lead, console, series)
    by_rule: dict[tuple[str, Outcome, str], list[Finding]] = {}
    for finding in others:
        by_rule.setdefault((finding.rule, finding.outcome, finding.target), []).append(finding)
    for (rule, outcome, target), own in list(by_rule.items())[:_FEW]:
        many = f"{rule} ({len(own)})" if len(own) > 1 else about(own[0])
        text = printable(
            " ".join(part for part in ("" if cause.target else target, f"{many}: {own[0].reason}") if part)
        )
        text = text if len(text) <= _CUT else f"{text[: _CUT - 1]}…"
        _line(console, _head(outcome, standing(own[0]), "    ").append(f"  {text}", style="default"))
    if len(by_rule) > _FEW:
        left = sum(len(own) for own in list(by_rule.values())[_FEW:])
        _line(console, f"    … and {left} more findings of this cause in the report")


def _head(outcome: Outcome, words: str, indent: str = "") -> Text:
    return Text(f"{indent}{SYMBOLS[outcome]} {words}", style=_STYLES[outcome])


def _evidence(finding: Finding, console: Console, series: Sequence[Series]) -> None:
    _line(console, f"    {'; '.join(figures(finding))}")
    if finding.forecast is not None and (words := forecast_words(finding.forecast)):
        _line(console, f"    if it goes on: {printable(words)}")
    if finding.settle:
        _line(console, f"    would settle it: {printable(finding.settle)}")
    for one in series:
        if (one.target, one.metric, one.object) == (finding.target, finding.metric, finding.object):
            drawn = sparkline(one)
            if drawn:
                _line(console, f"    {drawn}")
