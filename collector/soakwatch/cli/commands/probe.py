"""Poll one device without a plan: show what it is, its metrics, and how long a poll takes."""

from __future__ import annotations

import click

from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS


@click.command(
    epilog="""\b
Examples:
  soakwatch probe local --process nginx
  soakwatch probe 'snmp://198.18.0.1?version=2c&community=env:COMMUNITY'
  soakwatch probe 'snmp://soak@fw1?version=3&auth=env:SNMP_AUTH&auth_protocol=SHA-256&priv=env:SNMP_PRIV'
  soakwatch probe ssh://soak@fw1 --interval 10s
  soakwatch probe prometheus://fw1:9100/metrics
\b
The keys after the ? are those of the poller: soakwatch pollers snmp
Exit codes: 0 the device was polled; 1 it could not be polled; 2 the address is invalid."""
)
@click.argument("address")
@click.option("--interval", default="1s", show_default=True, help="Time between polls in the planned run.")
@click.option(
    "--process",
    "processes",
    multiple=True,
    metavar="NAME",
    help="Process to watch: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:FILE. May be repeated.",
)
@click.option("--series", is_flag=True, help="Show the value of every object, not only the range of each metric.")
def command(address: str, interval: str, processes: tuple[str, ...], series: bool) -> int:  # noqa: FBT001 - click's
    """Poll ADDRESS (local, snmp://HOST, ssh://USER@HOST …) twice and show what a run would sample."""
    import asyncio
    import tempfile
    from pathlib import Path

    from soakwatch.cli.tables import show_source_check
    from soakwatch.core.prefix import prefixed
    from soakwatch.engine.plan_check import absent_processes, look_everywhere
    from soakwatch.plan import quick_plan

    plan = quick_plan([address], processes, interval, "24h", "probe")
    with tempfile.TemporaryDirectory(prefix="soakwatch-probe-") as folder:
        checks = asyncio.run(look_everywhere(plan, Path(folder)))
    for check in checks:
        show_source_check(check, series=series)
    problems = [prefixed(check.target.name, check.source.poller, check.error) for check in checks if check.error]
    problems += [f"{target.name}: no process {name!r} is running" for target, name in absent_processes(checks)]
    for sentence in problems:
        click.echo(f"soakwatch: {sentence}", err=True)
    return EXIT_FAIL if problems else EXIT_PASS
