"""The kernel's account of a process: mappings by kind, open files by kind, threads by name and state."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from soakwatch.diagnose.look import Counted, Mapped, Runtime

_MOST: Final = 60  # rows of a list
_ARENA: Final = 64 << 20
_SHARED: Final = ("/dev/shm/", "/memfd:", "/SYSV", "/dev/zero")  # noqa: S108 - names that the kernel shows
_STATES: Final = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a device",
    "T": "stopped",
    "t": "traced",
    "Z": "exited",
    "I": "idle",
}
_TCP: Final = {
    "01": "established",
    "02": "syn sent",
    "03": "syn received",
    "04": "fin wait 1",
    "05": "fin wait 2",
    "06": "time wait",
    "07": "closed",
    "08": "close wait",
    "09": "last ack",
    "0A": "listening",
    "0B": "closing",
}
_OWN: Final = "/memfd:soakwatch"  # what a look itself opened there
_LINK = re.compile(r" (\d{1,9}) -> (.+)$", re.MULTILINE)
_SMAPS = (
    r"""awk '/^[0-9a-f]+-[0-9a-f]+ /{if(h!="")print r,w,s,h; h=$1" "$2" "$6; for(i=7;i<=NF;i++)h=h" "$i; r=0;w=0;s=0}"""
    r"""/^Size:/{s=$2} /^Rss:/{r=$2} /^Swap:/{w=$2} END{if(h!="")print r,w,s,h}' """
)


def commands(pid: int) -> dict[str, str]:
    """What is asked of the host of a process. Neither its environment nor its command line is."""
    proc = f"/proc/{pid}"
    return {
        "stat": f"cat {proc}/stat",
        "smaps": f"{_SMAPS} {proc}/smaps 2>&1",
        "fd": f"ls -l {proc}/fd 2>&1",
        "tcp": f"cat {proc}/net/tcp {proc}/net/tcp6 2>/dev/null | awk '{{print $4,$10}}'",
        "udp": f"cat {proc}/net/udp {proc}/net/udp6 2>/dev/null | awk '{{print $10}}'",
        "unix": f"awk '{{print $7}}' {proc}/net/unix 2>/dev/null",
        "threads": f"cat {proc}/task/[0-9]*/stat 2>/dev/null",
        "exe": f"readlink {proc}/exe",
        "go": f"grep -aqm1 'Go buildinf:' {proc}/exe 2>/dev/null && echo yes",
    }


def start_of(stat: bytes) -> int:
    """The start of a process in ticks after the boot; 0 if it is gone or exited.

    >>> start_of(b"7 (a b) S 1 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 3 0 99 4096 5 0")
    99
    """
    rest = stat.rpartition(b")")[2].split()
    gone = len(rest) < 20 or rest[0] in {b"Z", b"X"} or not rest[19].isdigit()
    return 0 if gone else int(rest[19])


def mapping_kind(path: str, rights: str, begin: int, size: int) -> str:
    """What a mapping is for, by its name, its rights and its place.

    >>> mapping_kind("/usr/lib/libc.so.6", "r-xp", 0, 1), mapping_kind("[stack]", "rw-p", 0, 1)
    ('file: code', 'stack')
    >>> mapping_kind("", "rw-p", 0x7F0000000000, 132 << 10), mapping_kind("", "rw-p", 0x7F0000001000, 9)
    ('arena of a thread', 'anonymous')
    """
    if path.startswith("["):
        if path.startswith("[anon:"):
            return f"anonymous: {path[6:-1].strip()[:40]}"
        name = path.strip("[]").partition(":")[0]
        return name if name in {"heap", "stack"} else "kernel"
    if not path:
        # malloc of glibc begins the heap of a thread at a multiple of 64 MiB
        return "arena of a thread" if begin % _ARENA == 0 and size <= _ARENA else "anonymous"
    if path.startswith(_SHARED) or rights[3:] == "s":
        return "shared memory"
    return "file: code" if "x" in rights else "file: data"


def mapped_by_kind(text: bytes) -> tuple[Mapped, ...]:
    """The mappings of ``smaps`` by kind, the largest in memory first."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for line in text.decode("utf-8", "replace").split("\n"):
        fields = line.split(" ", 5)
        begin = fields[3].partition("-")[0] if len(fields) >= 5 else ""
        if not begin or not all(field.isdigit() for field in fields[:3]):
            continue
        try:
            place = int(begin, 16)
        except ValueError:
            continue
        resident, swapped, size = (int(field) << 10 for field in fields[:3])
        path = fields[5].strip() if len(fields) == 6 else ""
        row = sums[mapping_kind(path, fields[4], place, size)]
        for index, value in enumerate((1, size, resident, swapped)):
            row[index] += value
    rows = [Mapped(kind, row[0], row[1], row[2], row[3]) for kind, row in sums.items()]
    return tuple(sorted(rows, key=lambda row: (-row.resident, row.kind))[:_MOST])


def files_by_kind(parts: Mapping[str, bytes]) -> tuple[Counted, ...]:
    """The open files by kind: sockets with their state, files by folder. Names of files are not kept."""
    sockets: dict[str, str] = {}
    for line in parts.get("tcp", b"").decode("ascii", "replace").split("\n"):
        state, _, inode = line.partition(" ")
        if state in _TCP:
            sockets[inode] = f"socket: TCP {_TCP[state]}"
    for name, words in (("udp", "socket: UDP"), ("unix", "socket: Unix")):
        sockets |= dict.fromkeys(parts.get(name, b"").decode("ascii", "replace").split(), words)
    targets = [target for _, target in _LINK.findall(parts.get("fd", b"").decode("utf-8", "replace"))]
    kinds = Counter(_file_kind(target, sockets) for target in targets if not target.startswith(_OWN))
    return _ranked(kinds)


def _file_kind(target: str, sockets: Mapping[str, str]) -> str:
    if target.startswith("socket:["):
        return sockets.get(target[8:-1], "socket: other")
    if target.startswith("pipe:"):
        return "pipe"
    if target.startswith("anon_inode:"):
        return target.removeprefix("anon_inode:").strip("[]")[:40]
    deleted = " (deleted)" if target.endswith(" (deleted)") else ""
    folder = posixpath.dirname(target.removesuffix(" (deleted)"))
    return f"file in {folder[:80]}{deleted}" if folder else "other"


def threads_by_name(text: bytes) -> tuple[Counted, ...]:
    """The threads by name and state; numbers at the end of names are left out.

    >>> threads_by_name(b"7 (pool-1) S 1\\n8 (pool-2) S 1\\n")
    (Counted(name='pool, sleeping', count=2),)
    """
    kinds: Counter[str] = Counter()
    for line in text.decode("utf-8", "replace").split("\n"):
        head, bracket, rest = line.rpartition(")")
        name = head.partition("(")[2]
        if bracket and rest.split():
            base = re.sub(r"[-_#: ]*\d+$", "", name) or name
            kinds[f"{base}, {_STATES.get(rest.split()[0], 'other')}"] += 1
    return _ranked(kinds)


def _ranked(kinds: Counter[str]) -> tuple[Counted, ...]:
    return tuple(
        Counted(name, count) for name, count in sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:_MOST]
    )


def runtime_of(parts: Mapping[str, bytes]) -> Runtime:
    """Who allocates, by the program and the libraries that are mapped."""
    path = parts.get("exe", b"").decode("utf-8", "replace").strip().removesuffix(" (deleted)")
    program = posixpath.basename(path)
    if posixpath.basename(posixpath.dirname(path)) == "frr":
        return Runtime.FRR
    libraries = parts.get("smaps", b"")
    if b"/libjvm.so" in libraries:
        return Runtime.JAVA
    if program.startswith(("python", "pypy")) or b"/libpython" in libraries:
        return Runtime.PYTHON
    if program in {"node", "nodejs"} or b"/libnode.so" in libraries:
        return Runtime.NODE
    if parts.get("go", b"").strip() == b"yes":
        return Runtime.GO
    if b"/libjemalloc" in libraries:
        return Runtime.JEMALLOC
    foreign = any(name in libraries for name in (b"/libtcmalloc", b"/libmimalloc"))
    return Runtime.GLIBC if not foreign and (b"/libc.so" in libraries or b"/libc-2" in libraries) else Runtime.OTHER
