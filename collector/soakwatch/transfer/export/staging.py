"""Files that appear complete or not at all: written under another name and renamed when all are done."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from soakwatch.core.errors import SoakwatchError


class ExportError(SoakwatchError):
    """An export cannot be written."""


@dataclass(slots=True)
class Staging:
    """Files being written. Without ``force`` no existing file is replaced."""

    force: bool
    _files: list[tuple[Path, Path]] = field(default_factory=list)

    def file(self, path: Path) -> Path:
        """Where to write what becomes ``path``. Raises ExportError if that exists, or is written twice."""
        self._check(path)
        if any(path == final for _, final in self._files):
            raise ExportError(f"{path} would be written twice: name a folder with --output")
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.part")
        self._files.append((draft, path))
        return draft

    def _check(self, path: Path) -> None:
        if path.is_dir():
            raise ExportError(f"{path} is a folder, and a file of that name is to be written: name another --output")
        if not self.force and path.exists():
            raise ExportError(f"{path} exists: name another --output, or replace it with --force")

    @property
    def latest(self) -> Path | None:
        """The file begun last."""
        return self._files[-1][1] if self._files else None

    def commit(self) -> None:
        """Renames all files to their final names."""
        for _, path in self._files:
            self._check(path)
        for draft, path in self._files:
            draft.replace(path)

    def discard(self) -> None:
        """Removes files that have no final name."""
        for draft, _ in self._files:
            with suppress(OSError):
                draft.unlink()


@contextmanager
def staging(*, force: bool) -> Iterator[Staging]:
    """Files that get their names at the end of the block; after an exception none is left.

    Raises ExportError for the system's errors: a full disk, an unwritable folder.
    """
    staged = Staging(force)
    try:
        yield staged
        staged.commit()
    except OSError as error:
        place = error.filename or staged.latest or "the export"
        why = error.strerror or str(error) or type(error).__name__
        raise ExportError(
            f"{os.fspath(place)} cannot be written ({why[:1].lower()}{why[1:]}): name another folder with --output"
        ) from None
    finally:
        staged.discard()
