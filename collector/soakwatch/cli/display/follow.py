"""Follows a run of another process, through its record on this machine or through the server."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.text import Text

from soakwatch.cli.display.progress import panel, shown
from soakwatch.core.formatting import SYMBOLS, printable
from soakwatch.core.terminal import encodable
from soakwatch.record.writer_lock import is_written
from soakwatch.runs.device_figures import DeviceFigures
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.run_status import JUDGING, RunSnapshot
from soakwatch.runs.watching import LEAVES_IT, report_of, status_of
from soakwatch_model.finding import Outcome

READ_EVERY_S = 1.0
_STYLES = {"fail": "bold red", "inconclusive": "bold magenta", "pass": "bold green"}
_UNCUT = 10_000


class RunReader(Protocol):
    """Reads the state of a run."""

    def read(self) -> RunSnapshot:
        """The current state. Raises SoakwatchError."""
        ...


class RecordedRun:
    """A run on this machine, read from its folder."""

    def __init__(self, folder: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder, self._now_ns = folder, now_ns
        self._reader = StateReader(folder)
        self._figures = DeviceFigures(folder, now_ns)

    def read(self) -> RunSnapshot:
        """The current state from the record. Raises RecordError."""
        written = is_written(self._folder)  # check first: the verdict is written before the writer exits
        state = self._reader.read(self._now_ns())
        status = status_of(state, LEAVES_IT)
        if state.standing == "running":
            status = replace(status, figures=self._figures.lines())
        if state.verdict is not None and state.standing == "ended":
            report = report_of(self._folder)
            page = "" if report is None else str(report)
            return RunSnapshot(status, over=True, verdict=state.verdict, reason=state.reason or "", report=page)
        if state.standing == "ended":
            return RunSnapshot(
                replace(status, standing="ended" if written else "broken off", doing=JUDGING), over=not written
            )
        return RunSnapshot(status, over=state.standing == "broken off")


def follow(reader: RunReader, console: Console, *, pause: Callable[[float], None] = time.sleep) -> RunSnapshot:
    """Show a run until it ends; returns the last snapshot. Raises OSError if the terminal disappears."""
    with shown(console) as display:
        while True:
            snapshot = reader.read()
            if snapshot.over:
                return snapshot
            display.show(snapshot.status)
            pause(READ_EVERY_S)


def show_snapshot(snapshot: RunSnapshot, console: Console) -> None:
    """Print one snapshot, uncut unless on a terminal."""
    picture = panel(replace(snapshot.status, keys=""), encoding=console.encoding)
    wide = console.width if console.is_terminal else _UNCUT
    for line in picture.lines(wide, _UNCUT):
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False, emoji=False)


def show_outcome(snapshot: RunSnapshot, name: str, console: Console) -> None:
    """Print how the run ended: its verdict, or that it broke off."""

    def echo(text: Text) -> None:
        line = Text(encodable(text.plain, console.encoding), style=text.style)
        console.print(line, soft_wrap=not console.is_terminal, highlight=False, emoji=False)

    run, verdict = printable(snapshot.status.run), snapshot.verdict
    if verdict is None and snapshot.status.standing == "broken off":
        echo(Text(f"{run} broke off: its monitor ended without a verdict", style="bold red"))
        echo(Text(f"resume it with: soakwatch resume {name}; or judge what was recorded with: soakwatch judge {name}"))
    if verdict is not None:
        echo(Text(f"{SYMBOLS[Outcome(verdict)]} {verdict.upper()}  {run}", style=_STYLES[verdict]))
        echo(Text(printable(snapshot.reason)))
        echo(Text(f"full report: soakwatch report {name}" + (f"; page  {snapshot.report}" if snapshot.report else "")))
