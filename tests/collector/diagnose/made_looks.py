"""Looks and courses that the tests of readings make up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from soakwatch.diagnose.look import Basis, Heap, Look, Runtime, Site, SiteKind, Sites
from soakwatch.diagnose.reading import Course

MIB = 1 << 20
T0 = 1_700_000_000 * 10**9
HOUR = 3600


def look(
    hours: float,
    used: float | None,
    held: float | None = None,
    *,
    pieces: float | None = None,
    sites: Sequence[Sites] = (),
    start: int = 7,
    pid: int = 12,
) -> Look:
    """A look after some hours at a program that uses and whose allocator holds some MiB (None: it has no account)."""
    heap = None
    if used is not None:
        kept = used * 1.05 if held is None else held
        heap = Heap(round(used * MIB), round(kept * MIB), None if pieces is None else round(pieces * MIB))
    resident = round((50 + (held if held is not None else used or 0)) * MIB)
    time_ns = T0 + round(hours * HOUR * 1e9)
    return Look(
        1,
        "dut",
        "process=x",
        pid,
        start,
        time_ns,
        "memory_growth",
        "",
        Runtime.GLIBC,
        resident,
        heap=heap,
        sites=tuple(sites),
    )


def lines(
    program: str = "pprof heap",
    *,
    held: Mapping[str, int],
    basis: Basis = Basis.LIVE,
    since_ns: int | None = None,
    grain: int = 0,
) -> Sites:
    """Lines of the program with what they hold, bytes."""
    sites = tuple(Site(SiteKind.LINE, name, size, size // 100) for name, size in held.items())
    return Sites(program, basis, sites, since_ns, grain)


def course(memory: Sequence[float], load: Sequence[float] | None = None, hours: float = 8.0) -> Course:
    """Memory (MiB) and load at even times."""
    times = np.linspace(0, hours * HOUR, len(memory))
    sent = None if load is None else np.asarray(load, dtype=np.float64)
    return Course(times, np.asarray(memory, dtype=np.float64) * MIB, sent)
