"""Lines that a database refused for good, kept with the reason in a file next to the record, up to 1 MB."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from soakwatch.core.private_files import open_private, shared_mode
from soakwatch.record import RECORD_NAME
from soakwatch.sinks.abc import RefusedLine

_MAX_BYTES = 1_000_000  # bytes


class RefusedLines:
    """Creates the file at the first refused line. If it cannot be written, the line is only counted."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: RefusedLine) -> None:
        """Append one line and its reason."""
        with suppress(OSError):
            if not self.path.exists() or self.path.stat().st_size < _MAX_BYTES:
                with open_private(self.path, shared_mode(self.path.with_name(RECORD_NAME)), append=True) as file:
                    file.write(f"# {line.reason}\n".encode(errors="replace") + line.line[:20_000] + b"\n")
