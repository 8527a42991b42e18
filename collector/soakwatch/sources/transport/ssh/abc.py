"""The SSH connection as those see it who speak to a device over it, by shell or by command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncssh

    from soakwatch.sources.abc import SourceError


class DeviceConnection(Protocol):
    """One verified SSH connection to a device, opened when it is needed and again when it was lost.

    ``soakwatch.sources.transport.ssh.ssh_connection.SshConnection`` is it; a test may hand over its own.
    """

    @property
    def name(self) -> str:
        """``user@host:port``, for sentences."""
        ...

    @property
    def device_timeout_s(self) -> float:
        """How long a command on the device may take: less than a poll, so that a slow command is reported as such."""
        ...

    async def connection(self) -> asyncssh.SSHClientConnection:
        """The open connection, opened again if it was lost. Raises SourceError with the reason if it cannot be opened.

        At most one connection is open at a time; open at most four channels on it, better one: devices allow few.
        """
        ...

    def failed(self, error: BaseException) -> SourceError:
        """What an exception of asyncssh, or of the system, means: ``raise line.failed(error) from None``."""
        ...

    def drop(self) -> None:
        """Cuts the connection at once, because it is out of step or does not answer. The next poll opens another."""
        ...

    def identity(self) -> Mapping[str, str]:
        """What is known of the device, for ``Facts.identity``: host key, how it was verified, SSH version."""
        ...

    def notes(self) -> tuple[str, ...]:
        """Sentences for ``Facts.notes``: a key that was trusted on first use."""
        ...
