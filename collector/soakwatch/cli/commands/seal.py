"""Seal a record that has none yet, or sign the seal of a run that has ended."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option, sign_option


@click.command(
    epilog="""\b
Examples:
  soakwatch seal last --sign-with ~/.ssh/id_ed25519
  soakwatch seal runs/20261121T200000Z-fw-7.2 --sign-with ~/.ssh/lab.pub
\b
A run is sealed when it ends; 'soakwatch run --sign-with KEY' signs it then. A record that was changed since it was
sealed is not sealed again: it would hide the change. Exit codes: 0 sealed, 2 it cannot be sealed or signed."""
)
@click.argument("run", metavar="RUN")
@sign_option
@runs_option()
def command(run: str, sign_with: Path | None, timestamp: str, runs_folder: Path) -> None:
    """Seal the record of RUN (a folder, a record file, or 'last'), and sign the seal with an SSH key."""
    from soakwatch.core.errors import RecordError
    from soakwatch.record import Record, RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.sealing import Sealing, seal

    found = find_run(run, runs_folder)
    how = Sealing(sign_with, timestamp)
    how.try_out()
    with RecordView.open(found) as view:
        if "ended_ns" not in view.metas():
            raise RecordError(
                f"{found} has not ended: it is sealed at its end (a run that broke off: soakwatch resume)"
            )
        checked = view.check()
    if checked.changed:
        raise RecordError(f"{found} was {checked.words}: it is not sealed again")
    with Record.open(found) as record:
        checked, doubt = seal(record, how)
        record.finish()
    if doubt:
        raise RecordError(doubt)
    made = checked.seal
    assert made is not None
    click.echo(f"sealed  {made.digest}")
