"""The queue of a lab server: list it, cancel, move and resume jobs, and disable schedules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

from soakwatch.cli.main import Commands
from soakwatch.core.registry import PluginFolder


class QueueCommands(Commands):
    """The group whose commands are the files of ``cli/queue``."""

    plugins = PluginFolder("soakwatch.cli.queue", "command of queue")
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@click.group(
    cls=QueueCommands,
    epilog="""\b
Examples:
  soakwatch queue list
  soakwatch queue move 17 up
  soakwatch queue cancel 17 --reason "the rack is needed"
  soakwatch queue disable s3
  soakwatch queue log 17
\b
Jobs are numbers (17), schedules have an s before theirs (s3); soakwatch submit makes both.""",
)
def command() -> None:
    """Show and change the queue of a lab server."""
