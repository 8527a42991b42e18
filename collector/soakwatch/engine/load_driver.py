"""Drives loads: sets a load's level at every phase change, and again after every reconnection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from soakwatch.sources.abc import Drivable, Facts, Fingerprints, Identifies, Poller, SourceError
from soakwatch_model.sample import Answer, Sample
from soakwatch_model.tree import Tree

LEVEL = "load.level"


class LoadController:
    """The level that all driven loads shall have; None until a phase names one."""

    def __init__(self) -> None:
        self.level: float | None = None
        self._loads: list[DrivenLoad] = []

    def attached(self, poller: Poller) -> Poller:
        """Wraps the poller so that it follows this level; one that cannot be driven is returned as it is."""
        if not isinstance(poller, Drivable):
            return poller
        load = DrivenLoad(poller, poller, self)
        self._loads.append(load)
        return load

    @property
    def count(self) -> int:
        """How many drivable loads are connected."""
        return len(self._loads)

    def detached(self, poller: Poller) -> None:
        """The poller is closed: drives it no more."""
        self._loads = [load for load in self._loads if load is not poller]

    async def set_level(self, level: float, timeout_s: float) -> None:
        """Sets all loads' level at once; one that fails is set again at its next poll, which reports the failure."""
        self.level = level
        async with asyncio.TaskGroup() as group:
            for load in self._loads:
                group.create_task(load.follow(timeout_s))


class DrivenLoad:
    """A poller that sets its load to the level before each poll, and adds the level to its samples."""

    def __init__(self, poller: Poller, driven: Drivable, controller: LoadController) -> None:
        self._poller, self._driven, self._controller = poller, driven, controller
        self._level: float | None = None
        self._lock = asyncio.Lock()

    async def poll(self, now_ns: int) -> Answer:
        """One poll. Raises SourceError, also if the load does not accept the level."""
        async with self._lock:
            await self._follow()
            answer = await self._poller.poll(now_ns)
        if self._level is None:
            return answer
        return Answer((*answer.samples, Sample(LEVEL, "", self._level, now_ns)), answer.events, answer.faults)

    def facts(self) -> Facts:
        """The poller's facts."""
        return self._poller.facts() if isinstance(self._poller, Identifies) else Facts({})

    async def fingerprint(self) -> Mapping[str, Tree]:
        """The poller's fingerprint of its generator."""
        return await self._poller.fingerprint() if isinstance(self._poller, Fingerprints) else {}

    async def follow(self, timeout_s: float) -> None:
        """Sets the level now, between two polls."""
        with suppress(Exception):  # the next poll meets the same failure, and reports it
            async with asyncio.timeout(timeout_s), self._lock:
                await self._follow()

    async def _follow(self) -> None:
        wanted = self._controller.level
        if wanted is None or wanted == self._level:
            return
        self._level = None  # if it fails halfway, no level is set
        try:
            await self._driven.drive(wanted)
        except SourceError as failure:
            raise SourceError(f"the generator did not accept the level of {wanted:.0%}: {failure}") from None
        self._level = wanted
