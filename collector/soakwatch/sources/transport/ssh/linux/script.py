"""The scripts of a look, for any POSIX shell (dash, busybox, bash): plain text, no side effects, pure functions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from soakwatch.sources.transport.ssh.shell import part

_GUARD = "timeout -k 1 2 "  # a process stuck in the kernel blocks whoever reads its memory map
_MAX_CORES = 500
MAX_MAPPINGS = 2  # processes whose mappings are read in one look
_MEMORIES = "grep -svH '^0 ' /proc/[0-9]*/statm; grep -sH . /proc/[0-9]*/comm"  # a kernel thread has no memory


@dataclass(frozen=True, slots=True)
class LookRequest:
    """What one look asks for."""

    files: tuple[str, ...]
    watched: tuple[int, ...] = ()  # pids whose stat, memory and descriptors are read
    mapped: tuple[int, ...] = ()  # pids whose PSS and USS are due
    limited: tuple[int, ...] = ()  # pids whose core limit is due
    ledger: bool = False  # the memory of all processes
    mappings: tuple[int, ...] = ()  # pids whose memory by kind of mapping is read
    pidfiles: tuple[str, ...] = ()
    core_folders: tuple[tuple[str, str], ...] = ()  # folder and glob
    kernel_log: Literal["no", "skip", "read"] = "no"  # skip: only where it ends now
    commands: tuple[tuple[str, str], ...] = ()  # name and command of each program
    guard: bool = True


def poll_script(need: LookRequest) -> str:
    """The script of a look: one ``tail`` for all files; pids and descriptors by the shell itself."""
    files = [*need.files, *(f"/proc/{pid}/{name}" for pid in need.watched for name in ("stat", "statm"))]
    files += [f"/proc/{pid}/limits" for pid in need.limited]
    parts = [part("files", tail(files)), part("pids", "echo /proc/[0-9]*")]
    if need.watched:
        parts.append(part("descriptors", descriptors(need.watched)))
    if need.mapped:
        guard = _GUARD if need.guard else ""
        parts.append(part("maps", guard + tail([f"/proc/{pid}/smaps_rollup" for pid in need.mapped])))
    if need.ledger:
        parts.append(part("memories", _MEMORIES))
        if need.mappings:
            parts.append(part("mappings", mappings(need.mappings, guard=need.guard)))
    for index, path in enumerate(need.pidfiles):
        parts.append(part(f"pidfile {index}", f"head -c 64 {shlex.quote(path)}"))
    for index, (folder, glob) in enumerate(need.core_folders):
        parts.append(part(f"cores {index}", cores(folder, glob)))
    if need.kernel_log == "read":
        parts.append(part("kmsg", "dd iflag=nonblock bs=8192 count=4096 <&9 2>/dev/null"))
    elif need.kernel_log == "skip":
        parts.append(part("kmsg", "dd iflag=nonblock bs=8192 <&9 2>/dev/null | tail -n 40"))
    for name, command in need.commands:
        limited = f"timeout -k 1 1 sh -c {shlex.quote(command)}"
        parts.append(part(f"ask {name}", f'{limited} 2>/dev/null; s=$?; echo; echo "$s"'))
    parts.append(part("times", "times"))
    return "\n".join(parts)


def tail(files: Iterable[str]) -> str:
    """All files with a header each; /dev/null stands first so that one file has a header as well."""
    return f"tail -n +1 /dev/null {' '.join(shlex.quote(path) for path in files)}"


def descriptors(pids: Iterable[int]) -> str:
    """The number of open descriptors of each process, counted by the shell; ``-`` where it may not see them."""
    return (
        f"for p in {' '.join(map(str, pids))}; do set -- /proc/$p/fd/*; "
        'if [ -L "$1" ]; then echo "$p $#"; elif [ -r /proc/$p/fd ]; then echo "$p 0"; '
        'elif [ -d /proc/$p ]; then echo "$p -"; fi; done'
    )


def mappings(pids: Iterable[int], *, guard: bool) -> str:
    """What smaps holds of the size of each mapping, of each process, with a header as ``tail`` has it."""
    limit = _GUARD if guard else ""
    return (
        f'for p in {" ".join(map(str, pids))}; do echo; echo "==> /proc/$p/smaps <=="; '
        f"{limit}grep -sE '^([0-9a-f]+-|Rss:|Pss:|Anonymous:)' /proc/$p/smaps; done"
    )


def faces_script(pids: Sequence[int], *, everyone: bool, guard: bool) -> str:
    """Prints the stat line, command line and program of processes; for all processes by globs."""
    names = ["[0-9]*"] if everyone else [str(pid) for pid in pids]
    limit = _GUARD if guard else ""
    lines = " ".join(f"/proc/{name}/cmdline" for name in names)
    links = " ".join(f"/proc/{name}/exe" for name in names)
    stats = " ".join(f"/proc/{name}/stat" for name in names)
    return "\n".join(
        [
            part("stats", f"cat {stats} 2>/dev/null"),
            part("faces", f"{limit}tail -n +1 /dev/null {lines} 2>/dev/null"),
            part("programs", f"ls -l {links} 2>/dev/null"),
        ]
    )


def mounts_script(mounts: Iterable[str], *, guard: bool) -> str:
    """Block size, blocks and free blocks, inodes and free inodes of filesystems."""
    listed = " ".join(shlex.quote(mount) for mount in mounts)
    return part("mounts", f"{_GUARD if guard else ''}stat -f -c '%S %b %f %c %d %n' -- {listed} 2>/dev/null")


def details_script(pids: Iterable[int], *, guard: bool, ledger: bool = False) -> str:
    """What is read of a process that a watch means now; with a ``ledger`` its memory by kind of mapping too."""
    several = list(pids)
    limit = _GUARD if guard else ""
    small = [f"/proc/{pid}/{name}" for pid in several for name in ("stat", "statm", "limits")]
    return "\n".join(
        [
            part("files", tail(small)),
            part("maps", limit + tail([f"/proc/{pid}/smaps_rollup" for pid in several])),
            *([part("mappings", mappings(several[:MAX_MAPPINGS], guard=guard))] if ledger else []),
            part("descriptors", descriptors(several)),
            part("programs", f"ls -l {' '.join(f'/proc/{pid}/cwd' for pid in several)} 2>/dev/null"),
        ]
    )


def cores(folder: str, glob: str) -> str:
    """Kind, size, time of change, inode and name of what a glob finds in a folder; one word says why not."""
    quoted = shlex.quote(folder.rstrip("/") or "/")
    return (
        f"if cd {quoted} 2>/dev/null; then if [ -r . ]; then echo there; set -- {glob}; "
        f"if [ $# -gt {_MAX_CORES} ]; then echo many; else stat -c '%f %s %Y %i %n' -- \"$@\" 2>/dev/null; fi; "
        f"else echo denied; fi; cd /; elif [ -e {quoted} ]; then echo denied; else {_WHY_NOT.format(quoted)}; fi"
    )


# What cannot be seen is not there only if the nearest folder that can be seen may be searched.
_WHY_NOT = (
    'p={}; w=absent; while :; do p=${{p%/*}}; [ -n "$p" ] || break; '
    'if [ -d "$p" ]; then [ -x "$p" ] || w=denied; break; fi; done; echo $w'
)
