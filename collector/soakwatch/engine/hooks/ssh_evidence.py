"""Evidence of a device over SSH, on its own connection: polls of the device do not wait for it."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import asyncssh

from soakwatch.core.errors import PlanError
from soakwatch.core.units import show_seconds
from soakwatch.engine.hooks.evidence import MAX_OUTPUT, MatchedFile
from soakwatch.engine.hooks.trigger import HookFailedError
from soakwatch.sources.abc import SourceError
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable

FILES_S = 60.0
"""Time limit to list or fetch files."""
AUTO, LINUX = "auto", "linux"
_CHUNK = 1 << 16
_MAX_RECOGNISED = 4096
_MAX_FOUND = 1000


class SshHost:
    """A device over SSH. ``system`` is linux, the driver of a network CLI, or auto (recognise it from its answer);
    ``enable`` refers to the password that a CLI may ask for."""

    def __init__(self, line: SshConnection, system: str = AUTO, enable: str | None = None) -> None:
        self._line, self._enable = line, enable
        self._driver = "" if system in {AUTO, LINUX} else system
        self._unknown = system == AUTO
        self.name = line.name

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """Runs it in its own channel; on a network CLI at its prompt."""
        try:
            if self._driver:
                return await self._at_the_prompt(command, timeout_s)
            async with asyncio.timeout(timeout_s):
                output, trouble = await self._executed(command)
            if self._unknown:
                self._unknown = False
                self._driver = await asyncio.to_thread(_recognised, self._line, output)
            return await self._at_the_prompt(command, timeout_s) if self._driver else (output, trouble)
        except TimeoutError:
            self._line.drop()
            raise HookFailedError(f"{self.name} did not end {command!r} within {show_seconds(timeout_s)}") from None
        except (OSError, asyncssh.Error, SourceError, PlanError) as error:
            raise self._failed(error) from None

    async def find(self, pattern: str) -> Sequence[MatchedFile]:
        """Regular files only."""
        try:
            async with asyncio.timeout(FILES_S), (await self._line.connection()).start_sftp_client() as sftp:
                files = []
                for name in (await sftp.glob_sftpname(pattern))[:_MAX_FOUND]:
                    path = (
                        name.filename.decode("utf-8", "surrogateescape")
                        if isinstance(name.filename, bytes)
                        else (name.filename or "")
                    )
                    attributes = name.attrs if name.attrs.permissions is not None else await sftp.stat(path)
                    if attributes.permissions is not None and stat.S_ISREG(attributes.permissions):
                        files.append(MatchedFile(path, attributes.size or 0, float(attributes.mtime or 0)))
                return files
        except asyncssh.SFTPNoSuchFile:
            return []
        except TimeoutError:
            raise HookFailedError(f"{self.name} did not list {pattern} within {show_seconds(FILES_S)}") from None
        except (OSError, asyncssh.Error, SourceError, PlanError) as error:
            raise self._failed(error, f"{pattern} on ") from None

    async def read(self, path: str, most: int) -> bytes:
        """The first bytes of a file."""
        try:
            async with (
                asyncio.timeout(FILES_S),
                (await self._line.connection()).start_sftp_client() as sftp,
                sftp.open(path, "rb") as file,
            ):
                return cast("bytes", await file.read(most))  # bytes, since it is opened as binary
        except TimeoutError:
            raise HookFailedError(f"{self.name} did not bring {path} within {show_seconds(FILES_S)}") from None
        except (OSError, asyncssh.Error, SourceError, PlanError) as error:
            raise self._failed(error, f"{path} on ") from None

    async def _executed(self, command: str) -> tuple[bytes, str]:
        connection = await self._line.connection()
        process = await connection.create_process(
            command, encoding=None, stderr=asyncssh.STDOUT, stdin=asyncssh.DEVNULL
        )
        gathered, trouble = bytearray(), ""
        try:
            while chunk := await process.stdout.read(_CHUNK):
                gathered += chunk
                if len(gathered) > MAX_OUTPUT:
                    trouble = f"output over {MAX_OUTPUT >> 20} MiB: the rest is cut off"
                    break
            else:
                await process.wait()
                if process.exit_status:
                    trouble = f"exit code {process.exit_status}"
        finally:
            process.close()
        return bytes(gathered[:MAX_OUTPUT]), trouble

    async def _at_the_prompt(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        from soakwatch.sources.profiles.loading import platform
        from soakwatch.sources.transport.network_cli.cli_session import PromptSession, RefusedError, Session
        from soakwatch.sources.transport.network_cli.cli_source import ANY
        from soakwatch.sources.transport.network_cli.exec_session import ExecSession

        dialect = ANY if self._driver == AUTO else platform(self._driver).dialect
        session: Session
        if dialect.mode == "exec":
            session = ExecSession(self._line, dialect, MAX_OUTPUT)
        else:
            session = PromptSession(self._line, dialect, self._enable, MAX_OUTPUT)
        deadline = asyncio.get_running_loop().time() + timeout_s
        try:
            await session.open(deadline)
            return (await session.run(command, deadline)).encode(), ""
        except RefusedError as refused:
            return b"", f"the device refused it: {refused}"
        except ValueError as refused:
            return b"", f"it is not asked: {refused}"
        finally:
            session.close()

    def _failed(self, error: BaseException, what: str = "") -> HookFailedError:
        if isinstance(error, SourceError | PlanError):
            return HookFailedError(str(error))
        if isinstance(error, asyncssh.SFTPError):
            return HookFailedError(f"{what}{self.name}: {printable(error.reason).lower() or 'the file is not given'}")
        return HookFailedError(f"{what}{self._line.failed(error)}")


def _recognised(line: SshConnection, output: bytes) -> str:
    """The driver of a network system from its answer to a shell command, ``auto`` for an unknown one; "" for a
    shell."""
    from soakwatch.sources.transport.network_cli.cli_source import recognised  # imports many parsers

    if len(output) > _MAX_RECOGNISED:
        return ""
    return recognised(line.server_version, line.banner, output.decode("utf-8", "replace")) or ""


@asynccontextmanager
async def ssh_host(
    access: Access, folder: Path, system: str = AUTO, enable: str | None = None
) -> AsyncIterator[SshHost]:
    """Connects to a device. Raises HookFailedError."""
    async with SshConnection(access, folder) as line:
        try:
            await line.connection()
        except (SourceError, PlanError) as error:
            raise HookFailedError(str(error)) from None
        yield SshHost(line, system, enable)
