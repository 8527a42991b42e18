"""Bundle a run into one file: record, plan, scripts, reports, digest and signature, to be judged again elsewhere."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch bundle last -o fw-7.2.tar.gz
  soakwatch verify fw-7.2.tar.gz --allowed-signers allowed_signers
  soakwatch judge fw-7.2.tar.gz
\b
The same run gives the same file, byte for byte. SHA256SUMS in it has the digests of its files, and README.txt says
how seal and signature are checked by hand. docs/seal.md says what that proves."""
)
@click.argument("run", metavar="RUN")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    show_default="RUN.tar.gz",
    help="File to write ('-': standard output).",
)
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@runs_option()
def command(run: str, output: Path | None, force: bool, runs_folder: Path) -> None:  # noqa: FBT001 - click's signature
    """Bundle RUN (a folder, a record file, or 'last'), which must have ended."""
    from soakwatch.core.units import show_bytes
    from soakwatch.runs.catalog import find_run
    from soakwatch.transfer.export.bundle import SUFFIX, write_bundle

    found = find_run(run, runs_folder)
    name = found.stem if found.is_file() else found.resolve().name
    if str(output) == "-":
        with TemporaryDirectory(prefix="soakwatch-bundle-") as folder:
            written = write_bundle(found, Path(folder) / f"{name}{SUFFIX}", force=force)
            with written.path.open("rb") as stream:
                shutil.copyfileobj(stream, sys.stdout.buffer)
        place = "standard output"
    else:
        written = write_bundle(found, output or Path(f"{name}{SUFFIX}"), force=force)
        place = f"{written.path} ({show_bytes(written.path.stat().st_size)}, {len(written.files)} files)"
    click.echo(f"bundle  {place}", err=str(output) == "-")
    digest = f"digest  {written.digest}" if written.digest else "not sealed: nothing proves that it was not changed"
    click.echo(digest, err=str(output) == "-")
