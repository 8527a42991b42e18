"""Show what is decided about growth: when a run would have ended by itself, and what several runs prove together."""

from __future__ import annotations

import json
from pathlib import Path

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch decided last
  soakwatch decided last --not-before 8h
  soakwatch decided monday tuesday wednesday         # together: a device that was not restarted has one level
  soakwatch decided last --json
\b
In a plan, 'stop_when: decided' ends a run at that moment."""
)
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@click.option(
    "--not-before", metavar="DURATION", help="Time for which the device may warm up.  [two thirds of the planned run]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@runs_option()
def command(runs: tuple[str, ...], not_before: str | None, *, as_json: bool, runs_folder: Path) -> None:
    """Show when RUN (a folder, a record file, or 'last') would have ended under 'stop_when: decided', and the evidence
    for each series; of several RUNs the evidence of all of them together.

    Only growth is replayed: a crash would have ended the run when it happened.

    An e-value of 1/a or more is wrong with a probability of at most a, however often a run is looked at.
    """
    from contextlib import ExitStack

    from soakwatch.cli.display.decided import show_decided
    from soakwatch.core.errors import SoakwatchError
    from soakwatch.core.units import seconds
    from soakwatch.judge.decided import Decider, looks
    from soakwatch.judge.decided_data import decided_data
    from soakwatch.judge.joined_runs import joined_evidence
    from soakwatch.judge.planned import Planned
    from soakwatch.judge.record_verdict import recorded_tenants, rules_for
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch_rules.growth.sequential import growth_rule

    try:
        warm_up_s = None if not_before is None else seconds(not_before)
    except ValueError as error:
        raise SoakwatchError(f"--not-before: {error}") from None
    with ExitStack() as stack:
        views = [stack.enter_context(RecordView.open(find_run(run, runs_folder))) for run in runs]
        uses = rules_for(views[0])
        rule = growth_rule(use.rule for use in uses)
        if rule is None:
            raise SoakwatchError("the plan switches the rule growth off: nothing is decided before the end of a run")
        decision = None
        if len(views) == 1:
            planned = Planned.of(views[0])
            planned_s = views[0].window().seconds if planned is None else planned.duration_s
            decision = looks(views[0], Decider(uses, recorded_tenants(views[0]), planned_s, warm_up_s))
        evidence = joined_evidence(views, rule)
        windows = [view.window() for view in views]
    if as_json:
        click.echo(json.dumps(decided_data(windows, decision, evidence), indent=2, ensure_ascii=False))
    else:
        show_decided(windows, decision, evidence)
