"""The plug between the source ``ssh`` and the command lines of network systems (``transport.ssh.abc.CliSource``)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.platforms import known_platforms
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.transport.network_cli.cli_poller import CliPoller
from soakwatch.sources.transport.network_cli.cli_session import PromptSession, RefusedError, Session
from soakwatch.sources.transport.network_cli.exec_session import ExecSession
from soakwatch.sources.transport.ssh.abc import CliWish, DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable

UNKNOWN = "auto"
"""The driver of a network system of which it is not known yet which one it is: it is asked."""

_ASKING_S = 10.0


def drivers() -> tuple[str, ...]:
    """The names of all drivers, sorted."""
    return known_platforms.names()


def recognised(server_version: str, banner: str, refusal: str) -> str | None:
    """See ``soakwatch.sources.transport.ssh.abc.CliSource``."""
    return known_platforms.recognised(server_version, banner, refusal)


async def start_cli(line: DeviceConnection, wish: CliWish, site: SourceContext, stack: AsyncExitStack) -> CliPoller:
    """See ``soakwatch.sources.transport.ssh.abc.CliSource``. The device is logged in to before this returns."""
    if wish.driver != UNKNOWN and wish.driver not in known_platforms.names():
        raise PlanError(
            f"{site.target}: there is no driver {wish.driver!r}{hint(wish.driver, known_platforms.names())}"
        )
    each = known_platforms.platform(wish.driver) if wish.driver != UNKNOWN else await _identified(line, site)
    commands = known_platforms.chosen(each, wish.commands, site.target)
    poller = CliPoller(each, _session(each, line, wish), commands, line, site)
    stack.callback(poller.close)
    await poller.open()
    return poller


def _session(each: Platform, line: DeviceConnection, wish: CliWish) -> Session:
    if each.dialect.mode == "exec":
        return ExecSession(line, each.dialect)
    return PromptSession(line, each.dialect, wish.enable)


async def _identified(line: DeviceConnection, site: SourceContext) -> Platform:
    """Asks a device what it is. Raises SourceError with what it said if that is not known."""
    session = PromptSession(line, known_platforms.ANY)
    deadline = asyncio.get_running_loop().time() + _ASKING_S
    answer = ""
    try:
        await session.open(deadline)
        for question in known_platforms.QUESTIONS:
            try:
                text = await session.run(question, deadline)
            except RefusedError as refused:
                answer = answer or str(refused)
                continue
            name = known_platforms.introduced(text)
            if name is not None:
                return known_platforms.platform(name)
            answer = text
    finally:
        session.close()
        line.drop()  # many systems grant one session a connection
    raise SourceError(
        f"{site.target}: {line.name} is not a known network system (it answered {printable(answer)!r}): "
        f"set os to one of {', '.join(known_platforms.names())}"
    )
