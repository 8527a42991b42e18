"""Writes a run's plan and its scripts, so that the run can be repeated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from soakwatch.core.yaml import parse
from soakwatch.plan.kept_scripts import KIND, MASKED, scripts_of
from soakwatch.record import Artifact, RecordView, artifact_name
from soakwatch.transfer.export.staging import ExportError, staging

PLAN = "plan.yaml"


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The written files, and notes for the user."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


def write_plan(record: Path, folder: Path, *, force: bool = False) -> PlanFiles:
    """Writes ``plan.yaml`` as recorded, and each script where the plan looks for it; those with an absolute path, or
    outside the folder, go below ``scripts``.

    Raises ExportError if the record has no plan, or writing fails.
    """
    with RecordView.open(record) as view:
        text = view.meta("plan")
        if not text:
            raise ExportError(f"{record} holds no plan: its readings were imported")
        scripts = [view.artifact(entry.name) for entry in view.artifact_entries() if entry.kind == KIND]
    wanted = dict.fromkeys(scripts_of(parse(text, "plan").data))
    notes: list[str] = []
    files: list[Path] = []
    with staging(force=force) as staged:
        staged.file(folder / PLAN).write_text(text, encoding="utf-8")
        files.append(folder / PLAN)
        for script in scripts:
            place = _place(script)
            path = folder / place
            draft = staged.file(path)
            draft.write_bytes(script.data)
            draft.chmod(0o755 if script.data.startswith(b"#!") else 0o644)
            files.append(path)
            if script.media == MASKED:
                notes.append(f"{path}: secrets were replaced by *** when it was recorded: put them in again")
            if PurePosixPath(script.about) != place:
                notes.append(f"{path}: the plan runs {script.about}: copy it there, or change the plan")
    kept = {script.about for script in scripts}
    notes += [
        f"{name} is not in the record: the plan runs it from where it is on this machine"
        for name in wanted
        if name not in kept and "/" in name
    ]
    return PlanFiles(tuple(files), tuple(notes))


def _place(script: Artifact) -> PurePosixPath:
    """Where a script goes: to its own relative path if that stays within the folder."""
    path = PurePosixPath(script.about)
    safe = PurePosixPath(artifact_name(*path.parts)) if path.parts else path
    if not path.is_absolute() and path == safe and safe.name != PLAN:
        return path
    return PurePosixPath("scripts", artifact_name(PurePosixPath(script.name).name))
