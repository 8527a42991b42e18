"""Run a campaign to its end: every cell as often as its file says, in shuffled blocks, one run a testbed at a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from soakwatch.cli.options import group_option, on_option
from soakwatch.cli.outlet import Terminal, outlives_terminal
from soakwatch.cli.report_options import asked_places, report_options
from soakwatch.report.formats import OF_CAMPAIGNS


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign run overload.yaml
  soakwatch campaign run overload.yaml --folder /srv/campaigns/overload-7.2
  soakwatch campaign run overload.yaml --reports out
  soakwatch campaign run overload.yaml --on dask://lab1:8786
\b
Ctrl-C stops the runs that go on, which are judged by what they have, and ends the campaign; a second Ctrl-C aborts.
Go on later with soakwatch campaign resume FOLDER: nothing is run twice. If this process is killed, the runs that go on
continue to their ends, and resume takes their verdicts.
From another terminal: soakwatch campaign status FOLDER; soakwatch serve FOLDER/runs shows the runs.
--junit FILE and its like write what 'soakwatch campaign report' says at the end; then the limits and claims of the file
count for the exit code too. FILE '-' is standard output, a folder gets the usual name.
Exit codes: 0 all pass, 1 any fail, 2 usage or campaign error, 3 inconclusive or missing runs, 4 the monitor failed."""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--folder", type=click.Path(path_type=Path), show_default="campaigns/NAME", help="Folder of this campaign."
)
@group_option("this campaign and its runs")
@on_option
@report_options(OF_CAMPAIGNS, helps={"json": "Write everything as JSON."})
@outlives_terminal
def command(
    terminal: Terminal, file: Path, folder: Path | None, group: str, on: str | None, asked: Mapping[str, str]
) -> int:
    """Run the campaign in FILE."""
    from soakwatch.campaign.campaign_file import load_campaign
    from soakwatch.campaign.folder import CAMPAIGNS, begun
    from soakwatch.cli.campaign_run import run_campaign, workers

    places = asked_places(asked, OF_CAMPAIGNS)
    campaign = load_campaign(file)
    place = (folder or CAMPAIGNS / campaign.name).absolute()
    with workers(campaign, on) as executor, begun(campaign, place, group) as ledger:
        return run_campaign(terminal, campaign, place, ledger, executor, places)
