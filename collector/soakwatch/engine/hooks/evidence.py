"""Evidence of a device at the moment of a finding: what commands say, and files. Bounded in every direction."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from soakwatch.core.units import show_bytes
from soakwatch.engine.hooks.occasion import HookFailedError

MOST_OUTPUT = 1 << 20
MOST_FILE = 16 << 20
MOST_FILES = 8  # a capture


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is there: its path, size and time of its last change (s since 1970, the device's clock)."""

    path: str
    size: int
    changed_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence: ``of`` is the command or the path. ``trouble`` tells why it is not there or not whole."""

    of: str
    data: bytes
    file: bool = False
    trouble: str = ""


class Place(Protocol):
    """Where evidence is taken. Every method raises HookFailedError."""

    @property
    def name(self) -> str:
        """For sentences."""
        ...

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """What a command said (``MOST_OUTPUT`` at most), and what went wrong with it."""
        ...

    async def find(self, pattern: str) -> Sequence[Found]:
        """The files that a glob means."""
        ...

    async def read(self, path: str, most: int) -> bytes:
        """The first bytes of a file."""
        ...


Opened = AbstractAsyncContextManager[Place]


async def gather(
    place: Place, commands: Sequence[str], patterns: Sequence[str], timeout_s: float, taken: set[Found]
) -> AsyncIterator[Piece]:
    """The evidence of a place, piece by piece: commands in their order, then the newest files that were not ``taken``
    before (those that are now, are added). A piece that cannot be had is a piece with its trouble."""
    for command in commands:
        try:
            said, trouble = await place.run(command, timeout_s)
        except HookFailedError as failure:
            said, trouble = b"", str(failure)
        yield Piece(command, said, trouble=trouble)
    found: set[Found] = set()
    for pattern in patterns:
        try:
            found |= set(await place.find(pattern))
        except HookFailedError as failure:
            yield Piece(pattern, b"", file=True, trouble=str(failure))
    fresh = sorted(found - taken, key=lambda one: (-one.changed_s, one.path))
    for one in fresh[:MOST_FILES]:
        taken.add(one)
        yield await _fetched(place, one)
    if len(fresh) > MOST_FILES:
        left = f"{len(fresh) - MOST_FILES} older files are left on {place.name}: {MOST_FILES} are fetched at a time"
        yield Piece(posixpath.dirname(fresh[MOST_FILES].path), b"", file=True, trouble=left)


async def _fetched(place: Place, one: Found) -> Piece:
    if one.size > MOST_FILE:
        trouble = f"{one.path} has {show_bytes(one.size)}, over {show_bytes(MOST_FILE)}: it is left on {place.name}"
        return Piece(one.path, b"", file=True, trouble=trouble)
    try:
        data = await place.read(one.path, MOST_FILE + 1)
    except HookFailedError as failure:
        return Piece(one.path, b"", file=True, trouble=str(failure))
    if len(data) > MOST_FILE:  # it grew meanwhile
        return Piece(one.path, b"", file=True, trouble=f"{one.path} grew over {show_bytes(MOST_FILE)}: it is left")
    return Piece(one.path, data, file=True)
