"""Go on with a campaign that was stopped or whose process was killed: nothing is run twice, nothing is left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from soakwatch.cli.options import on_option
from soakwatch.cli.outlet import Terminal, outlives_terminal
from soakwatch.cli.report_options import asked_places, report_options
from soakwatch.report.formats import OF_CAMPAIGNS


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign resume campaigns/overload
\b
Runs that still go on are waited for, those that ended meanwhile keep their verdicts. A run that was broken off is run
again as another attempt, or resumed where the campaign says 'interrupted: resume'; so is one that never had a verdict.
Reports and exit codes as those of soakwatch campaign run."""
)
@click.argument("folder", type=click.Path(path_type=Path))
@on_option
@report_options(OF_CAMPAIGNS, helps={"json": "Write everything as JSON."})
@outlives_terminal
def command(terminal: Terminal, folder: Path, on: str | None, asked: Mapping[str, str]) -> int:
    """Go on with the campaign in FOLDER."""
    from soakwatch.campaign.folder import continued
    from soakwatch.cli.campaign_run import run_campaign, workers

    places = asked_places(asked, OF_CAMPAIGNS)
    place = folder.absolute()
    with continued(place) as (campaign, ledger), workers(campaign, on) as executor:
        return run_campaign(terminal, campaign, place, ledger, executor, places)
