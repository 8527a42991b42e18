"""Send a run to a sink (InfluxDB): samples, polls, events, findings and the verdict; writes are idempotent."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch sink last --to 'influxdb://127.0.0.1:8086?org=lab&bucket=soak&token=env:INFLUX_TOKEN'
  soakwatch sink runs/20261121T200000Z-fw-7.2 --to https://influx.lab --org lab --bucket soak --token file:token
  soakwatch sink last --to influxdb-1
\b
A run whose plan has sinks writes to them by itself; this command sends an older run, or what a run could not send.
--to KIND-NUMBER is a sink of the run's own plan, of any kind that soakwatch sinks lists. The token is a reference
(env:NAME or file:PATH). Writes are idempotent: sending a run again changes nothing.
\b
Exit codes: 0 everything is written; 1 the database rejected lines, or accepted nothing for the time of --patience;
2 the address, token, organisation or bucket is wrong."""
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
@click.option("--bucket", help="Existing bucket.")
@click.option("--token", metavar="REF", help="Token: env:NAME or file:PATH.")
@click.option("--ca", type=click.Path(path_type=Path, dir_okay=False), help="CA bundle (PEM).")
@click.option(
    "--as",
    "name",
    metavar="NAME",
    show_default="its start and the name of its folder",
    help="Name of the run in the database.",
)
@click.option(
    "--patience", default="2m", show_default=True, help="How long to retry while the database accepts nothing."
)
@runs_option()
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
    from soakwatch.transfer.sinks.check import check_sinks
    from soakwatch.transfer.sinks.influxdb.write import influxdb_of
    from soakwatch.transfer.sinks.push import push
    from soakwatch.transfer.sinks.registry import planned_sink
    from soakwatch.transfer.sinks.run_tag import run_tag

    try:
        patience_s = seconds(patience)
    except ValueError as error:
        raise PlanError(f"--patience: {error}") from None
    record = find_run(run, runs_folder)
    planned = None if "://" in to else planned_sink(record, to)
    database = planned or influxdb_of(to, org, bucket, token, None if ca is None else str(ca))
    (check,) = check_sinks([database])
    if check.wrong:  # waiting does not fix a wrong token or bucket
        raise PlanError(f"--to: {check.error}")
    shown = name or run_tag(record)
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(f"sending {shown}", refresh_per_second=4) as status:
            pushed = push(record, shown, database, patience_s, lambda words: status.update(f"sending {shown}: {words}"))
    else:  # a spinner costs CPU even if nobody sees it
        pushed = push(record, shown, database, patience_s)
    if pushed.error is not None:
        click.echo(f"soakwatch: {pushed.error}; tried for {patience}, {pushed.written} lines written", err=True)
        return EXIT_FAIL
    examples = {refused.reason: refused.line for refused in reversed(pushed.refused)}
    for reason, line in list(reversed(examples.items()))[:5]:
        lines = pushed.reasons.get(reason, 1)
        many = f"{lines} lines, the first is " if lines > 1 else ""
        click.echo(f"rejected: {reason}: {many}{line[:200].decode(errors='replace')}", err=True)
    more = f", {pushed.rejected} rejected" if pushed.rejected else ""
    click.echo(f"wrote {pushed.written} lines of {shown}{more}")
    return EXIT_FAIL if pushed.rejected else 0
