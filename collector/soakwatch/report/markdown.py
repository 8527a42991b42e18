"""Markdown: the verdict for a pull request, at most 60 lines."""

from __future__ import annotations

import html
from collections.abc import Sequence

from soakwatch.report.show import SYMBOLS, printable, quantity, share_text, source_name, subject, utc
from soakwatch.units import show_seconds
from soakwatch.verdict import Verdict
from soakwatch_rules.rule import Finding, Ledger, Outcome

_TARGETS, _FINDINGS, _SOURCES, _FOLDED = 8, 8, 8, 8
_ESCAPED = str.maketrans({char: "\\" + char for char in "\\`*_[]|~"})


def render_markdown(verdict: Verdict) -> str:
    """The verdict, the targets, the worst findings, the coverage; the rest folded. What is left out is counted."""
    window = verdict.window
    lines = [
        f"## {SYMBOLS[verdict.outcome]} Soakwatch: {verdict.outcome.value.upper()} – {_text(verdict.run)}",
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
    told = [f for f in verdict.findings if f.outcome in {Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN}]
    if told:
        lines += ["", "### What speaks against it", ""]
        lines += [_finding_line(f) for f in told[:_FINDINGS]]
        lines += _more(told, _FINDINGS, "findings")
    lines += ["", "### Coverage", ""]
    lines += [_ledger_line(ledger) for ledger in verdict.ledgers[:_SOURCES]]
    lines += _more(verdict.ledgers, _SOURCES, "sources")
    if not verdict.ledgers:
        lines.append("Nothing was polled.")
    rest = [f for f in verdict.findings if f not in told]
    if rest:
        lines += ["", f"<details><summary>{len(rest)} findings without objection or not applicable</summary>", ""]
        lines += [_finding_line(f) for f in rest[:_FOLDED]]
        lines += _more(rest, _FOLDED, "findings")
        lines += ["", "</details>"]
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


def _finding_line(finding: Finding) -> str:
    numbers = ""
    if finding.measured is not None and finding.outcome is not Outcome.NOT_APPLICABLE:
        numbers = f"({quantity(finding.measured, finding.unit)}"
        numbers += f", limit {quantity(finding.limit, finding.unit)})" if finding.limit is not None else ")"
    what = _text(subject(finding.metric, finding.object))
    line = (
        f"- {SYMBOLS[finding.outcome]} **{finding.outcome.value}** {_text(finding.target)} {_text(finding.rule)}"
        f"{': ' if what else ''}{what} – {_text(finding.reason, 300)} {_text(numbers)}"
    )
    return line.rstrip()


def _ledger_line(ledger: Ledger) -> str:
    gap = "no answer ever" if ledger.longest_gap is None else f"longest gap {show_seconds(ledger.longest_gap.seconds)}"
    lost = ", ".join(f"{count} {how}" for how, count in sorted(ledger.lost.items()) if count)
    return (
        f"- {_text(source_name(ledger))}: {ledger.got} of {ledger.due} polls "
        f"({share_text(ledger.coverage)}), {gap}{'; ' if lost else ''}{_text(lost)}"
    )
