"""A driven load is set to its level at each change, again after it was lost, and reports that level."""

from __future__ import annotations

import asyncio

import pytest

from soakwatch.engine.load_driver import LEVEL, LoadController
from soakwatch.sources.abc import SourceError
from soakwatch_model.sample import Answer, Sample


class Generator:
    """A load that writes down the levels it is set to."""

    def __init__(self, *, deaf: bool = False) -> None:
        self.levels: list[float] = []
        self.deaf = deaf
        self.polls = 0

    async def poll(self, now_ns: int) -> Answer:
        """One poll."""
        self.polls += 1
        return Answer((Sample("load.sending", "", 1, now_ns),), (), ())

    async def drive(self, level: float) -> None:
        """Follow, or fail."""
        if self.deaf:
            raise SourceError("port 0 is owned by somebody else")
        self.levels.append(level)


class Watched:
    """A load that is only read."""

    async def poll(self, now_ns: int) -> Answer:
        """One poll."""
        return Answer((Sample("load.sending", "", 1, now_ns),), (), ())


def test_it_follows_at_once_and_reports_it_with_every_poll() -> None:
    """The level is set once for each change, not at every poll."""
    throttle, generator = LoadController(), Generator()

    async def main() -> list[Answer]:
        load = throttle.attached(generator)
        before = await load.poll(1)
        await throttle.set_level(0.5, 5)
        return [before, await load.poll(2), await load.poll(3)]

    before, *after = asyncio.run(main())
    assert generator.levels == [0.5]
    assert [sample.metric for sample in before.samples] == ["load.sending"]
    assert [answer.samples[-1] for answer in after] == [Sample(LEVEL, "", 0.5, 2), Sample(LEVEL, "", 0.5, 3)]


def test_a_load_that_does_not_follow_is_a_failed_source_and_is_set_again() -> None:
    """Its poll says why; nothing of it counts as having run at that level."""
    throttle, generator = LoadController(), Generator(deaf=True)

    async def main() -> Answer:
        load = throttle.attached(generator)
        await throttle.set_level(1.2, 5)
        with pytest.raises(SourceError, match="did not accept the level of 120%: port 0 is owned by somebody else"):
            await load.poll(1)
        assert generator.polls == 0
        generator.deaf = False
        return await load.poll(2)

    assert asyncio.run(main()).samples[-1] == Sample(LEVEL, "", 1.2, 2)
    assert generator.levels == [1.2]


def test_a_load_that_comes_back_is_set_anew() -> None:
    """After a reconnection nobody knows what the generator does."""
    throttle, first, second = LoadController(), Generator(), Generator()

    async def main() -> None:
        lost = throttle.attached(first)
        await throttle.set_level(0.8, 5)
        throttle.detached(lost)
        await throttle.attached(second).poll(1)
        await throttle.set_level(0.0, 5)

    asyncio.run(main())
    assert (first.levels, second.levels) == ([0.8], [0.8, 0.0])


def test_a_load_that_cannot_be_driven_is_left_as_it_is() -> None:
    """It is read and nothing else."""
    watched = Watched()
    assert LoadController().attached(watched) is watched
