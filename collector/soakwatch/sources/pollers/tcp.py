"""A TCP connection to a port, with TLS if asked: whether it is accepted, and how long that takes.

A port that refuses or does not answer is an answer (``reach.up`` 0, with the reason); a failure of this machine to
connect is a failed poll. Example: ``tcp: {host: 198.18.0.1, port: 443, tls: true}``.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from contextlib import AsyncExitStack, suppress
from typing import Annotated

from pydantic import Field

from soakwatch.core.units import Seconds
from soakwatch.sources.abc import HostName, SourceConfig, SourceContext, SourceError
from soakwatch.sources.reachability import Reach
from soakwatch.sources.transport.tls import unverified, verifying
from soakwatch_model.sample import Answer, Fault

_LOCAL = {
    errno.ENETUNREACH: "there is no route from this machine",
    errno.ENETDOWN: "this machine's network is down",
    errno.EACCES: "this machine forbids it",
    errno.EPERM: "this machine forbids it",
    errno.EMFILE: "this process has too many files open",
    errno.EADDRNOTAVAIL: "this machine has no free port",
}
_BANNER = 4096


class Config(SourceConfig):
    """Keys of the source ``tcp``."""

    host: Annotated[HostName, Field(description="name or address of the peer")]
    port: Annotated[int, Field(ge=1, le=65535, description="its port")]
    wait: Annotated[Seconds, Field(default=0.9, ge=0.001, le=60, description="a connection later than this is lost")]
    tls: Annotated[bool, Field(default=False, description="also do the TLS handshake")]
    verify: Annotated[bool, Field(default=True, description="verify the certificate and its name")]
    ca: Annotated[str | None, Field(default=None, description="CA bundle (PEM); default: the system's")]
    expect: Annotated[str | None, Field(default=None, min_length=1, description="text that the banner must contain")]


class TcpPoller:
    """One port, connected again at each poll."""

    def __init__(self, config: Config, context: ssl.SSLContext | None) -> None:
        self._config, self._context = config, context
        self._reach = Reach(config.host, f"tcp:{config.port}")

    async def poll(self, now_ns: int) -> Answer:
        """One connection. Raises SourceError if this machine could not try."""
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(self._config.wait):
                why = await self._connect()
            took = time.perf_counter() - begin
        except TimeoutError:
            why, took = f"no answer within {self._config.wait:g} s", 0.0
        if why is None:
            return Answer(self._reach.samples(now_ns, 1, [took]), (), ())
        fault = Fault("reach.round_trip", self._reach.object, why)
        return Answer(self._reach.samples(now_ns, 1, []), (), (fault,))

    async def _connect(self) -> str | None:
        """None, or why the peer cannot be reached."""
        host, port = self._config.host, self._config.port
        try:
            reader, writer = await asyncio.open_connection(host, port, ssl=self._context, limit=_BANNER)
        except ConnectionRefusedError:
            return f"refused: nothing listens on port {port}"
        except ssl.SSLCertVerificationError as error:
            return f"the certificate is not trusted: {error.verify_message}"
        except ssl.SSLError:
            return "the port accepts a connection and then does not speak TLS"
        except socket.gaierror:
            raise SourceError(f"the name {host!r} is not known: check host, or this machine's name service") from None
        except OSError as error:
            if error.errno in _LOCAL:
                raise SourceError(f"cannot connect to {host} port {port}: {_LOCAL[error.errno]}") from None
            return f"no connection: {(error.strerror or 'the peer hung up').lower()}"
        try:
            return None if self._config.expect is None else await self._banner(reader, self._config.expect)
        finally:
            writer.close()
            with suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _banner(self, reader: asyncio.StreamReader, expected: str) -> str | None:
        data = b""
        while expected.encode() not in data:
            try:
                more = await reader.read(_BANNER - len(data)) if len(data) < _BANNER else b""
            except OSError:
                more = b""
            if not more:
                return f"the banner does not contain {expected!r}"
            data += more
        return None


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> TcpPoller:
    """Prepares the connection; nothing stays open between polls. Raises PlanError for a file that cannot be used."""
    del site, stack
    if not config.tls:
        return TcpPoller(config, None)
    return TcpPoller(config, verifying(config.ca) if config.verify else unverified())
