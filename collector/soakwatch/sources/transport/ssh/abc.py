"""The seam between the source ``ssh`` and what speaks to a device that is no POSIX shell (a network CLI).

``soakwatch.sources.transport.network_cli.cli_source`` holds what these Protocols describe; the source finds out which
driver is meant, hands over the line, and is not asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncssh

    from soakwatch.sources.abc import Poller, SourceContext, SourceError


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


@dataclass(frozen=True, slots=True)
class CliWish:
    """What the plan says of a CLI: its driver (``cisco-asa``: the profile that has it), how privileges are raised, and
    which commands are asked (None: the driver's own list). ``enable`` is a reference to a secret (see secret.py)."""

    driver: str
    enable: str | None = None
    commands: tuple[str, ...] | None = None


class CliSource(Protocol):
    """What the module ``soakwatch.sources.transport.network_cli.cli_source`` offers."""

    def drivers(self) -> tuple[str, ...]:
        """The names of all drivers, sorted; a plan's ``os`` may be each of them."""
        ...

    def recognised(self, server_version: str, banner: str, refusal: str) -> str | None:
        """The driver of a device that is no POSIX shell, or None.

        ``server_version`` is the SSH version string (``SSH-2.0-Cisco-1.25``), ``banner`` what was shown before the
        login, ``refusal`` what the device wrote when an exec channel asked for ``uname`` (an error message, mostly),
        decoded and cut to 4 KiB.
        """
        ...

    async def start_cli(
        self, line: DeviceConnection, wish: CliWish, site: SourceContext, stack: AsyncExitStack
    ) -> Poller:
        """A poller of the device's CLI (Telling as well). What is opened is entered into ``stack``; the line is not
        the CLI's to close. Raises SourceError, and PlanError for a wish that cannot be."""
        ...
