"""The known platforms, and how a device's platform is recognised."""

from __future__ import annotations

import re

from soakwatch.core.errors import PlanError
from soakwatch.core.suggest import hint
from soakwatch.sources.platforms.file import platform_of, shipped
from soakwatch.sources.platforms.platform import Command, Dialect, Platform

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


def names() -> tuple[str, ...]:
    """All platforms, sorted."""
    return shipped()


def platform(name: str) -> Platform:
    """The platform of a name. Raises PlanError for an unknown name, with the nearest."""
    if name not in names():
        raise PlanError(f"unknown os {name!r}{hint(name, names())}")
    return platform_of(name)


def recognised(server_version: str, banner: str, refusal: str) -> str | None:
    """The platform that the server version, banner or refusal identifies; ``auto`` for an unknown network system; or
    None.
    """
    for name in names():
        known = platform(name)
        if (known.server and re.search(known.server, server_version)) or (
            known.says and re.search(known.says, f"{banner[:4096]}\n{refusal[:4096]}")
        ):
            return name
    return "auto" if _NETWORK.search(f"{server_version} {refusal[:4096]}") else None


def introduced(text: str) -> str | None:
    """The platform that an answer to one of the QUESTIONS identifies."""
    return next((name for name in names() if (mark := platform(name).introduces) and re.search(mark, text)), None)


def chosen(system: Platform, wanted: tuple[str, ...] | None, target: str) -> tuple[Command, ...]:
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
