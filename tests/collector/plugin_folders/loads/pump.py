"""A load that pumps nothing."""

from __future__ import annotations

from contextlib import AsyncExitStack

from soakwatch.sources.abc import Poller, SourceConfig, SourceContext
from soakwatch_model.sample import Answer, Sample


class Config(SourceConfig):
    """Keys of the load."""


class _Pump:
    async def poll(self, now_ns: int) -> Answer:
        """One rate."""
        return Answer((Sample("load.request.rate", "", 10.0, now_ns),), (), ())


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Nothing to connect."""
    del config, site, stack
    return _Pump()
