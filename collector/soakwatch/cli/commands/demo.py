"""Runs a short real soak on this machine: a service that leaks and is killed once, and its healthy twin."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch demo
  soakwatch demo --runs /tmp/runs
\b
It takes two and a half minutes and stays on loopback. Its verdict is 'fail', on purpose: the leaker leaks and is
killed and restarted once; its twin, the same program under the same load, passes.
The exit code is 0 if the demo found exactly that, and 4 if it did not."""
)
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder of all runs.",
)
def command(runs_folder: Path) -> int:
    """Soak two copies of a small HTTP service under a real load, judge them, and write the report."""
    from soakwatch.cli.demo import run_demo

    return run_demo(runs_folder)
