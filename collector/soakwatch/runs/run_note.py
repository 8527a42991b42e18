"""What people write about a run: one text beside its record, which the record and its seal know nothing of."""

from __future__ import annotations

from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.private_files import shared_mode, write_private
from soakwatch.record import record_file

FILE = "note.txt"
MAX_LETTERS = 500


def note_of(folder: Path) -> str:
    """The note of the run in a folder, in one line; "" without one."""
    try:
        with (folder / FILE).open(encoding="utf-8", errors="replace") as stream:
            return " ".join(stream.read(4 * MAX_LETTERS).split())[:MAX_LETTERS]
    except OSError:
        return ""


def write_note(run: Path, text: str) -> None:
    """Write the note of a run (its folder or record file) in place of the one before; "" removes it.

    Raises RecordError for one that is too long, and where it cannot be written.
    """
    line = " ".join(text.split())
    if len(line) > MAX_LETTERS:
        raise RecordError(f"a note has at most {MAX_LETTERS} characters, and this one {len(line)}: shorten it")
    record = record_file(run)
    file = record.with_name(FILE)
    try:
        if line:
            write_private(file, f"{line}\n", shared_mode(record))
        else:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise RecordError(f"{file}: cannot be written: {error.strerror or type(error).__name__}") from None
