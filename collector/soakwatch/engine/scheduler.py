"""Timers of a run: APScheduler on the steady clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from itertools import count
from typing import Self

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.date import DateTrigger

from soakwatch.core.clock import Clock, Grid, SteadyZone, datetime_at
from soakwatch.engine.polling import PolledSource

# APScheduler warns of every skipped run; the wrapper counts and records them once.
logging.getLogger("apscheduler").setLevel(logging.ERROR)

GRACE_S = 2.0  # how long running polls may go on when the run ends
_OVERSLEPT_NS = 5 * 10**9
_TURNS = 3  # of the event loop: the scheduler wakes, makes a task of the job, the task starts
Job = Callable[[], Awaitable[None]]


class Timers:
    """The timers of one run; an asynchronous context: they start on entry and are gone on exit.

    ``coalesce``: after a stall the newest due time runs, and the wrapper records the others. ``max_instances=1``: polls
    of a source never overlap. ``misfire_grace_time=None``: APScheduler drops no late run, since the wrapper must see it
    to record it.

    On exit a running poll is cancelled after ``GRACE_S``. Other jobs are waited for: a half-written batch would be
    written twice.

    What a job raises goes to the loop's exception handler, which logs it once per reason; all jobs go on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: set[asyncio.Task[object]] = set()
        self._beats: set[asyncio.Task[None]] = set()
        self._over = False
        self._numbers = count()
        self._abandonable: set[asyncio.Task[object]] = set()  # running tasks that may be cancelled
        self._zone = SteadyZone(clock)
        self._scheduler = AsyncIOScheduler(
            timezone=self._zone,
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        )

    async def __aenter__(self) -> Self:
        self._scheduler.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            # Start what is due at the very end: whether its timer or the run's end comes first is chance.
            self._scheduler.wakeup()
            for _turn in range(_TURNS):
                await asyncio.sleep(0)
        self._scheduler.remove_all_jobs()
        self._over = True
        for beat in self._beats - self._running:
            beat.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        for task in self._running & self._abandonable:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        self._scheduler.shutdown(wait=False)

    def poll(self, source: PolledSource) -> None:
        """Ticks the source on its grid."""
        when = source.spec.when
        self._add(source.tick, Grid(when.anchor_ns, when.interval_ns, self._zone), abandonable=True)

    def every(self, interval_s: float, job: Job, *, abandonable: bool = False) -> None:
        """Runs a job every ``interval_s``, first after one interval, never two at a time. If ``abandonable``, it
        changes nothing, so it may be cancelled at the end.

        Uses its own task: APScheduler costs ten times as much, and nobody records how late these jobs are.
        """
        run = self._guarded(job, abandonable=abandonable)
        beat = asyncio.get_running_loop().create_task(self._beat(round(interval_s * 1e9), run))
        self._beats.add(beat)
        beat.add_done_callback(self._beats.discard)

    def once(self, time_ns: int, job: Job) -> None:
        """Runs a job at ``time_ns``, or at once if that has passed."""
        self._add(job, DateTrigger(datetime_at(time_ns, self._zone), timezone=self._zone))

    def _add(self, job: Job, trigger: BaseTrigger, *, abandonable: bool = False) -> None:
        # Numbered: jobs due at the same time run in the order they were added; APScheduler's names are random.
        name = f"{next(self._numbers):09d}"
        self._scheduler.add_job(self._guarded(job, abandonable=abandonable), trigger, id=name)

    async def _beat(self, interval_ns: int, run: Job) -> None:
        due_ns = self._clock.now_ns() + interval_ns
        while not self._over:
            left_ns = due_ns - self._clock.now_ns()
            if left_ns > 0:
                await asyncio.sleep(left_ns * 1e-9)
                if self._clock.now_ns() - due_ns > _OVERSLEPT_NS and not self._over:
                    self._scheduler.wakeup()  # its timers do not count the time for which the machine was suspended
                continue  # sleep may return early
            await run()
            due_ns += interval_ns * max(1, -(-(self._clock.now_ns() - due_ns) // interval_ns))

    def _guarded(self, job: Job, *, abandonable: bool) -> Job:
        raised = ""

        async def run() -> None:
            nonlocal raised
            task = asyncio.current_task()
            assert task is not None
            self._running.add(task)
            if abandonable:
                self._abandonable.add(task)
            try:
                await job()
            except asyncio.CancelledError:
                # Only __aexit__ cancels: a poll that outlives the run is abandoned, and its due time stays open.
                return
            except Exception as error:  # noqa: BLE001 - a defect of ours; a beat that ended would commit nothing more
                if raised != (raised := repr(error)):
                    message = "a job of the monitor failed; it is begun again at its next time"
                    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
            finally:
                self._running.discard(task)
                self._abandonable.discard(task)

        return run


class PlannedTimers:
    """A timer for each planned time, set once, as soon as the time is known."""

    def __init__(self, clock: Clock, job: Job) -> None:
        self._clock, self._job = clock, job
        self._timers: Timers | None = None
        self._armed: set[int] = set()

    def start(self, timers: Timers, due_ns: Iterable[int]) -> None:
        """Sets timers from now on; first for these times."""
        self._timers = timers
        self.arm(due_ns)

    def stop(self) -> None:
        """Sets no more timers."""
        self._timers = None

    def arm(self, due_ns: Iterable[int]) -> None:
        """Sets timers for future times that have none yet."""
        if self._timers is None:
            return
        now_ns = self._clock.now_ns()
        self._armed = {time_ns for time_ns in self._armed if time_ns > now_ns}
        for time_ns in due_ns:
            if time_ns > now_ns and time_ns not in self._armed:
                self._armed.add(time_ns)
                self._timers.once(time_ns, self._job)
