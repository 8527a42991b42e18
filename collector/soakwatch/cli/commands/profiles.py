"""List the device profiles, show one, or show which one matches a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.core.tables import harmless, show_table

if TYPE_CHECKING:
    from soakwatch.sources.profiles.loading import Profiles


@click.command(
    epilog="""\b
Examples:
  soakwatch profiles
  soakwatch profiles cisco-asa
  soakwatch profiles --table
  soakwatch profiles --match 1.3.6.1.4.1.9.1.669 "Cisco Adaptive Security Appliance Version 9.12"
  soakwatch profiles --schema > profile.schema.json
  soakwatch profiles --folder my-profiles my-box"""
)
@click.argument("name", required=False)
@click.option(
    "--match", "device", nargs=2, metavar="OID DESCR", help="Show the profile for this sysObjectID and sysDescr."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of a profile.")
@click.option("--table", is_flag=True, help="Print what each profile reads, one word a field.")
@click.option("--folder", type=click.Path(path_type=Path), help="Folder with additional profiles.")
def command(
    name: str | None, device: tuple[str, str] | None, *, schema: bool, table: bool, folder: Path | None
) -> None:
    """List the profiles; with NAME show its queries, metrics and events."""
    from soakwatch.sources.profiles.loading import load_profiles

    if schema:
        import json

        from soakwatch.sources.profiles.profile_keys import profile_schema

        click.echo(json.dumps(profile_schema(), indent=2, ensure_ascii=False))
        return
    profiles = load_profiles(folder)
    if device is not None:
        _match(profiles, *device)
    elif table:
        _table(profiles, name)
    elif name is not None:
        _show(profiles, name)
    else:
        rows = [(head.name, str(len(head.select)), head.title) for head in profiles.heads()]
        show_table(("profile", "selectors", "device"), rows)


def _table(profiles: Profiles, name: str | None) -> None:
    """Show what each profile, or the named one, reads."""
    from soakwatch.sources.profiles.profile_coverage import COLUMNS, coverage

    generic = profiles["generic"]
    rows = []
    for profile in [profiles[name]] if name is not None else [profiles[head.name] for head in profiles.heads()]:
        platform = profiles.platform(profile)
        words = coverage(profile, generic, platform.commands if platform is not None else ())
        rows.append((profile.name, *(words[column] for column in COLUMNS)))
    show_table(("profile", *COLUMNS), rows)


def _match(profiles: Profiles, object_id: str, description: str) -> None:
    import asyncio

    from soakwatch.sources.profiles.matching import match

    unknown: list[str] = []

    async def present(oid: str) -> str | None:
        unknown.append(oid)
        return None

    profile = asyncio.run(match(object_id.lstrip("."), description, present, profiles.heads()))
    click.echo(f"{profile.name}: {harmless(profile.why)}")
    if unknown:
        click.echo(
            f"A device that answers {' or '.join(unknown)} may match another profile: probe the device to be sure."
        )


def _show(profiles: Profiles, name: str) -> None:
    from soakwatch.sources.profiles.show import clause_line, group_lines
    from soakwatch_model.metric import BY_NAME

    profile = profiles[name]
    click.echo(
        f"{profile.name}: {profile.title}" + (f" (extends {', '.join(profile.extends)})" * bool(profile.extends))
    )
    for clause in profile.select:
        click.echo(f"  selected if {clause_line(clause)}")
    if profile.facts:
        click.echo(f"\nFacts: {', '.join(fact.name for fact in profile.facts)}")
    click.echo("\nSNMP queries by group:")
    for group in profile.groups:
        for line in group_lines(group):
            click.echo(f"  {line}")
    click.echo("\nMetrics:")
    rows = [
        (m.name, m.unit, m.kind, "" if m.name in profile.promised else "optional", m.about)
        for m in (BY_NAME[metric] for metric in sorted(profile.metrics))
    ]
    show_table(("metric", "unit", "kind", "", "meaning"), rows)
    for title, words in (
        ("Events from log lines", [pattern.kind for pattern in profile.logs]),
        ("Events from notifications", [trap.kind for trap in profile.traps]),
        ("Paths over gNMI", [path.path for path in profile.gnmi]),
    ):
        if words:
            click.echo(f"\n{title}: {', '.join(dict.fromkeys(words))}")
    if (platform := profiles.platform(profile)) is not None:
        commands = ", ".join(command.name for command in platform.commands)
        click.echo(f"\nCommand line over SSH: {profile.cli}; commands: {commands}")
