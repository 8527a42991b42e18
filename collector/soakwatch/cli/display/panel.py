"""The status panel of a run on a terminal: fits any width, and omits the least important lines if the height is too
small."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from soakwatch.core.tables import harmless
from soakwatch.core.terminal import encodable, spells
from soakwatch.runs.run_status import SourceStatus, Status
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
from soakwatch_model.finding import Finding, Outcome

STYLES = {Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "magenta", Outcome.WARN: "yellow", Outcome.PASS: "green"}
_STANDING = {"broken off": "bold red", "ended": "bold green", "waiting": "bold cyan"}
_LABEL = 10
_MIN_WIDTH, _WIDE, _MAX_JUDGED = 20, 100, 2
_MAX_FINDINGS, _MAX_WITHDRAWN, _MAX_RATES, _MIN_SOURCES, _MAX_REASON_LINES, _MAX_DEVICES = 8, 3, 3, 3, 3, 4


@dataclass(frozen=True, slots=True)
class RunPicture:
    """The panel at one moment; ``withdrawn`` are alarms that did not last, ``encoding`` is the terminal's."""

    status: Status
    withdrawn: tuple[Finding, ...] = ()
    encoding: str = "utf-8"

    def lines(self, width: int, height: int) -> Sequence[Text]:
        """At most ``height`` lines, none wider than ``width`` cells."""
        width = max(width, _MIN_WIDTH)
        head, foot = list(self._head(width)), list(self._foot(width))
        left = max(height - len(head) - len(foot), 0)
        judged = list(self._findings(width, left))
        sources = self._sources(max(left - len(judged), min(_MIN_SOURCES + 1, left)))
        judged = judged[: max(left - len(sources), 0)]
        lines = [*head, *sources, *judged, *foot]
        if len(lines) + 2 <= height and sources:  # room for blank lines
            lines = [*head, Text(""), *sources, Text(""), *judged, *foot]
        return [_cut(line, width, self.encoding) for line in lines[:height]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(options.max_width, 1000)

    def _head(self, width: int) -> Iterator[Text]:
        status = self.status
        now = status.standing if status.standing != "running" else f"phase {status.phase}"
        if status.standing == "running" and status.phase_position:
            now += f" ({status.phase_position})"
        times = f"{span(status.elapsed_s)} elapsed"
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
        for number, line in enumerate(status.figures[:_MAX_DEVICES]):
            yield _row("" if number else "devices", harmless(line))
        if len(status.figures) > _MAX_DEVICES:
            yield _row("", f"and {len(status.figures) - _MAX_DEVICES} more targets", "dim")

    def _bar(self, width: int) -> Text:
        """A progress bar with the percentage of the run that has elapsed."""
        status = self.status
        total = status.elapsed_s + status.left_s
        share = min(status.elapsed_s / total, 1.0) if total > 0 else 0.0
        words = f" {100 * share:3.0f} %"
        cells = max(width - len(words), 4)
        full, empty = ("━", "─") if spells(self.encoding, "━─") else ("#", ".")
        done = int(cells * share)
        return Text.assemble((full * done, "cyan"), (empty * (cells - done), "dim"), words)

    def _sources(self, max_lines: int) -> list[Text]:
        """The table of sources; if there is no room for all, failing ones first."""
        sources = self.status.sources
        if not sources or max_lines < 2:
            return []
        chosen = sources if len(sources) < max_lines else tuple(sorted(sources, key=_trouble))[: max(max_lines - 2, 1)]
        widest = max(cell_len(harmless(source.label)) for source in chosen)
        heads = ("due", "got", "failed")
        cells = [(f"{source.due:,}", f"{source.got:,}", f"{source.failed:,}") for source in chosen]
        sizes = [max(len(head), *(len(row[column]) for row in cells)) for column, head in enumerate(heads)]
        name = min(widest, 32)
        title = "source".ljust(name) + "".join(f"  {head:>{size}}" for head, size in zip(heads, sizes, strict=True))
        rows = [Text(title, style="dim")]
        for source, (due, got, failed) in zip(chosen, cells, strict=True):
            label = Text(harmless(source.label))
            label.truncate(name, overflow="ellipsis", pad=True)
            figures = f"  {due:>{sizes[0]}}  {got:>{sizes[1]}}  "
            line = Text.assemble(label, figures, (f"{failed:>{sizes[2]}}", "red" if source.failed else "dim"))
            if source.silent_s is not None:
                line.append(f"  no answer for {span(source.silent_s)}", style="bold red")
            rows.append(line.append(f"  {lost_words(source)}" if source.failed else "", style="dim"))
        if len(chosen) < len(sources):
            rest = [source for source in sources if source not in chosen]
            silent = sum(source.silent_s is not None for source in rest)
            state = f"{silent} of them not answering" if silent else "all of them answering"
            rows.append(Text(f"and {len(rest)} more sources, {state}", style="dim"))
        return rows

    def _findings(self, width: int, max_lines: int) -> Iterator[Text]:
        status, raised = self.status, alarms(self.status)
        judged = "not judged yet: first live findings within a minute"
        if status.judged_at_s is not None:
            ago = status.elapsed_s - status.judged_at_s
            when = f"judged {span(ago)} ago" if status.standing == "running" else "judged"
            judged = f"{when}: {counts(status.findings) or 'no findings yet'}"
        lines = textwrap.wrap(judged, max(width - _LABEL, _MIN_WIDTH), max_lines=_MAX_JUDGED, placeholder=" …")
        for number, line in enumerate(lines):
            yield _row("" if number else "findings", line)
        shown = min(_MAX_FINDINGS, max(max_lines // 3, 2))
        blocks = [_block(finding, width, whole=True) for finding in raised[:shown]]
        if sum(len(block) for block in blocks) > max_lines * 2 // 3:
            blocks = [_block(finding, width, whole=False) for finding in raised[:shown]]
        for block in blocks:
            yield from block
        if len(raised) > shown:
            yield Text(f"  and {len(raised) - shown} more", style="dim")
        for finding in self.withdrawn[-_MAX_WITHDRAWN:]:
            yield Text(f"  withdrawn: {finding_words(finding)}", style="dim")
        if len(self.withdrawn) > _MAX_WITHDRAWN:
            yield Text(f"  and {len(self.withdrawn) - _MAX_WITHDRAWN} withdrawn before", style="dim")
        yield from self._rates(width)

    def _rates(self, width: int) -> Iterator[Text]:
        rates = self.status.rates
        lines = [line for rate in rates[:_MAX_RATES] for line in textwrap.wrap(harmless(rate.words), width - _LABEL)]
        if len(rates) > _MAX_RATES:
            lines.append(f"and {len(rates) - _MAX_RATES} more growing series")
        for index, line in enumerate(lines):
            yield _row("" if index else "growing", line)

    def _foot(self, width: int) -> Iterator[Text]:
        status = self.status
        if status.events:
            shown = [harmless(event) for event in status.events]
            while len(shown) > 1 and _LABEL + cell_len(", ".join(shown)) > width:  # drop events rather than cut one
                shown.pop()
            yield _row("events", ", ".join(shown))
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
    """A finding in one line if it fits, else with its reason below; a forecast always has its own line."""
    style, text, forecast = STYLES[finding.outcome], finding_words(finding), harmless(forecast_text(finding))
    if 2 + cell_len(text) <= width:
        return [Text(f"  {text}", style=style)]
    if whole:
        reason = textwrap.wrap(
            harmless(finding.sentence), max(width - 4, 10), max_lines=_MAX_REASON_LINES, placeholder=" …"
        )
        lines = [f"  {harmless(title(finding))}", *(f"    {line}" for line in reason)]
    else:
        lines = [f"  {harmless(title(finding))}: {harmless(finding.sentence)}"]
    return [Text(line, style=style) for line in (*lines, *([f"    forecast: {forecast}"] if forecast else []))]


def _trouble(source: SourceStatus) -> tuple[bool, float]:
    share = source.failed / source.due if source.due else 0.0
    return source.silent_s is None, -share


def _cut(line: Text, width: int, encoding: str) -> Text:
    """Replace characters that the terminal cannot show, and truncate to the width."""
    if not spells(encoding, line.plain):
        line = Text.assemble(*((encodable(line.plain[a:b], encoding), style) for a, b, style in _runs(line)))
    line.truncate(width, overflow="ellipsis" if spells(encoding, "…") else "crop")
    return line


def _runs(line: Text) -> list[tuple[int, int, str]]:
    """Split a line into pieces of one style each; its spans must not overlap."""
    pieces, position = [], 0
    for styled in sorted(line.spans, key=lambda styled: styled.start):
        pieces += [(position, styled.start, str(line.style)), (styled.start, styled.end, str(styled.style))]
        position = styled.end
    return [(a, b, style) for a, b, style in (*pieces, (position, len(line.plain), str(line.style))) if b > a]
