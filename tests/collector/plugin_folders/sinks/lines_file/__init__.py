"""Appends lines to a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from soakwatch.plan.sink_plan import SinkConfig
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.block import Block


class Config(SinkConfig):
    """The keys of a plan."""

    path: Annotated[str, Field(min_length=1, description="file to append to")]


@dataclass(frozen=True)
class LinesFile:
    """A file."""

    path: str
    secrets: tuple[str, ...] = ()
    replay_s: float = 0.0
    grain_ns: int = 1

    @property
    def where(self) -> str:
        """The file."""
        return self.path

    def open(self, refuse: Callable[[RefusedLine], None], timeout_s: float | None = None) -> Appender:
        """Nothing to open before the first line."""
        return Appender(self, refuse)


class Appender:
    """An open file."""

    connections, size = 1, 500

    def __init__(self, to: LinesFile, refuse: Callable[[RefusedLine], None]) -> None:
        self.to = to
        self._refuse = refuse
        self.written = self.refused = 0

    def write(self, lines: Block) -> None:
        """Append all lines."""
        try:
            with Path(self.to.path).open("ab") as file:
                file.write(lines.text + b"\n")
        except OSError as error:
            raise SinkUnavailableError(f"{self.to.path} cannot be written: {error.strerror}") from None
        self.written += lines.count

    def try_out(self) -> None:
        """Its folder must be there."""
        if not Path(self.to.path).parent.is_dir():
            raise SinkUnavailableError(f"{self.to.path} has no folder: create it", wrong=True)

    def close(self) -> None:
        """Nothing stays open."""


def destination(config: Config) -> LinesFile:
    """Where a plan's sink writes."""
    return LinesFile(config.path)
