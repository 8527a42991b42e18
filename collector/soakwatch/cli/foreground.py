"""A run in the foreground: signals, progress, orderly end, verdict, exit code."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from soakwatch.cli.display.native_stderr import native_stderr_logged
from soakwatch.cli.display.progress import Lines, Panel, shown
from soakwatch.cli.display.self_status import SelfStatus
from soakwatch.cli.outlet import Loss, Terminal
from soakwatch.cli.report_options import print_report
from soakwatch.cli.take_over import become_new_version
from soakwatch.core.c_allocator import share_one_arena
from soakwatch.core.clock import Clock
from soakwatch.core.console import CommandConsole
from soakwatch.core.errors import EXIT_INCONCLUSIVE, MonitorBrokenError, RecordError
from soakwatch.core.event_kinds import START_WARNING, TERMINAL_LOST
from soakwatch.core.forked_child import ForkedChild
from soakwatch.core.installed_code import REPLACED, code_stamp
from soakwatch.core.open_files import allow_open_files
from soakwatch.core.units import show_bytes, show_seconds
from soakwatch.engine.context import RunContext
from soakwatch.engine.finish import Ending, end_unpolled, why_unpolled
from soakwatch.engine.hooks.hooks import Hooks
from soakwatch.engine.hooks.setup import hooks_of
from soakwatch.engine.machine import HERE
from soakwatch.engine.notify.notifying import Notifying
from soakwatch.engine.notify.setup import notifying_of
from soakwatch.engine.promises import Promises
from soakwatch.engine.provable import provable_so_far
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import resume, utc_text
from soakwatch.engine.start_warnings import start_warnings
from soakwatch.judge.live.client import JudgeProcess, warm_judge
from soakwatch.judge.verdict import Verdict
from soakwatch.plan.web import WebPlan
from soakwatch.record import Record, RecordView
from soakwatch.record.model import MONITOR_ORIGIN as ORIGIN
from soakwatch.record.queue import Committer, Notes
from soakwatch.report.files import REPORT_FILES, ReportPlace, clear_places
from soakwatch.runs.device_figures import DeviceFigures
from soakwatch.runs.running_elsewhere import listed_as_running
from soakwatch.runs.sealing import Sealing
from soakwatch.runs.watching import course_words
from soakwatch.transfer.sinks.registry import destinations
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch.web.supervisor import supervised_web
from soakwatch_model.event import Event

_SECOND_POLLS_S = 2.0  # rates and utilisations exist from the second poll on
_FIRST_LOOKS = 15  # seconds after the start within which every source should have been polled once


def run_to_the_end(
    terminal: Terminal,
    course: RunContext,
    record: Record,
    clock: Clock,
    *,
    verdict_shown: bool = True,
    web: WebPlan | None = None,
    places: tuple[ReportPlace, ...] = (),
    words: Sequence[str] = (),
    warm: ForkedChild | None = None,
) -> int:
    """Watch the run, end it, judge it, write and print everything; returns the exit code of the verdict.

    The page is served until the end, so that readers see the verdict and can save the report. If polling was over
    already (``polled_ns``), only the end is made. ``verdict_shown`` is False for a calibration, which has no device to
    judge. Reports are written to ``places`` besides; if one is standard output, everything else goes to standard error.
    ``words`` are those of the command line, where it can be begun again by another version: if Soakwatch was replaced
    on the disk meanwhile, the new one makes the end. ``warm`` becomes the live judge, see ``warm_judge``. Raises
    MonitorBrokenError if the record could not be written; what was committed is kept.
    """
    share_one_arena()
    if warning := allow_open_files(sum(len(target.sources) for target in course.plan.targets)):
        _complain(f"warning: {warning}")
    version = _Version(code_stamp(), hands_over=bool(words))
    with listed_as_running(course.folder):
        code = _run(
            terminal,
            course,
            record,
            clock,
            verdict_shown=verdict_shown,
            web=web,
            places=places,
            version=version,
            warm=warm,
        )
    if code is not None:
        return code
    say = _console(places).say
    say(f"the new version cannot end this run: {become_new_version(course.folder, words, say)}; this one tries")
    again, record, clock = resume(course.folder, stop_on_fail=False)
    again = replace(again, sealing=course.sealing)
    with listed_as_running(course.folder):
        code = _run(terminal, again, record, clock, verdict_shown=verdict_shown, places=places)
    assert code is not None, "nothing is handed over by a run whose polling was over"
    return code


def resume_to_the_end(
    terminal: Terminal,
    folder: Path,
    *,
    no_web: bool,
    stop_on_fail: bool,
    stop_rules: Collection[str],
    sealing: Sealing,
    words: Sequence[str],
    places: tuple[ReportPlace, ...],
) -> int:
    """Resume the run in a folder, then as ``run_to_the_end``. Raises RecordError if there is nothing to resume."""
    with warm_judge(()) as warm:
        course, record, clock = resume(folder, stop_on_fail=stop_on_fail, stop_rules=stop_rules)
        course, web = replace(course, sealing=sealing), None if no_web else course.plan.web
        return run_to_the_end(terminal, course, record, clock, web=web, words=words, places=places, warm=warm)


def _console(places: Iterable[ReportPlace]) -> CommandConsole:
    """Where a run says what it does: standard error where a report goes to standard output."""
    return CommandConsole(stderr=any(place.file is None for place in places))


@dataclass(frozen=True, slots=True)
class _Version:
    """The stamp of the code that began a run, and whether another version may end it in place of this process."""

    stamp: str
    hands_over: bool


def _run(
    terminal: Terminal,
    course: RunContext,
    record: Record,
    clock: Clock,
    *,
    verdict_shown: bool,
    web: WebPlan | None = None,
    places: tuple[ReportPlace, ...] = (),
    version: _Version | None = None,
    warm: ForkedChild | None = None,
) -> int | None:
    """The exit code; None if polling is over and the code is no longer that of ``version``, so another is to end it."""
    clear_places(places)
    console = _console(places)
    say = console.say
    ending: Ending | None = None
    to = destinations(course.plan.sinks)
    sinks = SinkProcesses(to, course.folder, record, clock.now_ns, say)
    try:
        promises = Promises.recorded(course.folder, record)
        show = partial(_show, console, verdict_shown)
        ending_with = partial(
            Ending, record, promises, sealing=course.sealing, places=places, print_report=print_report
        )
        if course.polled_ns is not None:
            if reason := why_unpolled(course.folder, course.start_ns, course.polled_ns):
                end_unpolled(record, promises, course.polled_ns, reason)
                say(reason)
                _tell_of_unwritten(places, reason)
                return EXIT_INCONCLUSIVE
            hooks, notifying = _end_only(course, record, clock, promises)
            ending = ending_with(hooks, notifying, sinks, say, _complain, show)
            sinks.start()
            sinks.quiet()
            say(f"{course.folder.name} was over when its monitor was killed; judging")
            verdict = ending.make(course.polled_ns)
        else:
            sinks.start()
            with supervised_web(web, course.folder, clock.now_ns, say) as served:
                say(f"recording to {course.folder}{served.words}")
                if served.link and console.is_terminal:
                    say(f"page by a one-time link (for a new one: soakwatch open {course.folder}):")
                    say(served.link)  # on its own line, to fit 80 columns
                if course.start_ns > clock.now_ns() + 10**9:
                    say(f"waiting for the start at {utc_text(course.start_ns)}")
                machine = replace(HERE, judge=partial(JudgeProcess, warm=warm))
                soak = Soak(course, record, clock, machine=machine, promises=promises)

                def leave() -> None:
                    sinks.close()
                    served.end()

                end_ns = asyncio.run(_watch(soak, clock, console, sinks, terminal, leave))
                if soak.relocated:  # flush the sinks first, so that only the rest is sent again
                    sinks = SinkProcesses(to, record.path.parent, record, clock.now_ns, say)
                    sinks.start()
                ending = ending_with(soak.hooks, soak.notifying, sinks, say, _complain, show)
                sinks.quiet()
                _check(soak)
                if soak.rescue:
                    say(soak.rescue)
                if reason := why_unpolled(record.path.parent, course.start_ns, end_ns):
                    end_unpolled(record, promises, end_ns, reason)
                    say(reason)
                    _tell_of_unwritten(places, reason)
                    return EXIT_INCONCLUSIVE
                finished = f"finished after {show_seconds((end_ns - course.start_ns) * 1e-9)}"
                if version is not None and not soak.relocated and code_stamp() != version.stamp:
                    say(finished)
                    if version.hands_over:
                        ending.finish_notifying()
                        return None
                    say(f"{REPLACED}: this process, which began before, makes its end with what it has loaded; if that")
                    say(f"fails, nothing recorded is lost: soakwatch resume {course.folder} makes the end")
                say(f"{finished}; judging")
                verdict = ending.make(end_ns)
        if record.displaced():  # after judging: resume writes what could not be written yet
            _complain(_what_is_kept(record))
    except RecordError as error:
        broken = f"{error}; {_what_is_kept(record)}"
        if ending is not None:
            ending.notifying.broke(broken)
            ending.finish_notifying()
        raise MonitorBrokenError(broken) from error
    finally:
        if ending is not None:
            ending.notifying.close()
        sinks.close()
        with suppress(RecordError):
            for loss in terminal.losses():
                event = _event_of(loss, clock.now_ns())
                record.add_event(event.target, event, ORIGIN)
        with suppress(RecordError):
            record.close()
    return verdict.exit_code


def _end_only(course: RunContext, record: Record, clock: Clock, promises: Promises) -> tuple[Hooks, Notifying]:
    """Hooks and notifications for the end of a run whose polling is over."""
    notes = Notes(record, Committer(record, clock.now_ns, threaded=False))
    plan, folder, now_ns = course.plan, course.folder, clock.now_ns
    hooks = hooks_of(plan, folder, notes, now_ns, course.live_findings, promises)
    return hooks, notifying_of(plan, folder, course.start_ns, now_ns, resumed=True, promises=promises)


def _show(console: CommandConsole, verdict_shown: bool, view: RecordView, verdict: Verdict) -> None:  # noqa: FBT001
    """Print the files of the run, and the verdict last."""
    with suppress(FileNotFoundError):
        console.say(f"record  {view.path} ({show_bytes(view.path.stat().st_size)})")
    if verdict.checked is not None and verdict.checked.seal is not None:
        console.say(f"digest  {verdict.checked.seal.digest}")
    report = view.path.with_name(REPORT_FILES["html"])
    if report.is_file():
        console.say(f"report  {report}")
    if verdict_shown:
        from soakwatch.report.terminal import print_verdict  # heavy: no running collector needs it

        print_verdict(view, verdict, console, named=str(view.path.parent))


def _complain(text: str) -> None:
    click.echo(f"soakwatch: {text}", err=True)


def _tell_of_unwritten(places: Iterable[ReportPlace], reason: str) -> None:
    for place in places:
        _complain(f"{place.words} was not written: {reason}")


def _event_of(loss: Loss, now_ns: int) -> Event:
    """The event that records the loss of a terminal."""
    return Event(TERMINAL_LOST, "", loss.stream, now_ns, now_ns, {"reason": loss.reason})


def _check(soak: Soak) -> None:
    """Raise RecordError if the record could not be written to the end."""
    if soak.trouble is not None:
        raise RecordError(soak.trouble)


def _what_is_kept(record: Record) -> str:
    """What remains of a run that could not be ended properly."""
    if gone := record.displaced():
        before = record.path
        if failure := record.rescue():
            return f"{before}: {gone}, and no copy of it could be written ({failure}): this run is lost"
        return f"{before}: {gone}; all of it is saved: soakwatch resume {record.path.parent}"
    return f"everything committed before is kept: soakwatch judge {record.path.parent}"


async def _watch(
    soak: Soak,
    clock: Clock,
    console: CommandConsole,
    sinks: SinkProcesses,
    terminal: Terminal,
    leave: Callable[[], None],
) -> int:
    loop = asyncio.get_running_loop()
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        soak.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    with native_stderr_logged(terminal), shown(console) as display:
        drawing = asyncio.create_task(_draw(soak, display, sinks, clock, terminal))
        leaving = asyncio.create_task(_leave_what_is_not_ours(soak, leave))
        warning = asyncio.create_task(_warn_of_what_is_missing(soak, clock, console))
        try:
            return await soak.watch()
        finally:
            for task in (drawing, leaving, warning):
                task.cancel()


async def _warn_of_what_is_missing(soak: Soak, clock: Clock, console: CommandConsole) -> None:
    """Once each source was polled, report and record what the plan names and does not exist; then say what a run of
    this length can show."""
    if soak.context.resumed:
        return
    await asyncio.sleep(max(0.0, (soak.context.start_ns - clock.now_ns()) * 1e-9))
    for _ in range(_FIRST_LOOKS):
        await asyncio.sleep(1.0)
        if all(source.due for source in soak.status().sources):
            break
    await asyncio.sleep(1.0)  # the record has them a second later
    sentences: tuple[str, ...] = ()
    with suppress(RecordError):
        sentences = await asyncio.to_thread(start_warnings, soak.context.plan, soak.context.folder)
    for sentence in sentences:
        console.say(f"warning: {sentence}")
        now_ns = clock.now_ns()
        with suppress(RecordError):
            await soak.note(Event(START_WARNING, "", "", now_ns, now_ns, {"text": sentence}))
    await asyncio.sleep(_SECOND_POLLS_S)
    with suppress(RecordError):
        if proves := await asyncio.to_thread(provable_so_far, soak.context.plan, soak.context.folder):
            console.say(proves)


async def _leave_what_is_not_ours(soak: Soak, leave: Callable[[], None]) -> None:
    """If another record has taken the run's folder, end page and sinks, which would show that one."""
    await soak.wait_relocated()
    await asyncio.to_thread(leave)


async def _draw(soak: Soak, display: Lines | Panel, sinks: SinkProcesses, clock: Clock, terminal: Terminal) -> None:
    monitor = SelfStatus(soak.context.folder)
    figures = DeviceFigures(soak.context.folder, clock.now_ns)
    while not terminal.gone:
        status = soak.status()
        if display.in_full(status):
            position, coming = course_words(soak.stretches, soak.context.plan, clock.now_ns())
            status = replace(
                status,
                behind=sinks.words(),
                phase_position="" if status.phase == "waiting" else position,
                coming=coming,
                own=monitor.words(status),
                figures=await asyncio.to_thread(figures.lines),
            )
        display.show(status)
        rest_s = display.rest_s(status)
        await asyncio.sleep(rest_s)
        monitor.record_lateness(rest_s)
        for loss in terminal.losses():
            await soak.note(_event_of(loss, clock.now_ns()))
