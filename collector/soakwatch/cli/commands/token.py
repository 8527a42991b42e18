"""Tokens of the people who use a server: make one for a name and a role, list them, remove one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

from soakwatch.cli.main import Commands
from soakwatch.core.registry import PluginFolder


class TokenCommands(Commands):
    """The group whose commands are the files of ``cli/token``."""

    plugins = PluginFolder("soakwatch.cli.token", "command of token")
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@click.group(
    cls=TokenCommands,
    epilog="""\b
Examples:
  soakwatch token add anna --role operator
  soakwatch token list
  soakwatch token remove anna
\b
Roles: viewer sees everything; operator also submits, cancels, stops, marks and acknowledges; admin also deletes runs
and may set any value of a plan. Only hashes are kept, in RUNS/.lab/tokens.json; a server takes changes at once.""",
)
def command() -> None:
    """Manage the tokens of the people who use soakwatch serve."""
