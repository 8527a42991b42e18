"""How an agent is reached: by SSH, or by a socket or command on this machine; HTTPS is https_transport.py."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Mapping
from typing import Protocol

import asyncssh

from soakwatch.sources.abc import SourceError
from soakwatch.sources.pollers.agent.agent_stream import Conversation, greet
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable
from soakwatch_agent.service import bounded

_FAREWELL_S = 2.0
_MAX_STDERR = 4096
_CHUNK = 1 << 16


class Transport(Protocol):
    """How the agent is reached; ``connect`` may be called again and again."""

    async def connect(self) -> Conversation:
        """A conversation. Raises SourceError."""
        ...

    def drop(self) -> None:
        """Gives up the connection: the next conversation starts with a new one."""
        ...

    def identity(self) -> Mapping[str, str]:
        """What is known of the connection, for Facts."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences for Facts."""
        ...


class _PipeStream:
    """Bytes of a process on this machine, or of a socket."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        process: asyncio.subprocess.Process | None = None,
    ) -> None:
        self._reader, self._writer, self._process = reader, writer, process
        self._stderr = b""

    async def read(self, max_bytes: int) -> bytes:
        try:
            data = await self._reader.read(max_bytes)
        except OSError:
            data = b""
        if not data and self._process is not None and self._process.stderr is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FAREWELL_S):
                    self._stderr = await self._process.stderr.read(_MAX_STDERR)
        return data

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._writer.wait_closed()
        process = self._process
        if process is None:
            return
        self._process = None
        with contextlib.suppress(ProcessLookupError):
            try:
                async with asyncio.timeout(_FAREWELL_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def last_words(self) -> str:
        return printable(self._stderr.decode("utf-8", "replace"))


class LocalTransport:
    """An agent on this machine: its socket, or a command that connects to it."""

    def __init__(self, socket: str | None, command: tuple[str, ...]) -> None:
        self._socket, self._command = socket, command

    async def connect(self) -> Conversation:
        """See Transport."""
        if self._socket is not None:
            try:
                with bounded(self._socket) as path:
                    reader, writer = await asyncio.open_unix_connection(path, limit=_CHUNK)
            except OSError:
                raise SourceError(f"no agent listens on {self._socket}: start it with soakwatch-agent run") from None
            return await greet(_PipeStream(reader, writer), f"the agent on {self._socket}")
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_CHUNK,
            )
        except OSError:
            raise SourceError(f"the command {self._command[0]!r} of the agent cannot be started") from None
        assert process.stdin is not None
        assert process.stdout is not None
        stream = _PipeStream(process.stdout, process.stdin, process)
        return await greet(stream, f"the agent's command {self._command[0]!r}")

    def drop(self) -> None:
        """See Transport."""

    def identity(self) -> Mapping[str, str]:
        """See Transport."""
        return {"way": "socket" if self._socket is not None else "command"}

    def notes(self) -> tuple[str, ...]:
        """See Transport."""
        return ()


class _SshStream:
    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self._process = process
        self._stderr = b""

    async def read(self, max_bytes: int) -> bytes:
        try:
            data = await self._process.stdout.read(max_bytes)
        except (asyncssh.Error, OSError):
            data = b""
        if not data:
            with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
                async with asyncio.timeout(_FAREWELL_S):
                    self._stderr = await self._process.stderr.read(_MAX_STDERR)
        return data

    async def write(self, data: bytes) -> None:
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        except asyncssh.Error:
            raise OSError("the channel is closed") from None

    async def close(self) -> None:
        self._process.close()
        with contextlib.suppress(TimeoutError, asyncssh.Error, OSError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._process.wait_closed()

    def last_words(self) -> str:
        return printable(self._stderr.decode("utf-8", "replace"))


class SshTransport:
    """A command of an SSH session: no open port on the device."""

    def __init__(self, line: SshConnection, folder: str, *, child: bool) -> None:
        self._line, self._folder = line, folder
        words = "serve" if child else "attach --start"
        # From the account's home, as it was put there: a session need not begin in it.
        path = shlex.quote(folder) if folder.startswith("/") else f'"$HOME"/{shlex.quote(folder)}'
        self._command = f"exec {path}/agent {words} --dir {path}"

    async def connect(self) -> Conversation:
        """See Transport. A dead connection is given up as a whole."""
        line = self._line
        try:
            process = await (await line.connection()).create_process(self._command, encoding=None)
        except (asyncssh.Error, OSError):
            line.drop()  # it had died since the last conversation; a new one shows what is wrong, if anything is
            try:
                process = await (await line.connection()).create_process(self._command, encoding=None)
            except (asyncssh.Error, OSError) as error:
                line.drop()
                raise line.failed(error) from None
        try:
            return await greet(_SshStream(process), f"the agent on {line.name}")
        except SourceError as failure:
            if "not found" in str(failure) or "No such file" in str(failure):
                raise SourceError(
                    f"there is no agent on {line.name} in {self._folder}: install it with "
                    f"soakwatch agent install {line.name}"
                ) from None
            line.drop()
            raise

    def drop(self) -> None:
        """See Transport."""
        self._line.drop()

    def identity(self) -> Mapping[str, str]:
        """See Transport."""
        return self._line.identity()

    def notes(self) -> tuple[str, ...]:
        """See Transport."""
        return self._line.notes()
