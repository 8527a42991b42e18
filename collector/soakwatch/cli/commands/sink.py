"""Sends a record to a sink (InfluxDB): samples, polls, events, findings and the verdict; writes are idempotent."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch sink last --to 'influxdb://127.0.0.1:8086?org=lab&bucket=soak&token=env:INFLUX_TOKEN'
  soakwatch sink runs/20261121T200000Z-fw-7.2 --to https://influx.lab --org lab --bucket soak --token file:token
  soakwatch sink last --to influxdb-1
\b
A run whose plan names sinks feeds them by itself; this sends a run of another day, or what a run could not send.
--to KIND-NUMBER is the sink of the run's own plan, for all kinds of soakwatch sinks. The token is a reference
(env:NAME or file:PATH). Writes are idempotent.
\b
Exit codes: 0 everything is written; 1 the database refused lines for good, or accepted nothing for the time of
--patience; 2 the address, the token, the organisation or the bucket is wrong."""
)
@click.argument("run", metavar="RUN")
@click.option(
    "--to",
    "to",
    required=True,
    metavar="TO",
    help="influxdb://HOST:8086, influxdbs://HOST, http(s)://, or a sink of the run's plan.",
)
@click.option("--org", help="Organisation.")
@click.option("--bucket", help="Bucket that exists.")
@click.option("--token", metavar="REF", help="Token: env:NAME or file:PATH.")
@click.option("--ca", type=click.Path(path_type=Path, dir_okay=False), help="CA bundle (PEM).")
@click.option("--as", "name", metavar="NAME", help="Name of the run in the database (default: its folder's).")
@click.option("--patience", default="2m", show_default=True, help="How long to retry while nothing is accepted.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
def command(
    run: str,
    to: str,
    org: str | None,
    bucket: str | None,
    token: str | None,
    ca: Path | None,
    name: str | None,
    patience: str,
    runs_folder: Path,
) -> int:
    """Send RUN (a folder, a record file, or 'last') to a database."""
    from rich.console import Console

    from soakwatch.core.errors import EXIT_FAIL, PlanError
    from soakwatch.core.units import seconds
    from soakwatch.runs.catalog import find_run
    from soakwatch.sinks.check import check_sinks
    from soakwatch.sinks.influxdb.write import influxdb_of
    from soakwatch.sinks.push import push
    from soakwatch.sinks.registry import planned_sink

    try:
        patience_s = seconds(patience)
    except ValueError as error:
        raise PlanError(f"--patience: {error}") from None
    found = find_run(run, runs_folder)
    shown = name or (found.parent if found.is_file() else found).resolve().name
    planned = None if "://" in to else planned_sink(found, to)
    to_sink = planned or influxdb_of(to, org, bucket, token, None if ca is None else str(ca))
    (check,) = check_sinks([to_sink])
    if check.wrong:  # waiting does not help
        raise PlanError(f"--to: {check.error}")
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(f"sending {shown}", refresh_per_second=4) as status:
            pushed = push(found, shown, to_sink, patience_s, lambda words: status.update(f"sending {shown}: {words}"))
    else:  # a spinner that nobody sees turns all the same
        pushed = push(found, shown, to_sink, patience_s)
    if pushed.error is not None:
        click.echo(f"soakwatch: {pushed.error}; gave up after {patience}, {pushed.written} lines written", err=True)
        return EXIT_FAIL
    for refused in pushed.refused[:5]:
        click.echo(f"refused: {refused.reason}: {refused.line[:200].decode(errors='replace')}", err=True)
    more = f", {pushed.rejected} refused" if pushed.rejected else ""
    click.echo(f"wrote {pushed.written} lines of {shown}{more}")
    return EXIT_FAIL if pushed.rejected else 0
