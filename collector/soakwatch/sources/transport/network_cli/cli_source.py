"""The way from the source ``ssh`` to the command line of a network system: which one a device has, and its poller."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.abc import SourceContext, SourceError
from soakwatch.sources.platforms.platform import Command, Dialect, Platform
from soakwatch.sources.profiles.loading import platform, platform_names
from soakwatch.sources.transport.network_cli.cli_poller import CliPoller
from soakwatch.sources.transport.network_cli.cli_session import PromptSession, RefusedError, Session
from soakwatch.sources.transport.network_cli.exec_session import ExecSession
from soakwatch.sources.transport.ssh.abc import DeviceConnection
from soakwatch.sources.transport.ssh.ssh_errors import printable

UNKNOWN = "auto"
"""The driver of a network system of which it is not known yet which one it is: it is asked."""

_ASKING_S = 10.0

ANY = Dialect(
    prompt=r"(?:\*?[\w./-]{1,40}:|HRP_\w)?(?:[<\[][~*]?)?(?:[\w.\\-]{1,64}@)?{host}"
    r"(?: ?[(/:][\w ./~:()-]{0,60}| )?[>#$%\]] ?",
    shown="NAME#",
    setup=("terminal length 0", "terminal pager 0"),
)
"""What a device is asked by before it is known which one it is."""

QUESTIONS = ("show version", "display version", "get system status", "show system info")
"""What a device is asked to find that out."""

_NETWORK = re.compile(
    r"Cisco|HUAWEI|Comware|ROSSSH|(?i:invalid|unknown command|syntax error|unrecognized|unexpected arg)|%"
)


@dataclass(frozen=True, slots=True)
class CliWish:
    """What the plan says of a CLI: its driver (``cisco-asa``: the profile that has it), how privileges are raised, and
    which commands are asked (None: the driver's own list). ``enable`` is a reference to a secret (see secret.py)."""

    driver: str
    enable: str | None = None
    commands: tuple[str, ...] | None = None


def recognised(server_version: str, banner: str, refusal: str) -> str | None:
    """The platform of a device; ``auto`` for an unknown network system; None for what seems to be none.

    ``server_version`` is the SSH version string (``SSH-2.0-Cisco-1.25``), ``banner`` what was shown before the login,
    ``refusal`` what the device wrote when an exec channel asked for ``uname`` (an error message, mostly).
    """
    for name in platform_names():
        known = platform(name)
        if (known.server and re.search(known.server, server_version)) or (
            known.says and re.search(known.says, f"{banner[:4096]}\n{refusal[:4096]}")
        ):
            return name
    return "auto" if _NETWORK.search(f"{server_version} {refusal[:4096]}") else None


async def start_cli(line: DeviceConnection, wish: CliWish, site: SourceContext, stack: AsyncExitStack) -> CliPoller:
    """Logs in to the device and returns the poller of its CLI. What is opened is entered into ``stack``; the line is
    not the CLI's to close. Raises SourceError, and PlanError for a wish that cannot be."""
    each = platform(wish.driver) if wish.driver != UNKNOWN else await _identified(line, site)
    commands = _chosen(each, wish.commands, site.target)
    poller = CliPoller(each, _session(each, line, wish), commands, line, site)
    stack.callback(poller.close)
    await poller.open()
    return poller


def _session(each: Platform, line: DeviceConnection, wish: CliWish) -> Session:
    if each.dialect.mode == "exec":
        return ExecSession(line, each.dialect)
    return PromptSession(line, each.dialect, wish.enable)


def introduced(text: str) -> str | None:
    """The platform that an answer to one of the QUESTIONS identifies."""
    marks = ((name, platform(name).introduces) for name in platform_names())
    return next((name for name, mark in marks if mark and re.search(mark, text)), None)


def _chosen(system: Platform, wanted: tuple[str, ...] | None, target: str) -> tuple[Command, ...]:
    """The commands that a plan names, or all. Raises PlanError for one that the platform does not have."""
    if wanted is None:
        return system.commands
    commands = []
    for name in wanted:
        command = system.command(name)
        if command is None:
            known = [each.name for each in system.commands]
            raise PlanError(f"{target}: {system.name} has no command {name!r}{hint(name, known)}")
        commands.append(command)
    return tuple(dict.fromkeys(commands))


async def _identified(line: DeviceConnection, site: SourceContext) -> Platform:
    """Asks a device what it is. Raises SourceError with what it said if that is not known."""
    session = PromptSession(line, ANY)
    deadline = asyncio.get_running_loop().time() + _ASKING_S
    answer = ""
    try:
        await session.open(deadline)
        for question in QUESTIONS:
            try:
                text = await session.run(question, deadline)
            except RefusedError as refused:
                answer = answer or str(refused)
                continue
            name = introduced(text)
            if name is not None:
                return platform(name)
            answer = text
    finally:
        session.close()
        line.drop()  # many systems grant one session a connection
    raise SourceError(
        f"{site.target}: {line.name} is not a known network system (it answered {printable(answer)!r}): "
        f"set os to one of {', '.join(platform_names())}"
    )
