"""Makes sure that only read-only commands are sent to a device.

The commands are this program's own, so the guard stops a mistake in a new file, not an attacker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORDS = re.compile(r"[A-Za-z0-9 /_.:,|\"*=-]{1,200}")
_QUESTION = re.compile(
    r"(?:show|display|get) "
    r"|diagnose (?:sys top(?:-mem)?|sys session (?:stat|full-stat)|debug crashlog read|hardware sysinfo memory)(?: |$)"
    r"|/[a-z /-]{1,60} print(?: |$)"
    r"|cpstat |fw ctl pstat $"
)
_PIPE = re.compile(r" *(?:json|display json|no-more|nomore|include [\w |:*-]+|exclude [\w |:*-]+)")
_HARMFUL = re.compile(
    r"(?<![\w-])(?:clear|reset|reload|delete|erase|write|copy|set|configure|config|kill|debug(?! crashlog read)"
    r"|tee|redirect|append|save|force)(?![\w-])"
)


def refusal(command: str, setting_up: Sequence[str] = ()) -> str | None:
    """Why a command is not sent, in one sentence; None for a read-only one, and for the exact commands of the set-up.

    >>> refusal("show version") is None, refusal("terminal pager 0", ["terminal pager 0"]) is None
    (True, True)
    >>> refusal("reload")
    "'reload' is not a query: only show, display, get and the like are sent to a device"
    """
    if command in setting_up:
        return None
    if _WORDS.fullmatch(command) is None:
        return "only commands of one line with plain characters are sent to a device"
    question, piped, pipe = command.partition("|")
    # After show and display a word such as reload is what is asked for; elsewhere it may be what is done.
    doing = pipe if question.startswith(("show ", "display ")) else command
    asked = _QUESTION.match(f"{question.strip()} ") and not _HARMFUL.search(doing)
    if not asked or (piped and _PIPE.fullmatch(pipe.rstrip()) is None):
        return f"{command!r} is not a query: only show, display, get and the like are sent to a device"
    return None
