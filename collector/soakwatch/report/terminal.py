"""The verdict on a terminal: headline, targets, what failed and why, coverage."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from soakwatch.report.show import SYMBOLS, printable, quantity, share_text, source_name, subject, utc
from soakwatch.units import show_seconds
from soakwatch.verdict import Verdict
from soakwatch_rules.rule import Finding, Outcome
from soakwatch_rules.series import Series

_STYLES = {
    Outcome.FAIL: "bold red",
    Outcome.INCONCLUSIVE: "bold magenta",
    Outcome.WARN: "yellow",
    Outcome.PASS: "green",
    Outcome.NOT_APPLICABLE: "dim",
}
_BLOCKS = "▁▂▃▄▅▆▇█"
_MOST = 12


def print_verdict(verdict: Verdict, console: Console, series: Sequence[Series] = ()) -> None:
    """Print the verdict; plain lines without colour and box where ``console`` is not a terminal.

    ``series`` are drawn as sparklines beside the failing findings that judge them.
    """
    window = verdict.window
    headline = Text(f"{SYMBOLS[verdict.outcome]} {verdict.outcome.value.upper()}", style=_STYLES[verdict.outcome])
    _line(console, headline.append(f"  {printable(verdict.run)}", style="bold"))
    _line(console, printable(verdict.reason))
    _line(console, f"{utc(window.begin_ns)} to {utc(window.end_ns)} UTC, {show_seconds(window.seconds)}")
    _line(console, "")
    _targets(verdict, console)
    told = [f for f in verdict.findings if f.outcome in {Outcome.FAIL, Outcome.INCONCLUSIVE, Outcome.WARN}]
    for finding in told[:_MOST]:
        _finding(finding, console, series)
    if len(told) > _MOST:
        _line(console, f"… and {len(told) - _MOST} more findings in the report")
    for ledger in verdict.ledgers:
        lost = ", ".join(f"{count} {how}" for how, count in sorted(ledger.lost.items()) if count)
        gap = ledger.longest_gap
        gap_text = "no answer ever" if gap is None else f"longest gap {show_seconds(gap.seconds)}"
        name = printable(source_name(ledger))
        _line(
            console,
            f"coverage {name}: {ledger.got} of {ledger.due} polls ({share_text(ledger.coverage)}), {gap_text}"
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


def _finding(finding: Finding, console: Console, series: Sequence[Series]) -> None:
    head = Text(f"{SYMBOLS[finding.outcome]} {finding.outcome.value}", style=_STYLES[finding.outcome])
    head.append(f"  {printable(finding.target)}  {finding.rule}", style="bold")
    what = subject(finding.metric, finding.object)
    _line(console, head.append(f"  {printable(what)}", style="default"))
    _line(console, f"    {printable(finding.reason)}")
    numbers = []
    if finding.measured is not None:
        numbers.append(f"measured {quantity(finding.measured, finding.unit)}")
    if finding.limit is not None:
        numbers.append(f"limit {quantity(finding.limit, finding.unit)}")
    if finding.expected is None:
        numbers.append(f"{finding.samples} samples")
    else:
        numbers.append(f"{finding.samples} of {finding.expected} samples")
    if finding.smallest_detectable is not None:
        numbers.append(f"smallest detectable {quantity(finding.smallest_detectable, finding.detectable_unit)}")
    _line(console, f"    {'; '.join(numbers)}")
    if finding.settle:
        _line(console, f"    would settle it: {printable(finding.settle)}")
    for one in series:
        if (one.target, one.metric, one.object) == (finding.target, finding.metric, finding.object):
            drawn = sparkline(one)
            if drawn:
                _line(console, f"    {drawn}")
