"""Writes the Grafana dashboards, and the provisioning that makes a Grafana find them and their InfluxDB."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch dashboards --out grafana
  soakwatch dashboards --out /srv/grafana --url http://influx.lab:8086 --bucket soak --token-file /run/secrets/token
\b
An existing Grafana takes them in from provisioning/ (copy it to /etc/grafana/provisioning) or by hand: import the
files of dashboards/ and make a data source of InfluxDB, InfluxQL, with the uid 'soakwatch-influxql'.
No token is written: Grafana reads it from the file or from its environment when it starts."""
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("grafana"),
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--url",
    default="$INFLUXDB_URL",
    show_default="INFLUXDB_URL of Grafana's environment",
    help="Address of the InfluxDB, as Grafana sees it.",
)
@click.option("--bucket", default="soak", show_default=True, help="Bucket that the sink writes to.")
@click.option(
    "--token-file",
    default=None,
    show_default="INFLUXDB_TOKEN of Grafana's environment",
    help="File that holds the token, as Grafana sees it.",
)
@click.option("--folder", default=None, show_default="OUT/dashboards",
              help="Folder of the dashboards, as Grafana sees it.")  # fmt: skip
def command(out: Path, url: str, bucket: str, token_file: str | None, folder: str | None) -> None:
    """Write the dashboards Run, Device, Compare, Fleet and Monitor, and their provisioning."""
    from soakwatch.grafana import Grafana, write_grafana

    token = "$INFLUXDB_TOKEN" if token_file is None else f"$__file{{{token_file}}}"
    written = write_grafana(out, Grafana(url, bucket, token, folder or str((out / "dashboards").resolve())))
    for file in written:
        click.echo(file)
