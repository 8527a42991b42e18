"""Evidence of a device at the moment of a finding: output of commands, and files; bounded in size and time."""

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
MAX_FILES = 8  # per capture


@dataclass(frozen=True, slots=True)
class MatchedFile:
    """A file: its path, size in bytes and time of last change (s since 1970 by the device's clock)."""

    path: str
    size: int
    changed_s: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence: ``of`` is the command or path; ``trouble`` says why it is missing or cut."""

    of: str
    data: bytes
    file: bool = False
    trouble: str = ""


class EvidenceSource(Protocol):
    """Where evidence comes from. Every method raises HookFailedError."""

    @property
    def name(self) -> str:
        """Its name in sentences."""
        ...

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """A command's output (``MAX_OUTPUT`` at most), and what went wrong."""
        ...

    async def find(self, pattern: str) -> Sequence[MatchedFile]:
        """The files that match a glob."""
        ...

    async def read(self, path: str, most: int) -> bytes:
        """The first ``most`` bytes of a file."""
        ...


OpenSource = AbstractAsyncContextManager[EvidenceSource]


async def gather(
    source: EvidenceSource, commands: Sequence[str], patterns: Sequence[str], timeout_s: float, taken: set[MatchedFile]
) -> AsyncIterator[Evidence]:
    """Yields the evidence: the commands in order, then the newest files not yet in ``taken``, which are added to it. A
    piece that cannot be had is yielded with its trouble."""
    for command in commands:
        try:
            output, trouble = await source.run(command, timeout_s)
        except HookFailedError as failure:
            output, trouble = b"", str(failure)
        yield Evidence(command, output, trouble=trouble)
    matches: set[MatchedFile] = set()
    for pattern in patterns:
        try:
            matches |= set(await source.find(pattern))
        except HookFailedError as failure:
            yield Evidence(pattern, b"", file=True, trouble=str(failure))
    fresh = sorted(matches - taken, key=lambda file: (-file.changed_s, file.path))
    for file in fresh[:MAX_FILES]:
        taken.add(file)
        yield await _fetched(source, file)
    if len(fresh) > MAX_FILES:
        left = f"{len(fresh) - MAX_FILES} older files are left on {source.name}: {MAX_FILES} are fetched at a time"
        yield Evidence(posixpath.dirname(fresh[MAX_FILES].path), b"", file=True, trouble=left)


async def _fetched(source: EvidenceSource, file: MatchedFile) -> Evidence:
    if file.size > MAX_FILE_SIZE:
        trouble = (
            f"{file.path} has {show_bytes(file.size)}, over {show_bytes(MAX_FILE_SIZE)}: it is left on {source.name}"
        )
        return Evidence(file.path, b"", file=True, trouble=trouble)
    try:
        data = await source.read(file.path, MAX_FILE_SIZE + 1)
    except HookFailedError as failure:
        return Evidence(file.path, b"", file=True, trouble=str(failure))
    if len(data) > MAX_FILE_SIZE:  # it grew since it was found
        return Evidence(
            file.path, b"", file=True, trouble=f"{file.path} grew over {show_bytes(MAX_FILE_SIZE)}: it is left"
        )
    return Evidence(file.path, data, file=True)
