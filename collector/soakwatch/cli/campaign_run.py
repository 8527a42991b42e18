"""A campaign in the foreground: signals, progress as a panel or as lines, result, exit code."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.text import Text

from soakwatch.campaign.campaign_driver import Driver, Listener, Stopping
from soakwatch.campaign.campaign_keys import Campaign
from soakwatch.campaign.campaign_model import WAITING, CampaignState
from soakwatch.campaign.campaign_progress import Progress, progress_of
from soakwatch.campaign.campaign_state import History, read_state
from soakwatch.campaign.ledger import TERMINAL_LOST, Ledger
from soakwatch.cli.display.live_region import Frame, drawable, framed
from soakwatch.cli.outlet import Terminal
from soakwatch.cli.report_options import print_report
from soakwatch.core.console import CommandConsole
from soakwatch.core.errors import EXIT_BROKEN, EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS
from soakwatch.core.installed_code import code_stamp
from soakwatch.core.supervised_child import python_module
from soakwatch.core.tables import harmless
from soakwatch.core.terminal import encodable
from soakwatch.core.units import show_seconds
from soakwatch.core.workers.choose import executor_for
from soakwatch.core.workers.executor import Executor
from soakwatch.core.workers.testbeds import require_testbeds
from soakwatch.report.files import ReportPlace, clear_places, write_places
from soakwatch_rules.wording.quantities import counted

DRAW_EVERY_S = 1.0
LINE_EVERY_S = 600.0
_MAX_REASON = 100


@contextmanager
def workers(campaign: Campaign, on: str | None) -> Iterator[Executor]:
    """The executor of a campaign's runs, checked to answer and to have the testbeds. Raises ClusterError."""
    with executor_for(on, len(campaign.testbeds)) as executor:
        require_testbeds(executor, [bed.name for bed in campaign.testbeds])
        yield executor


def run_campaign(
    terminal: Terminal,
    campaign: Campaign,
    folder: Path,
    ledger: Ledger,
    executor: Executor,
    places: tuple[ReportPlace, ...] = (),
) -> int:
    """Run what is left of a campaign; returns its exit code. Raises CampaignError, ClusterError.

    At the end its reports are written to ``places``. What they say of limits and claims then counts for the exit code
    too, so that it is that of the reports.
    """
    clear_places(places)
    stamp = code_stamp()
    console = CommandConsole(stderr=any(place.file is None for place in places))
    stopping = Stopping()
    with _interruptible(stopping), _display(campaign, console) as display:
        display.tell(f"campaign {campaign.name}: {counted(len(campaign.cells), 'cell')}, to {folder}")
        driver = Driver(campaign, folder, ledger, executor, _Upgrades(display, stamp), stopping)
        state = driver.run()
    for loss in terminal.losses():
        ledger.add(loss.time_ns, TERMINAL_LOST, stream=loss.stream, reason=loss.reason)
    progress = progress_of(campaign, state, driver.history)
    _print(console, f"{campaign.name}: {progress.words()}")
    if not progress.complete or progress.missing:
        _print(console, f"continue with: soakwatch campaign resume {folder}")
    if not places:
        return progress.exit_code
    if code_stamp() == stamp:
        reported = _reported(folder, places)
    else:
        _print(console, "Soakwatch was replaced while this campaign went on: the new version writes the reports")
        reported = _reported_by_new_version(folder, places)
    codes = {progress.exit_code, reported}
    return next(code for code in (EXIT_FAIL, EXIT_BROKEN, EXIT_INCONCLUSIVE, EXIT_PASS) if code in codes)


def _reported(folder: Path, places: tuple[ReportPlace, ...]) -> int:
    """Write the reports; the exit code of the campaign by them."""
    from soakwatch.campaign.tables.campaign_checks import CampaignRendering
    from soakwatch.campaign.tables.result import result_of, spec_of

    state = read_state(folder)
    result = result_of(state, spec_of(state))
    failures = write_places(CampaignRendering(result, places), places, print_report, folder)
    for place, failure in failures.items():
        remedy = f"put that right, then write it with soakwatch campaign report {folder} {place.words}"
        click.echo(f"soakwatch: {failure}: {remedy}", err=True)
    return result.exit_code


def _reported_by_new_version(folder: Path, places: tuple[ReportPlace, ...]) -> int:
    """The same by a process of the version that is installed now: what this one would import is of that, or gone."""
    words = [word for place in places for word in place.words.split(" ", 1)]
    command = python_module("soakwatch.cli", "campaign", "report", str(folder), *words)
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


class _Upgrades:
    """Tells once that Soakwatch was replaced, and what that means for the campaign."""

    def __init__(self, listener: Listener, stamp: str) -> None:
        self._listener, self._stamp = listener, stamp

    def tell(self, text: str) -> None:
        """A line for people; behind it, once, that the installation has changed since the begin."""
        self._listener.tell(text)
        if self._stamp and code_stamp() != self._stamp:
            self._stamp = ""
            self._listener.tell(
                "Soakwatch was replaced while this campaign goes on: runs that began are ended by the new version, and"
                " those to come are of it; this process starts them as before"
            )

    def show(self, state: CampaignState, history: History) -> None:
        """As the listener does."""
        self._listener.show(state, history)


def rows(state: CampaignState, progress: Progress) -> list[tuple[str, ...]]:
    """One row for each attempt that has begun: cell, run, testbed, state, verdict, reason."""
    stages = {(one.run.cell.id, one.run.repetition): one for one in progress.going}
    shown: list[tuple[str, ...]] = []
    for run in state.runs:
        if run.state == WAITING:
            continue
        going = stages.get((run.cell.id, run.repetition))
        is_it = going is not None and going.run.attempt == run.attempt
        words = f"{going.stage}, {show_seconds(round(going.elapsed_s))}" if is_it and going is not None else run.state
        attempt = f"{run.repetition}, attempt {run.attempt}" if run.attempt > 1 else str(run.repetition)
        shown.append((run.cell.id, attempt, run.testbed, words, run.verdict or "", run.reason[:_MAX_REASON]))
    return shown


class _Display:
    """Prints messages, and the progress: in a panel below them that is redrawn each second, or where there is no frame
    for it as a line every ten minutes."""

    def __init__(self, campaign: Campaign, console: CommandConsole, frame: Frame | None = None) -> None:
        self._campaign, self._console, self._frame = campaign, console, frame
        self._begin = self._next = time.monotonic()

    def tell(self, text: str) -> None:
        """Print a message with the time since the start."""
        _print(self._console, f"[{show_seconds(round(time.monotonic() - self._begin))}] {text}")

    def show(self, state: CampaignState, history: History) -> None:
        """Print the progress or redraw the panel, when it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (LINE_EVERY_S if self._frame is None else DRAW_EVERY_S)
        progress = progress_of(self._campaign, state, history)
        if self._frame is None:
            self.tell(progress.words())
        else:
            self._frame.draw(_Picture(progress, self._console.encoding))


class _Picture:
    def __init__(self, progress: Progress, encoding: str) -> None:
        self._progress, self._encoding = progress, encoding

    def lines(self, width: int, height: int) -> Sequence[Text]:
        """The progress bar, then a line for each current run."""
        progress = self._progress
        size = max(10, min(40, width - 20))
        filled = size * progress.done // max(1, progress.total)
        texts = [
            f"{progress.name}: {progress.words()}",
            "█" * filled + "░" * (size - filled),
            *(
                f"{one.run.cell.id} run {one.run.repetition}"
                + (f" on {one.run.testbed}" if one.run.testbed else "")
                + f": {one.stage}, {show_seconds(round(one.elapsed_s))}"
                for one in progress.going
            ),
        ]
        return [Text(encodable(harmless(text), self._encoding)[:width]) for text in texts[:height]]


@contextmanager
def _display(campaign: Campaign, console: CommandConsole) -> Iterator[Listener]:
    if not drawable(console):
        yield _Display(campaign, console)
        return
    with framed(console) as frame:
        yield _Display(campaign, console, frame)


@contextmanager
def _interruptible(stopping: Stopping) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the campaign to stop."""

    def asked(_number: int, _frame: FrameType | None) -> None:
        stopping.asked += 1

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print(console: CommandConsole, text: str) -> None:
    console.say(encodable(harmless(text), console.encoding))
