"""The end of a run: judges it, writes its reports and sends its notifications, each once.

If the monitor dies in between, the next one completes it: see ``promises``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.engine.baseline_freeze import freeze
from soakwatch.engine.hooks.hooks import Hooks
from soakwatch.engine.notify.notifying import FINISH_S, Notifying
from soakwatch.engine.promises import END, REPORT, SINKS, Promises
from soakwatch.judge.record_verdict import ALARMS, judge_record, keep
from soakwatch.judge.verdict import Verdict
from soakwatch.record import Record, RecordView
from soakwatch.record.model import MONITOR_ORIGIN
from soakwatch.record.seal import Checked
from soakwatch.report.files import REPORT_FILES, ReportPlace, write_places, write_reports
from soakwatch.report.rendering import Rendering
from soakwatch.runs.sealing import Sealing, seal
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_model.finding import Finding, Outcome


@dataclass(frozen=True, slots=True)
class Ending:
    """What ends a run. ``say`` prints a line, ``complain`` one about a failure, ``show`` the verdict; ``run`` runs the
    hooks' coroutine, ``time_ns`` is the wall clock for the seal, ``write`` writes the report files. ``places`` are
    where reports are wanted besides, and ``print_report`` prints one that is to go to standard output."""

    record: Record
    promises: Promises
    hooks: Hooks
    notifying: Notifying
    sinks: SinkProcesses
    say: Callable[[str], None]
    complain: Callable[[str], None]
    show: Callable[[RecordView, Verdict], None]
    sealing: Sealing = field(default_factory=Sealing)
    run: Callable[[Coroutine[object, object, None]], None] = asyncio.run
    time_ns: Callable[[], int] = time.time_ns
    write: Callable[[Rendering, Path], tuple[str, ...]] = write_reports
    places: tuple[ReportPlace, ...] = ()
    print_report: Callable[[str], None] = print

    @property
    def folder(self) -> Path:
        """Folder of the record."""
        return self.record.path.parent

    def make(self, end_ns: int) -> Verdict:
        """Judges the run, which ended at ``end_ns`` (UTC), and does what was promised. Raises RecordError."""
        if self.record.displaced() and (failure := self.record.rescue()):
            raise RecordError(f"the record was taken away, and no copy of it could be written: {failure}")
        self.record.compact(final=True)
        self.record.set_meta("ended_ns", str(end_ns))
        freeze(self.record, self.folder)
        try:
            verdict = judged(self.folder, self.record, end_ns)
            # Before the record is closed, so that the reports show what the hooks did.
            with suppress(KeyboardInterrupt):  # a user who does not wait for the hooks still wants the report
                self.run(self.hooks.conclude(verdict))
        finally:
            self.record.finish()
        verdict = replace(verdict, checked=self._sealed())
        with RecordView.open(self.folder) as view:
            rendering = Rendering(view, verdict)
            failures = self.write(rendering, self.folder)
            unwritten = write_places(rendering, self.places, self.print_report, self.folder)
        # After the view is closed: without a write-ahead log a reader blocks every commit.
        if not failures:
            self.promises.done(REPORT)
        self.notifying.conclude(verdict, *(self.folder / REPORT_FILES[kind] for kind in ("html", "md")))
        for failure in failures:
            self.complain(f"{failure}: put that right, then write it with soakwatch resume {self.folder}")
        for place, failure in unwritten.items():
            self.complain(f"{failure}: put that right, then write it with {_remedy(self.folder, place)}")
        if self.sinks.finish():
            self.promises.done(SINKS)
        self.finish_notifying()
        for doubt in self.promises.doubts:
            self.complain(doubt)
        if self.promises.is_done(REPORT) and self.promises.is_done(SINKS):
            self.promises.done(END)
        with RecordView.open(self.folder) as view:
            self.show(view, verdict)  # last, so that the verdict is at the bottom of the terminal
        return verdict

    def _sealed(self) -> Checked:
        """Seals the record and signs it if asked to; if it cannot be signed, it is sealed all the same."""
        checked, doubt = seal(self.record, self.sealing, self.time_ns())
        if doubt:
            self.complain(f"{doubt}: do that with soakwatch seal {self.folder}")
        return checked

    def finish_notifying(self) -> None:
        """Waits for notifications and records their outcome; a second Ctrl-C stops waiting."""
        if self.notifying.busy:
            self.say(f"waiting for notifications, {FINISH_S:g} s at most")
        with suppress(KeyboardInterrupt):
            self.notifying.finish()
        self.notifying.close()
        with suppress(RecordError):  # the messages are sent even if that cannot be recorded
            for event in self.notifying.account():
                self.record.add_event(event.target, event, MONITOR_ORIGIN)
        self.notifying.settled()


def _remedy(folder: Path, place: ReportPlace) -> str:
    return f"soakwatch report {folder} {place.words}"


def judged(folder: Path, record: Record, end_ns: int) -> Verdict:
    """Judges a run that has ended; stores findings and verdict in its record. Raises RecordError."""
    with RecordView.open(folder) as view:
        verdict, live = judge_record(view, ended=True), view.findings(live=True)
    record.put_findings(_without_withdrawn(live, verdict.findings), live=True, judged_ns=end_ns)
    keep(record, verdict, end_ns)
    return verdict


def why_unpolled(folder: Path, start_ns: int, end_ns: int) -> str:
    """Why a run from ``start_ns`` to ``end_ns`` (UTC) has no poll; "" if it has one. Raises RecordError."""
    if end_ns <= start_ns:
        return "stopped before its start: nothing was polled"
    with RecordView.open(folder) as view:
        return "" if view.last_due_ns() else "over before its first poll: nothing was polled"


def end_unpolled(record: Record, promises: Promises, end_ns: int, reason: str) -> None:
    """Ends a run without a poll: there is nothing to judge or report. Raises RecordError."""
    for key, text in {"ended_ns": str(end_ns), "verdict": Outcome.INCONCLUSIVE.value, "reason": reason}.items():
        record.set_meta(key, text)
    promises.done(END)
    record.finish()


def _without_withdrawn(live: Iterable[Finding], verdict: Iterable[Finding]) -> list[Finding]:
    """The live findings without alarms that the verdict does not share: those are withdrawn."""
    alarms = {f.name for f in verdict if f.outcome in ALARMS}
    return [f for f in live if f.outcome not in ALARMS or f.name in alarms]
