"""A device over SSH: Linux by one script a poll, network systems by their CLI; nothing is installed there.

One connection and one session a device. Its host key must be in known_hosts, or pinned (``host_key``), or
``trust: first_use`` accepts the first one seen.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import Field

from soakwatch.core.errors import PlanError
from soakwatch.core.secrets import SecretRef
from soakwatch.core.suggest import hint
from soakwatch.core.units import Seconds
from soakwatch.sources.abc import Poller, SourceConfig, SourceContext, SourceError
from soakwatch.sources.transport.ssh.linux.linux_poller import LinuxOptions, LinuxPoller
from soakwatch.sources.transport.ssh.shell import NoShellError, Shell
from soakwatch.sources.transport.ssh.ssh_access import Access
from soakwatch.sources.transport.ssh.ssh_connection import SshConnection
from soakwatch_agent.context import watch
from soakwatch_agent.host import chosen_probes, probe_names

_NO_DRIVER = ("auto", "linux")


class Config(SourceConfig, Access):
    """Keys of the source ``ssh``."""

    asks_management = True
    resting = "cpu"

    timeout: Annotated[
        Seconds | None,
        Field(default=15.0, gt=0, description="a poll is abandoned after this, the first with connection and login"),
    ]
    os: Annotated[
        str,
        Field(default="auto", description="auto, linux, or the profile of a network CLI such as cisco-asa"),
    ]
    services: Annotated[
        tuple[str, ...],
        Field(default=(), max_length=64, description="systemd units whose restarts are counted (names or globs)"),
    ]
    core_folders: Annotated[
        tuple[str, ...],
        Field(
            default=(), max_length=16, description="folders with core files, in addition to those of the core pattern"
        ),
    ]
    probes: Annotated[
        tuple[str, ...] | None,
        Field(
            default=None,
            description="only these probes of a Linux device, or with a minus all but them (`-ledger`); default: all",
        ),
    ]
    observer: Annotated[
        Seconds | None,
        Field(
            default=None,
            ge=5,
            le=3600,
            description="at the start leave the device alone for this long, and compare its CPU without and with polls",
        ),
    ]
    enable: Annotated[
        SecretRef | None, Field(default=None, description="password that raises privileges on a CLI (enable)")
    ]
    commands: Annotated[
        tuple[str, ...] | None,
        Field(default=None, description="commands of a CLI driver; default: the driver's own"),
    ]

    def require_known(self) -> None:
        """Raises PlanError for an unknown os or probe."""
        if self.os not in _NO_DRIVER:
            from soakwatch.sources.profiles.loading import require_os

            require_os(self.os, _NO_DRIVER)
        for name in self.probes or ():
            if (bare := name.removeprefix("-")) not in probe_names():
                raise PlanError(f"there is no probe {bare!r}{hint(bare, probe_names())}")


async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller:
    """Connects, finds out what the device is, and makes its poller. Raises SourceError and PlanError."""
    config.require_known()
    wish = _wish(config, site)
    line = await stack.enter_async_context(SshConnection(config, site.folder, _device_timeout_s(config)))
    await line.connection()
    if config.os in _NO_DRIVER:
        try:
            return await _start_linux(line, wish, site, stack)
        except NoShellError as refused:
            driver = None if config.os == "linux" else _recognised(line, refused.answer)
            if driver is None:
                raise _no_shell(config, refused) from None
    else:
        driver = config.os
    from soakwatch.sources.transport.network_cli.cli_source import CliWish, start_cli

    return await start_cli(line, CliWish(driver, config.enable, config.commands), site, stack)


async def _start_linux(
    line: SshConnection, wish: LinuxOptions, site: SourceContext, stack: AsyncExitStack
) -> LinuxPoller:
    async with AsyncExitStack() as trial:
        poller = LinuxPoller(line, Shell(line), wish, site)
        trial.callback(poller.close)
        await poller.open()
        stack.push_async_exit(trial.pop_all())
    return poller


def _device_timeout_s(config: Config) -> float:
    """A poll gets its interval, but at least 3 s, and ends before the wrapper's timeout."""
    return min(max(config.interval, 3.0), 30.0, max((config.timeout or 15.0) - 0.5, 0.5))


def _wish(config: Config, site: SourceContext) -> LinuxOptions:
    try:
        watches = tuple(watch(each.name, each.how, each.what) for each in site.processes)
    except ValueError as error:
        raise PlanError(f"{site.target}: {error}") from None
    probes = chosen_probes(config.probes)
    return LinuxOptions(watches, site.interfaces, config.core_folders, config.services, probes, config.observer)


def _drivers() -> tuple[str, ...]:
    from soakwatch.sources.profiles.loading import platform_names  # as below: a Linux host needs none of their parsers

    return platform_names()


def _recognised(line: SshConnection, refusal: str) -> str | None:
    from soakwatch.sources.transport.network_cli.cli_source import recognised

    return recognised(line.server_version, line.banner, refusal)


def _no_shell(config: Config, refused: NoShellError) -> SourceError:
    if config.os == "linux":
        return SourceError(f"{refused}: it is not Linux for this account; set os: auto, or the driver of its CLI")
    drivers = ", ".join(_drivers())
    return SourceError(f"{refused}, and no network system was recognised: set os to one of {drivers}")
