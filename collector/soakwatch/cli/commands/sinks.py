"""List the sinks (databases that a run also writes to while it is running), or show one with its keys."""

from __future__ import annotations

from soakwatch.cli.source_tables import source_command
from soakwatch.core.registry import INSTALLED

command = source_command(INSTALLED.sinks, "influxdb")
