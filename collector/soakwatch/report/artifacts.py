"""The files of a run, written to the disk: output of scripts, and evidence that hooks collected."""

from __future__ import annotations

from pathlib import Path

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView, artifact_name


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
