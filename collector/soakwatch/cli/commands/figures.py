"""Show the key figures of a run, or figures by their expressions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch figures last
  soakwatch figures last --figure 'max(load.latency{quantile="p99"})'
  soakwatch figures last --figure 'slope(process.memory.usage{process="bgpd"})'
  soakwatch figures last --figure 'load.rx.packet.rate{phase="stress"}' --json
\b
An expression is METRIC or STATISTIC(METRIC), with {label="value"} behind the metric. Statistics: mean, median,
min, max, last, total, rate, slope (per hour), p50, p90, p95, p99. 'soakwatch metrics' lists metrics and labels."""
)
@click.argument("run", metavar="RUN")
@click.option(
    "--figure", "figures", multiple=True, metavar="EXPR", help="Figure to show; may be repeated.  [the usual]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@runs_option()
def command(run: str, figures: tuple[str, ...], *, as_json: bool, runs_folder: Path) -> None:
    """Show the key figures of RUN (a folder, a record file, or 'last').

    A figure is of the phases soak, stress and spike, else of the whole run; {phase="soak"} chooses one, {phase="all"}
    the whole run. Metrics of devices are those of targets with the role dut, unless {role="…"} or {target="…"} says
    otherwise.
    """
    from soakwatch.core.tables import harmless, show_table
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.key_figures import figure_of, figure_text, parse_figure, standard_figures
    from soakwatch.runs.trend_data import figure_data

    wanted = tuple(map(parse_figure, figures))
    with RecordView.open(find_run(run, runs_folder)) as view:
        specs = wanted or standard_figures(view)
        values = [(spec, figure_of(view, spec)) for spec in specs]
    if as_json:
        data = [{"figure": spec.text, "name": spec.name, **figure_data(value)} for spec, value in values]
        click.echo(json.dumps({"figures": data}, indent=2, ensure_ascii=False))
        return
    if not values:
        click.echo("this run has none of the usual figures: name some with --figure; 'soakwatch metrics' lists metrics")
        return
    show_table(
        ("figure", "value", "better", "expression"),
        [(spec.name, figure_text(spec, value), value.better or "–", spec.text) for spec, value in values],
    )
    for spec, value in values:
        if value.value is None:
            click.echo(harmless(f"no {spec.text}: {value.reason}"))
