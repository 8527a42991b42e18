"""InfluxDB's line protocol: the lines that a sink of the run would be given, in a file instead of a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from soakwatch.export.readings import Run
from soakwatch.export.staging import ExportError
from soakwatch.sinks.abc import RefusedLine
from soakwatch.sinks.block import Block
from soakwatch.sinks.push import push

_LINES = 20_000  # at a time


@dataclass(slots=True)
class LineFile:
    """A sink that appends lines to an open file, and is its own destination: it never refuses and never loses one."""

    file: IO[bytes]
    where: str
    secrets: tuple[str, ...] = ()
    replay_s: float = 0.0
    grain_ns: int = 1
    written: int = 0
    refused: int = 0
    connections: int = 1
    size: int = _LINES

    @property
    def to(self) -> LineFile:
        """Where it writes."""
        return self

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> LineFile:  # noqa: ARG002
        """It is open already."""
        return self

    def write(self, lines: Block) -> None:
        """Write all lines. Raises OSError where the disk is full: to try again would write half of them twice."""
        if lines.count:
            self.file.write(lines.text + b"\n")
            self.written += lines.count

    def try_out(self) -> None:
        """A file that is open takes lines."""

    def close(self) -> None:
        """The file is closed by whoever opened it."""


def write_lines(file: IO[bytes], run: Run, where: Path) -> int:
    """Append everything that a sink would be given of a run: readings, polls, events, findings and the verdict.

    Returns the number of lines. Raises RecordError, OSError, and ExportError where it was broken off.
    """
    pushed = push(run.path, run.name, LineFile(file, str(where)), patience_s=60.0)
    if pushed.error is not None:
        raise ExportError(f"{where} is not complete: {pushed.error}")
    return pushed.written
