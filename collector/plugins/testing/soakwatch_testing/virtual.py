"""Virtual time: event loops that jump to their next timer, and the clock that goes with them.

A 72 h soak of 20 pollers runs in seconds, with the real scheduler, wrapper and record. Work handed to a thread is done
at once, in virtual time, so results do not depend on the machine's load.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class VirtualTime:
    """A clock and loops that share one virtual time; ``step_wall`` sets the wall clock.

    ``turned`` is called at each turn of a loop; an exception from it ends the loop, like the death of the process.
    ``unhandled`` is called with exceptions of tasks that nobody awaits.
    """

    def __init__(
        self,
        start_ns: int = 1_800_000_000 * 10**9,
        turned: Callable[[], None] | None = None,
        unhandled: Callable[[BaseException], None] | None = None,
    ) -> None:
        self._start_ns, self._turned, self._unhandled = start_ns, turned, unhandled
        self._slept_ns = 0
        self._wall_step_ns = 0

    def now_ns(self) -> int:
        """Steady virtual time."""
        return self._start_ns + self._slept_ns

    def wall_ns(self) -> int:
        """The virtual wall clock."""
        return self.now_ns() + self._wall_step_ns

    def seconds(self) -> float:
        """Seconds since the start."""
        return self._slept_ns * 1e-9

    @property
    def mark(self) -> str:
        """Empty: the clock is not continued by another process."""
        return ""

    def step_wall(self, seconds: float) -> None:
        """Step the wall clock; the steady clock is not affected."""
        self._wall_step_ns += round(seconds * 1e9)

    def stall(self, seconds: float) -> None:
        """Let time pass while the loop does nothing, like a blocked monitor."""
        self._slept_ns += round(seconds * 1e9)

    def run(self, main: Coroutine[object, object, T]) -> T:
        """Run a coroutine to its end in this time; may be called repeatedly."""
        with asyncio.Runner(loop_factory=lambda: _Loop(self)) as runner:
            return runner.run(main)

    def troubled(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        """The exception handler of its loops."""
        error = context.get("exception")
        if self._unhandled is not None and isinstance(error, BaseException):
            self._unhandled(error)
        else:
            loop.default_exception_handler(context)

    def waited(self, seconds: float | None) -> None:
        """A loop would wait this long: advance the time."""
        if self._turned is not None:
            self._turned()
        if seconds:
            self._slept_ns += round(seconds * 1e9)


class _JumpingSelector(selectors.DefaultSelector):
    """Does not wait: instead of sleeping it advances the time, unless a file is ready."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready files; if none, time advances."""
        # The only file of a night is the loop's own pipe, by which threads and signals wake it.
        ready = super().select(0) if len(self.get_map()) > 1 or timeout is None else []
        self._time.waited(None if ready else timeout)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, time: VirtualTime) -> None:
        super().__init__(_JumpingSelector(time))
        self._time = time
        self.set_exception_handler(time.troubled)

    def time(self) -> float:
        """Virtual seconds."""
        return self._time.seconds()

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Run it now: a thread would take real time, which the virtual clock does not see."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised for the caller
            future.set_exception(error)
        return future
