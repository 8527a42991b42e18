"""Work in a daemon thread of its own, for a coroutine to wait for.

Unlike the threads of concurrent.futures, one that hangs in the kernel does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

R = TypeVar("R")


async def in_daemon_thread(work: Callable[[], R], name: str) -> R:
    """The result of ``work``, or the exception that it raised; whoever stops waiting leaves it running."""
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
            except Exception as error:  # noqa: BLE001 - it belongs to the one who waits
                loop.call_soon_threadsafe(failed, error)
            else:
                loop.call_soon_threadsafe(done, result)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    return await waiting
