"""Commands one by one, each in an exec channel of its own, for systems whose shell paints rather than writes."""

from __future__ import annotations

import asyncio
import re

import asyncssh

from soakwatch.sources.abc import SourceError
from soakwatch.sources.platforms.guard import refusal
from soakwatch.sources.platforms.platform import Dialect
from soakwatch.sources.transport.network_cli.cli_session import MAX_OUTPUT, HungError, RefusedError
from soakwatch.sources.transport.network_cli.screen import shown
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable


class ExecSession:
    """No prompt, no pager, no state: the end of the channel is the end of the answer."""

    def __init__(self, line: DeviceConnection, dialect: Dialect, most_output: int = MAX_OUTPUT) -> None:
        self._line, self._most = line, most_output
        self._refused = re.compile(dialect.refused)

    @property
    def is_open(self) -> bool:
        """Always: each command opens its own."""
        return True

    @property
    def host(self) -> str:
        """Nothing shows it."""
        return ""

    def notes(self) -> tuple[str, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing is kept."""

    async def open(self, deadline: float) -> None:
        """Sees to it that the line stands."""
        try:
            async with asyncio.timeout_at(deadline):
                await self._line.connection()
        except TimeoutError:
            raise SourceError(f"{self._line.name} opened no session in time") from None

    async def run(self, command: str, deadline: float, stop: str = "") -> str:
        """See ``soakwatch.sources.transport.network_cli.cli_session.Session``; nothing has to be stopped here."""
        del stop
        wrong = refusal(command)
        if wrong is not None:
            raise ValueError(wrong)
        try:
            async with asyncio.timeout_at(deadline):
                text = await self._ask(command)
        except TimeoutError:
            self._line.drop()
            raise HungError(f"{self._line.name} did not answer {command!r} in time") from None
        except (OSError, asyncssh.Error) as error:
            self._line.drop()
            raise self._line.failed(error) from None
        if len(text) < 600 and self._refused.search(text):
            raise RefusedError(printable(text))
        return text

    async def _ask(self, command: str) -> str:
        connection = await self._line.connection()
        gathered = bytearray()
        process = await connection.create_process(command, encoding=None, stderr=asyncssh.STDOUT)
        try:
            while chunk := await process.stdout.read(1 << 16):
                gathered += chunk
                if len(gathered) > self._most:
                    raise SourceError(f"{self._line.name} sent more than {self._most >> 20} MiB for {command!r}")
        finally:
            process.close()
        if not gathered and connection.is_closed():
            raise SourceError(f"{self._line.name} ended the connection in the middle of {command!r}")
        return shown(gathered.decode("utf-8", "replace"))
