"""For those who write profiles: checks files, shows what they ask, and tries them on a recording.

python -m soakwatch.sources.profiles my.yaml                       what is wrong with it, or what it asks
python -m soakwatch.sources.profiles my.yaml --try dev.snmprec     the samples that it makes of a recorded device
python -m soakwatch.sources.profiles --try dev.snmprec             the same, with the profile that the device selects
python -m soakwatch.sources.profiles my.yaml --read show_cpu FILE  what a command makes of a recorded output
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from soakwatch.core.errors import SoakwatchError
from soakwatch.core.suggest import hint
from soakwatch.sources.platforms.parsed import Parsed
from soakwatch.sources.platforms.platform import Platform
from soakwatch.sources.profiles import Profile, ProfileReader, Profiles, match, read_facts
from soakwatch.sources.profiles.loading import shipped
from soakwatch.sources.profiles.matching import Present
from soakwatch.sources.profiles.recording import Recording, load_recording
from soakwatch.sources.profiles.show import group_lines
from soakwatch.sources.profiles.value import text

_OBJECT_ID, _DESCRIPTION = "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0"
_POLL_NS = 60_000_000_000


@click.command(help=__doc__)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--try", "tried", multiple=True, type=click.Path(path_type=Path), help="a recording (.snmprec, .gz)")
@click.option("--read", "read", multiple=True, type=(str, click.Path(path_type=Path)), help="a command and its output")
@click.option("--quiet", "-q", is_flag=True, help="print only what is wrong")
def main(files: tuple[Path, ...], tried: tuple[Path, ...], read: tuple[tuple[str, Path], ...], *, quiet: bool) -> None:
    """Check profiles, or try them."""
    if read and not files:
        raise click.UsageError("--read needs the file of a profile, such as my.yaml --read show_cpu cpu.txt")
    wrong: list[str] = []
    found: list[tuple[Profile, Platform | None]] = []
    for file in files:
        with _noting(wrong):
            found.append(_profile(file))
    for profile, platform in found:
        if not (tried or read or quiet):
            _show(profile, platform)
        for name, output in read:
            with _noting(wrong):
                _read(profile, platform, name, output)
    for recording in tried:
        with _noting(wrong):
            device = load_recording(recording)
            for chosen in [None] if not found else [profile for profile, _ in found]:
                asyncio.run(_try(recording, device, chosen))
    sys.exit(2 if wrong else 0)


@contextmanager
def _noting(wrong: list[str]) -> Iterator[None]:
    """Notes and prints what was refused, and goes on."""
    try:
        yield
    except SoakwatchError as error:
        for problem in getattr(error, "problems", (str(error),)):
            wrong.append(problem)
            click.echo(problem, err=True)


def _profile(file: Path) -> tuple[Profile, Platform | None]:
    if not file.is_file():
        raise SoakwatchError(f"{file}: there is no such file")
    profiles = Profiles((file.parent, shipped()))
    profile = profiles.part(file.stem)
    return profile, profiles.platform(profile)


def _show(profile: Profile, platform: Platform | None) -> None:
    click.echo(f"{profile.name}: {profile.title} ({len(profile.select)} selectors, {len(profile.groups)} groups)")
    for group in profile.groups:
        for line in group_lines(group):
            click.echo(f"  {line}")
    for command in platform.commands if platform is not None else ():
        click.echo(f"  {command.name}: {' | or '.join(command.texts)} -> {', '.join(command.metrics) or 'facts'}")


async def _try(file: Path, device: Recording, profile: Profile | None) -> None:
    system = await device.get([_OBJECT_ID, _DESCRIPTION])
    object_id, description = str(system.get(_OBJECT_ID, "")), text(system.get(_DESCRIPTION, b""))
    why = "given"
    if profile is None:
        profiles = Profiles((shipped(),))
        chosen = await match(object_id, description, _present(device), profiles.heads())
        profile, why = profiles[chosen.name], chosen.why
    click.echo(f"{file.name}: {profile.name} ({why}); sysObjectID {object_id or 'absent'}; {description[:80]}")
    for name, words in (await read_facts(device, profile)).items():
        click.echo(f"  fact    {name} = {words}")
    reader = ProfileReader(device, profile)
    survey = await reader.discover(0)
    reading = await reader.poll(_POLL_NS)
    for sample, part in zip(reading.samples, reading.parts, strict=True):
        every = part.oids if part is not None else ()
        oids = f"{every[0]} … ({len(every)})" if len(every) > 3 else ", ".join(every)
        click.echo(f"  sample  {sample.metric}{{{sample.object}}} = {sample.value:g}  <- {oids}")
    for fault in reading.faults:
        click.echo(f"  fault   {fault.metric}{{{fault.object}}}: {fault.text}")
    for metric, reason in survey.lacking:
        click.echo(f"  lacking {metric}: {reason}")
    click.echo(f"  {len(reading.samples)} samples, {len(reading.faults)} faults, {survey.oids} values a poll")


def _read(profile: Profile, platform: Platform | None, name: str, output: Path) -> None:
    command = platform.command(name) if platform is not None else None
    if command is None:
        known = [each.name for each in platform.commands] if platform is not None else []
        raise SoakwatchError(f"{profile.name} has no command {name!r}{hint(name, known)}")
    try:
        told = output.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SoakwatchError(f"{output}: cannot be read: {error.strerror}") from None
    click.echo(f"{output.name}: {profile.name}, {name}")
    for line in _found(command.parse(told)):
        click.echo(f"  {line}")


def _found(parsed: Parsed) -> Iterator[str]:
    if parsed.uptime is not None:
        yield f"uptime  {parsed.uptime.seconds:g} s, told in steps of {parsed.uptime.step:g} s"
    for name, words in parsed.facts.items():
        yield f"fact    {name} = {words}"
    for value in parsed.values:
        yield f"sample  {value.metric}{{{value.object}}} = {value.value:g}"
    for process in parsed.processes:
        yield f"process {process.name} pid={process.pid} cpu={process.cpu} memory={process.memory}"
    for notable in parsed.notables:
        yield f"event   {notable.kind} {notable.key}"
    for object_, why in parsed.unsampled.items():
        yield f"left    {object_}: {why}"
    for fault in parsed.faults:
        yield f"fault   {fault.metric}{{{fault.object}}}: {fault.text}"
    for line in parsed.unknown:
        yield f"unknown {line}"
    if parsed.strange > len(parsed.unknown):
        yield f"unknown … {parsed.strange} lines"


def _present(device: Recording) -> Present:
    async def present(oid: str) -> str | None:
        answer = (await device.get([oid])).get(oid)
        return None if answer is None else text(answer)

    return present


if __name__ == "__main__":
    main()
