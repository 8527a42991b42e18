"""Fetches at the end of a run, after the last due poll, what sources kept while they could not be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from soakwatch.engine.polling import PolledSource

MAX_S = 30.0
HURRIED_S = 10.0
"""Of a run that was stopped."""
MAX_POLLS = 60
TRIES = 2  # of a source that cannot be reached: a connection that died in the cut is given up by the first
PAUSE_S = 1.0

SENTENCE = "fetching the agent's backlog"

Keep = Callable[[], Awaitable[bool]]


async def backfill(
    sources: Sequence[PolledSource], end_ns: int, keep: Keep, stop: asyncio.Event, *, resumed: bool
) -> None:
    """Ask each source again until it has no polls from before ``end_ns`` left: at most ``MAX_S``, ``HURRIED_S``
    if ``stop`` is set. ``stop``, when it is set meanwhile, ends it.

    ``keep`` writes what came and says whether it could. In a ``resumed`` run a source that could not be opened so far
    is opened for this: it may have what the monitor's last life had not fetched.
    """
    hurried = stop.is_set()
    work = asyncio.create_task(_everything(sources, end_ns, keep, resumed=resumed))
    stopped = asyncio.create_task(_until(stop))
    try:
        awaited = {work} if hurried else {work, stopped}
        await asyncio.wait(awaited, timeout=HURRIED_S if hurried else MAX_S, return_when=asyncio.FIRST_COMPLETED)
    finally:
        work.cancel()
        stopped.cancel()
        await asyncio.wait({work, stopped})
    if not work.cancelled():
        work.result()
    await keep()


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


async def _everything(sources: Sequence[PolledSource], end_ns: int, keep: Keep, *, resumed: bool) -> None:
    async with asyncio.TaskGroup() as group:
        for source in sources:
            group.create_task(_fetch(source, end_ns, keep, resumed=resumed))


async def _fetch(source: PolledSource, end_ns: int, keep: Keep, *, resumed: bool) -> None:
    failures = 0
    for _ in range(MAX_POLLS):
        brought = await source.catch_up(end_ns, resumed=resumed)
        # A batch whose writing is given up in the middle would be written twice.
        if not await asyncio.shield(keep()) or brought == 0:
            return
        failures = failures + 1 if brought is None else 0
        if failures == TRIES:
            return
        if failures:
            await asyncio.sleep(PAUSE_S)
