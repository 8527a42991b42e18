"""Write a commented plan to start from."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from soakwatch.core.errors import EXIT_INTERRUPTED, EXIT_PASS, SoakwatchError


@click.command(
    epilog="""\b
Examples:
  soakwatch init
  soakwatch init -o plan.yaml --target local --process nginx --duration 24h
  soakwatch init -o - --process 'snort*' --process pidfile:/run/bgpd.pid
  soakwatch init --target 'snmp://198.18.0.1?version=2c' --target ssh://soak@198.18.0.1 --interval 10s"""
)
@click.option("-o", "--output", default="plan.yaml", show_default=True, help="File to write, or - for stdout.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    show_default="local",
    help="What to poll: local, snmp://HOST, ssh://USER@HOST … May be repeated.",
)
@click.option(
    "--process",
    "processes",
    multiple=True,
    metavar="NAME",
    help="Process to watch: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:FILE. May be repeated.",
)
@click.option("--duration", show_default="24h", help="Length of the run.")
@click.option("--interval", show_default="1s", help="Time between polls.")
@click.option("--name", help="Name of the run.")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
def command(
    output: str,
    targets: tuple[str, ...],
    processes: tuple[str, ...],
    duration: str | None,
    interval: str | None,
    name: str | None,
    force: bool,  # noqa: FBT001 - click's signature
) -> int:
    """Write a commented plan; without options on a terminal, ask what is tested, how it is reached, load and length."""
    from soakwatch.plan import plan_from_text, quick_plan
    from soakwatch.plan.commented_plan import draft

    if output != "-" and Path(output).exists() and not force:
        raise SoakwatchError(f"{output} exists: choose another file with -o, or overwrite it with --force")
    if not (targets or processes or duration or interval or name) and sys.stdin.isatty() and sys.stdout.isatty():
        return _interview(output, force=force)
    wanted = quick_plan(targets or ("local",), processes, interval or "1s", duration or "24h", name)
    text = draft(wanted.name, duration or "24h", interval or "1s", processes, targets or ("local",))
    plan_from_text(text, output if output != "-" else "plan.yaml")
    _write(output, text, force=force)
    if output != "-":
        click.echo(f"wrote {output}; next: soakwatch check {output}")
    return EXIT_PASS


def _interview(output: str, *, force: bool) -> int:
    """Ask, write the plan, and check it; if the user stops, write what was answered so far."""
    from soakwatch.cli.wizard import StoppedError, ask

    try:
        answers = ask()
    except StoppedError as stopped:
        if stopped.answers.is_empty:
            raise click.Abort from None
        _write(output, stopped.answers.text, force=force)
        click.echo(f"\nstopped: {output} has what was answered; go on in it with an editor")
        return EXIT_INTERRUPTED
    _write(output, answers.text, force=force)
    click.echo(f"wrote {output}")
    if output == "-" or not click.confirm("Check it now (polls the device twice)", default=True):
        return EXIT_PASS
    from soakwatch.cli.commands.check import command as check

    return int(click.get_current_context().invoke(check, plan=Path(output), values=(), no_connect=False, verbose=False))


def _write(output: str, text: str, *, force: bool) -> None:
    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        with Path(output).open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SoakwatchError(f"{output} cannot be written: {error.strerror}: choose another file with -o") from None
