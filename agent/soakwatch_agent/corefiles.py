"""Where core files are written and which process wrote them, from the kernel's core pattern."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import List, Mapping, Optional

CRASH_FOLDERS = ("/var/crash",)  # kdump and apport, whatever the pattern says

# %e and %p are what a person wants to know; %E is the program's path with ! for /.
_PARTS = {"e": r"(?P<process>.+?)", "p": r"(?P<pid>\d+)", "P": r"(?P<pid>\d+)", "E": r"(?P<program>.+?)"}
_DIGITS = frozenset("iIugstcd")
_PACKED = r"(?:\.(?:gz|xz|zst|lz4|bz2|core))*"
_SYSTEMD = re.compile(r"core\.(?P<process>.+)\.\d+\.[0-9a-f]{32}\.(?P<pid>\d+)\.\d+" + _PACKED)
_APPORT = re.compile(r"(?:core\.)?(?P<program>_.+?)\.\d+\.(?:crash|[0-9a-f-]{36}\.(?P<pid>\d+)\.\d+)")
_VMCORE = re.compile(r"(?:vmcore|dump)(?:[-.].*)?")
_CRASH = re.compile(f"(?:{_APPORT.pattern})|(?:{_VMCORE.pattern})")
_ANY = re.compile(r".+")


@dataclass(frozen=True)
class CoreLocation:
    """A folder that core files are written to; only names that ``named`` matches are core files.

    ``folder`` is None if the pattern is relative: the working folder of each process.
    """

    __slots__ = ("folder", "named")
    folder: Optional[str]
    named: re.Pattern[str]


def locations_of_pattern(pattern: str, *, uses_pid: bool) -> List[CoreLocation]:
    """The folders of /proc/sys/kernel/core_pattern; ``uses_pid`` is core_uses_pid. An empty pattern has none.

    >>> locations_of_pattern("/var/cores/core-%e.%p", uses_pid=False)[0].folder
    '/var/cores'
    >>> locations_of_pattern("|/lib/systemd/systemd-coredump %P", uses_pid=False)[0].folder
    '/var/lib/systemd/coredump'
    >>> locations_of_pattern("core", uses_pid=True)[0].named.fullmatch("core.12")["pid"]
    '12'
    """
    text = pattern.strip()
    if not text:
        return []
    if text.startswith("|"):
        program = os.path.basename(text[1:].split()[0]) if text[1:].split() else ""  # noqa: PTH119
        if program == "systemd-coredump":
            return [CoreLocation("/var/lib/systemd/coredump", _SYSTEMD)]
        if program == "apport":
            return [CoreLocation("/var/lib/apport/coredump", _APPORT)]  # its reports lie in a crash folder
        return []
    folder, _, name = text.rpartition("/")
    folder = folder.partition("%")[0] or ("/" if text.startswith("/") else "")
    if not text.startswith("/"):
        return [CoreLocation(None, pattern_of_name(name, uses_pid=uses_pid))]
    return [CoreLocation(folder, pattern_of_name(name, uses_pid=uses_pid))]


def pattern_of_name(name: str, *, uses_pid: bool) -> re.Pattern[str]:
    """A file name of core_pattern as a regular expression with the groups process and pid.

    >>> match = pattern_of_name("core-%e.%p", uses_pid=False).fullmatch("core-bgpd.77")
    >>> match["process"], match["pid"]
    ('bgpd', '77')
    """
    parts, used, index = [], set(), 0
    while index < len(name):
        if name[index] != "%" or index + 1 >= len(name):
            parts.append(re.escape(name[index]))
            index += 1
            continue
        key = name[index + 1]
        index += 2
        if key == "%":
            parts.append("%")
        elif key in _PARTS and key.lower() not in used:
            used.add(key.lower() if key != "E" else "E")
            parts.append(_PARTS[key])
        else:
            parts.append(r"\d+" if key in _DIGITS else ".*?")
    if uses_pid and "p" not in used:
        parts.append(r"(?:\.(?P<pid>\d+))?")
    return re.compile("".join(parts) + _PACKED)


def locations_of_folder(folder: str) -> List[CoreLocation]:
    """The location of a configured folder: every file in it counts."""
    return [CoreLocation(folder, _ANY)]


def crash_locations() -> List[CoreLocation]:
    """Where kdump leaves kernel images (one subfolder per crash) and apport its reports."""
    return [CoreLocation(folder, _CRASH) for folder in CRASH_FOLDERS]


def owner_of(match: re.Match[str]) -> Mapping[str, str]:
    """Process and pid, where the file's name holds them.

    >>> dict(owner_of(_SYSTEMD.fullmatch("core.bgpd.0.0123456789abcdef0123456789abcdef.77.1700000000000000.zst")))
    {'process': 'bgpd', 'pid': '77'}
    """
    owner = {key: value for key, value in match.groupdict().items() if value}
    program = owner.pop("program", None)
    if program is not None:
        owner.setdefault("process", program.replace("!", "/").replace("_", "/").rpartition("/")[2])
    return owner


@dataclass(frozen=True)
class CoreFile:
    """A core file as one poll saw it."""

    __slots__ = ("inode", "mtime_ns", "name", "owner", "size")
    name: str
    mtime_ns: int
    inode: int
    size: int
    owner: Mapping[str, str]


def list_cores(folder: str, named: re.Pattern[str], *, below: bool = False) -> List[CoreFile]:
    """The core files of a folder, and of its subfolders if ``below``. Raises OSError if it cannot be read."""
    cores = []
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if below and entry.is_dir(follow_symlinks=False):
                    cores += [
                        CoreFile(f"{entry.name}/{core.name}", core.mtime_ns, core.inode, core.size, core.owner)
                        for core in list_cores(entry.path, named)
                    ]
                    continue
                match = named.fullmatch(entry.name)
                if match is None or not entry.is_file(follow_symlinks=False):
                    continue
                stat = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was deleted meanwhile
            cores.append(CoreFile(entry.name, stat.st_mtime_ns, stat.st_ino, stat.st_size, owner_of(match)))
    return sorted(cores, key=lambda core: core.name)
