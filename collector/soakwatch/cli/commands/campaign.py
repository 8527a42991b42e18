"""Run one plan in many variants, repeated and in shuffled blocks, and show the results in tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

from soakwatch.cli.main import Commands
from soakwatch.core.registry import PluginFolder


class CampaignCommands(Commands):
    """The group whose commands are the files of ``cli/campaign``."""

    plugins = PluginFolder("soakwatch.cli.campaign", "command of campaign")
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@click.group(
    cls=CampaignCommands,
    epilog="""\b
Examples:
  soakwatch campaign plan overload.yaml
  soakwatch campaign run overload.yaml
  soakwatch campaign status campaigns/overload
  soakwatch campaign resume campaigns/overload
\b
The file names a plan, the axes of a matrix, and how often each cell is run: see docs/campaigns.md and
soakwatch schema campaign.""",
)
def command() -> None:
    """Run a campaign: one plan in many variants, repeated."""
