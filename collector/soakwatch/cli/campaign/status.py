"""Show how a campaign stands: runs done, running and left, verdicts, and when it ends by what its runs took so far."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign status campaigns/overload
  soakwatch campaign status campaigns/overload --json
\b
The time left is that of the cells' measured lengths, else of their plans and of what runs took besides so far."""
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(folder: Path, as_json: bool) -> None:  # noqa: FBT001 - click's signature
    """Show how the campaign in FOLDER stands."""
    import json

    from soakwatch.campaign.campaign_progress import progress_data, progress_of
    from soakwatch.campaign.campaign_state import read_all
    from soakwatch.cli.campaign_run import rows
    from soakwatch.core.tables import harmless, show_table

    campaign, state, history = read_all(folder)
    progress = progress_of(campaign, state, history)
    if as_json:
        click.echo(json.dumps(progress_data(campaign, progress, state), indent=2, ensure_ascii=False))
        return
    click.echo(harmless(f"{progress.name}: {progress.words()}"))
    shown = rows(state, progress)
    if shown:
        click.echo()
        show_table(("cell", "run", "testbed", "state", "verdict", "reason"), shown)
