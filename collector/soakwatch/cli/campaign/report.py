"""Show the results of a campaign in tables: verdict and figures over its axes, best and worst, and what they prove."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from soakwatch.cli.report_options import asked_places, print_report, report_options
from soakwatch.report.formats import OF_CAMPAIGNS


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign report campaigns/overload
  soakwatch campaign report campaigns/overload --html overload.html --md overload.md --csv overload.csv
  soakwatch campaign report campaigns/overload --junit junit.xml --ctrf ctrf.json --badge overload.svg
  soakwatch campaign report campaigns/overload --table sizexload --figure load.rx.packet.rate --figure verdict
  soakwatch campaign report campaigns/nat --rows kind,size --columns load --figure 'max(load.latency)'
  soakwatch campaign report campaigns/v2.3 --against campaigns/v2.2 --margin 2%
\b
Without a FILE the tables are shown on the terminal; FILE '-' is standard output, a folder gets the usual name.
It may be asked while the campaign runs.
\b
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive (also while runs wait), 4 the monitor failed."""
)
@click.argument("folder", type=click.Path(path_type=Path))
@report_options(OF_CAMPAIGNS, helps={"json": "Write everything as JSON."})
@click.option("--against", type=click.Path(path_type=Path), metavar="EARLIER", help="Folder of an earlier campaign.")
@click.option("--margin", default="3%", show_default=True, help="Change against EARLIER that counts as none.")
@click.option("--table", "table", metavar="ROWSxCOLUMNS", help="Show this table only, such as sizexload.")
@click.option("--rows", metavar="AXES", help="Axes of the rows, separated by commas; 'figures' for the figures.")
@click.option("--columns", metavar="AXES", help="The same for the columns; default: figures.")
@click.option("--figure", "figures", multiple=True, metavar="EXPR", help="Figure, or 'verdict'. May be repeated.")
def command(
    folder: Path,
    against: Path | None,
    margin: str,
    table: str | None,
    rows: str | None,
    columns: str | None,
    figures: tuple[str, ...],
    asked: Mapping[str, str],
) -> int:
    """Report the campaign in FOLDER (campaigns/NAME)."""
    from soakwatch.campaign.campaign_state import read_state
    from soakwatch.campaign.tables.campaign_checks import CampaignRendering
    from soakwatch.campaign.tables.campaign_report import print_result
    from soakwatch.campaign.tables.comparisons import Earlier, campaign_names
    from soakwatch.campaign.tables.parse import asked_table
    from soakwatch.campaign.tables.result import result_of, spec_of
    from soakwatch.core.console import CommandConsole
    from soakwatch.core.units import share
    from soakwatch.report.console import ConsoleWriter
    from soakwatch.report.files import write_places

    places = asked_places(asked, OF_CAMPAIGNS)
    state = read_state(folder)
    spec = asked_table(spec_of(state), state.axes, table, rows, columns, figures)
    earlier = None
    if against is not None:
        try:
            allowed = share(margin)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--margin") from None
        if not 0 < allowed < 1:
            raise click.BadParameter("write a share above 0 and below 100 %, such as 3%", param_hint="--margin")
        before = read_state(against)
        earlier = Earlier(before, campaign_names(state, before), allowed)
    with CommandConsole(stderr=True).status("reading the records"):
        result = result_of(state, spec, earlier=earlier)
    failures = write_places(CampaignRendering(result, places), places, print_report, folder)
    for place in places:
        if place.file is not None and place not in failures:
            click.echo(f"wrote {place.file}", err=any(other.file is None for other in places))
    for failure in failures.values():
        click.echo(f"soakwatch: {failure}", err=True)
    if not places:
        print_result(ConsoleWriter(CommandConsole()), result)
    return result.exit_code
