"""How a system's command line is described: prompts, pagers, the way in, and its commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from soakwatch.sources.platforms.parsed import Parsed
from soakwatch_model.tree import Tree

HOST = r"(?P<host>[A-Za-z0-9_](?:[\w.-]{0,62}[\w])?)"

PAGERS: tuple[tuple[str, str], ...] = (
    (r"\(END\)\s*$", "q"),
    (r"<-{1,4} ?[Mm]ore ?-{1,4}>\s*$", " "),
    (r"-{2,4} ?\(? ?(?i:more)(?: \d{1,3}%)? ?\)? ?-{2,4}(?:, ?next page: ?Space[^\n]{0,80})?\s*$", " "),
    (r"^(?i:\s*press (?:any key|space|enter|return) (?:to|for) (?:continue|more|next)[^\n]{0,60})$", " "),
    (r"^\s*lines \d{1,6}-\d{1,6}(?:/\d{1,6})?(?: \(\d{1,3}%\)| \d{1,3}%)?\s*$", " "),
    (r"^\s*(?i:more\?) ?(?:\[[^\]]{0,40}\])?\s*$", " "),
)
"""Prompts of pagers at the end of a page, and the key for the next one. The paging is switched off first where that
changes nothing but the session; this is for the rest."""

REFUSED = (
    r"% ?(?:Invalid|Incomplete|Ambiguous|Unrecognized|Unknown|Bad|Permission|Authorization|Error)"
    r"|ERROR: %|% ?(?:Command|This command|Privilege)|(?:Command|[Aa]uthorization) (?:authorization )?(?:failed|denied)"
    r"|(?i:unknown (?:command|action)|invalid (?:command|syntax|input)|syntax error|command not found|bad command)"
    r"|Error: ?(?:Unrecognized|Wrong|Incomplete|Too many|Ambiguous|Bad|Invalid|No permission)"
    r"|(?i:permission denied|not authorized|command parse error|expected end of command|unrecognized command)"
    r"|CLINFR\d|Cmd exec error|MINOR: (?:CLI|MGMT_CORE)|no such item"
)


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a platform: ``texts`` are tried in order until the device accepts one; ``metrics`` are what it
    should report.

    ``every_s`` is the least time between two of them (0: at each poll). ``stop`` is the key that ends a command which
    shows a page and waits (an interactive ``top``). ``tells_reason``: it reports why the device restarted;
    ``identifies``: version, model or serial number.
    """

    name: str
    texts: tuple[str, ...]
    parse: Callable[[str], Parsed]
    every_s: float = 0.0
    stop: str = ""
    tells_reason: bool = False
    metrics: tuple[str, ...] = ()
    identifies: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the command line talks. ``prompt`` is a regular expression with ``{host}`` where the name stands, ``shown``
    how a person knows it. ``setup`` are commands for this session alone (paging off). ``greetings`` are questions
    that come before the first prompt, with their answers. ``mode`` is a session with a prompt, or one exec a command.
    """

    prompt: str = r"{host}(?:\([\w.-]{1,40}\))?[>#] ?"
    shown: str = "NAME#"
    setup: tuple[str, ...] = ()
    enable: str = ""
    unprivileged: str = ">"
    refused: str = REFUSED
    pagers: tuple[tuple[str, str], ...] = PAGERS
    greetings: tuple[tuple[str, str], ...] = ()
    mode: Literal["session", "exec"] = "session"

    def prompts(self, host: str | None = None) -> re.Pattern[str]:
        """What the line of a prompt matches as a whole: that of one host, or of anybody."""
        name = HOST if host is None else f"(?P<host>{re.escape(host)})"
        return re.compile(self.prompt.replace("{host}", name))


@dataclass(frozen=True, slots=True)
class Platform:
    """One system. The marks are regular expressions: of its SSH version string, of what it says to an exec of a shell
    command or in its banner, and of what it answers to ``show version`` (``introduces``). ``parts`` are commands that
    tell modules, transceivers and licences, and who reads their answers into sections of a fingerprint."""

    name: str
    title: str
    dialect: Dialect
    commands: tuple[Command, ...]
    server: str = ""
    says: str = ""
    introduces: str = ""
    parts: Mapping[str, Callable[[str], dict[str, Tree]]] = field(default_factory=dict)

    def command(self, name: str) -> Command | None:
        """The command of a name, ``show_version`` or ``cisco-asa/show_version``."""
        bare = name.removeprefix(f"{self.name}/")
        return next((command for command in self.commands if command.name == bare), None)
