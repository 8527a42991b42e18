"""Show key figures of a plan over its runs: by release, build or week, with change points."""

from __future__ import annotations

import json
from pathlib import Path

import click

from soakwatch.cli.options import LabelCommand, label_option, runs_option


@click.command(
    cls=LabelCommand,
    epilog="""\b
Examples:
  soakwatch trend
  soakwatch trend --plan overnight --by week --last 30d
  soakwatch trend --runs campaigns/releases --figure load.rx.packet.rate --figure 'max(load.latency{quantile="p99"})'
  soakwatch trend --by build --label testbed=a --csv > trend.csv
\b
A run counts once it is over and judged. 'soakwatch figures RUN' shows the figures that a run has.""",
)
@click.option("--plan", metavar="NAME", default="", help="Only runs of the plan of this name.")
@click.option(
    "--by",
    default="release",
    show_default=True,
    metavar="LABEL",
    help="Group runs by this label, or by day, week, month or run.",
)
@click.option(
    "--figure", "figures", multiple=True, metavar="EXPR", help="Figure to show; may be repeated.  [the usual]"
)
@label_option("Only runs with this label.")
@click.option("--last", metavar="DURATION", help="Only runs that began since then: 30d.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV: a line a run and figure.")
@runs_option("Folder of runs, or of a campaign.")
def command(
    plan: str,
    by: str,
    figures: tuple[str, ...],
    labels: dict[str, str],
    last: str | None,
    *,
    as_json: bool,
    as_csv: bool,
    runs_folder: Path,
) -> None:
    """Show key figures over the runs of each plan: a median a release with its interval, change against the release
    before, and change points.

    A release is the label of that name, else what the devices say they run. Medians have a 95 % interval from 6 runs
    on; change points need 8 runs.
    """
    import time

    from soakwatch.core.errors import SoakwatchError
    from soakwatch.core.labels import has_labels
    from soakwatch.core.units import seconds
    from soakwatch.runs.figure_trend import trend_of
    from soakwatch.runs.key_figures import parse_figure
    from soakwatch.runs.trend_data import trend_csv, trend_data
    from soakwatch.runs.trend_runs import LeftOut, read_trend_run, trend_folders

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    try:
        since_ns = 0 if last is None else time.time_ns() - round(seconds(last) * 1e9)
    except ValueError as error:
        raise SoakwatchError(str(error)) from None
    wanted = [parse_figure(text) for text in figures]
    folders = trend_folders(runs_folder)
    if not folders:
        raise SoakwatchError(f"no runs in {runs_folder}/: name their folder with --runs")
    read = [read_trend_run(folder, wanted) for folder in folders]
    chosen = [
        run for run in read if isinstance(run, LeftOut) or (run.begin_ns >= since_ns and has_labels(run.labels, labels))
    ]
    trend = trend_of(chosen, by, wanted, plan)
    if as_json:
        click.echo(json.dumps(trend_data(trend), indent=2, ensure_ascii=False))
    elif as_csv:
        click.echo(trend_csv(trend), nl=False)
    else:
        from soakwatch.cli.display.trend import show_trend

        show_trend(trend, runs_folder)
