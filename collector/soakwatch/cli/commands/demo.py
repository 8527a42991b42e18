"""Run a short real soak on this machine: a service that leaks and is killed once, and its healthy twin."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import group_option, runs_option
from soakwatch.cli.outlet import Terminal, outlives_terminal


@click.command(
    epilog="""\b
Examples:
  soakwatch demo
  soakwatch demo --runs /tmp/runs
\b
It takes two and a quarter minutes and uses the loopback interface only. The verdict is 'fail' on purpose: the leaker
leaks, and is killed and restarted once; its twin, the same program under the same load, passes.
The exit code is 0 if the verdict is exactly that, else 4."""
)
@runs_option("Folder of all runs.")
@group_option("this run")
@outlives_terminal
def command(terminal: Terminal, runs_folder: Path, group: str) -> int:
    """Soak two copies of a small HTTP service under a real load, judge them, and write the report."""
    from soakwatch.cli.demo import run_demo

    return run_demo(terminal, runs_folder, group)
