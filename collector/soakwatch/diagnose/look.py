"""A look: what a process held at one moment, by the kernel's account and its runtime's own, and what taking it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pydantic import TypeAdapter, ValidationError

VERSION: Final = 1
KIND: Final = "look"
"""The kind of a record's artifacts that looks are."""
MEDIA: Final = "application/vnd.soakwatch.look+json"
CPU: Final = ("process.cpu.", "system.cpu.")
"""Metrics of findings for which stacks are sampled."""
MAX_SITES: Final = 300
"""Sites that a look keeps, those with most bytes: the rest is one sum."""


class Runtime(StrEnum):
    """Who allocates the memory of a process."""

    FRR = "frr"
    GLIBC = "glibc"
    GO = "go"
    JAVA = "java"
    JEMALLOC = "jemalloc"
    NODE = "node"
    PYTHON = "python"
    OTHER = "other"


class Why(StrEnum):
    """Why a part of a look is missing."""

    NOT_ALLOWED = "not allowed"  # the plan allows no debugger
    NOT_INSTALLED = "not installed"
    NOT_NAMED = "not named"  # the plan does not say where it is served
    DENIED = "permission denied"
    STOP = "stop too long"  # it would stop the process for longer than the plan allows
    BUSY = "no safe moment"  # the process was never at rest, where a call into it is safe
    FAILED = "failed"
    CUT = "too large"


class Basis(StrEnum):
    """What the bytes of sites count."""

    LIVE = "live"  # all that is held
    TRACED = "traced"  # what was allocated since tracing began, and is still held
    SAMPLED = "sampled"  # how often a stack was seen there: CPU time, and no bytes


class SiteKind(StrEnum):
    """What a site is."""

    LINE = "line"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Absent:
    """A part that could not be had: ``detail`` is what its program wrote, without secrets."""

    part: str
    why: Why
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Mapped:
    """The mappings of one kind: how many, their virtual size, and what of it is in memory or swapped out (bytes)."""

    kind: str
    count: int
    size: int
    resident: int
    swapped: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """How many there are of a name: of open files of one kind, of threads."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class Heap:
    """The heap by its own allocator, bytes: ``in_use`` by the program, ``held`` from the kernel.

    ``in_pieces`` of what is free is too small or scattered to be given back; None if the allocator does not report it.
    ``collected``: garbage was collected first, so ``in_use`` is what is reachable.
    """

    in_use: int
    held: int
    in_pieces: int | None = None
    collected: bool = True


@dataclass(frozen=True, slots=True)
class Site:
    """A line of the program, or a type of object, with what it holds; ``own``: not of the language or its library."""

    kind: SiteKind
    name: str
    bytes: int
    count: int
    own: bool = True


@dataclass(frozen=True, slots=True)
class Sites:
    """What holds the memory, by one ``program``'s account; ``since_ns`` is when tracing began. ``grain``: one of so
    many bytes is sampled; 0 if every one is counted."""

    program: str
    basis: Basis
    sites: tuple[Site, ...]
    since_ns: int | None = None
    grain: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a look cost: its duration, CPU time on the device and the longest stop of the process, in seconds; bytes
    kept. ``stop_bound_s`` bounds a stop that cannot be measured: the process stood for at most so long. None is
    unknown."""

    seconds: float
    cpu_s: float | None = None
    stopped_s: float | None = None
    stop_bound_s: float | None = None
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a process showed. ``process`` is the object of its findings, ``start`` its start in ticks after
    the boot; ``rule`` and ``metric`` are the finding's for which it was taken; "" by hand."""

    number: int
    target: str
    process: str
    pid: int
    start: int
    time_ns: int
    rule: str
    metric: str
    runtime: Runtime
    resident: int | None
    mapped: tuple[Mapped, ...] = ()
    files: tuple[Counted, ...] = ()
    threads: tuple[Counted, ...] = ()
    heap: Heap | None = None
    sites: tuple[Sites, ...] = ()
    absent: tuple[Absent, ...] = ()
    cost: Cost = field(default_factory=lambda: Cost(0.0))
    kept: tuple[str, ...] = ()  # artifacts with what the programs wrote
    version: int = VERSION

    @property
    def of_cpu(self) -> bool:
        """True if it shows where CPU time went, and not what memory holds."""
        return self.metric.startswith(CPU)

    @property
    def alive(self) -> bool:
        """False if the process was gone."""
        return self.start > 0


_READER: Final = TypeAdapter(Look)


def look_json(look: Look) -> bytes:
    """A look as the record keeps it."""
    return _READER.dump_json(look, indent=1)


def read_look(data: bytes) -> Look | None:
    """A look of a record; None if a later version of Soakwatch wrote it, or it is damaged."""
    try:
        look = _READER.validate_json(data)
    except ValidationError:
        return None
    return look if look.version <= VERSION else None


def largest(sites: list[Site]) -> tuple[Site, ...]:
    """The sites that a look keeps, the one with most bytes first."""
    sites.sort(key=lambda site: (-site.bytes, site.name))
    return tuple(sites[:MAX_SITES])
