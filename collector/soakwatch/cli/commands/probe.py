"""Looks at one device without a plan: what it is, what it brings, what a look takes and costs."""

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
The keys behind the ? are those of the poller: soakwatch pollers snmp
Exit codes: 0 the device was looked at; 1 it could not be; 2 the address cannot be used."""
)
@click.argument("address")
@click.option("--interval", default="1s", show_default=True, help="The cadence that the run will have.")
@click.option(
    "--process",
    "processes",
    multiple=True,
    help="Watch a process: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:F. May be repeated.",
)
@click.option("--series", is_flag=True, help="Show every object's value, not only the range of each metric.")
def command(address: str, interval: str, processes: tuple[str, ...], series: bool) -> int:  # noqa: FBT001 - click's
    """Look twice at ADDRESS (local, snmp://HOST, ssh://USER@HOST ...) and show what a run would sample there."""
    import asyncio
    import tempfile
    from pathlib import Path

    from soakwatch.cli.tables import show_look
    from soakwatch.core.prefix import prefixed
    from soakwatch.engine.plan_check import absent_processes, look_everywhere
    from soakwatch.plan import quick_plan

    plan = quick_plan([address], processes, interval, "24h", "probe")
    with tempfile.TemporaryDirectory(prefix="soakwatch-probe-") as folder:
        looks = asyncio.run(look_everywhere(plan, Path(folder)))
    for look in looks:
        show_look(look, series=series)
    wrong = [prefixed(look.target.name, look.source.poller, look.error) for look in looks if look.error]
    wrong += [f"{target.name}: no process {name!r} is running" for target, name in absent_processes(looks)]
    for sentence in wrong:
        click.echo(f"soakwatch: {sentence}", err=True)
    return EXIT_FAIL if wrong else EXIT_PASS
