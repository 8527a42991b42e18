"""TRex, stateless or ASTF: rates, totals, drops, queues, latency, flows, connections; drives stateless ports.

Example: ``trex: {host: 198.18.0.9, interval: 1s}``, one target for each TRex; the server runs interactively (``-i``).
It only reads, unless ``drive: true``: then the run sets the rate of ports that already have streams (``rate`` is that
of level 1), and stops them at the end. Latency quantiles come from TRex's histogram and are rough. When the traffic
stops, packets still come back for a while: totals are final only after that drain.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.sources.abc import Facts, HostName, Poller, SourceConfig, SourceContext, SourceError, timing
from soakwatch_model.sample import Answer
from soakwatch_model.tree import Tree
from soakwatch_trex.rate import RateText, rate

if TYPE_CHECKING:
    from soakwatch_trex.driver import Driver
    from soakwatch_trex.reader import Reader

_OWN_SHARE = 0.9  # of a poll's time: fail before the wrapper's timeout, with a reason


class Config(SourceConfig):
    """Keys of the source ``trex``."""

    host: Annotated[HostName, Field(description="name or address of the generator")]
    port: Annotated[int, Field(default=4501, ge=1, le=65535, description="port of its requests and replies")]
    publisher: Annotated[
        int, Field(default=4500, ge=1, le=65535, description="port on which older releases publish statistics")
    ]
    flows: Annotated[
        int, Field(default=64, ge=0, le=1024, description="flows (packet groups) that are sampled at most")
    ]
    drive: Annotated[bool, Field(default=False, description="the run sets the rate of the ports, and stops them")]
    ports: Annotated[
        tuple[Annotated[int, Field(ge=0, le=255)], ...] | None,
        Field(default=None, min_length=1, strict=False, description="ports to drive; default: all that have streams"),
    ]
    rate: Annotated[
        RateText,
        Field(default="1", description="full rate of each port: 1 (times its streams' own), 80%, 5mpps, 2.5gbps"),
    ]
    user: Annotated[
        str, Field(default="soakwatch", pattern=r"^[\w.@-]{1,32}$", description="as whom driven ports are acquired")
    ]


class DrivenTrex:
    """A TRex whose ports the run drives."""

    def __init__(self, reader: Reader, driver: Driver) -> None:
        self._reader, self._driver = reader, driver

    async def poll(self, now_ns: int) -> Answer:
        """A poll, with the offered rate. A restarted TRex gets its level again."""
        return await self._reader.read(now_ns, self._driver)

    async def drive(self, level: float) -> None:
        """See ``Drivable``. A TRex that restarted since the last poll is recognised by its refusal."""
        server = await self._reader.server()
        try:
            await self._driver.drive(server, level)
        except SourceError:
            another = await self._reader.server(anew=True)
            if another.handle == server.handle:
                raise
            await self._driver.drive(another, level)

    def facts(self) -> Facts:
        """See ``Identifies``."""
        return self._reader.facts()

    async def fingerprint(self) -> Mapping[str, Tree]:
        """See ``Fingerprints``."""
        return await self._reader.fingerprint()


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Connect and shake hands. Raises SourceError if that fails or another user holds a port to drive, PlanError if the
    mode cannot be driven."""
    import zmq.asyncio

    from soakwatch_trex.driver import DriveConfig, Driver
    from soakwatch_trex.reader import Reader
    from soakwatch_trex.rpc import Rpc

    if not config.drive and (config.ports is not None or config.rate != "1"):
        raise PlanError(f"{site.target}: ports and rate are for a TRex that is driven: add drive: true")
    patience_s = _OWN_SHARE * timing(0, site.interval_s, config.timeout).timeout_s
    context = zmq.asyncio.Context()
    stack.callback(context.destroy, linger=0)
    rpc = Rpc(config.host, config.port, patience_s, context)
    stack.callback(rpc.drop)
    reader = Reader(rpc, config.publisher, config.flows, patience_s, site.now_ns, context)
    stack.push_async_callback(reader.close)
    server = await reader.server()
    if not config.drive:
        return reader
    if server.mode != "STL":
        raise PlanError(
            f"{site.target}: only a stateless TRex can be driven, this one runs {server.mode}: remove drive: true"
        )
    # The same run takes its ports again after a crash of the monitor; another run of the same user does not.
    session = zlib.crc32(f"{site.folder.resolve()} {site.target} {config.host} {config.port}".encode()) or 1
    driver = Driver(rpc, DriveConfig(config.ports, rate(config.rate), config.user, session))
    if site.trial:
        await driver.foresee(server)
    else:
        stack.push_async_callback(driver.release)
        await driver.take(server)
    return DrivenTrex(reader, driver)
