"""Show what a campaign would run: cells, order, estimated time, and what each cell changes in the plan."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(
    epilog="""\b
Examples:
  soakwatch campaign plan overload.yaml
  soakwatch campaign plan overload.yaml --cell kind=L3,size=64,load=24%
  soakwatch campaign plan overload.yaml --json
\b
Every plan of every cell is checked as 'soakwatch run' would check it; nothing is polled."""
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--cell", metavar="CELL", help="Show the changes and the plan of one cell.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(file: Path, cell: str | None, as_json: bool) -> None:  # noqa: FBT001 - click's signature
    """Show the cells of the campaign in FILE, the order of its runs, and how long it takes."""
    import json

    from soakwatch.campaign.campaign_file import load_campaign
    from soakwatch.campaign.planned_runs import cell_of, plan_data, planned_runs, total_s
    from soakwatch.core.tables import harmless, show_table
    from soakwatch.core.units import show_seconds
    from soakwatch_rules.wording.quantities import counted

    campaign = load_campaign(file)
    if cell is not None:
        chosen = cell_of(campaign, cell)
        beds = [bed.name for bed in campaign.testbeds if (chosen.id, bed.name) in campaign.plans]
        if as_json:
            plans = {bed: campaign.plans[chosen.id, bed] for bed in beds}
            click.echo(json.dumps({"cell": chosen.id, "set": dict(chosen.patch), "plans": plans}, indent=2))
            return
        click.echo(f"{chosen.id}")
        for path, value in chosen.patch.items():
            click.echo(harmless(f"  {path}: {json.dumps(value, ensure_ascii=False)}"))
        for bed in beds:
            click.echo(f"\nplan{f' on {bed}' if bed else ''}:\n")
            click.echo(campaign.plans[chosen.id, bed].rstrip("\n"))
        return
    if as_json:
        click.echo(json.dumps(plan_data(campaign), indent=2, ensure_ascii=False))
        return
    runs = planned_runs(campaign)
    numbers = {one.id: [str(n) for n, (other, _) in enumerate(runs, 1) if other.id == one.id] for one in campaign.cells}
    axes = [axis.name for axis in campaign.axes]
    shown = [
        (
            *(one.values[axis] for axis in axes),
            show_seconds(campaign.seconds[one.id]),
            ", ".join(numbers[one.id][:12]) + (" …" if len(numbers[one.id]) > 12 else ""),
        )
        for one in campaign.cells
    ]
    repeat = campaign.repeat
    times = "once" if repeat.at_least == 1 else f"{repeat.at_least} times"
    if repeat.half_width is not None:
        times = (
            f"{repeat.at_least} to {repeat.at_most} times, until the median of {repeat.of} is known to"
            f" ±{100 * repeat.half_width:g} %"
        )
    beds = [bed.name for bed in campaign.testbeds if bed.name]
    many = f"{counted(len(campaign.cells), 'cell')}, each {times}; {counted(len(runs), 'run')}"
    click.echo(f"{campaign.name}: {many} in shuffled blocks")
    where = f" on {len(beds)} testbeds ({', '.join(beds)})" if beds else ""
    rest = f", with {show_seconds(campaign.rest_s)} of rest" if campaign.rest_s else ""
    at_least = "at least " if repeat.half_width is not None else ""
    click.echo(f"takes {at_least}about {show_seconds(total_s(campaign))}{where}{rest}\n")
    show_table((*axes, "length", "run no."), shown)
