"""The queue of a lab: what users and schedules put into it, what becomes of it, and who did what.

Everything is kept before it is answered, with the entry of the audit, so that a server that is killed has forgotten
nothing. What runs is in processes of their own (``job_process``), which the next server finds going on, or ended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from soakwatch.core import cron
from soakwatch.core.errors import SoakwatchError
from soakwatch.core.labels import bounded, label_name, label_text
from soakwatch.core.private_files import make_private_folder
from soakwatch.core.units import show_seconds
from soakwatch.lab._store import Store
from soakwatch.lab.job_files import QUEUE, SERVER_LOCK, lab_folder, take_lock
from soakwatch.lab.lab_model import (
    SERVER,
    AuditEntry,
    ConflictError,
    Job,
    JobState,
    LabError,
    Order,
    Schedule,
    UnknownError,
    User,
)
from soakwatch.lab.plans_folder import CAMPAIGN, Planned, PlansFolder, begun_plan, require_open
from soakwatch.runs.mark_event import moment_text

MAX_QUEUED, MAX_SCHEDULES = 500, 200
GRACE_S = 600.0
"""A time that passed while no server ran is made up for if it is not longer ago than this."""
KILL_AFTER_S = 60.0
"""A job that runs so long after it was asked to stop may be killed."""
KEPT_JOBS = 1000
MAX_VALUES, MAX_VALUE = 50, 500
_MISSED_SHOWN = 5
_MAX_REASON = 500
_SLACK_NS = 60 * 10**9


class Lab:
    """The queue of a folder of runs. For several threads. One server at a time may have it.

    Without ``plans`` nothing is queued or started; what users do is kept. ``now_ns`` is the wall clock. Raises LabError
    if another server has the folder, or the file cannot be used.
    """

    def __init__(self, runs: Path, plans: PlansFolder | None, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.runs, self._plans, self.now_ns = runs.absolute(), plans, now_ns
        folder = lab_folder(self.runs)
        try:
            make_private_folder(folder)
            self._lock = take_lock(folder / SERVER_LOCK)
        except OSError as error:
            raise LabError(
                f"{folder} cannot be written ({error.strerror}): name a folder of runs of your own"
            ) from None
        if self._lock is None:
            raise LabError(f"another server has the queue of {runs}: stop it, or name another folder of runs")
        self.store = Store(folder / QUEUE)
        self.wake: Callable[[], None] = lambda: None
        """Called after a change that may start or end a run."""

    @property
    def plans(self) -> PlansFolder:
        """The folder of plans. Raises UnknownError if this server has none."""
        if self._plans is None:
            raise UnknownError("this server runs no plans: start it with soakwatch serve --plans DIR")
        return self._plans

    @property
    def runs_plans(self) -> bool:
        """Whether it has a folder of plans."""
        return self._plans is not None

    # --- what users ask ---

    def submit(self, order: Order, user: User, *, any_value: bool = False) -> Job:
        """Queue a plan. Raises LabError, PlanError, NotAllowedError (``any_value``: the user may set all of a plan)."""
        planned = self._checked(order, any_value=any_value)
        with self.store.change():
            job = self._add(order, planned, user)
            assert job is not None, "it has no schedule"
            self._note(user, "submit", job, _what(order))
        self.wake()
        return job

    def schedule(
        self, order: Order, user: User, *, cron_text: str = "", zone: str = "", at_ns: int | None = None,
        any_value: bool = False,
    ) -> Schedule:  # fmt: skip
        """Queue a plan at a time, or again and again. Raises as ``submit``, and LabError for a time that has passed."""
        self._checked(order, any_value=any_value)
        zone = zone or cron.local_zone()
        now_ns = self.now_ns()
        if at_ns is not None:
            if at_ns < now_ns - _SLACK_NS:
                raise LabError(
                    f"{moment_text(at_ns)[:19]}Z has passed {show_seconds((now_ns - at_ns) * 1e-9)} ago: name a time to"
                    " come, or submit the plan without a time"
                )
            next_ns: int | None = at_ns
        else:
            try:
                cron.check_cron(cron_text, zone)
            except cron.CronError as error:
                raise LabError(str(error)) from None
            next_ns = cron.next_time(cron_text, zone, now_ns)
        if len(self.store.schedules()) >= MAX_SCHEDULES:
            raise ConflictError(f"there are {MAX_SCHEDULES} schedules, which is the most: remove one first")
        with self.store.change():
            made = self.store.add_schedule(
                Schedule(0, order, user, now_ns, cron_text.strip(), zone, at_ns, next_ns, enabled=True)
            )
            when = cron_text.strip() or f"at {moment_text(made.at_ns or 0)[:19]}Z"
            self._note_schedule(user, "schedule", made, " ".join(part for part in (when, _what(order)) if part))
        self.wake()
        return made

    def cancel(self, number: int, user: User, reason: str = "") -> Job:
        """Take a job out of the queue; of one that runs ask for the end, so that it is judged. One that was asked
        ``KILL_AFTER_S`` ago and still runs is killed. Raises LabError."""
        if len(reason) > _MAX_REASON:
            raise LabError(f"the reason has {len(reason)} characters: {_MAX_REASON} at most")
        now_ns = self.now_ns()
        with self.store.change():
            job = self.job(number)
            if job.over:
                raise ConflictError(f"job {number} is over already ({job.state}): there is nothing to cancel")
            if job.state is JobState.QUEUED:
                words = f"cancelled by {user.name}" + (f": {reason}" if reason else "")
                job = replace(job, state=JobState.CANCELLED, end_ns=now_ns, stop_ns=now_ns, reason=words)
            elif job.stop_ns is not None:
                if job.kill or now_ns - job.stop_ns < KILL_AFTER_S * 1e9:
                    raise ConflictError(
                        f"job {number} was asked to stop already: it is judged after its last polls; if it hangs, ask"
                        f" again {show_seconds(KILL_AFTER_S)} after that, and it is killed"
                    )
                job = replace(job, kill=True, stopped_by=f"{user.name} ({user.role})", stop_reason=reason)
            else:
                job = replace(job, stop_ns=now_ns, stopped_by=f"{user.name} ({user.role})", stop_reason=reason)
            self.store.put_job(job)
            self._note(user, "cancel" if job.over else "kill" if job.kill else "stop", job, reason)
        self.wake()
        return job

    def resume(self, number: int, user: User) -> Job:
        """Queue a job that goes on with one that was broken off, in the same folder. Raises LabError."""
        broken = self.job(number)
        if broken.state is not JobState.BROKEN or not broken.folder:
            raise ConflictError(f"job {number} was not broken off ({broken.state}): submit its plan again")
        planned = begun_plan(broken, self.plans.path)
        with self.store.change():
            for other in (*self.store.jobs(JobState.QUEUED), *self.store.jobs(JobState.RUNNING)):
                if other.resumes == broken.folder:
                    raise ConflictError(f"job {other.id} goes on with job {number} already")
            job = self._add(broken.order, planned, user, resumes=broken.folder)
            assert job is not None, "it has no time of a schedule"
            self._note(user, "resume", job, f"of job {number}")
        self.wake()
        return job

    def go_on(self, job: Job, words: str) -> None:
        """Put a job whose processes were killed back into the queue, before all that wait: it goes on in its folder, or
        begins if that has nothing."""
        again = replace(
            job,
            state=JobState.QUEUED,
            begin_ns=job.begin_ns if job.folder else None,  # its run began then
            end_ns=None,
            folder="",
            resumes=job.folder,
            resumed=job.resumed + 1,
            rank=min((other.rank for other in self.store.jobs(JobState.QUEUED)), default=job.rank + 1) - 1,
            note=words,
        )
        with self.store.change():
            self.store.put_job(again)
            self._note(SERVER, "resume" if job.folder else "requeue", again, words)

    def move(self, number: int, to: str, user: User) -> Job:
        """Move a job that waits: ``up`` or ``down`` by one, or to the ``top``. Raises LabError."""
        with self.store.change():
            waiting = self.store.jobs(JobState.QUEUED)
            place = next((place for place, job in enumerate(waiting) if job.id == number), None)
            if place is None:
                raise ConflictError(f"job {number} does not wait ({self.job(number).state}): only those that wait move")
            wanted = {"up": place - 1, "down": place + 1, "top": 0}.get(to)
            if wanted is None:
                raise LabError(f"{to[:20]!r} is no way to move a job: write up, down or top")
            wanted = min(max(wanted, 0), len(waiting) - 1)
            ranks = [job.rank for job in waiting]
            moved = waiting.pop(place)
            waiting.insert(wanted, moved)
            for job, rank in zip(waiting, ranks, strict=True):
                if job.rank != rank:
                    self.store.put_job(replace(job, rank=rank))
            self._note(user, "move", moved, f"{to}, to place {wanted + 1} of {len(waiting)}")
        self.wake()
        return self.job(number)

    def enable(self, number: int, user: User, *, on: bool) -> Schedule:
        """Enable or disable a schedule; what comes while it is disabled is left out. Raises LabError."""
        now_ns = self.now_ns()
        with self.store.change():
            made = self.one_schedule(number)
            if on and made.at_ns is not None and made.at_ns < now_ns:
                raise ConflictError(f"the time of schedule s{number} has passed: submit the plan, or schedule it anew")
            if made.enabled == on:
                return made
            next_ns = None if not on else made.at_ns or cron.next_time(made.cron, made.zone, now_ns)
            made = replace(made, enabled=on, next_ns=next_ns)
            self.store.put_schedule(made)
            self._note_schedule(user, "enable" if on else "disable", made)
        self.wake()
        return made

    def remove(self, number: int, user: User) -> Schedule:
        """Remove a schedule; jobs that it has queued stay. Raises LabError."""
        with self.store.change():
            made = self.one_schedule(number)
            self.store.remove_schedule(number)
            self._note_schedule(user, "remove", made)
        return made

    def start_now(self, number: int, user: User) -> Job:
        """Queue the plan of a schedule at once, besides its times. Raises LabError, PlanError."""
        made = self.one_schedule(number)
        planned = self.plans.read(made.order)
        with self.store.change():
            job = self._add(made.order, planned, user)
            assert job is not None, "it has no time of the schedule"
            self._note(user, "submit", job, f"of schedule s{number}")
        self.wake()
        return job

    def record(self, user: User, action: str, run: str, words: str = "") -> None:
        """Keep what a user did to a run."""
        job = next((job for job in self.store.jobs(JobState.RUNNING) if job.folder == run), None)
        plan = "" if job is None else job.order.plan
        number = None if job is None else job.id
        self.store.add_audit(AuditEntry(self.now_ns(), user, action, plan, number, None, run, words))

    # --- what is there ---

    def job(self, number: int) -> Job:
        """The job of a number. Raises UnknownError."""
        job = self.store.job(number)
        if job is None:
            raise UnknownError(f"there is no job {number}: soakwatch queue list shows them")
        return job

    def one_schedule(self, number: int) -> Schedule:
        """The schedule of a number. Raises UnknownError."""
        made = next((made for made in self.store.schedules() if made.id == number), None)
        if made is None:
            raise UnknownError(f"there is no schedule s{number}: soakwatch queue list shows them")
        return made

    def close(self) -> None:
        """Give the folder back; what runs goes on."""
        self.store.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # --- schedules whose time has come ---

    def queue_what_is_due(self) -> None:
        """Queue the plans whose time has come. Of times that passed while no server ran, the last is made up for if it
        is not longer ago than ``GRACE_S``; the others are noted as missed."""
        now_ns = self.now_ns()
        for made in self.store.schedules():
            if made.enabled and made.next_ns is not None and made.next_ns <= now_ns:
                self._queue_due(made, now_ns)

    def _queue_due(self, made: Schedule, now_ns: int) -> None:
        times, next_ns = _due(made, now_ns)
        last_ns = times[-1]
        late = now_ns - last_ns > GRACE_S * 1e9
        missed = times if late else times[:-1]
        planned: Planned | None = None
        trouble = ""
        if not late:
            try:
                planned = self.plans.read(made.order)
            except SoakwatchError as error:
                trouble = str(error)
        with self.store.change():
            after = replace(
                made,
                next_ns=next_ns,
                enabled=made.at_ns is None,  # a time of its own comes once
                missed=(*made.missed, *missed)[-_MISSED_SHOWN:],
                missed_count=made.missed_count + len(missed),
                trouble=trouble,
            )
            if missed:
                words = f"{_times(missed)}: no server was running"
                self._note_schedule(SERVER, "missed", made, words)
            if planned is not None:
                job = self._add(made.order, planned, made.user, schedule=made.id, due_ns=last_ns)
                if job is not None:
                    after = replace(after, last_job=job.id)
                    behind_s = (now_ns - last_ns) * 1e-9
                    behind = f", {show_seconds(behind_s)} late" if behind_s > 60 else ""
                    self._note(SERVER, "due", job, f"of schedule s{made.id}, {moment_text(last_ns)[:16]}Z{behind}")
            elif trouble:
                self._note_schedule(SERVER, "refused", made, trouble)
            self.store.put_schedule(after)

    # --- parts ---

    def _checked(self, order: Order, *, any_value: bool) -> Planned:
        try:
            bounded({label_name(name): label_text(name, text) for name, text in order.labels.items()})
        except ValueError as error:
            raise LabError(str(error)) from None
        if len(order.values) > MAX_VALUES or any(len(value) > MAX_VALUE for value in order.values):
            raise LabError(f"too much is set: {MAX_VALUES} values of {MAX_VALUE} characters at most")
        if not any_value:
            require_open(order.values)
        return self.plans.read(order)

    def _add(
        self,
        order: Order,
        planned: Planned,
        user: User,
        *,
        schedule: int | None = None,
        due_ns: int | None = None,
        resumes: str = "",
    ) -> Job | None:
        if len(self.store.jobs(JobState.QUEUED)) >= MAX_QUEUED:
            raise ConflictError(f"{MAX_QUEUED} jobs wait, which is the most: cancel some first")
        return self.store.add_job(
            Job(
                0, order, planned.kind, planned.testbed, planned.digest, planned.planned_s, user, self.now_ns(),
                schedule=schedule, due_ns=due_ns, resumes=resumes,
            )
        )  # fmt: skip

    def _note(self, user: User, action: str, job: Job, words: str = "") -> None:
        run = "" if job.kind == CAMPAIGN else job.folder
        # A campaign has no record of its own.
        told = job.kind == CAMPAIGN or job.state is JobState.CANCELLED
        self.store.add_audit(
            AuditEntry(self.now_ns(), user, action, job.order.plan, job.id, job.schedule, run, words, told=told)
        )

    def _note_schedule(self, user: User, action: str, made: Schedule, words: str = "") -> None:
        self.store.add_audit(
            AuditEntry(self.now_ns(), user, action, made.order.plan, None, made.id, words=words, told=True)
        )


def _due(made: Schedule, now_ns: int) -> tuple[list[int], int | None]:
    """The times of a schedule that have come, at most a thousand, and the next one."""
    assert made.next_ns is not None
    times = [made.next_ns]
    if made.at_ns is not None:
        return times, None
    following = cron.next_time(made.cron, made.zone, made.next_ns)
    while following is not None and following <= now_ns and len(times) < 1000:
        times.append(following)
        following = cron.next_time(made.cron, made.zone, following)
    if following is not None and following <= now_ns:
        following = cron.next_time(made.cron, made.zone, now_ns)
    return times, following


def _times(times: list[int]) -> str:
    shown = ", ".join(f"{moment_text(time_ns)[:16]}Z" for time_ns in times[-_MISSED_SHOWN:])
    return shown if len(times) <= _MISSED_SHOWN else f"{len(times)} times, the last {shown}"


def _what(order: Order) -> str:
    labels: Mapping[str, str] = order.labels
    return ", ".join(
        [*(f"{name}={text}" for name, text in labels.items()), *(f"--set {value}" for value in order.values)]
    )
