"""Markdown: the verdict for a pull request, at most 60 lines."""

from __future__ import annotations

import html
from collections.abc import Sequence

from soakwatch.core.formatting import SYMBOLS, printable, quantity, share_text, source_name, subject, utc
from soakwatch.core.units import show_seconds
from soakwatch.judge.verdict import Verdict
from soakwatch.record import ArtifactEntry
from soakwatch.report.artifacts import files_text
from soakwatch.report.closer import CloserLook, closer_text
from soakwatch.report.sinks import SinkAccount, sinks_text
from soakwatch.report.told import Withdrawn, chain, confidence_text, framed, passed, standing, withdrawn_text
from soakwatch_rules.causes import Cause, CauseKind
from soakwatch_rules.rule import Ledger, Outcome
from soakwatch_rules.wording.forecast import forecast_words
from soakwatch_rules.wording.words import counted, some

_TARGETS, _CAUSES, _SOURCES, _FOLDED, _WITHDRAWN, _MOMENTS, _SINKS = 8, 8, 8, 5, 2, 5, 2
_ESCAPED = str.maketrans({char: "\\" + char for char in "\\`*_[]|~"})


def render_markdown(
    verdict: Verdict,
    withdrawn: Withdrawn = (),
    closer: Sequence[CloserLook] = (),
    files: Sequence[ArtifactEntry] = (),
    sinks: Sequence[SinkAccount] = (),
) -> str:
    """The verdict, the targets, what happened, the coverage; the rest folded. What is left out is counted.

    ``withdrawn`` are the warnings of live judging that did not last, ``closer`` what the flight recorders were asked
    for, ``sinks`` how the databases beside the run fared.
    """
    window = verdict.window
    lines = [
        f"## {SYMBOLS[verdict.outcome]} Soakwatch: {verdict.words} – {_text(verdict.run)}",
        "",
        f"**{_text(verdict.reason, 400)}**",
        "",
        f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}",
        "",
        "| target | role | verdict | reason |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {_text(t.target)} | {_text(t.role)} | {SYMBOLS[t.outcome]} {t.outcome.value} | {_text(t.reason, 200)} |"
        for t in verdict.targets[:_TARGETS]
    ]
    lines += _more(verdict.targets, _TARGETS, "targets")
    if verdict.causes:
        lines += ["", "### Findings", ""]
        lines += [_cause_line(verdict, cause) for cause in verdict.causes[:_CAUSES]]
        lines += _more(verdict.causes, _CAUSES, "causes")
    if closer:
        lines += ["", _text(closer_text(closer), 400)]
    if files:
        lines += ["", _text(files_text(files), 400)]
    if sinks:
        lines += ["", *(_text(text, 300) for text in sinks_text(sinks[:_SINKS]))]
    lines += ["", "### Coverage", ""]
    lines += [_ledger_line(ledger) for ledger in verdict.ledgers[:_SOURCES]]
    lines += _more(verdict.ledgers, _SOURCES, "sources")
    if not verdict.ledgers:
        lines.append("Nothing was polled.")
    folded = [f"- withdrawn: {_text(withdrawn_text(at_ns, f), 300)}" for at_ns, f in withdrawn[:_WITHDRAWN]]
    if len(withdrawn) > _WITHDRAWN:
        folded.append(f"- … and {len(withdrawn) - _WITHDRAWN} more withdrawn warnings in the report.")
    passes = passed(verdict.findings)
    folded += [f"- {SYMBOLS[Outcome.PASS]} {_text(one.words, 300)}" for one in passes[:_FOLDED]]
    if len(passes) > _FOLDED:
        folded.append(f"- … and {len(passes) - _FOLDED} more rules in the report.")
    idle = [place for place, f in enumerate(verdict.findings) if f.outcome is Outcome.NOT_APPLICABLE]
    if idle:
        rules = some(sorted({verdict.findings[place].rule for place in idle}), 8)
        folded.append(
            f"- {SYMBOLS[Outcome.NOT_APPLICABLE]} not applicable: {_text(rules)} ({counted(len(idle), 'finding')})"
        )
    if folded:
        parts = [
            f"{counted(sum(one.number for one in passes), 'check')} passed",
            f"{len(idle)} not applicable",
        ]
        parts += [f"{len(withdrawn)} withdrawn while the run went on"] if withdrawn else []
        lines += ["", f"<details><summary>{', '.join(parts)}</summary>", "", *folded, "", "</details>"]
    return "\n".join(lines) + "\n"


def _more(items: Sequence[object], shown: int, word: str) -> list[str]:
    return ["", f"… and {len(items) - shown} more {word} in the report."] if len(items) > shown else []


def _text(text: str, most: int = 160) -> str:
    """Text that no Markdown reader takes for markup: one line, escaped, without mentions and links."""
    line = " ".join(printable(text).split())
    if len(line) > most:
        line = line[: most - 1] + "…"
    escaped = html.escape(line.translate(_ESCAPED), quote=False)
    return escaped.replace("@", "@\u200b").replace("://", ":\u200b//").replace("#", "#\u200b")


def _cause_line(verdict: Verdict, cause: Cause) -> str:
    """One line: outcome, target, what happened, its time line, figures and forecast of the leading finding."""
    lead = verdict.findings[cause.leading]
    what = "" if len(cause.findings) > 1 else _text(subject(lead.metric, lead.object))
    outcome = standing(lead) if len(cause.findings) == 1 else cause.outcome.value
    line = (
        f"- {SYMBOLS[cause.outcome]} **{outcome}** {_text(cause.target) or 'several targets'} {_text(lead.rule)}"
        f"{': ' if what else ''}{what} – {_text(cause.headline, 400)}"
    )
    if lead.measured is not None and cause.kind is not CauseKind.UNSETTLED:
        limit = f", limit {quantity(lead.limit, lead.unit)}" if lead.limit is not None else ""
        line += " " + _text(f"({quantity(lead.measured, lead.unit)}{limit})")
    if lead.forecast is not None and (words := forecast_words(lead.forecast)):
        line += f"; if it goes on: {_text(words)}"
    if framed(verdict, cause) and cause.timeline:
        sure = "" if cause.confidence is None else f" (one cause with {confidence_text(cause.confidence)} confidence)"
        steps = [f"{when} {mark.text}" for when, mark in chain(cause, _MOMENTS)]
        left = len(cause.timeline) - len(steps)
        steps += [f"and {left} more moments"] if left else []
        line += f"; {_text(' → '.join(steps), 500)}{sure}"
    elif lead.settle and cause.kind is not CauseKind.UNSETTLED:
        line += f"; to resolve: {_text(lead.settle)}"
    return line.rstrip()


def _ledger_line(ledger: Ledger) -> str:
    gap = "no answer ever" if ledger.longest_gap is None else f"longest gap {show_seconds(ledger.longest_gap.seconds)}"
    lost = ", ".join(f"{count} {how}" for how, count in sorted(ledger.lost.items()) if count)
    late = f"; {ledger.recovered} of them recovered late" if ledger.recovered else ""
    return (
        f"- {_text(source_name(ledger))}: {ledger.got} of {ledger.due} polls "
        f"({share_text(ledger.coverage)}), {gap}{late}{'; ' if lost else ''}{_text(lost)}"
    )
