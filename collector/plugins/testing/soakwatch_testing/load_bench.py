"""Runs one load source as a run does, polled at the times that a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from soakwatch.sources.abc import Drivable, Facts, Fingerprints, Identifies, Poller, SourceContext
from soakwatch.sources.source_modules import poller_module
from soakwatch_model.roles import GENERATOR
from soakwatch_model.sample import Answer
from soakwatch_model.tree import Tree

BEGIN_NS = 1_795_260_000_000_000_000
"""2026-11-21 11:20:00 UTC: the default begin."""
SECOND = 10**9


class LoadBench:
    """One load and its clock; a context manager. ``keys`` are those of a plan, ``begin_ns`` is the begin of the run."""

    def __init__(
        self,
        name: str,
        keys: dict[str, object],
        *,
        role: str = GENERATOR,
        interval_s: float = 1.0,
        begin_ns: int = BEGIN_NS,
        trial: bool = False,
    ) -> None:
        module = poller_module(name)
        self._config = module.config.model_validate(keys)
        self._start = module.start
        self.now_ns = begin_ns
        self._begin_ns = begin_ns
        self._site = SourceContext("tg", role, (), None, Path(), lambda: self.now_ns, interval_s, trial=trial)
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._poller: Poller | None = None

    def __enter__(self) -> Self:
        """Start the load. Raises SourceError and PlanError as the load does."""
        try:
            self._poller = self._runner.run(self._opened())
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    def poll(self, at_s: float) -> Answer:
        """One poll, ``at_s`` seconds after the begin. Raises SourceError as the load does."""
        assert self._poller is not None
        self.now_ns = self._begin_ns + round(at_s * SECOND)
        return self._runner.run(self._bounded(self._poller))

    def drive(self, level: float) -> None:
        """Drive the load. Raises SourceError as the load does, TypeError if it cannot be driven."""
        poller: object = self._poller
        if not isinstance(poller, Drivable):
            raise TypeError("this load is not driven")
        self._runner.run(poller.drive(level))

    def facts(self) -> Facts:
        """The load's facts."""
        poller: object = self._poller
        return poller.facts() if isinstance(poller, Identifies) else Facts({})

    def fingerprint(self) -> Mapping[str, Tree]:
        """The fingerprint of the load's generator."""
        poller: object = self._poller
        return self._runner.run(self._told(poller)) if isinstance(poller, Fingerprints) else {}

    def wait(self, seconds: float) -> None:
        """Let the load run for some real time."""
        self._runner.run(asyncio.sleep(seconds))

    async def _told(self, poller: Fingerprints) -> Mapping[str, Tree]:
        return await poller.fingerprint()

    async def _opened(self) -> Poller:
        return await self._start(self._config, self._site, self._stack)

    async def _bounded(self, poller: Poller) -> Answer:
        async with asyncio.timeout(30):
            return await poller.poll(self.now_ns)


def series(answer: Answer, metric: str, name: str = "") -> list[tuple[float, float]]:
    """The samples of one series: seconds after ``BEGIN_NS``, and values."""
    return [
        ((sample.time_ns - BEGIN_NS) / SECOND, sample.value)
        for sample in answer.samples
        if (sample.metric, sample.object) == (metric, name)
    ]


def last(answer: Answer) -> dict[str, float]:
    """The last value of each series, by ``metric`` or ``metric{object}``."""
    return {
        f"{sample.metric}{{{sample.object}}}" if sample.object else sample.metric: sample.value
        for sample in answer.samples
    }
