"""Show the results of a campaign in tables: verdict and figures over its axes, best and worst, and what they prove."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign report campaigns/overload
  soakwatch campaign report campaigns/overload --html overload.html --md overload.md --csv overload.csv
  soakwatch campaign report campaigns/overload --table sizexload --figure load.rx.packet.rate --figure verdict
  soakwatch campaign report campaigns/nat --rows kind,size --columns load --figure 'max(load.latency)'
  soakwatch campaign report campaigns/v2.3 --against campaigns/v2.2 --margin 2%
\b
Without --html, --md, --csv or --json the tables are shown on the terminal. It may be asked while the campaign runs.
\b
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive (also while runs wait), 4 the monitor failed."""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--html",
    "html_file",
    type=click.Path(path_type=Path),
    help="Write the page, one file, to this file ('-': print it).",
)
@click.option(
    "--md",
    "md_file",
    type=click.Path(path_type=Path),
    help="Write Markdown to this file ('-': print it).",
)
@click.option(
    "--csv", "csv_file", type=click.Path(path_type=Path), help="Write a line for each cell and figure ('-': print it)."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    help="Write everything as JSON to this file ('-': print it).",
)
@click.option("--against", type=click.Path(path_type=Path), metavar="EARLIER", help="Folder of an earlier campaign.")
@click.option("--margin", default="3%", show_default=True, help="Change against EARLIER that counts as none.")
@click.option("--table", "table", metavar="ROWSxCOLUMNS", help="Show this table only, such as sizexload.")
@click.option("--rows", metavar="AXES", help="Axes of the rows, separated by commas; 'figures' for the figures.")
@click.option("--columns", metavar="AXES", help="The same for the columns; default: figures.")
@click.option("--figure", "figures", multiple=True, metavar="EXPR", help="Figure, or 'verdict'. May be repeated.")
def command(
    folder: Path,
    html_file: Path | None,
    md_file: Path | None,
    csv_file: Path | None,
    json_file: Path | None,
    against: Path | None,
    margin: str,
    table: str | None,
    rows: str | None,
    columns: str | None,
    figures: tuple[str, ...],
) -> int:
    """Report the campaign in FOLDER (campaigns/NAME)."""
    from soakwatch.campaign.campaign_state import read_state
    from soakwatch.campaign.tables.campaign_report import beside, print_result, render_html, render_markdown
    from soakwatch.campaign.tables.comparisons import Earlier, campaign_names
    from soakwatch.campaign.tables.data import render_csv, render_json
    from soakwatch.campaign.tables.parse import asked_table
    from soakwatch.campaign.tables.result import result_of, spec_of
    from soakwatch.core.console import CommandConsole
    from soakwatch.core.units import share
    from soakwatch.report.console import ConsoleWriter

    printed = [str(file) for file in (html_file, md_file, csv_file, json_file)].count("-")
    if printed > 1:
        raise click.UsageError("'-' is standard output, and may be given once")
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
    rendered: list[tuple[Path | None, Callable[[], str]]] = [
        (html_file, lambda: render_html(result, beside(html_file or folder))),
        (md_file, lambda: render_markdown(result)),
        (csv_file, lambda: render_csv(result)),
        (json_file, lambda: render_json(result)),
    ]
    wanted = [(file, render) for file, render in rendered if file is not None]
    for file, render in wanted:
        if str(file) == "-":
            click.echo(render(), nl=False)
        else:
            file.write_text(render(), encoding="utf-8")
            click.echo(f"wrote {file}", err=printed > 0)
    if not wanted:
        print_result(ConsoleWriter(CommandConsole()), result)
    return result.exit_code
