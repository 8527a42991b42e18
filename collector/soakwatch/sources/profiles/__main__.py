"""For those who write profiles: checks files, shows what they ask, and tries them on a recording.

python -m soakwatch.sources.profiles my.yaml                     what is wrong with it, or what each group asks
python -m soakwatch.sources.profiles my.yaml --try dev.snmprec   the samples that it makes of a recorded device
python -m soakwatch.sources.profiles --try dev.snmprec           the same, with the profile that the device selects
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from soakwatch.core.errors import SoakwatchError
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
@click.option("--quiet", "-q", is_flag=True, help="print only what is wrong")
def main(files: tuple[Path, ...], tried: tuple[Path, ...], quiet: bool) -> None:  # noqa: FBT001 - click's signature
    """Check profiles, or try them."""
    wrong = 0
    profiles: list[Profile | None] = []
    for file in files:
        try:
            profiles.append(_profile(file))
        except SoakwatchError as error:
            wrong += 1
            for problem in getattr(error, "problems", (str(error),)):
                click.echo(problem, err=True)
    if not tried and not quiet:
        for profile in profiles:
            if profile is not None:
                _show(profile)
    for recording in tried:
        try:
            device = load_recording(recording)
            for chosen in profiles or [None]:
                asyncio.run(_try(recording, device, chosen))
        except SoakwatchError as error:
            wrong += 1
            click.echo(str(error), err=True)
    sys.exit(2 if wrong else 0)


def _profile(file: Path) -> Profile:
    if not file.is_file():
        raise SoakwatchError(f"{file}: there is no such file")
    return Profiles((file.parent, shipped())).part(file.stem)


def _show(profile: Profile) -> None:
    click.echo(f"{profile.name}: {profile.title} ({len(profile.select)} selectors, {len(profile.groups)} groups)")
    for group in profile.groups:
        for line in group_lines(group):
            click.echo(f"  {line}")


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
    for each in reading.traced:
        sample = each.sample
        oids = f"{each.oids[0]} … ({len(each.oids)})" if len(each.oids) > 3 else ", ".join(each.oids)
        click.echo(f"  sample  {sample.metric}{{{sample.object}}} = {sample.value:g}  <- {oids}")
    for fault in reading.faults:
        click.echo(f"  fault   {fault.metric}{{{fault.object}}}: {fault.text}")
    for metric, reason in survey.lacking:
        click.echo(f"  lacking {metric}: {reason}")
    click.echo(f"  {len(reading.traced)} samples, {len(reading.faults)} faults, {survey.oids} values a poll")


def _present(device: Recording) -> Present:
    async def present(oid: str) -> str | None:
        answer = (await device.get([oid])).get(oid)
        return None if answer is None else text(answer)

    return present


if __name__ == "__main__":
    main()
