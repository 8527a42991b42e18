"""Work in a daemon thread that a coroutine waits for.

Unlike a thread of concurrent.futures, one that hangs in the kernel does not keep the process from exiting.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


async def in_daemon_thread(work: Callable[[], R], name: str) -> R:
    """The result of ``work``, or its exception; cancelling the wait leaves it running."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[R] = loop.create_future()

    def done(result: R) -> None:
        if not waiting.done():
            waiting.set_result(result)

    def failed(error: Exception) -> None:
        if not waiting.done():
            waiting.set_exception(error)

    def run() -> None:
        try:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - raised by the waiting coroutine
                loop.call_soon_threadsafe(failed, error)
            else:
                loop.call_soon_threadsafe(done, result)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    return await waiting
