"""Verify that a record is whole and as it was sealed, and who signed it; say what was changed, and where."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch verify last
  soakwatch verify runs/20261121T200000Z-fw-7.2 --digest 54916e521f5941f1…
  soakwatch verify fw-7.2.tar.gz --allowed-signers allowed_signers
  soakwatch verify last --json | jq -r .state
\b
allowed_signers is a file of 'man ssh-keygen', a line a signer:
  lab@example.com namespaces="soakwatch@record" ssh-ed25519 AAAA…
Without a signature or a digest that was kept elsewhere, a seal tells damage and careless changes only: whoever can
write the file can seal it again (docs/seal.md).
\b
Exit codes: 0 whole and as sealed, 1 changed or not signed by an allowed signer, 2 usage error or no record,
3 cannot be decided: not sealed (its chain is checked up to now), or not signed."""
)
@click.argument("run", metavar="RUN|BUNDLE")
@click.option(
    "--allowed-signers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of those who may have signed it, as ssh-keygen has it.",
)
@click.option(
    "--tsa-ca",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Root certificate (PEM) of the authority that stamped its time.",
)
@click.option("--digest", metavar="HEX", default="", help="Digest that was printed or kept when it was sealed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@runs_option()
def command(
    run: str,
    allowed_signers: Path | None,
    tsa_ca: Path | None,
    digest: str,
    as_json: bool,  # noqa: FBT001 - click's signature
    runs_folder: Path,
) -> int:
    """Verify the record of RUN (a folder, a record file, 'last'), or of a file that 'soakwatch bundle' made."""
    import json

    from soakwatch.core.tables import harmless
    from soakwatch.record import RecordView
    from soakwatch.runs.verification import verify
    from soakwatch.transfer.export.bundle import opened_run

    if digest and (len(digest) != 64 or set(digest.lower()) - set("0123456789abcdef")):
        raise click.UsageError("--digest: a digest has 64 hexadecimal digits")
    with opened_run(run, runs_folder) as found, RecordView.open(found) as view:
        result = verify(view, allowed_signers, digest, tsa_ca)
    if as_json:
        click.echo(json.dumps(result.document(), indent=2, allow_nan=False))
    else:
        for line in result.lines:
            click.echo(harmless(line))
    return result.exit_code
