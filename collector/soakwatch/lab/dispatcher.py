"""Starts the runs of the queue, each in processes of their own, and sees how they end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from soakwatch.campaign.folder import CAMPAIGNS
from soakwatch.campaign.ledger import LEDGER
from soakwatch.campaign.locks import held, testbed_file
from soakwatch.core.errors import RecordError, SoakwatchError
from soakwatch.core.event_kinds import RUN_ACTION
from soakwatch.core.private_files import make_private_folder, write_private
from soakwatch.core.supervised_child import python_module
from soakwatch.lab.job_files import (
    ALIVE,
    BEGUN,
    KILL,
    RESULT,
    STOP,
    holder,
    is_alive,
    job_folder,
    log_tail,
    read_result,
    take_lock,
)
from soakwatch.lab.lab import KEPT_JOBS, Lab
from soakwatch.lab.lab_model import SERVER, VERDICTS, AuditEntry, Job, JobState, Testbed
from soakwatch.lab.plans_folder import CAMPAIGN, Planned, begun_plan
from soakwatch.record import RecordView
from soakwatch.runs.catalog import RECORD, new_folder
from soakwatch.runs.mark_event import EventRequest, moment_text, record_event
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.stop_run import stop_run

MOST_RESUMED = 3
"""How often a job that was cut off goes on by itself: what kills it each time would do so for ever."""
AT_ONCE = 4
"""Runs on different testbeds that may go on at once: each costs the monitor's machine CPU."""
_TICK_S = 0.5
_STOP_GRACE_NS = 30 * 10**9  # after which a run that does not see the request is interrupted
_LAST_WORDS = 600
_FORGET_EVERY_S = 3600.0
_ASKED = "asked"  # the file of a job that says that the record of its run has the request to stop


class Dispatcher:
    """Works on a lab's queue in a thread until closed. ``hidden`` are variables that runs do not get; ``command`` makes
    the command of a job.

    ``waits`` says, for a job that could begin but for something outside of the queue, what that is; ``trouble`` why the
    queue is not worked on, "" if it is.
    """

    def __init__(
        self,
        lab: Lab,
        at_once: int = AT_ONCE,
        hidden: Collection[str] = (),
        command: Callable[[Job, Planned, Path, Path], tuple[str, ...]] | None = None,
    ) -> None:
        self._lab, self.at_once, self._hidden = lab, at_once, frozenset(hidden)
        self._command = command or command_of
        self.waits: Mapping[int, str] = {}
        self.trouble = ""
        self._changed, self._over = threading.Event(), threading.Event()
        self._children: list[subprocess.Popen[bytes]] = []
        self._forgot_s = float("-inf")
        self._told: set[str] = set()
        self._seen = -1
        lab.wake = self._changed.set

    @contextmanager
    def working(self) -> Iterator[None]:
        """Work within the block; what runs at its end goes on."""
        thread = threading.Thread(target=self._work, name="lab", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._changed.set()
            thread.join(30.0)
            for child in self._children:
                child.returncode = child.poll() or 0  # it goes on, of which Popen would warn

    def _work(self) -> None:
        while not self._over.is_set():
            try:
                self.step()
                self.trouble = ""
            except Exception as error:  # noqa: BLE001 - what is wrong with one job must not end the work on all others
                self._complain(error)
            self._changed.wait(_TICK_S)
            self._changed.clear()

    def _complain(self, error: Exception) -> None:
        """Say an error once: a full disk is met twice a second."""
        text = str(error) if isinstance(error, SoakwatchError) else type(error).__name__
        if isinstance(error, OSError):
            text = f"{error.filename or 'the runs folder'}: {error.strerror}"
        self.trouble = text
        if text not in self._told:
            self._told.add(text)
            sys.stderr.write(f"soakwatch: warning: the queue is not worked on: {text}\n")

    def step(self) -> None:
        """Do what there is to do now: end, stop, schedule, start, tell."""
        self._children = [child for child in self._children if child.poll() is None]
        for job in self._lab.store.jobs(JobState.RUNNING):
            self._look_after(job)
        if self._lab.runs_plans:
            self._lab.queue_what_is_due()
            self._start_what_can()
        self._tell_records()
        if time.monotonic() > self._forgot_s + _FORGET_EVERY_S:
            self._forgot_s = time.monotonic()
            for number in self._lab.store.forget_jobs(KEPT_JOBS):
                rmtree(job_folder(self._lab.runs, number), ignore_errors=True)

    # --- jobs that go on ---

    def _look_after(self, job: Job) -> None:
        folder = job_folder(self._lab.runs, job.id)
        if is_alive(folder):
            if job.stop_ns is not None:
                self._ask_to_stop(job, folder)
            return
        if read_result(folder) is None and not (folder / BEGUN).exists():
            # The server was killed before the process began: the job has its place in the queue still.
            self._drop_empty(job)
            with self._lab.store.change():
                self._lab.store.put_job(replace(job, state=JobState.QUEUED, begin_ns=None, folder=""))
            return
        ended = _ended(job, folder, self._lab)
        if ended.state is JobState.BROKEN:
            left = self._why_left(ended, folder)
            if not left:
                times = f"{job.resumed + 1} of {MOST_RESUMED} times"
                self._lab.go_on(replace(job, folder=ended.folder), f"{ended.reason}; it goes on by itself, {times}")
                return
            ended = replace(ended, reason=f"{ended.reason}{left}")
        with self._lab.store.change():
            self._lab.store.put_job(ended)
            words = ended.verdict or str(ended.state)
            self._lab.store.add_audit(
                AuditEntry(self._lab.now_ns(), SERVER, "end", ended.order.plan, ended.id, ended.schedule, ended.folder,
                     f"{words}: {ended.reason}" if ended.reason else words, told=True)
            )  # fmt: skip

    def _why_left(self, broken: Job, folder: Path) -> str:
        """Why a job that was broken off is left, and what goes on with it; "" if it goes on by itself, as a unit with
        ``run --resume-unfinished`` does."""
        what_now = f": {_what_now(broken, self._lab.runs)}"
        result = read_result(folder)
        if broken.kill or (result is not None and result.exit_code >= 0 and not broken.folder):
            return what_now
        if broken.stop_ns is not None:
            return f"; {broken.stopped_by} wanted it to end{what_now}"
        if not self._lab.runs_plans:
            return f"; this server runs no plans{what_now}"
        if broken.resumed >= MOST_RESUMED:
            return f"; it went on {MOST_RESUMED} times by itself{what_now}"
        if broken.kind == CAMPAIGN or not broken.folder:
            return ""
        from soakwatch.engine.start import check_resumable  # heavy: most jobs end

        try:
            check_resumable(self._lab.runs / broken.folder)
        except SoakwatchError as error:
            return f"; {error}"
        return ""

    def _ask_to_stop(self, job: Job, folder: Path) -> None:
        """Ask a run by an event of its record, which says who and why; else, and a campaign, as by Ctrl-C."""
        if job.kill and not (folder / KILL).exists():
            write_private(folder / KILL, job.stopped_by)
        if (folder / STOP).exists():
            return
        assert job.stop_ns is not None
        if job.kind == CAMPAIGN or self._lab.now_ns() - job.stop_ns > _STOP_GRACE_NS:
            write_private(folder / STOP, job.stopped_by)
            return
        run = self._lab.runs / job.folder
        if not (run / RECORD).is_file() or (folder / _ASKED).exists():
            return
        with suppress(SoakwatchError, OSError):
            stop_run(run, StateReader(run).read(time.time_ns()), job.stop_reason, job.stopped_by)
            write_private(folder / _ASKED, job.stopped_by)

    # --- jobs that wait ---

    def _start_what_can(self) -> None:
        store = self._lab.store
        if store.version == self._seen and not self.waits:
            return  # nothing has changed since it was found that nothing can start
        self._seen = store.version
        running = store.jobs(JobState.RUNNING)
        taken: set[Testbed] = {job.testbed for job in running}
        waits: dict[int, str] = {}
        free = self.at_once - len(running)
        for job in store.jobs(JobState.QUEUED):
            # One that waits keeps its place before later ones for the same testbed.
            blocked = any(job.testbed.conflicts(bed) for bed in taken)
            taken.add(job.testbed)
            if blocked or free <= 0:
                continue
            if words := _held_elsewhere(job):
                waits[job.id] = words
                continue
            if self._start(job):
                free -= 1
            else:
                self._seen = -1  # it is tried again: its testbed's lock may have been looked at just then
        self.waits = waits

    def _start(self, job: Job) -> bool:
        """Start a job, or end it as refused; False if its testbed turned out to be another, so that it waits."""
        lab = self._lab
        try:
            planned = begun_plan(job, lab.plans.path) if job.resumes else lab.plans.read(job.order)
        except SoakwatchError as error:
            self._refuse(job, str(error))
            return False
        if planned.digest != job.digest:
            job = replace(job, note="the plan was changed while it waited", digest=planned.digest,
                          testbed=planned.testbed, planned_s=planned.planned_s)  # fmt: skip
            lab.store.put_job(job)
            if any(job.testbed.conflicts(other.testbed) for other in lab.store.jobs(JobState.RUNNING)):
                return False
        folder = job_folder(lab.runs, job.id)
        if job.resumed and folder.is_dir():  # what it printed before stays
            for left in (RESULT, BEGUN, STOP, KILL, _ASKED):
                (folder / left).unlink(missing_ok=True)
        else:
            rmtree(folder, ignore_errors=True)
        make_private_folder(folder)
        if (alive := take_lock(folder / ALIVE)) is None:
            return False
        locks = [alive]
        try:
            if job.kind != CAMPAIGN:  # a campaign takes the locks of its testbeds itself
                for name in job.testbed.names:
                    if (lock := take_lock(testbed_file(name))) is None:
                        return False
                    os.ftruncate(lock, 0)
                    os.pwrite(lock, f"job {job.id} of the lab server, {job.order.plan}\n".encode(), 0)
                    locks.append(lock)
            return self._spawn(job, planned, folder, locks)
        finally:
            for lock in locks:
                os.close(lock)

    def _spawn(self, job: Job, planned: Planned, folder: Path, locks: list[int]) -> bool:
        lab = self._lab
        now_ns = lab.now_ns()
        parent = lab.runs / CAMPAIGNS.name if job.kind == CAMPAIGN else lab.runs
        place = lab.runs / job.resumes if job.resumes else new_folder(parent, planned.name, now_ns)
        begun = replace(
            job, state=JobState.RUNNING, begin_ns=job.begin_ns or now_ns, folder=place.relative_to(lab.runs).as_posix()
        )
        with lab.store.change():
            lab.store.put_job(begun)
            if job.kind != CAMPAIGN:
                lab.store.name_run(job.id, begun.folder)
            words = f"on {job.testbed.words}" + (f"; {job.note}" if job.note else "")
            lab.store.add_audit(
                AuditEntry(now_ns, SERVER, "start", job.order.plan, job.id, job.schedule, begun.folder, words,
                     told=job.kind == CAMPAIGN)
            )  # fmt: skip
        command = python_module(
            "soakwatch.lab.job_process",
            str(folder),
            ",".join(map(str, locks)),
            "--",
            *self._command(job, planned, place, lab.runs),
        )
        environment = {name: text for name, text in os.environ.items() if name not in self._hidden}
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
                pass_fds=locks,
            )
        except OSError as error:
            self._refuse(begun, f"its process cannot be started: {error.strerror}")
            return False
        self._children.append(child)
        return True

    def _refuse(self, job: Job, reason: str) -> None:
        self._drop_empty(job)
        with self._lab.store.change():
            self._lab.store.put_job(
                replace(job, state=JobState.REFUSED, end_ns=self._lab.now_ns(), reason=reason, folder="")
            )
            self._lab.store.add_audit(
                AuditEntry(
                    self._lab.now_ns(), SERVER, "refused", job.order.plan, job.id, job.schedule, "", reason, told=True
                )
            )

    def _drop_empty(self, job: Job) -> None:
        if job.folder and not job.resumes:
            with suppress(OSError):
                (self._lab.runs / job.folder).rmdir()

    # --- the records of runs ---

    def _tell_records(self) -> None:
        """Put the audit into the records of the runs, as events; a run that is not there or over has none."""
        for entry in self._lab.store.untold():
            run = self._lab.runs / entry.run
            if not (run / RECORD).is_file():
                job = None if entry.job is None else self._lab.store.job(entry.job)
                if job is None or job.over:
                    self._lab.store.tell(entry)
                continue
            labels = {
                "user": entry.user.name,
                "role": entry.user.role,
                "action": entry.action,
                "plan": entry.plan,
                "job": "" if entry.job is None else str(entry.job),
                "time": moment_text(entry.time_ns),
                "words": " ".join(entry.words.split())[:500],
            }
            ask = EventRequest(
                "mark",
                RUN_ACTION,
                object=f"{entry.action} by {entry.user.name}",
                labels={name: text for name, text in labels.items() if text},
            )
            with suppress(SoakwatchError):  # it has ended, or its record is full
                record_event(run, ask, time.time_ns(), own=True)
            self._lab.store.tell(entry)


def command_of(job: Job, planned: Planned, place: Path, runs: Path) -> tuple[str, ...]:
    """The command of a job, whose run or campaign is to be in ``place``, or is there and was broken off."""
    if job.resumes:
        words = ("campaign", "resume", str(place)) if job.kind == CAMPAIGN else ("resume", str(place), "--no-web")
        return python_module("soakwatch.cli", *words)
    if job.kind == CAMPAIGN:
        return python_module("soakwatch.cli", "campaign", "run", str(planned.file), "--folder", str(place))
    labels = [word for name, text in job.order.labels.items() for word in ("--label", f"{name}={text}")]
    values = [f"--set={value}" for value in job.order.values]
    return python_module(
        "soakwatch.cli", "run", str(planned.file), "--runs", str(runs), "--into", str(place), "--no-web",
        *labels, *values,
    )  # fmt: skip


def _held_elsewhere(job: Job) -> str:
    """Who outside of the queue holds a testbed of a job, such as a campaign that was started by hand; "" if nobody."""
    for name in job.testbed.names:
        file = testbed_file(name)
        if held(file):
            return f"{name} is held by {holder(file) or 'another program'}"
    return ""


def _ended(job: Job, folder: Path, lab: Lab) -> Job:
    """What became of a job whose processes are gone."""
    result = read_result(folder)
    code = None if result is None else result.exit_code
    verdict, reason = (None, "") if job.kind == CAMPAIGN else _recorded(lab.runs / job.folder)
    if result is not None:
        verdict = VERDICTS.get(result.exit_code)
    end_ns = lab.now_ns() if result is None else result.end_ns
    if verdict is not None:
        return replace(job, state=JobState.ENDED, end_ns=end_ns, verdict=verdict, reason=reason)
    last = _last_words(folder)
    place = lab.runs / job.folder
    if code == 2:
        from soakwatch.engine.start import discard  # heavy: most jobs begin

        kept = job.folder if place.exists() and (job.resumes or not discard(place)) else ""
        return replace(job, state=JobState.REFUSED, end_ns=end_ns, reason=last, folder=kept)
    how = "its processes were killed" if code is None else f"its command ended with code {code}"
    if code is not None and code < 0:
        how = f"its command was killed by signal {-code}"
    if job.kill:
        how = f"killed by {job.stopped_by}"
    said = f" ({last})" if last and code is not None else ""
    if not (place / (LEDGER if job.kind == CAMPAIGN else RECORD)).is_file():
        with suppress(OSError):
            place.rmdir()
        return replace(
            job, state=JobState.BROKEN, end_ns=end_ns, folder="", reason=f"{how} before its first poll{said}"
        )
    return replace(job, state=JobState.BROKEN, end_ns=end_ns, reason=f"{how}{said}")


def _what_now(broken: Job, runs: Path) -> str:
    """What goes on with a job that was broken off."""
    if not broken.folder:
        return "submit it again"
    resume = "campaign resume" if broken.kind == CAMPAIGN else "resume"
    return f"soakwatch {resume} {runs / broken.folder} goes on with it"


def _recorded(run: Path) -> tuple[str | None, str]:
    """Verdict and reason in a record."""
    try:
        with RecordView.open(run) as view:
            return view.meta("verdict"), view.meta("reason") or ""
    except (RecordError, OSError):
        return None, ""


def _last_words(folder: Path) -> str:
    """The last lines that a command printed, in one."""
    lines = [line.strip() for line in log_tail(folder, 4000).splitlines() if line.strip()]
    return " ".join(lines[-2:])[-_LAST_WORDS:]
