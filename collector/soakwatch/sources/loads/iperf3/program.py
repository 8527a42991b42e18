"""The program iperf3: its version, and its arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass

from soakwatch.sources.programs.running import version_of

_VERSION = re.compile(r"iperf ([3-9]|\d\d{1,3})\.(\d{1,6})")
_STREAM_SINCE = (3, 17)
THREADS_SINCE = (3, 16)


@dataclass(frozen=True, slots=True)
class Program:
    """An installed iperf3."""

    name: str
    version: tuple[int, int]

    @property
    def streams(self) -> bool:
        """True if it can write one JSON event a line."""
        return self.version >= _STREAM_SINCE

    @property
    def output(self) -> tuple[str, ...]:
        """Arguments for an output that can be read while it grows."""
        return ("--json-stream",) if self.streams else ("-f", "k", "-V")

    @property
    def shown(self) -> str:
        """The version as text."""
        return ".".join(map(str, self.version))


async def find(name: str) -> Program:
    """The program with its version. Raises SourceError if it is missing or not iperf3."""
    match = await version_of(name, ["--version"], _VERSION, "iperf3")
    return Program(name, (int(match[1]), int(match[2])))
