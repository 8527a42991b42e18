"""How much memory this process may use, and what to tell the user if that is too little.

A limit of address space makes a library fail to load; a container's limit kills the process without a message.
"""

from __future__ import annotations

import errno
import mmap
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NEEDED_MIB = 400
"""What a run of some devices takes, with its page and judge; judging a long run may take more."""
_NO_LIMIT = 2**62  # bytes; cgroup v1 without a limit reads about twice this
_DEADLY_MIB = 120
"""Below this a container's limit kills a command while it loads its libraries."""
_SPACE_MIB = 128
"""Below this limit of address space OpenBLAS, while it is loaded, now aborts the process and now waits for ever."""
_ROOM_MIB = 24  # one thread's stack (8 MiB) and a library or two
_LOADER_SAYS = ("cannot allocate memory", "failed to map segment", "cannot apply additional memory protection")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """The lowest memory limit, in MiB, and what sets it."""

    mib: int
    by: str


def memory_limit(system: Path = Path("/")) -> MemoryLimit | None:
    """The lowest limit of this process: of address space, or of one of its control groups (v1 or v2); None without one.

    ``system`` is the root of /proc and /sys.
    """
    limits = []
    with suppress(ImportError):  # Windows has no such limits
        import resource

        space, _ = resource.getrlimit(resource.RLIMIT_AS)
        if space != resource.RLIM_INFINITY:
            limits.append(MemoryLimit(space // 2**20, "`ulimit -v`"))
    with suppress(OSError):
        lines = (system / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
        for hierarchy, controllers, own in (line.split(":", 2) for line in lines if line.count(":") > 1):
            if hierarchy == "0":
                limits += _of_groups(system / "sys/fs/cgroup", own, "memory.max")
            elif "memory" in controllers.split(","):
                limits += _of_groups(system / "sys/fs/cgroup/memory", own, "memory.limit_in_bytes")
    return min(limits, key=lambda limit: limit.mib, default=None)


def _of_groups(top: Path, own: str, name: str) -> list[MemoryLimit]:
    """The limits of a control group and its ancestors."""
    limits = []
    group = top / own.lstrip("/")
    for each in (group, *group.parents):
        if each.is_relative_to(top):
            with suppress(OSError, ValueError):  # ValueError: "max", no limit
                limit = int((each / name).read_text(encoding="ascii"))
                if limit < _NO_LIMIT:
                    limits.append(MemoryLimit(limit // 2**20, f"{name} of its control group"))
    return limits


def too_little(limit: MemoryLimit | None) -> str:
    """A warning about a limit at which commands are killed without a message; "" if it is high enough.

    >>> too_little(MemoryLimit(70, "memory.max of its control group"))[:72]
    'this process may have only 70 MiB of memory (memory.max of its control g'
    >>> too_little(MemoryLimit(2048, "`ulimit -v`")), too_little(None)
    ('', '')
    """
    if limit is None or limit.mib >= _DEADLY_MIB:
        return ""
    return (
        f"this process may have only {limit.mib} MiB of memory ({limit.by}), and may be killed: raise it to"
        f" {NEEDED_MIB} MiB or more"
    )


def hopeless(limit: MemoryLimit | None) -> bool:
    """True if the limit is one of address space in which the numeric libraries do not fit.

    >>> hopeless(MemoryLimit(120, "`ulimit -v`")), hopeless(MemoryLimit(120, "memory.max")), hopeless(None)
    (True, False, False)
    """
    return limit is not None and limit.by == "`ulimit -v`" and limit.mib < _SPACE_MIB


def not_enough(limit: MemoryLimit | None) -> str:
    """The sentence for a command that ran out of memory."""
    where = "" if limit is None else f" of {limit.mib} MiB ({limit.by})"
    return (
        f"there is not enough memory{where}: what was recorded is kept; raise the limit of this process or of its"
        f" container to {NEEDED_MIB} MiB or more, or free memory, then `soakwatch judge RUN`"
    )


def ran_out(error: BaseException) -> bool:
    """True if ``error``, or one it came from, was caused by lack of memory.

    A full address space shows as MemoryError, ENOMEM, an ImportError of the loader, "can't start new thread", or a
    SystemError of an extension. So an unforeseen error also counts if the process cannot get another 24 MiB; wrong if
    it came before memory ran out.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(ran_out, error.exceptions))
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, MemoryError) or (isinstance(link, OSError) and link.errno == errno.ENOMEM):
            return True
        if isinstance(link, ImportError) and any(sign in str(link).lower() for sign in _LOADER_SAYS):
            return True
        link = link.__cause__ or link.__context__
    return isinstance(error, (SystemError, RuntimeError, ImportError)) and not _has_room(_ROOM_MIB)


def _has_room(mib: int) -> bool:
    """True if ``mib`` MiB more address space can be mapped; it is given back."""
    try:
        mmap.mmap(-1, mib * 2**20).close()
    except (OSError, MemoryError):
        return False
    return True
