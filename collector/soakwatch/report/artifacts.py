"""The files of a run: what scripts said, and the evidence that hooks brought; in a line, and on the disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.core.units import show_bytes
from soakwatch.record import ArtifactEntry, RecordView, artifact_name
from soakwatch_rules.wording.words import counted, some

_NAMED = 3


def files_text(entries: Sequence[ArtifactEntry]) -> str:
    """One line for those who see no page; empty where there is none."""
    if not entries:
        return ""
    size = show_bytes(sum(entry.size for entry in entries))
    return f"{counted(len(entries), 'file')} in the record ({size}): {some([e.name for e in entries], _NAMED)}"


def write_files(view: RecordView, folder: Path) -> list[Path]:
    """Write every file of a record below a folder, under its name; what lies there under such a name is replaced.

    Raises RecordError if the folder cannot be written.
    """
    written = []
    for entry in view.artifact_entries():
        # Whoever made the record may have given any name: nothing is written outside of the folder.
        path = folder / artifact_name(*entry.name.split("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(view.artifact(entry.name).data)
        except OSError as error:
            raise RecordError(f"{path} cannot be written ({error.strerror}): name another folder") from None
        written.append(path)
    return written
