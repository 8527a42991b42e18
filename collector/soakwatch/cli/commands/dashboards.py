"""Write the Grafana dashboards, and the provisioning files for them, their InfluxDB and the alert rules."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.transfer.sinks.grafana.versions import LEAST, VERSIONS

NEXT = """next:
1. copy {out}/provisioning to /etc/grafana/provisioning; or import {out}/dashboards and add a data source with uid {uid}
2. {token}, and restart Grafana; the token is stored nowhere else
3. open "Soakwatch · Fleet" in the folder {folder}; for a wall screen, at 150 % zoom, /d/soakwatch-run?{wall}
4. alert rules are in the folder {alerts} under Alerting; add a contact point and a notification policy of your own"""


@click.command(
    epilog="""\b
Examples:
  soakwatch dashboards --out grafana
  soakwatch dashboards --out /srv/grafana --url http://influx.lab:8086 --bucket soak --token-file /run/secrets/token
  soakwatch dashboards --out grafana --grafana 12 --page http://soak.lab:8080
  soakwatch dashboards --out grafana --force      after an upgrade of Soakwatch
\b
The least version is Grafana 10.4, and later ones read what is written for it: --grafana is needed only where a model
must have the schema of its own version. Grafana 9.x draws the panels with their colours, but is not tested.
\b
An existing Grafana loads them from provisioning/ (copy it to /etc/grafana/provisioning). To do it by hand, import the
files of dashboards/ and create an InfluxDB data source (InfluxQL) with the uid 'soakwatch-influxql'.
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
    help="URL of the InfluxDB, as seen by Grafana.",
)
@click.option("--bucket", default="soak", show_default=True, help="Bucket that the sink writes to.")
@click.option(
    "--token-file",
    default=None,
    show_default="INFLUXDB_TOKEN of Grafana's environment",
    help="File that holds the token, as seen by Grafana.",
)
@click.option(
    "--folder", default=None, show_default="OUT/dashboards", help="Folder of the dashboards, as seen by Grafana."
)
@click.option(
    "--grafana",
    "version",
    type=click.Choice(list(VERSIONS)),
    default=LEAST,
    show_default=f"{LEAST}, which all later ones read",
    help="Version of Grafana that the dashboards are written for.",
)
@click.option(
    "--page",
    metavar="URL",
    default=None,
    show_default="no link",
    help="URL of `soakwatch serve`, as seen by browsers: dashboards and alerts link to the report of a run.",
)
@click.option("--force", is_flag=True, help="Overwrite files that exist and differ.")
def command(
    out: Path,
    url: str,
    bucket: str,
    token_file: str | None,
    folder: str | None,
    version: str,
    page: str | None,
    *,
    force: bool,
) -> None:
    """Write the dashboards Run, Device, Compare, Fleet and Monitor, alert rules, and their provisioning.

    The files are listed on standard output, the next steps on standard error. Files that exist and differ are not
    overwritten without --force.
    """
    from soakwatch.transfer.sinks.grafana import ALERT_FOLDER, FOLDER, SOURCE_UID, WALL, Grafana, write_grafana

    token = "$INFLUXDB_TOKEN" if token_file is None else f"$__file{{{token_file}}}"
    grafana = Grafana(url, bucket, token, folder or str((out / "dashboards").resolve()), version, page)
    for file in write_grafana(out, grafana, force=force):
        click.echo(file)
    needed = [name for name, given in (("INFLUXDB_URL", url), ("INFLUXDB_TOKEN", token)) if given == f"${name}"]
    steps = [f"put {' and '.join(needed)} into Grafana's environment"] if needed else []
    steps += [f"let Grafana read {token_file}"] if token_file else []
    text = NEXT.format(out=out, uid=SOURCE_UID, token=", ".join(steps), folder=FOLDER, alerts=ALERT_FOLDER, wall=WALL)
    click.echo(text, err=True)
