"""Virtual time: event loops that jump to their next timer, and the clock that goes with them.

A 72 h soak of 20 pollers runs in seconds, with the real scheduler, the real wrapper and the real record. Whatever is
handed to a thread is done at once, in virtual time: nothing of it depends on how busy the machine is.
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
    """A clock and loops that share one virtual time; ``step_wall`` sets the wall clock as a person would.

    ``turned`` is called at each turn of a loop; what it raises ends the loop, as the death of its process does.
    ``unhandled`` is called with what a task raised that nobody waits for.
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
        """Seconds since its begin."""
        return self._slept_ns * 1e-9

    @property
    def mark(self) -> str:
        """Nobody goes on with it."""
        return ""

    def step_wall(self, seconds: float) -> None:
        """Step the wall clock; the steady clock goes on as if nothing had happened."""
        self._wall_step_ns += round(seconds * 1e9)

    def stall(self, seconds: float) -> None:
        """Let time pass while the loop does nothing, as a blocked or starved monitor does."""
        self._slept_ns += round(seconds * 1e9)

    def run(self, main: Coroutine[object, object, T]) -> T:
        """Run a coroutine to its end in this time; may be called again."""
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
        """A loop has nothing to do for so long: that has passed now."""
        if self._turned is not None:
            self._turned()
        if seconds:
            self._slept_ns += round(seconds * 1e9)


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for nothing: what would be slept is added to the time instead, unless a file is ready."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__()
        self._time = time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The ready files; else time has passed."""
        # The loop's own pipe, by which threads and signals wake it, is the only file of a night.
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
        """Do it now: a thread would take real time, of which a virtual clock knows nothing."""
        del executor
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            future.set_exception(error)
        return future
