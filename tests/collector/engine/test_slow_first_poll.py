"""A generator that takes its time to start: its first poll may take longer than its interval."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from tests.collector.engine.poll_list import PollList

from soakwatch.engine.polling import PolledSource, SourceSpec
from soakwatch.sources.abc import Poller, timing
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.virtual import VirtualTime


class Slow:
    """A poller that answers at once for five polls, and late from then on."""

    def __init__(self) -> None:
        self._polls = 0

    async def poll(self, now_ns: int) -> Answer:
        """One sample."""
        self._polls += 1
        if self._polls > 5:
            await asyncio.sleep(4)
        return Answer((Sample("load.requests", "", 1, now_ns),), (), ())


def test_a_source_may_take_longer_to_open_than_to_answer() -> None:
    """A command that takes 4 s to start is read each second: its start is no failure, later polls have their second."""
    time, polls = VirtualTime(), list[Poll]()

    async def connect(_: AsyncExitStack) -> Poller:
        await asyncio.sleep(4)
        return Slow()

    async def main() -> None:
        when = timing(time.now_ns(), 1.0)
        spec = SourceSpec(1, "tg/command", when, opens_s=10.0)
        async with PolledSource(spec, connect, time, PollList(polls)) as source:
            for _ in range(12):
                await source.tick()
                await asyncio.sleep(1)

    time.run(main())
    assert polls[0].outcome is PollOutcome.OK
    assert polls[0].duration_ns == 4 * 10**9
    late = [poll for poll in polls if poll.outcome is PollOutcome.TIMEOUT]
    assert late
    assert {poll.error for poll in late} == {"no answer within 1 s"}
