"""Show the runs that go on now, in whatever folders they are: phase, time left, findings so far, page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path

    from soakwatch.runs.run_status import Status
    from soakwatch_model.tree import Tree


@click.command(
    epilog="""\b
Examples:
  soakwatch ps
  soakwatch ps --json | jq -r '.[].folder'
\b
It reads the records of these runs without affecting them. Watch one with soakwatch watch FOLDER, end it with
soakwatch stop FOLDER."""
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list with one object per run.")
def command(as_json: bool) -> None:  # noqa: FBT001 - click's signature
    """List the runs of this user that are running now, in all folders, oldest first."""
    import json

    from soakwatch.core.tables import show_table
    from soakwatch.runs.running_elsewhere import running_folders

    folders = running_folders()
    if as_json:
        click.echo(json.dumps([_document(folder) for folder in folders], indent=2, allow_nan=False))
        return
    if not folders:
        click.echo("no run of this user is running: start one with 'soakwatch run PLAN'")
        return
    show_table(("run", "state", "elapsed", "left", "so far", "folder", "page"), [_row(folder) for folder in folders])


def _row(folder: Path) -> tuple[str, ...]:
    from soakwatch.core.formatting import printable
    from soakwatch.runs.status_words import span

    status = _status(folder)
    if isinstance(status, str):
        return (folder.name, "unreadable", "?", "?", status, str(folder), "")
    state = f"phase {status.phase}" if status.standing == "running" else status.standing
    times = span(status.elapsed_s), span(status.left_s)
    return (printable(status.run), printable(state), *times, _so_far(status), str(folder), _page(folder))


def _document(folder: Path) -> dict[str, Tree]:
    status = _status(folder)
    if isinstance(status, str):
        return {"folder": str(folder), "trouble": status}
    return {
        "run": status.run,
        "folder": str(folder),
        "state": status.standing,
        "phase": status.phase,
        "elapsed_seconds": status.elapsed_s,
        "left_seconds": status.left_s,
        "judged": status.judged_at_s is not None,
        "findings": {finding.outcome.value: _count(status, finding.outcome.value) for finding in status.findings},
        "page": _page(folder) or None,
        "trouble": status.trouble,
    }


def _status(folder: Path) -> Status | str:
    """The status of a run, or why its record cannot be read."""
    from soakwatch.cli.display.follow import RecordedRun
    from soakwatch.core.errors import RecordError

    try:
        return RecordedRun(folder).read().status
    except RecordError as error:
        return str(error)


def _so_far(status: Status) -> str:
    """The live findings in a few words."""
    if status.judged_at_s is None:
        return "not judged yet"
    failed, warned = (_count(status, word) for word in ("fail", "warn"))
    parts = [f"{failed} failed"] * (failed > 0) + [f"{warned} warned"] * (warned > 0)
    return ", ".join(parts) or "no failure"


def _count(status: Status, word: str) -> int:
    return sum(finding.outcome.value == word for finding in status.findings)


def _page(folder: Path) -> str:
    from soakwatch.runs.catalog import ADDRESS_FILE

    try:
        return (folder / ADDRESS_FILE).read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
