"""Evidence of a device at the moment of a finding: the output of commands, and files. Bounded in size and time."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from soakwatch.core.units import show_bytes
from soakwatch.engine.hooks.trigger import HookFailedError

MAX_OUTPUT = 1 << 20
MAX_FILE_SIZE = 16 << 20
MAX_FILES = 8  # a capture


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file that is there: its path, size and time of its last change (s since 1970, the device's clock)."""

    path: str
    size: int
    changed_s: float


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece of evidence: ``of`` is the command or the path. ``trouble`` says why it is missing or cut."""

    of: str
    data: bytes
    file: bool = False
    trouble: str = ""


class EvidenceSource(Protocol):
    """Where evidence is taken. Every method raises HookFailedError."""

    @property
    def name(self) -> str:
        """For sentences."""
        ...

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """What a command said (``MAX_OUTPUT`` at most), and what went wrong with it."""
        ...

    async def find(self, pattern: str) -> Sequence[MatchedFile]:
        """The files that a glob means."""
        ...

    async def read(self, path: str, most: int) -> bytes:
        """The first bytes of a file."""
        ...


OpenSource = AbstractAsyncContextManager[EvidenceSource]


async def gather(
    source: EvidenceSource, commands: Sequence[str], patterns: Sequence[str], timeout_s: float, taken: set[MatchedFile]
) -> AsyncIterator[Piece]:
    """The evidence of a place, piece by piece: commands in their order, then the newest files that were not ``taken``
    before (those that are now, are added). A piece that cannot be had is a piece with its trouble."""
    for command in commands:
        try:
            output, trouble = await source.run(command, timeout_s)
        except HookFailedError as failure:
            output, trouble = b"", str(failure)
        yield Piece(command, output, trouble=trouble)
    matches: set[MatchedFile] = set()
    for pattern in patterns:
        try:
            matches |= set(await source.find(pattern))
        except HookFailedError as failure:
            yield Piece(pattern, b"", file=True, trouble=str(failure))
    fresh = sorted(matches - taken, key=lambda file: (-file.changed_s, file.path))
    for file in fresh[:MAX_FILES]:
        taken.add(file)
        yield await _fetched(source, file)
    if len(fresh) > MAX_FILES:
        left = f"{len(fresh) - MAX_FILES} older files are left on {source.name}: {MAX_FILES} are fetched at a time"
        yield Piece(posixpath.dirname(fresh[MAX_FILES].path), b"", file=True, trouble=left)


async def _fetched(source: EvidenceSource, file: MatchedFile) -> Piece:
    if file.size > MAX_FILE_SIZE:
        trouble = (
            f"{file.path} has {show_bytes(file.size)}, over {show_bytes(MAX_FILE_SIZE)}: it is left on {source.name}"
        )
        return Piece(file.path, b"", file=True, trouble=trouble)
    try:
        data = await source.read(file.path, MAX_FILE_SIZE + 1)
    except HookFailedError as failure:
        return Piece(file.path, b"", file=True, trouble=str(failure))
    if len(data) > MAX_FILE_SIZE:  # it grew meanwhile
        return Piece(
            file.path, b"", file=True, trouble=f"{file.path} grew over {show_bytes(MAX_FILE_SIZE)}: it is left"
        )
    return Piece(file.path, data, file=True)
