"""Fetches, after the last due poll of a run, the polls that sources kept while they could not be reached."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from soakwatch.engine.polling import PolledSource

MAX_S = 30.0
HURRIED_S = 10.0
"""If the run was stopped."""
MAX_POLLS = 60
TRIES = 2  # of an unreachable source: the first only finds that its old connection is dead
PAUSE_S = 1.0

SENTENCE = "fetching the agent's backlog"

Keep = Callable[[], Awaitable[bool]]


async def backfill(
    sources: Sequence[PolledSource], end_ns: int, keep: Keep, stop: asyncio.Event, *, resumed: bool
) -> None:
    """Polls each source until it has no polls from before ``end_ns`` left, ``MAX_S`` at most, ``HURRIED_S`` if ``stop``
    is set. If ``stop`` is set meanwhile, fetching ends.

    ``keep`` writes what came and returns whether it could. In a ``resumed`` run a source that never opened is opened
    now: it may keep polls that the earlier monitor did not fetch.
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
        # Shielded: a batch cancelled while being written would be written twice.
        if not await asyncio.shield(keep()) or brought == 0:
            return
        failures = failures + 1 if brought is None else 0
        if failures == TRIES:
            return
        if failures:
            await asyncio.sleep(PAUSE_S)
