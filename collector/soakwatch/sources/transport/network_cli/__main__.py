"""For those who write platforms: checks a file, shows its commands, and reads recorded outputs with it.

python -m soakwatch.sources.transport.network_cli my.yaml                     what is wrong with it, or its commands
python -m soakwatch.sources.transport.network_cli my.yaml --try show_cpu FILE what a command makes of an output
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.core.yaml import parse, read_text
from soakwatch.sources.platforms.file import read_platform
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.transport.network_cli.guard import refusal


@click.command(help=__doc__)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--try", "tried", multiple=True, type=(str, click.Path(path_type=Path)), help="a command and its output")
def main(file: Path, tried: tuple[tuple[str, Path], ...]) -> None:
    """Check a platform, or try it."""
    try:
        platform = read_platform(file.stem, parse(read_text(file), file.name))
        lines = [line for name, output in tried for line in _tried(platform, name, output)]
    except SoakwatchError as error:
        for problem in getattr(error, "problems", (str(error),)):
            click.echo(problem, err=True)
        sys.exit(2)
    refused = [
        words
        for text in (*platform.parts, *(text for each in platform.commands for text in each.texts))
        if (words := refusal(text)) is not None
    ]
    for line in lines if tried else _commands(platform):
        click.echo(line)
    for words in refused:
        click.echo(f"{file.name}: {words}", err=True)
    sys.exit(2 if refused else 0)


def _commands(platform: Platform) -> Iterator[str]:
    yield f"{platform.name}: {platform.title} ({len(platform.commands)} commands)"
    for command in platform.commands:
        yield f"  {command.name}: {' | or '.join(command.texts)} -> {', '.join(command.metrics) or 'facts'}"


def _tried(platform: Platform, name: str, output: Path) -> Iterator[str]:
    command = platform.command(name)
    if command is None:
        known = hint(name, [each.name for each in platform.commands])
        raise SoakwatchError(f"{platform.name} has no command {name!r}{known}")
    try:
        text = output.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SoakwatchError(f"{output}: cannot be read: {error.strerror}") from None
    yield f"{output.name}: {platform.name}, {name}"
    yield from _found(command.parse(text))


def _found(parsed: Parsed) -> Iterator[str]:
    if parsed.uptime is not None:
        yield f"  uptime  {parsed.uptime.seconds:g} s, told in steps of {parsed.uptime.step:g} s"
    for name, words in parsed.facts.items():
        yield f"  fact    {name} = {words}"
    for value in parsed.values:
        yield f"  sample  {value.metric}{{{value.object}}} = {value.value:g}"
    for process in parsed.processes:
        yield f"  process {process.name} pid={process.pid} cpu={process.cpu} memory={process.memory}"
    for notable in parsed.notables:
        yield f"  event   {notable.kind} {notable.key}"
    for object_, why in parsed.unsampled.items():
        yield f"  left    {object_}: {why}"
    for fault in parsed.faults:
        yield f"  fault   {fault.metric}{{{fault.object}}}: {fault.text}"
    for line in parsed.unknown:
        yield f"  unknown {line}"
    if parsed.strange > len(parsed.unknown):
        yield f"  unknown … {parsed.strange} lines"


if __name__ == "__main__":
    main()
