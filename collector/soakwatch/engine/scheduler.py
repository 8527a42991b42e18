"""Timers of a run: all jobs hang on one timer of the event loop, which follows the run's steady clock."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Self

from soakwatch.core.clock import Clock
from soakwatch.engine.polling import PolledSource

GRACE_S = 2.0  # how long running polls may go on when the run ends
_TURNS = 2  # of the event loop: the task of a job that is due is made, and starts
Job = Callable[[], Awaitable[object]]


@dataclass(slots=True, eq=False)
class _Entry:
    """A job, and when it is due: at ``anchor_ns`` and each ``interval_ns`` later; 0: once."""

    job: Job
    anchor_ns: int
    interval_ns: int = 0
    abandonable: bool = False
    beat: bool = False  # not begun any more when the run ends
    raised: str = ""
    task: asyncio.Task[None] | None = None

    def first_ns(self, now_ns: int) -> int:
        """The newest due time that has passed, or else the first: the grid may have begun while sources opened."""
        if not self.interval_ns:
            return self.anchor_ns
        return self.anchor_ns + max(0, (now_ns - self.anchor_ns) // self.interval_ns) * self.interval_ns

    def next_ns(self, now_ns: int) -> int:
        """The first due time after now."""
        return self.anchor_ns + ((now_ns - self.anchor_ns) // self.interval_ns + 1) * self.interval_ns


class Timers:
    """The timers of one run; an asynchronous context: they start on entry and are gone on exit.

    Due times are ``anchor + k * interval``, however long a job takes and however late it ran. After a stall the newest
    due time runs, and the wrapper of a source records the others. Runs of a job never overlap. A late run is never
    dropped, since the wrapper must see it to record it. Setting the wall clock changes nothing.

    On exit a running poll is cancelled after ``GRACE_S``. Other jobs are waited for: a half-written batch would be
    written twice.

    What a job raises goes to the loop's exception handler, which logs it once per reason; all jobs go on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = count()  # jobs due at the same time run in the order they were added
        self._due: list[tuple[int, int, _Entry]] = []  # a heap: due time, number
        self._running: set[asyncio.Task[None]] = set()
        self._abandonable: set[asyncio.Task[None]] = set()  # running tasks that may be cancelled
        self._handle: asyncio.TimerHandle | None = None
        self._armed_ns = 0  # the due time that the handle waits for
        self._started = self._over = False

    async def __aenter__(self) -> Self:
        self._started = True
        self._wake()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over = True
        if kind is None:
            # Start what is due at the very end: whether its timer or the run's end comes first is chance.
            self._begin_due(self._clock.now_ns())
            for _turn in range(_TURNS):
                await asyncio.sleep(0)
        self._due.clear()
        if self._handle is not None:
            self._handle.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE_S)
        for task in self._running & self._abandonable:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def poll(self, source: PolledSource) -> None:
        """Ticks the source on its grid."""
        when = source.spec.when
        self._add(_Entry(source.tick, when.anchor_ns, when.interval_ns, abandonable=True))

    def every(self, interval_s: float, job: Job, *, abandonable: bool = False) -> None:
        """Runs a job every ``interval_s``, first after one interval, never two at a time. If ``abandonable``, it
        changes nothing, so it may be cancelled at the end.
        """
        interval_ns = round(interval_s * 1e9)
        anchor_ns = self._clock.now_ns() + interval_ns
        self._add(_Entry(job, anchor_ns, interval_ns, abandonable=abandonable, beat=True))

    def once(self, time_ns: int, job: Job) -> None:
        """Runs a job at ``time_ns``, or at once if that has passed."""
        self._add(_Entry(job, time_ns))

    def _add(self, entry: _Entry) -> None:
        heapq.heappush(self._due, (entry.first_ns(self._clock.now_ns()), next(self._numbers), entry))
        if self._started:
            self._arm()

    def _wake(self) -> None:
        self._handle = None
        self._begin_due(self._clock.now_ns())
        self._arm()

    def _begin_due(self, now_ns: int) -> None:
        """Starts what is due, and notes when it is due next."""
        while self._due and self._due[0][0] <= now_ns:
            _, number, entry = heapq.heappop(self._due)
            if entry.task is None and not (self._over and entry.beat):
                self._start(entry)
            if entry.interval_ns:
                heapq.heappush(self._due, (entry.next_ns(now_ns), number, entry))

    def _arm(self) -> None:
        """Sets the one timer, if it does not wait for the next due time already."""
        if not self._due or self._over:
            return
        due_ns = self._due[0][0]
        if self._handle is not None:
            if self._armed_ns <= due_ns:
                return
            self._handle.cancel()
        loop = asyncio.get_running_loop()
        self._armed_ns = due_ns
        # May call early, and then arms again: the loop's clock is another one.
        self._handle = loop.call_later(max(0, due_ns - self._clock.now_ns()) * 1e-9, self._wake)

    def _start(self, entry: _Entry) -> None:
        task = entry.task = asyncio.get_running_loop().create_task(self._guarded(entry))
        self._running.add(task)
        if entry.abandonable:
            self._abandonable.add(task)

    async def _guarded(self, entry: _Entry) -> None:
        task = entry.task
        assert task is not None
        try:
            await entry.job()
        except asyncio.CancelledError:
            # Only __aexit__ cancels: a poll that outlives the run is abandoned, and its due time stays open.
            return
        except Exception as error:  # noqa: BLE001 - a defect of ours; a beat that ended would commit nothing more
            if entry.raised != (raised := repr(error)):
                entry.raised = raised
                message = "a job of the monitor failed; it is begun again at its next time"
                asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
        finally:
            entry.task = None
            self._running.discard(task)
            self._abandonable.discard(task)


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
