"""Show the manual page of a command, or write all manual pages into a folder"""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch man run
  soakwatch man campaign report
  soakwatch man --to ~/.local/share/man/man1     # then also: man soakwatch-run
  soakwatch man run | man -l -"""
)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a page for every command there, as files soakwatch-COMMAND.1.",
)
def command(words: tuple[str, ...], to: Path | None) -> None:
    """Show the manual page of COMMAND, or of soakwatch itself. Into a pipe it is written in roff, for 'man -l -'."""
    import shutil
    import subprocess
    import sys
    from importlib.metadata import version

    from soakwatch.cli.main import soakwatch
    from soakwatch.cli.man_page import man_page, man_pages

    if to is not None:
        to.mkdir(parents=True, exist_ok=True)
        pages = dict(man_pages(soakwatch, version("soakwatch")))
        for name, page in pages.items():
            (to / name).write_text(page, encoding="utf-8")
        click.echo(f"wrote {len(pages)} manual pages to {to}")
        return
    text = man_page(soakwatch, words, version("soakwatch"))
    if sys.stdout.isatty() and shutil.which("man"):
        subprocess.run(["man", "-l", "-"], input=text, text=True, check=False)
    else:
        click.echo(text, nl=False)
