"""Write a note about a run, which lists of runs show: what was changed, why it failed, who looks at it."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch note last "fan 2 was replaced at 14:10"
  soakwatch note last
  soakwatch note last --remove
\b
The note is the file note.txt beside the record. The record, its verdict and its seal do not change."""
)
@click.argument("run", metavar="RUN")
@click.argument("text", required=False)
@click.option("--remove", is_flag=True, help="Remove the note.")
@runs_option()
def command(run: str, text: str | None, runs_folder: Path, *, remove: bool) -> None:
    """Write TEXT as the note of RUN (a folder, a record file, or 'last'), or show the one that it has."""
    from soakwatch.core.tables import harmless
    from soakwatch.record import record_file
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.run_note import note_of, write_note

    if remove and text:
        raise click.UsageError("give a text, or --remove")
    found = find_run(run, runs_folder)
    if text is not None or remove:
        write_note(found, text or "")
        return
    click.echo(harmless(note_of(record_file(found).parent)) or f"{run} has no note")
