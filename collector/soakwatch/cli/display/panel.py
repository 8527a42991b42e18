"""The picture of a run on a terminal: fits any width, and leaves out what matters least where the height is short."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from soakwatch.core.tables import harmless
from soakwatch.core.terminal import encodable, spells
from soakwatch.runs.status import SourceStatus, Status
from soakwatch.runs.status_words import (
    alarms,
    counts,
    finding_words,
    forecast_text,
    load_words,
    lost_words,
    span,
    title,
)
from soakwatch_rules.rule import Finding, Outcome

STYLES = {Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "magenta", Outcome.WARN: "yellow", Outcome.PASS: "green"}
_STANDING = {"broken off": "bold red", "ended": "bold green", "waiting": "bold cyan"}
_LABEL = 10
_NARROWEST, _WIDE = 20, 100
_SHOWN_FINDINGS, _SHOWN_WITHDRAWN, _SHOWN_RATES, _FEWEST_SOURCES, _MOST_REASON = 8, 3, 3, 3, 3


@dataclass(frozen=True, slots=True)
class RunPicture:
    """One moment of a run; ``withdrawn`` are the alarms that did not last, ``encoding`` is the terminal's."""

    status: Status
    withdrawn: tuple[Finding, ...] = ()
    encoding: str = "utf-8"

    def lines(self, width: int, height: int) -> Sequence[Text]:
        """At most ``height`` lines, none wider than ``width`` cells."""
        width = max(width, _NARROWEST)
        head, foot = list(self._head(width)), list(self._foot())
        left = max(height - len(head) - len(foot), 0)
        judged = list(self._findings(width, left))
        sources = self._sources(max(left - len(judged), min(_FEWEST_SOURCES + 1, left)))
        judged = judged[: max(left - len(sources), 0)]
        told = [*head, *sources, *judged, *foot]
        if len(told) + 2 <= height and sources:  # room to breathe
            told = [*head, Text(""), *sources, Text(""), *judged, *foot]
        return [_cut(line, width, self.encoding) for line in told[:height]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(options.max_width, 1000)

    def _head(self, width: int) -> Iterator[Text]:
        status = self.status
        now = status.standing if status.standing != "running" else f"phase {status.phase}"
        if status.standing == "running" and status.place:
            now += f" ({status.place})"
        times = f"{span(status.elapsed_s)} gone"
        if status.standing in {"running", "waiting"}:
            times += f", {span(status.left_s)} left"
        name = Text(harmless(status.run), style="bold")
        phase = Text(harmless(now), style=_STANDING.get(status.standing, "bold cyan"))
        if width >= _WIDE or name.cell_len + phase.cell_len + len(times) + 26 <= width:
            used = name.cell_len + phase.cell_len + len(times) + 6
            yield Text("  ").join([name, phase, self._bar(min(max(width - used, 10), 40)), Text(times)])
        else:
            yield Text("  ").join([name, phase])
            yield Text("  ").join([self._bar(max(width - len(times) - 2, 10)), Text(times)])
        if status.coming:
            yield _row("next", harmless(status.coming))
        if load := load_words(status):
            yield _row("load", load.removeprefix("load "))

    def _bar(self, width: int) -> Text:
        """How much of the run is over, with the share in figures."""
        status = self.status
        total = status.elapsed_s + status.left_s
        share = min(status.elapsed_s / total, 1.0) if total > 0 else 0.0
        words = f" {100 * share:3.0f} %"
        cells = max(width - len(words), 4)
        full, empty = ("━", "─") if spells(self.encoding, "━─") else ("#", ".")
        done = int(cells * share)
        return Text.assemble((full * done, "cyan"), (empty * (cells - done), "dim"), words)

    def _sources(self, most: int) -> list[Text]:
        """A table of the sources: those that fail first where there is no room for all."""
        sources = self.status.sources
        if not sources or most < 2:
            return []
        chosen = sources if len(sources) < most else tuple(sorted(sources, key=_trouble))[: max(most - 2, 1)]
        widest = max(cell_len(harmless(one.label)) for one in chosen)
        heads = ("due", "got", "failed")
        cells = [(f"{one.due:,}", f"{one.got:,}", f"{one.failed:,}") for one in chosen]
        sizes = [max(len(head), *(len(row[at]) for row in cells)) for at, head in enumerate(heads)]
        name = min(widest, 32)
        title = "source".ljust(name) + "".join(f"  {head:>{size}}" for head, size in zip(heads, sizes, strict=True))
        rows = [Text(title, style="dim")]
        for one, (due, got, failed) in zip(chosen, cells, strict=True):
            label = Text(harmless(one.label))
            label.truncate(name, overflow="ellipsis", pad=True)
            figures = f"  {due:>{sizes[0]}}  {got:>{sizes[1]}}  "
            line = Text.assemble(label, figures, (f"{failed:>{sizes[2]}}", "red" if one.failed else "dim"))
            if one.silent_s is not None:
                line.append(f"  no answer for {span(one.silent_s)}", style="bold red")
            rows.append(line.append(f"  {lost_words(one)}" if one.failed else "", style="dim"))
        if len(chosen) < len(sources):
            rest = [one for one in sources if one not in chosen]
            silent = sum(one.silent_s is not None for one in rest)
            told = f"{silent} of them without an answer" if silent else "all of them answer"
            rows.append(Text(f"and {len(rest)} more sources, {told}", style="dim"))
        return rows

    def _findings(self, width: int, most: int) -> Iterator[Text]:
        status, found = self.status, alarms(self.status)
        judged = "not judged yet: live findings come within a minute"
        if status.judged_at_s is not None:
            ago = status.elapsed_s - status.judged_at_s
            when = f"judged {span(ago)} ago" if status.standing == "running" else "judged"
            judged = f"{when}: {counts(status.findings) or 'no findings yet'}"
        yield _row("findings", judged)
        shown = min(_SHOWN_FINDINGS, max(most // 3, 2))
        whole = [_block(finding, width, whole=True) for finding in found[:shown]]
        if sum(len(block) for block in whole) > most * 2 // 3:
            whole = [_block(finding, width, whole=False) for finding in found[:shown]]
        for block in whole:
            yield from block
        if len(found) > shown:
            yield Text(f"  and {len(found) - shown} more", style="dim")
        for finding in self.withdrawn[-_SHOWN_WITHDRAWN:]:
            yield Text(f"  withdrawn: {finding_words(finding)}", style="dim")
        if len(self.withdrawn) > _SHOWN_WITHDRAWN:
            yield Text(f"  and {len(self.withdrawn) - _SHOWN_WITHDRAWN} withdrawn before", style="dim")
        yield from self._rates(width)

    def _rates(self, width: int) -> Iterator[Text]:
        rates = self.status.rates
        lines = [line for rate in rates[:_SHOWN_RATES] for line in textwrap.wrap(harmless(rate.words), width - _LABEL)]
        if len(rates) > _SHOWN_RATES:
            lines.append(f"and {len(rates) - _SHOWN_RATES} more that grow")
        for place, line in enumerate(lines):
            yield _row("" if place else "growing", line)

    def _foot(self) -> Iterator[Text]:
        status = self.status
        if status.events:
            yield _row("events", harmless(", ".join(status.events)))
        for words in status.behind:
            yield _row("sink", harmless(words), "yellow")
        if status.own:
            yield _row("monitor", harmless(status.own))
        if status.doing:
            yield Text(harmless(status.doing), style="bold cyan")
        if status.trouble:
            yield Text(f"TROUBLE: {harmless(status.trouble)}", style="bold red")
        yield Text(harmless(status.keys), style="dim")


def _row(label: str, words: str, style: str = "") -> Text:
    return Text.assemble((label.ljust(_LABEL), "dim"), (words, style))


def _block(finding: Finding, width: int, *, whole: bool) -> list[Text]:
    """A finding in one line if it fits, else with its reason in lines of its own; its early warning always has one."""
    style, told, later = STYLES[finding.outcome], finding_words(finding), harmless(forecast_text(finding))
    if 2 + cell_len(told) <= width:
        return [Text(f"  {told}", style=style)]
    if whole:
        reason = textwrap.wrap(harmless(finding.reason), max(width - 4, 10), max_lines=_MOST_REASON, placeholder=" …")
        lines = [f"  {harmless(title(finding))}", *(f"    {line}" for line in reason)]
    else:
        lines = [f"  {harmless(title(finding))}: {harmless(finding.reason)}"]
    return [Text(line, style=style) for line in (*lines, *([f"    if it goes on: {later}"] if later else []))]


def _trouble(source: SourceStatus) -> tuple[bool, float]:
    share = source.failed / source.due if source.due else 0.0
    return source.silent_s is None, -share


def _cut(line: Text, width: int, encoding: str) -> Text:
    """The line in letters that the terminal has, no wider than it is."""
    if not spells(encoding, line.plain):
        line = Text.assemble(*((encodable(line.plain[a:b], encoding), style) for a, b, style in _runs(line)))
    line.truncate(width, overflow="ellipsis" if spells(encoding, "…") else "crop")
    return line


def _runs(line: Text) -> list[tuple[int, int, str]]:
    """The line in pieces of one style each; styles do not lie upon one another here."""
    pieces, at = [], 0
    for own in sorted(line.spans, key=lambda one: one.start):
        pieces += [(at, own.start, str(line.style)), (own.start, own.end, str(own.style))]
        at = own.end
    return [(a, b, style) for a, b, style in (*pieces, (at, len(line.plain), str(line.style))) if b > a]
