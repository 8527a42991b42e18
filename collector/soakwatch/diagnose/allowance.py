"""What a look may do to a process, what it is given, and what it brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from soakwatch.diagnose.look import Absent, Heap, Sites, Why

DEFAULT_STOP_S = 1.0


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a look may do. ``stop_s`` bounds each stop of the process; 0: nothing that stops it. ``debugger``: a
    debugger may call functions of the process. ``pprof`` are the addresses at which programs in Go serve profiles.
    ``last``: no further look follows, so what looks began in the process ends."""

    stop_s: float = DEFAULT_STOP_S
    debugger: bool = False
    pprof: tuple[str, ...] = ()
    last: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """A process to look at: its pid, its start in ticks after the boot, what is resident of it (bytes), and the stop
    that an earlier look measured, in seconds."""

    pid: int
    start: int
    resident: int = 0
    stopped_s: float | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What was had of a runtime. ``kept`` are files as its programs wrote them, by name."""

    heap: Heap | None = None
    sites: tuple[Sites, ...] = ()
    absent: tuple[Absent, ...] = ()
    stopped_s: float | None = None
    stop_bound_s: float | None = None
    kept: Mapping[str, bytes] = field(default_factory=dict)


def reason_of(trouble: str, output: bytes = b"") -> Why:
    """Why a program brought nothing, by the words of the system."""
    words = f"{trouble} {output[:2000].decode('utf-8', 'replace')}".lower()
    if "not found" in words or "exit code 127" in words:
        return Why.NOT_INSTALLED
    if "permission denied" in words or "not permitted" in words:
        return Why.DENIED
    return Why.FAILED
