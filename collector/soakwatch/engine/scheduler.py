"""Timers of a run: APScheduler on the steady clock, with every setting chosen on purpose."""

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

# APScheduler reports every skipped run as a warning; the wrapper counts and records them, once.
logging.getLogger("apscheduler").setLevel(logging.ERROR)

GRACE_S = 2.0  # how long polls that are running may go on when the run ends
_TURNS = 3  # of the loop: the scheduler wakes, makes a task of the job, and the task begins
Job = Callable[[], Awaitable[None]]


class Timers:
    """The timers of one run; use as an asynchronous context: they start on entry and are gone on exit.

    ``coalesce``: after a stall the newest due time runs and the wrapper records the others. ``max_instances=1``: a
    poll is never stacked on the previous one. ``misfire_grace_time=None``: APScheduler never drops a late run
    by itself, since the wrapper must see it to record how late it was.

    At the end a poll that is running is given up after ``GRACE_S``. Other jobs are waited for: half a batch that is
    written again would be in the record twice.

    What a job raises is for the exception handler of the loop, which logs it, once for each reason: the other jobs go
    on, and this one at its next time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: set[asyncio.Task[object]] = set()
        self._beats: set[asyncio.Task[None]] = set()
        self._over = False
        self._numbers = count()
        self._abandonable: set[asyncio.Task[object]] = set()  # those that may be given up
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
            # What is due at the very end is begun: whether its timer or that of the end comes first is chance.
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
        """Tick the source on its grid."""
        when = source.spec.when
        self._add(source.tick, Grid(when.anchor_ns, when.interval_ns, self._zone), abandonable=True)

    def every(self, interval_s: float, job: Job, *, abandonable: bool = False) -> None:
        """Run a job on a grid that begins one interval from now; never two at a time. ``abandonable``: it changes
        nothing, so it may be given up at the end.

        A task of its own: what is done each second does not ask who is late, and APScheduler costs ten times as much.
        """
        run = self._guarded(job, abandonable=abandonable)
        beat = asyncio.get_running_loop().create_task(self._beat(round(interval_s * 1e9), run))
        self._beats.add(beat)
        beat.add_done_callback(self._beats.discard)

    def once(self, time_ns: int, job: Job) -> None:
        """Run a job at a time, or at once if that has passed."""
        self._add(job, DateTrigger(datetime_at(time_ns, self._zone), timezone=self._zone))

    def _add(self, job: Job, trigger: BaseTrigger, *, abandonable: bool = False) -> None:
        # What is due at one time runs in the order in which it was set: APScheduler's own names are random.
        name = f"{next(self._numbers):09d}"
        self._scheduler.add_job(self._guarded(job, abandonable=abandonable), trigger, id=name)

    async def _beat(self, interval_ns: int, run: Job) -> None:
        due_ns = self._clock.now_ns() + interval_ns
        while not self._over:
            left_ns = due_ns - self._clock.now_ns()
            if left_ns > 0:
                await asyncio.sleep(left_ns * 1e-9)
                continue  # a timer may be early
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
                # Only __aexit__ cancels: a poll that outlives the end of the run is abandoned, its due time open.
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
    """A timer for each time at which something is planned: set once, as soon as the time is known."""

    def __init__(self, clock: Clock, job: Job) -> None:
        self._clock, self._job = clock, job
        self._timers: Timers | None = None
        self._armed: set[int] = set()

    def start(self, timers: Timers, due_ns: Iterable[int]) -> None:
        """Set timers from now on; first for these times."""
        self._timers = timers
        self.arm(due_ns)

    def stop(self) -> None:
        """Set no more."""
        self._timers = None

    def arm(self, due_ns: Iterable[int]) -> None:
        """Set timers for these times, as far as they are to come and have none yet."""
        if self._timers is None:
            return
        now_ns = self._clock.now_ns()
        self._armed = {time_ns for time_ns in self._armed if time_ns > now_ns}
        for time_ns in due_ns:
            if time_ns > now_ns and time_ns not in self._armed:
                self._armed.add(time_ns)
                self._timers.once(time_ns, self._job)
