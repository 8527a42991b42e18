"""Keep the runs of many devices and nights as a folder of Parquet: add runs, check its files."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

from soakwatch.cli.main import Commands
from soakwatch.core.registry import PluginFolder


class ArchiveCommands(Commands):
    """The group whose commands are the files of ``cli/archive``."""

    plugins = PluginFolder("soakwatch.cli.archive", "command of archive")
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@click.group(
    cls=ArchiveCommands,
    epilog="""\b
Examples:
  soakwatch archive add last
  soakwatch archive add runs --archive /srv/archive
  soakwatch archive check /srv/archive
\b
Ask it with soakwatch query; docs/archive.md says what is in it. Both need
DuckDB and pyarrow: the extra archive (docs/install.md).""",
)
def command() -> None:
    """Keep runs in an archive that soakwatch query asks."""
