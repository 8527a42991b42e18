"""The plug between the source ``ssh`` and the command lines of network systems (``transport.ssh.abc.CliSource``)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.platforms import registry
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.transport.network_cli.exec_session import ExecSession
from soakwatch.sources.transport.network_cli.poller import CliPoller
from soakwatch.sources.transport.network_cli.session import PromptSession, RefusedError, Session
from soakwatch.sources.transport.ssh.abc import CliWish, DeviceConnection
from soakwatch.sources.transport.ssh.errors import printable

UNKNOWN = "auto"
"""The driver of a network system of which it is not known yet which one it is: it is asked."""

_ASKING_S = 10.0


def drivers() -> tuple[str, ...]:
    """The names of all drivers, sorted."""
    return registry.names()


def recognised(server_version: str, banner: str, refusal: str) -> str | None:
    """See ``soakwatch.sources.transport.ssh.abc.CliSource``."""
    return registry.recognised(server_version, banner, refusal)


async def start_cli(line: DeviceConnection, wish: CliWish, site: SourceContext, stack: AsyncExitStack) -> CliPoller:
    """See ``soakwatch.sources.transport.ssh.abc.CliSource``. The device is logged in to before this returns."""
    if wish.driver != UNKNOWN and wish.driver not in registry.names():
        raise PlanError(f"{site.target}: there is no driver {wish.driver!r}{hint(wish.driver, registry.names())}")
    each = registry.platform(wish.driver) if wish.driver != UNKNOWN else await _identified(line, site)
    commands = registry.chosen(each, wish.commands, site.target)
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
    session = PromptSession(line, registry.ANY)
    deadline = asyncio.get_running_loop().time() + _ASKING_S
    answer = ""
    try:
        await session.open(deadline)
        for question in registry.QUESTIONS:
            try:
                text = await session.run(question, deadline)
            except RefusedError as refused:
                answer = answer or str(refused)
                continue
            name = registry.introduced(text)
            if name is not None:
                return registry.platform(name)
            answer = text
    finally:
        session.close()
        line.drop()  # many systems grant one session a connection
    raise SourceError(
        f"{site.target}: {line.name} is not a known network system (it answered {printable(answer)!r}): "
        f"set os to one of {', '.join(registry.names())}"
    )
