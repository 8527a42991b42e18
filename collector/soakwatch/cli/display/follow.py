"""Attending a run that goes on elsewhere: by its record on this machine, or by the server that shows it."""

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
from soakwatch.runs.state import StateReader
from soakwatch.runs.status import JUDGING, RunSnapshot
from soakwatch.runs.watching import LEAVES_IT, report_of, status_of
from soakwatch_rules.rule import Outcome

LOOK_EVERY_S = 1.0
_STYLES = {"fail": "bold red", "inconclusive": "bold magenta", "pass": "bold green"}
_UNCUT = 10_000


class RunReader(Protocol):
    """How a run is looked at."""

    def look(self) -> RunSnapshot:
        """How it stands now. Raises SoakwatchError."""
        ...


class RecordedRun:
    """A run on this machine, by the folder of its record."""

    def __init__(self, folder: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._folder, self._now_ns = folder, now_ns
        self._reader = StateReader(folder)

    def look(self) -> RunSnapshot:
        """How it stands by its record. Raises RecordError for one that cannot be read."""
        written = is_written(self._folder)  # asked first: the verdict is written before the writer goes
        state = self._reader.read(self._now_ns())
        status = status_of(state, LEAVES_IT)
        if state.verdict is not None and state.standing == "ended":
            report = report_of(self._folder)
            told = "" if report is None else str(report)
            return RunSnapshot(status, over=True, verdict=state.verdict, reason=state.reason or "", report=told)
        if state.standing == "ended":
            return RunSnapshot(
                replace(status, standing="ended" if written else "broken off", doing=JUDGING), over=not written
            )
        return RunSnapshot(status, over=state.standing == "broken off")


def attend(way: RunReader, console: Console, *, pause: Callable[[float], None] = time.sleep) -> RunSnapshot:
    """Show a run until it is over; the last look. A terminal that goes away ends it as well."""
    with shown(console) as display:
        while True:
            look = way.look()
            if look.over:
                return look
            display.show(look.status)
            pause(LOOK_EVERY_S)


def glance(look: RunSnapshot, console: Console) -> None:
    """Print one look; uncut where there is no terminal."""
    picture = panel(replace(look.status, keys=""), encoding=console.encoding)
    wide = console.width if console.is_terminal else _UNCUT
    for line in picture.lines(wide, _UNCUT):
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False, emoji=False)


def conclude(look: RunSnapshot, name: str, console: Console) -> None:
    """Print what became of the run."""

    def say(text: Text) -> None:
        told = encodable(text.plain, console.encoding)
        console.print(Text(told, style=text.style), soft_wrap=not console.is_terminal, highlight=False, emoji=False)

    run = printable(look.status.run)
    if look.verdict is None and look.status.standing == "broken off":
        say(Text(f"{run} broke off: its monitor ended without a verdict", style="bold red"))
        say(Text(f"soakwatch resume {name} goes on with it; soakwatch judge {name} judges what is there"))
    if look.verdict is not None:
        say(Text(f"{SYMBOLS[Outcome(look.verdict)]} {look.verdict.upper()}  {run}", style=_STYLES[look.verdict]))
        say(Text(printable(look.reason)))
        say(Text(f"full report: soakwatch report {name}" + (f"; page  {look.report}" if look.report else "")))
