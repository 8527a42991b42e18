"""InfluxDB line protocol: the lines that a sink of the run would get, in a file instead of a database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from soakwatch.transfer.export.readings import Run
from soakwatch.transfer.export.staging import ExportError
from soakwatch.transfer.sinks.abc import RefusedLine
from soakwatch.transfer.sinks.block import Block
from soakwatch.transfer.sinks.push import push

_LINES = 20_000  # per write


@dataclass(slots=True)
class LineFile:
    """A sink that appends lines to an open file and is its own destination; it never refuses or loses a line."""

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
        """Does nothing: the file is open."""
        return self

    def write(self, lines: Block) -> None:
        """Writes all lines. Raises OSError if the disk is full; a retry would write some lines twice."""
        if lines.count:
            self.file.write(lines.text + b"\n")
            self.written += lines.count

    def try_out(self) -> None:
        """Does nothing: an open file takes lines."""

    def close(self) -> None:
        """Does nothing: whoever opened the file closes it."""


def write_lines(file: IO[bytes], run: Run, where: Path) -> int:
    """Appends everything that a sink would get of a run: readings, polls, events, findings and the verdict.

    Returns the number of lines. Raises RecordError, OSError, and ExportError if it is incomplete.
    """
    pushed = push(run.path, run.name, LineFile(file, str(where)), patience_s=60.0)
    if pushed.error is not None:
        raise ExportError(f"{where} is not complete: {pushed.error}")
    return pushed.written
