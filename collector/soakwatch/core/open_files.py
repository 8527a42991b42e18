"""How many files and sockets this process may have open: a fleet needs more than the 1,024 that systems begin with."""

from __future__ import annotations

from contextlib import suppress

_OWN = 200  # files of the record, of the page and of the judge, and libraries
_NO_LIMIT = 2**31
_A_SOURCE = 4  # sockets or pipes that a source may have open at a time


def allow_open_files(sources: int) -> str:
    """Raise the limit of this process to what so many sources need, as far as the system lets it; a warning if that is
    not enough, else "".

    >>> allow_open_files(10)
    ''
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return ""
    needed = _OWN + _A_SOURCE * sources
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (_NO_LIMIT if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if soft < needed:
        with suppress(OSError, ValueError):  # a container may forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, hard), limits[1]))
            soft = min(needed, hard)
    if soft >= needed:
        return ""
    return (
        f"{sources:,} sources may need {needed:,} open files, and this process may have {soft:,}: raise its limit"
        f" (ulimit -n {needed})"
    )
