"""The seam of a program that is asked on a Linux device: when it is there, what is run, what its output means.

A module ``asks/NAME.py`` holds its docstring and one class that is an ``Ask``.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

from soakwatch_agent.context import ProbeAnswer
from soakwatch_model.tree import Tree

_MAX_LINE_LENGTH = 2000


@dataclass(frozen=True, slots=True)
class Wants:
    """What the plan wants to know: globs of interfaces (None = all), watched services (none = those that systemd
    restarts), and whether kernel lines are taken from the journal, as the kernel's own log cannot be read."""

    interfaces: tuple[str, ...] | None = None
    services: tuple[str, ...] = ()
    kernel_from_journal: Callable[[], bool] = lambda: False

    def interface(self, name: str) -> bool:
        """True if the plan wants an interface."""
        return self.interfaces is None or any(fnmatchcase(name, glob) for glob in self.interfaces)


class Ask(ABC):
    """One program, run with an empty input for at most 1 s, in a poll that is due ``every_s`` seconds after the last;
    what it writes to stderr is not kept. ``metrics`` are those that it may answer, ``present`` a shell command that
    succeeds if the device has the program and this account may use it."""

    metrics: ClassVar[tuple[str, ...]] = ()
    every_s: ClassVar[float]
    present: ClassVar[str]

    def __init__(self, wants: Wants) -> None:
        self._wants = wants

    @abstractmethod
    def command(self) -> str:
        """What is run this time, for a POSIX shell; it only reads."""

    @abstractmethod
    def read(self, text: str, notes: ProbeAnswer) -> None:
        """Notes what an output means. Raises ValueError for one that means nothing."""


def parsed(text: str) -> Tree:
    """JSON of a program; blank output is None. Raises ValueError, in one sentence, for anything else."""
    if not text.strip():
        return None
    try:
        reported: Tree = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("its output is not JSON") from None
    return reported


def lines(text: str) -> list[str]:
    """The lines of an output without those that are too long to be meant."""
    return [line for line in text.splitlines() if len(line) <= _MAX_LINE_LENGTH]


def rows(reported: Tree) -> list[Mapping[str, Tree]]:
    """The objects of a JSON list; what is no object is left out."""
    return [each for each in reported if isinstance(each, dict)] if isinstance(reported, list) else []


def whole(value: Tree) -> int | None:
    """A counter or size of 0 or more; None for anything else.

    >>> whole(3), whole("3"), whole(True), whole(-1), whole(2.0)
    (3, 3, None, None, 2)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isdecimal() and len(value) < 40:
        return int(value)
    if isinstance(value, float) and value.is_integer() and 0 <= value < 2**63:
        return int(value)
    return value if isinstance(value, int) and 0 <= value < 2**64 else None
