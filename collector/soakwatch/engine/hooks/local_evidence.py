"""Evidence of this machine."""

from __future__ import annotations

import asyncio
import glob
import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path

from soakwatch.core.redaction import Redaction
from soakwatch.core.run_command import run_command
from soakwatch.engine.hooks.evidence import MAX_OUTPUT, MatchedFile
from soakwatch.engine.hooks.trigger import HookFailedError

_MAX_FOUND = 1000


class LocalHost:
    """See EvidenceSource."""

    name = "this machine"

    async def run(self, command: str, timeout_s: float) -> tuple[bytes, str]:
        """Runs it by ``sh``."""
        result = await run_command(["sh", "-c", command], {}, timeout_s, asyncio.Event(), Redaction(), MAX_OUTPUT)
        return result.output, result.failure

    async def find(self, pattern: str) -> Sequence[MatchedFile]:
        """Regular files only."""
        return await asyncio.to_thread(_find, pattern)

    async def read(self, path: str, most: int) -> bytes:
        """The first bytes of a file."""
        try:
            return await asyncio.to_thread(_read, path, most)
        except OSError as error:
            raise HookFailedError(
                f"{path} cannot be read: {(error.strerror or type(error).__name__).lower()}"
            ) from None


def _find(pattern: str) -> list[MatchedFile]:
    files = []
    for path in islice(glob.iglob(pattern), _MAX_FOUND):
        try:
            status = Path(path).stat()
        except OSError:
            continue  # gone meanwhile
        if stat.S_ISREG(status.st_mode):
            files.append(MatchedFile(path, status.st_size, status.st_mtime))
    return files


def _read(path: str, most: int) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # if it is a pipe now, open would wait for a writer
    with open(descriptor, "rb") as file:
        return file.read(most)


@asynccontextmanager
async def local_host() -> AsyncIterator[LocalHost]:
    """This machine."""
    yield LocalHost()
