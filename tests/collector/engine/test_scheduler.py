"""Timers of a run: what is due together costs one wake-up of the loop, and little else wakes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from soakwatch.engine.scheduler import Timers
from soakwatch.engine.self_monitor import STANDSTILL_S, LoopLag
from soakwatch_testing.virtual import VirtualTime

SECOND = 10**9


class CountedTime(VirtualTime):
    """Counts how often a loop waits for time to pass."""

    sleeps = 0

    def waited(self, seconds: float | None) -> None:
        """As ever."""
        self.sleeps += bool(seconds)
        super().waited(seconds)


def sleeps_in_a_minute(timed: Callable[[Timers, CountedTime], object]) -> int:
    """How often the loop waits in a minute of these timers."""
    time = CountedTime()

    async def main() -> None:
        async with Timers(time) as timers:
            timed(timers, time)
            await asyncio.sleep(60.0)

    time.run(main())
    return time.sleeps


def test_what_is_due_together_is_one_wake_up() -> None:
    """A hundred jobs of a second wake the loop no more often than one does."""
    ran: list[int] = []

    async def job() -> None:
        ran.append(1)

    def jobs(number: int) -> Callable[[Timers, CountedTime], None]:
        def timed(timers: Timers, _: CountedTime) -> None:
            for _number in range(number):
                timers.every(1.0, job)

        return timed

    one = sleeps_in_a_minute(jobs(1))
    ran.clear()
    hundred = sleeps_in_a_minute(jobs(100))
    assert len(ran) in {5900, 6000}, "each ran each second"
    assert hundred == one <= 61
    lag = sleeps_in_a_minute(lambda _, time: LoopLag(time.now_ns).measure())
    assert lag <= 121


def test_jobs_keep_their_grid_and_never_overlap() -> None:
    """A job that takes longer than its interval runs at the next due time after it; one at a set time runs once."""
    time, begun, once = VirtualTime(), list[float](), list[float]()

    async def slow() -> None:
        begun.append(time.seconds())
        await asyncio.sleep(2.5)

    async def at() -> None:
        once.append(time.seconds())

    async def main() -> None:
        async with Timers(time) as timers:
            timers.every(1.0, slow)
            timers.once(time.now_ns() + 7 * SECOND, at)
            timers.once(time.now_ns() - SECOND, at)
            await asyncio.sleep(10.2)

    time.run(main())
    assert begun == [1.0, 4.0, 7.0, 10.0]
    assert once == [0.0, 7.0]


def test_a_loop_that_is_late_is_known() -> None:
    """The worst lateness since it was asked last, and the times in which nothing ran at all."""
    time = VirtualTime()

    async def main() -> None:
        lag = LoopLag(time.now_ns)
        stop = lag.measure()
        await asyncio.sleep(3.0)
        assert lag.worst_s() == 0.0
        begin_ns = time.now_ns()
        time.stall(STANDSTILL_S + 1.0)
        await asyncio.sleep(1.0)
        assert lag.worst_s() >= STANDSTILL_S
        (still,) = lag.standstills()
        assert still.end_ns - still.begin_ns >= STANDSTILL_S * SECOND
        assert still.begin_ns <= begin_ns < still.end_ns
        assert (lag.worst_s(), lag.standstills()) == (0.0, ())
        stop()
        time.stall(STANDSTILL_S)
        await asyncio.sleep(2.0)
        assert lag.worst_s() == 0.0

    time.run(main())
