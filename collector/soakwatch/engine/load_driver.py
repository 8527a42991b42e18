"""A load that the run drives: told its level at every change of phase, and again after every reconnection."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from soakwatch.sources.abc import Drivable, Facts, Identifies, Poller, SourceError
from soakwatch_agent.sample import Answer, Sample

LEVEL = "load.level"


class LoadController:
    """The level that the plan wants of every driven load; None until a phase says one."""

    def __init__(self) -> None:
        self.level: float | None = None
        self._loads: list[DrivenLoad] = []

    def attached(self, poller: Poller) -> Poller:
        """The poller under this throttle; one that cannot be driven as it is."""
        if not isinstance(poller, Drivable):
            return poller
        load = DrivenLoad(poller, poller, self)
        self._loads.append(load)
        return load

    def detached(self, poller: Poller) -> None:
        """The poller is closed: it is told nothing more."""
        self._loads = [each for each in self._loads if each is not poller]

    async def turn(self, level: float, timeout_s: float) -> None:
        """Tell every load at once. One that does not follow is told again at its next poll, which says why it fails."""
        self.level = level
        async with asyncio.TaskGroup() as group:
            for load in self._loads:
                group.create_task(load.follow(timeout_s))


class DrivenLoad:
    """A poller that follows the throttle before each look, and says with the look what it was told."""

    def __init__(self, poller: Poller, driven: Drivable, throttle: LoadController) -> None:
        self._poller, self._driven, self._throttle = poller, driven, throttle
        self._told: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def poll(self, now_ns: int) -> Answer:
        """One look. Raises SourceError, also where the load does not follow."""
        async with self._one_at_a_time:
            await self._follow()
            answer = await self._poller.poll(now_ns)
        if self._told is None:
            return answer
        return Answer((*answer.samples, Sample(LEVEL, "", self._told, now_ns)), answer.events, answer.faults)

    def facts(self) -> Facts:
        """See Telling."""
        return self._poller.facts() if isinstance(self._poller, Identifies) else Facts({})

    async def follow(self, timeout_s: float) -> None:
        """Follow now, between two looks."""
        with suppress(Exception):  # the next look meets the same trouble, and tells it
            async with asyncio.timeout(timeout_s), self._one_at_a_time:
                await self._follow()

    async def _follow(self) -> None:
        wanted = self._throttle.level
        if wanted is None or wanted == self._told:
            return
        self._told = None  # half told is not told
        try:
            await self._driven.drive(wanted)
        except SourceError as failure:
            raise SourceError(f"the generator does not take the level of {wanted:.0%}: {failure}") from None
        self._told = wanted
