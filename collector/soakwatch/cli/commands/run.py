"""Runs a soak: polls, overlays the load, judges each minute and at the end, and writes the report."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from soakwatch.cli.options import StoppingCommand, chosen, stop_option
from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    cls=StoppingCommand,
    epilog="""\b
Examples:
  soakwatch run plan.yaml
  soakwatch run plan.yaml --duration 10m --runs /srv/runs
  soakwatch run plan.yaml --stop-on-fail=hang --stop-on-fail=reboot
  soakwatch run --target local --process nginx --duration 30m
  soakwatch run --target ssh://soak@fw1 --target 'snmp://fw1?version=2c&community=env:COMMUNITY' --duration 12h
  soakwatch run --process 'snort*' --process pid:4711 --process cmdline:'java .*broker' --interval 500ms --duration 2h
\b
Ctrl-C ends the run properly and judges what is there; a second Ctrl-C gives up at once.
A monitor that was killed goes on with: soakwatch resume RUN
From another terminal: soakwatch watch RUN shows it, soakwatch stop RUN ends it, soakwatch open RUN opens its page.
On a terminal it shows one picture; elsewhere it prints a line at the start, at each phase, each new finding, each
source that falls silent or answers again, and every ten minutes (every minute of a run of half an hour or less).
Every source of a plan with a later start is tried at once, so that what is wrong can still be mended.
A sink that cannot be reached, or refuses its token or bucket, is warned of, and the run goes on: the record keeps what
the sink lacks and sends it once that is mended; at the end it is waited for a minute (soakwatch check fails on it).
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive, 4 the monitor itself broke.""",
)
@click.argument("plan", required=False, type=click.Path(path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="What to poll without a plan: local, snmp://HOST, ssh://USER@HOST and so on. May be repeated.",
)
@click.option(
    "--process",
    "processes",
    multiple=True,
    help="Watch a process: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:F. May be repeated.",
)
@click.option("--interval", help="Time between polls without a plan, from 200ms up (default 1s).")
@click.option("--duration", help="Length of the run; with a plan, its last phase of 'soak' is cut or stretched to fit.")
@click.option("--name", help="Name of the run without a plan.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder of all runs.",
)
@click.option("--into", type=click.Path(path_type=Path), help="Exact folder of this run (default: RUNS/TIME-NAME).")
@click.option(
    "--reference",
    type=click.Path(path_type=Path, dir_okay=False),
    help="What the generators can send: the file of soakwatch calibrate (default: the one beside the plan).",
)
@click.option("--baseline", metavar="RUN", help="Use the baseline of an earlier run.")
@click.option("--no-web", is_flag=True, help="Serve no page and no API while the run goes on.")
@stop_option
def command(
    plan: Path | None,
    targets: tuple[str, ...],
    processes: tuple[str, ...],
    interval: str | None,
    duration: str | None,
    name: str | None,
    runs_folder: Path,
    into: Path | None,
    reference: Path | None,
    baseline: str | None,
    no_web: bool,  # noqa: FBT001
    stop_on_fail: tuple[str, ...],
) -> int:
    """Run PLAN, or what the options say, to its end; then judge it and write the report."""
    from soakwatch.cli.foreground import run_to_the_end
    from soakwatch.core.clock import SteadyClock
    from soakwatch.core.secrets import secret
    from soakwatch.engine.first_polls import PlanRefusedError
    from soakwatch.engine.hooks.setup import check_outside
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.engine.preflight import preflight
    from soakwatch.engine.references import against
    from soakwatch.engine.start import begin, discard
    from soakwatch.plan import load_plan, quick_plan
    from soakwatch.runs.catalog import new_folder

    if plan is not None and (targets or processes or interval or name):
        raise click.UsageError("with a plan, --target, --process, --interval and --name stand in the plan")
    if plan is None:
        if not targets and not processes:
            raise click.UsageError("name a plan, or --target local, or a --process to watch")
        made = quick_plan(targets or ("local",), processes, interval, duration or "30m", name)
    else:
        made = load_plan(plan)
        if duration is not None:
            made = made.lasting(duration)
    any_rule, stop_rules = chosen(stop_on_fail)
    check_outside(made)
    check_notifications(made)
    for sink in made.sinks:
        secret(sink.token)
    clock = SteadyClock()
    held = against(made, reference, baseline, runs_folder, clock.now_ns() * 1e-9)
    for warning in held.warnings:
        click.echo(f"soakwatch: warning: {warning}", err=True)
    for trouble in preflight(made, clock.now_ns()):
        click.echo(f"soakwatch: warning: {trouble}; the run waits for its start all the same", err=True)
    folder = into or new_folder(runs_folder, made.name, clock.now_ns())
    course, record = begin(
        made, folder, clock, ["soakwatch", *sys.argv[1:]], stop_on_fail=any_rule, stop_rules=stop_rules, against=held
    )
    try:
        return run_to_the_end(course, record, clock, web=None if no_web else made.web)
    except PlanRefusedError:
        if into is None and discard(folder):
            click.echo(f"nothing was judged, and {folder} is removed again")
        else:
            click.echo(f"nothing was judged; {folder} holds the first seconds: remove it, or name another folder")
        raise
