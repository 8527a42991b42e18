"""A source that counts its polls.

It needs nothing and reaches nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from soakwatch.sources.abc import Poller, SourceConfig, SourceContext, SourceError
from soakwatch_model.sample import NOTHING, Answer, Fault, Sample, object_text


class Filter(BaseModel):
    """A group of keys inside the keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keep: Annotated[tuple[str, ...], Field(description="names to keep")] = ()


class Config(SourceConfig):
    """Keys of the source."""

    depth: Annotated[int, Field(ge=1, le=9, description="how deep to look")] = 3
    mode: Annotated[Literal["quick", "full"], Field(description="how to look")] = "quick"
    filter: Annotated[Filter | None, Field(description="what to leave out")] = None
    silent: Annotated[int, Field(ge=0, description="bring nothing at so many looks first")] = 0
    slow: Annotated[int, Field(ge=0, description="take three seconds for so many looks first")] = 0
    breaks: Annotated[bool, Field(description="fail at every look")] = False


class _Probe:
    def __init__(self, config: Config, site: SourceContext) -> None:
        self._config, self._site, self._left = config, site, config.silent
        self._slow = config.slow

    async def poll(self, now_ns: int) -> Answer:
        """One reading of CPU, and one of memory for each watched process but ``ghost``."""
        if self._config.breaks:
            raise SourceError("the device does not answer")
        if self._slow:
            self._slow -= 1
            await asyncio.sleep(3.0)
        if self._left:
            self._left -= 1
            return NOTHING
        samples = [Sample("system.cpu.utilization", "", 0.5, now_ns)]
        for watch in self._site.processes:
            if watch.name != "ghost":
                object_ = object_text(process=watch.name, instance=0)
                samples.append(Sample("process.memory.usage", object_, 4096.0, now_ns))
        return Answer(tuple(samples), (), (Fault("system.temperature", "", "there is no sensor"),))


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Nothing to connect."""
    del stack
    return _Probe(config, site)
