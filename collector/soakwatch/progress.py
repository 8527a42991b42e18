"""A run as it is seen on a terminal: one panel that is drawn anew, or plain lines where there is no terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from soakwatch.status import Status
from soakwatch.table import harmless
from soakwatch.units import show_seconds
from soakwatch_agent.sample import PollOutcome
from soakwatch_rules.forecast_words import forecast_words
from soakwatch_rules.rule import Finding, Outcome

LINE_EVERY_S = 10.0
LONG_RUN_LINE_EVERY_S = 300.0
_STYLES = {Outcome.FAIL: "bold red", Outcome.INCONCLUSIVE: "magenta", Outcome.WARN: "yellow", Outcome.PASS: "green"}
_SHOWN_FINDINGS, _SHOWN_WITHDRAWN = 8, 3


class Alarms:
    """Failures and warnings that were told so far, and those of them that a later look did not find again."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ...], Finding] = {}
        self._judged_at_s: float | None = None
        self.withdrawn: dict[tuple[str, ...], Finding] = {}

    def look(self, status: Status) -> tuple[list[Finding], list[Finding]]:
        """What is told for the first time (or has become worse), and what is withdrawn by a newer look."""
        now = {(f.rule, f.target, f.metric, f.object): f for f in _worrying(status)}
        new = [f for key, f in now.items() if key not in self._told or self._told[key].outcome is not f.outcome]
        gone = {key: f for key, f in self._told.items() if key not in now and status.judged_at_s != self._judged_at_s}
        self._judged_at_s = status.judged_at_s
        self._told = {key: f for key, f in self._told.items() if key not in gone} | now
        self.withdrawn = {key: f for key, f in {**self.withdrawn, **gone}.items() if key not in now}
        return new, list(gone.values())


class Lines:
    """Plain lines: at every change of phase or finding, and now and then in between."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told = ("", "")
        self._alarms = Alarms()
        self._next_s = 0.0

    def show(self, status: Status) -> None:
        """Print what is new."""
        news = (status.phase, status.doing) != self._told
        new, gone = self._alarms.look(status)
        for finding in new:
            self._print(f"{_clock(status)} {_finding(finding)}")
        for finding in gone:
            self._print(f"{_clock(status)} WITHDRAWN {_finding(finding)}")
        if news or status.elapsed_s >= self._next_s:
            self._told = status.phase, status.doing
            every = LINE_EVERY_S if status.elapsed_s + status.left_s <= 1800 else LONG_RUN_LINE_EVERY_S
            self._next_s = (status.elapsed_s // every + 1) * every
            due, got, failed = _totals(status)
            parts = [f"phase {status.phase}", f"{show_seconds(round(status.left_s))} left",
                     f"polls {due} due, {got} got, {failed} failed", _load(status)]  # fmt: skip
            if status.doing:
                parts.append(status.doing)
            parts += status.behind
            if status.trouble:
                parts.append(f"TROUBLE: {status.trouble}")
            self._print(f"{_clock(status)} " + "; ".join(part for part in parts if part))

    def _print(self, text: str) -> None:
        self._console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)


class Panel:
    """A panel on a terminal."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._alarms = Alarms()

    def show(self, status: Status) -> None:
        """Draw it anew, at once."""
        self._alarms.look(status)
        self._live.update(panel(status, tuple(self._alarms.withdrawn.values())), refresh=True)


@contextlib.contextmanager
def shown(console: Console) -> Iterator[Lines | Panel]:
    """Something that shows a run on this console."""
    if not console.is_terminal:
        yield Lines(console)
        return
    with Live(console=console, auto_refresh=False, transient=True, redirect_stderr=True) as live:
        yield Panel(live)


def panel(status: Status, withdrawn: tuple[Finding, ...] = ()) -> RenderableType:
    """The whole picture of one moment; ``withdrawn`` are the alarms that did not last."""
    total = max(status.elapsed_s + status.left_s, 1e-9)
    head = Table.grid(padding=(0, 2))
    head.add_row(
        Text(harmless(status.run), style="bold"),
        Text(f"phase {status.phase}", style="bold cyan"),
        ProgressBar(total=total, completed=status.elapsed_s, width=30),
        Text(f"{show_seconds(round(status.elapsed_s))} gone, {show_seconds(round(status.left_s))} left"),
    )
    sources = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("source", "due", "got", "failed", ""):
        sources.add_column(title, justify="left" if title in {"source", ""} else "right")
    for source in status.sources:
        counted = [(n, outcome.value) for outcome, n in source.outcomes.items() if n and outcome is not PollOutcome.OK]
        sources.add_row(
            harmless(source.label),
            str(source.due),
            str(source.got),
            Text(str(source.failed), style="red" if source.failed else ""),
            Text(", ".join(f"{n} {how}" for n, how in counted), style="dim"),
        )
    parts: list[RenderableType] = [head, Text(""), sources]
    if status.load:
        parts += [Text(""), Text.assemble(("load      ", "dim"), _load(status))]
    judged = "not judged yet: live findings come each minute" if status.judged_at_s is None else (
        f"judged at {show_seconds(round(status.judged_at_s))}: " + _counts(status.findings)
    )  # fmt: skip
    parts += [Text(""), Text.assemble(("findings  ", "dim"), judged)]
    worrying = _worrying(status)
    parts += [Text(f"  {_finding(f)}", style=_STYLES[f.outcome], no_wrap=True) for f in worrying[:_SHOWN_FINDINGS]]
    if len(worrying) > _SHOWN_FINDINGS:
        parts.append(Text(f"  and {len(worrying) - _SHOWN_FINDINGS} more", style="dim"))
    parts += [Text(f"  withdrawn: {_finding(f)}", style="dim", no_wrap=True) for f in withdrawn[-_SHOWN_WITHDRAWN:]]
    if len(withdrawn) > _SHOWN_WITHDRAWN:
        parts.append(Text(f"  and {len(withdrawn) - _SHOWN_WITHDRAWN} withdrawn before", style="dim"))
    if status.events:
        parts.append(Text.assemble(("events    ", "dim"), harmless(", ".join(status.events))))
    parts += [Text.assemble(("sink      ", "dim"), (harmless(words), "yellow")) for words in status.behind]
    if status.doing:
        parts.append(Text(harmless(status.doing), style="bold cyan"))
    if status.trouble:
        parts.append(Text(f"TROUBLE: {harmless(status.trouble)}", style="bold red"))
    parts.append(Text("Ctrl-C ends the run properly and judges what is there", style="dim"))
    return Group(*parts)


def _worrying(status: Status) -> list[Finding]:
    return [f for f in status.findings if f.outcome in {Outcome.FAIL, Outcome.WARN}]


def _finding(finding: Finding) -> str:
    where = " ".join(part for part in (finding.target, finding.metric, finding.object) if part)
    ahead = "" if finding.forecast is None else forecast_words(finding.forecast)
    told = f"{finding.reason}; if it goes on: {ahead}" if ahead else finding.reason
    return harmless(f"{finding.outcome.value.upper()} {finding.rule} {where}: {told}")


def _counts(findings: tuple[Finding, ...]) -> str:
    counted = [(sum(f.outcome is outcome for f in findings), outcome.value) for outcome in Outcome]
    return ", ".join(f"{number} {word}" for number, word in counted if number)


def _totals(status: Status) -> tuple[int, int, int]:
    return (
        sum(source.due for source in status.sources),
        sum(source.got for source in status.sources),
        sum(source.failed for source in status.sources),
    )


def _clock(status: Status) -> str:
    return f"[{show_seconds(round(status.elapsed_s))}]"


_RATES = (
    ("load.request.rate", "requests/s"),
    ("load.failure.rate", "failures/s"),
    ("load.tx.packet.rate", "packets/s sent"),
    ("load.rx.packet.rate", "packets/s received"),
)


def _load(status: Status) -> str:
    if not status.load:
        return ""
    told = []
    for metric, word in _RATES:
        values = [value for (name, _), value in status.load.items() if name == metric]
        if values:
            told.append(f"{sum(values):.0f} {word}")
    losses = [value for (name, _), value in status.load.items() if name == "load.loss"]
    if losses:
        told.append(f"{max(losses):.2%} lost")
    tails = [value for (name, obj), value in status.load.items() if name == "load.latency" and "p99" in obj]
    if tails:
        told.append(f"p99 {max(tails) * 1000:.1f} ms")
    return ("load " if told else "") + ", ".join(told)
