"""Writes a run's plan and its scripts, so that the run can be repeated; of a campaign's run also what was done before
and after it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from soakwatch.campaign.run_setup import META as SETUP
from soakwatch.campaign.run_setup import RunSetup, setup_of
from soakwatch.core.errors import RecordError
from soakwatch.core.yaml import parse
from soakwatch.plan.kept_scripts import KIND, MASKED, script_of, scripts_of
from soakwatch.record import Artifact, RecordView, artifact_name
from soakwatch.transfer.export.staging import ExportError, staging

PLAN = "plan.yaml"
AROUND = {"before": "campaign-before.sh", "after": "campaign-after.sh"}
"""The scripts of what a campaign did around the run."""


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The written files, and notes for the user."""

    files: tuple[Path, ...]
    notes: tuple[str, ...]


def write_plan(record: Path, folder: Path, *, force: bool = False) -> PlanFiles:
    """Writes ``plan.yaml`` as recorded, and each script where the plan looks for it; those with an absolute path, or
    outside the folder, go below ``scripts``. What a campaign did around the run is a script each.

    Raises ExportError if the record has no plan, or writing fails, RecordError if it is damaged.
    """
    with RecordView.open(record) as view:
        text = view.meta("plan")
        if not text:
            raise ExportError(f"{record} holds no plan: its readings were imported")
        setup = _setup(view)
        scripts = [view.artifact(entry.name) for entry in view.artifact_entries() if entry.kind == KIND]
    around = dict(setup.commands)
    ran = [name for words in around.values() if (name := script_of(words))]
    wanted = dict.fromkeys((*scripts_of(parse(text, "plan").data), *ran))
    notes: list[str] = []
    files: list[Path] = []
    with staging(force=force) as staged:
        staged.file(folder / PLAN).write_text(text, encoding="utf-8")
        files.append(folder / PLAN)
        for when, words in around.items():
            draft = staged.file(folder / AROUND[when])
            draft.write_text(setup.script(when, words), encoding="utf-8")
            draft.chmod(0o755)
            files.append(folder / AROUND[when])
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
                runs = "the campaign" if script.about in ran else "the plan"
                notes.append(f"{path}: {runs} runs {script.about}: copy it there, or change the plan")
    kept = {script.about for script in scripts}
    notes += [
        f"{name} is not in the record: {'the campaign' if name in ran else 'the plan'} runs it from where it is on "
        "this machine"
        for name in wanted
        if name not in kept and "/" in name
    ]
    if around:
        first, last = (f"{folder / AROUND[when]}" if when in around else "" for when in AROUND)
        course = [each for each in (first, f"soakwatch run {folder / PLAN}", last) if each]
        notes.append(f"a run of a campaign: {', then '.join(course)}")
    return PlanFiles(tuple(files), tuple(notes))


def _setup(view: RecordView) -> RunSetup:
    text = view.meta(SETUP)
    try:
        return setup_of(text) if text else RunSetup()
    except ValueError:
        raise RecordError(f"{view.path}: what its campaign ran around it is damaged") from None


def _place(script: Artifact) -> PurePosixPath:
    """Where a script goes: to its own relative path if that stays within the folder."""
    path = PurePosixPath(script.about)
    safe = PurePosixPath(artifact_name(*path.parts)) if path.parts else path
    if not path.is_absolute() and path == safe and str(safe) not in {PLAN, *AROUND.values()}:
        return path
    return PurePosixPath("scripts", artifact_name(PurePosixPath(script.name).name))
