"""Check that every file of an archive is as it was written, and say which runs a damaged one held."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch archive check
  soakwatch archive check /srv/archive
  soakwatch archive check --drop; soakwatch archive add runs
\b
--drop takes the nights with damaged tables, and the runs with damaged readings,
out of the archive, so that their records can be added again.
\b
Exit codes: 0 every file is as it was written; 1 one is not; 2 it is no archive.""",
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default="archive")
@click.option("--drop", is_flag=True, help="Take what is damaged out of the archive.")
def command(folder: Path, drop: bool) -> int:  # noqa: FBT001 - click's signature
    """Check the archive in FOLDER by the SHA-256 of its files (default: archive)."""
    from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS
    from soakwatch.core.tables import harmless
    from soakwatch.core.units import show_bytes
    from soakwatch.transfer.archive.checking import check, drop_damaged
    from soakwatch_rules.wording.quantities import counted

    checked = check(folder)
    for path, why in checked.damaged.items():
        click.echo(harmless(f"{folder / path} {why}"))
    for line in checked.lost:
        click.echo(harmless(f"  lost: {line}"))
    whole = f"{counted(checked.files, 'file')}, {show_bytes(checked.bytes)}, {counted(checked.runs, 'run')}"
    if not checked.damaged:
        click.echo(f"{folder}: {whole}, as written")
        return EXIT_PASS
    click.echo(f"{folder}: {whole}; {counted(len(checked.damaged), 'file')} damaged")
    if drop:
        drop_damaged(folder, checked, lambda: click.echo("another process adds: waiting for its end", err=True))
        click.echo("what was damaged is no part of the archive any longer: add its runs again")
    return EXIT_FAIL
