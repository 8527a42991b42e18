"""A run in the foreground: signals, progress, orderly end, verdict on the terminal, exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import replace
from functools import partial

from rich.console import Console

from soakwatch.cli.display.native_stderr import native_stderr_logged
from soakwatch.cli.display.progress import Lines, Panel, shown
from soakwatch.cli.display.self_status import SelfStatus
from soakwatch.core.clock import Clock
from soakwatch.core.errors import EXIT_INCONCLUSIVE, MonitorBrokenError, RecordError
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.engine.baseline_freeze import freeze
from soakwatch.engine.context import RunContext
from soakwatch.engine.finish import conclude
from soakwatch.engine.notify.notifying import FINISH_S
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import utc_text
from soakwatch.judge.verdict import Verdict
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.record.model import MONITOR_ORIGIN as ORIGIN
from soakwatch.report.files import REPORT_FILES
from soakwatch.runs.watching import course_words
from soakwatch.sinks.registry import destinations
from soakwatch.sinks.supervisor import SinkProcesses
from soakwatch.web.supervisor import supervised_web
from soakwatch_rules.rule import Outcome

DRAW_EVERY_S = 1.0


def run_to_the_end(
    course: RunContext, record: Record, clock: Clock, *, verdict_shown: bool = True, web: WebPlan | None = None
) -> int:
    """Watch the run, end it, judge it, write and print everything; returns the exit code of the verdict.

    Its page is served until all that is done, so that its readers see the verdict and can take the report along.
    A calibration, in which there is no device to judge, does not show its verdict. Raises MonitorBrokenError if the
    record could not be written; what was committed is kept.
    """
    console = Console()
    soak: Soak | None = None
    to = destinations(course.plan.sinks)
    sinks = SinkProcesses(to, course.folder, record, clock.now_ns, partial(_print, console))
    try:
        sinks.start()
        with supervised_web(web, course.folder, clock.now_ns, partial(_print, console)) as served:
            _print(console, f"recording to {course.folder}{served.words}")
            if served.link and console.is_terminal:
                _print(console, f"page    {served.link} (one-time link; for a new one: soakwatch open {course.folder})")
            if course.start_ns > clock.now_ns() + 10**9:
                _print(console, f"waiting for the start at {utc_text(course.start_ns)}")
            soak, end_ns = asyncio.run(_watch(course, record, clock, console, sinks))
            sinks.quiet()
            _check(soak)
            if end_ns <= course.start_ns:
                return _end_unstarted(record, end_ns, console)
            _print(console, f"finished after {show_seconds((end_ns - course.start_ns) * 1e-9)}; judging")
            record.seal(final=True)
            record.set_meta("ended_ns", str(end_ns))
            freeze(record, course.folder)
            verdict = conclude(course.folder, record, end_ns, on_verdict=partial(_run_end_hooks, soak))
            soak.notifying.conclude(verdict, course.folder / REPORT_FILES["html"], course.folder / REPORT_FILES["md"])
            with RecordView.open(course.folder) as view:
                if verdict_shown:
                    from soakwatch.report.terminal import print_verdict  # heavy: no running collector needs it

                    print_verdict(view, verdict, console)
            sinks.finish()
            _finish_notifying(soak, record, console)
    except RecordError as error:
        broken = f"{error}; everything committed before is kept: soakwatch judge {course.folder}"
        if soak is not None:
            soak.notifying.broke(broken)
            _finish_notifying(soak, record, console)
        raise MonitorBrokenError(broken) from error
    finally:
        if soak is not None:
            soak.notifying.close()
        sinks.close()
        with suppress(RecordError):
            record.close()
    size = (course.folder / "record.sqlite").stat().st_size
    _print(console, f"record  {course.folder / 'record.sqlite'} ({show_bytes(size)})")
    _print(console, f"report  {course.folder / REPORT_FILES['html']}")
    return verdict.exit_code


def _end_unstarted(record: Record, end_ns: int, console: Console) -> int:
    """A run that was stopped while it waited for its start has no poll: there is nothing to judge or to report."""
    reason = "stopped before its start: nothing was polled"
    for key, text in {"ended_ns": str(end_ns), "verdict": Outcome.INCONCLUSIVE.value, "reason": reason}.items():
        record.set_meta(key, text)
    record.finish()
    _print(console, reason)
    return EXIT_INCONCLUSIVE


def _run_end_hooks(soak: Soak, verdict: Verdict) -> None:
    with suppress(KeyboardInterrupt):  # a user who does not want to wait for the hooks still wants the report
        asyncio.run(soak.hooks.conclude(verdict))


def _check(soak: Soak) -> None:
    """Raises RecordError if the record could not be written to the end."""
    if soak.trouble is not None:
        raise RecordError(soak.trouble)


def _finish_notifying(soak: Soak, record: Record, console: Console) -> None:
    """Wait for the notifications and record their outcome; a second Ctrl-C does not wait."""
    if soak.notifying.busy:
        _print(console, f"waiting for notifications, {FINISH_S:g} s at most")
    with suppress(KeyboardInterrupt):
        soak.notifying.finish()
    soak.notifying.close()
    with suppress(RecordError):  # a message that was sent is sent, whether it can be recorded or not
        for event in soak.notifying.account():
            record.add_event(event.target, event, ORIGIN)


async def _watch(
    course: RunContext, record: Record, clock: Clock, console: Console, sinks: SinkProcesses
) -> tuple[Soak, int]:
    loop = asyncio.get_running_loop()
    soak = Soak(course, record, clock)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        soak.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    # A terminal that disappears (a closed laptop) must not end a run of 72 hours.
    loop.add_signal_handler(signal.SIGHUP, lambda: None)
    with native_stderr_logged(), shown(console) as display:
        drawing = asyncio.create_task(_draw(soak, display, sinks, clock))
        try:
            end_ns = await soak.watch()
        finally:
            drawing.cancel()
    return soak, end_ns


async def _draw(soak: Soak, display: Lines | Panel, sinks: SinkProcesses, clock: Clock) -> None:
    monitor = SelfStatus(soak.context.folder)
    while True:
        status = soak.status()
        position, coming = course_words(soak.stretches, soak.context.plan, clock.now_ns())
        if status.phase == "waiting":
            position = ""
        try:
            display.show(
                replace(status, behind=sinks.words(), phase_position=position, coming=coming, own=monitor.words(status))
            )
        except OSError:
            return  # the terminal is gone; the run is not
        await asyncio.sleep(DRAW_EVERY_S)
        monitor.record_lateness(DRAW_EVERY_S)


def _print(console: Console, text: str) -> None:
    with suppress(OSError):
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    sys.stdout.flush()
