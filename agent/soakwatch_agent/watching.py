"""Which processes a watch means: portraits of processes, and the match by name, glob or command line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Callable, FrozenSet, Optional, Tuple

from soakwatch_agent.place import Place, Watch
from soakwatch_agent.procfs import PidStat, clean, parse_pid_stat, read_text

COMM_LENGTH = 15  # the kernel cuts the name of a process here

Identity = Tuple[int, int]  # pid and start in ticks after boot: a pid alone may be somebody else tomorrow


@dataclass(frozen=True)
class Portrait:
    """What a process is known by: the names it answers to and its command line.

    ``cut`` is the kernel's name where nothing but a name of full length, perhaps cut, is known.
    """

    __slots__ = ("cmdline", "cut", "names", "pid", "stat")
    pid: int
    stat: PidStat
    names: FrozenSet[str]
    cut: Optional[str]
    cmdline: str

    @property
    def identity(self) -> Identity:
        """Pid and start."""
        return self.pid, self.stat.start


def portrait(place: Place, pid: int, stat: PidStat) -> Portrait:
    """Looks at a process. A command line or program that may not be read is left out."""
    folder = place.path(f"/proc/{pid}")
    try:
        words = read_text(f"{folder}/cmdline").rstrip("\0").split("\0")
    except OSError:
        words = [""]
    names = {clean(stat.comm)}
    if words[0]:
        names.add(clean(os.path.basename(words[0]).lstrip("-")))  # noqa: PTH119 - a login shell is called -bash
    try:
        program = os.readlink(f"{folder}/exe")
    except OSError:
        program = ""
    if program:
        names.add(clean(os.path.basename(program)).replace(" (deleted)", ""))  # noqa: PTH119 - upgraded while it ran
    cut = stat.comm if len(stat.comm) == COMM_LENGTH and not words[0] and not program else None
    return Portrait(pid, stat, frozenset(names), cut, clean(" ".join(words)))


Match = Callable[[Portrait], bool]


def matcher(watch: Watch, own: FrozenSet[int]) -> Match:
    """The test of a watch by name, glob or command line.

    ``own`` holds this process and those that started it. This process is never meant. Those that started it carry
    the expression in their own command line (``sh -c 'soakwatch run --process cmdline:x'``) and are not meant either.
    """
    what, me = watch.what, os.getpid() if own else -1
    if watch.how == "cmdline":
        search = re.compile(what).search
        return lambda p: (
            search(p.cmdline) is not None and p.pid != me and not (p.pid in own and "soakwatch" in p.cmdline)
        )
    if watch.how == "glob":
        return lambda p: p.pid != me and any(fnmatchcase(name, what) for name in p.names)
    return lambda p: (
        p.pid != me and (what in p.names or (p.cut is not None and what[:COMM_LENGTH] == p.cut and len(what) > 15))
    )


def own_line(place: Place) -> FrozenSet[int]:
    """This process and its ancestors; nobody under another root, whose pids mean other processes."""
    if not place.real:
        return frozenset()
    line, pid = {os.getpid()}, os.getppid()
    while pid > 0 and pid not in line:
        line.add(pid)
        try:
            text = read_text(f"/proc/{pid}/stat")
        except OSError:
            break
        pid = int(text[text.rindex(")") + 2 :].split(None, 2)[1])
    return frozenset(line)


def pid_of_file(place: Place, path: str) -> Tuple[Optional[int], str]:
    """The pid in a pidfile, and what is wrong with the file if no pid can be had (empty if it just is not there)."""
    try:
        word = read_text(place.path(path)).split()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"the pidfile {path} cannot be read: {(error.strerror or 'no reason given').lower()}"
    if not word or not word[0].isdigit() or int(word[0]) <= 0:
        return None, f"the pidfile {path} holds no pid"
    return int(word[0]), ""


def read_stat(place: Place, pid: int) -> Optional[PidStat]:
    """A process's stat line; None if it is gone."""
    try:
        return parse_pid_stat(read_text(place.path(f"/proc/{pid}/stat")))
    except (OSError, ValueError):
        return None
