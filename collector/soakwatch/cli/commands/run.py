"""Run a soak: poll the targets, overlay the load, judge every minute and at the end, and write the report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path

import click

from soakwatch.cli.options import (
    StoppingCommand,
    group_option,
    label_option,
    parse_stop_on_fail,
    runs_option,
    set_option,
    sign_option,
    stop_option,
)
from soakwatch.cli.outlet import Terminal, outlives_terminal
from soakwatch.cli.report_options import asked_places, report_options
from soakwatch.cli.take_over import take_over_option, words_of_process


@click.command(
    cls=StoppingCommand,
    epilog="""\b
Examples:
  soakwatch run plan.yaml
  soakwatch run plan.yaml --duration 10m --runs /srv/runs
  soakwatch run plan.yaml --label release=7.2 build=1841 testbed=rack-3
  soakwatch run plan.yaml --junit out/junit.xml --md out/summary.md
  soakwatch run plan.yaml --reports out
  soakwatch run plan.yaml --stop-on-fail=hang --stop-on-fail=reboot
  soakwatch run plan.yaml --runs /srv/runs --resume-unfinished
  soakwatch run --target local --process nginx --duration 30m
  soakwatch run --target ssh://soak@fw1 --target 'snmp://fw1?version=2c&community=env:COMMUNITY' --duration 12h
  soakwatch run --process 'snort*' --process pid:4711 --process cmdline:'java .*broker' --interval 500ms --duration 2h
\b
Ctrl-C ends the run and judges what was recorded; a second Ctrl-C aborts at once.
After a crash of the monitor: soakwatch resume RUN, or the same command with --resume-unfinished, which services give
from the start: the newest run of this plan's name that was cut off goes on to its planned end, with the plan that it
began with, and no other is begun. One whose planned end has passed is judged. With none cut off, a new run begins.
From another terminal: soakwatch watch RUN shows it, soakwatch stop RUN ends it, soakwatch open RUN opens its page.
A terminal that is lost (an SSH session that ends, the reader of a pipe) does not end the run, which is judged as ever.
On a terminal a status panel is shown; elsewhere a line is printed at the start, at each phase, for each new finding,
for each source that stops or resumes answering, and every ten minutes (every minute in runs of half an hour or less).
Each run leaves report.html, report.md, verdict.json and junit.xml in its folder. --junit FILE and its like write where
you say, with the folders above it: a folder (out/) gets the usual name, '-' is standard output, and then everything
else goes to standard error. What cannot be written is refused before the run, and what is there is removed at its
begin, so that nobody takes it for this run's. If a file cannot be written at the end, the run says so, and the exit
code is still the verdict's. docs/ci.md has the CI kit.
If the plan starts later, every source is polled once now, so that mistakes can be corrected before the start.
If a sink is unreachable or rejects its token or bucket, the run warns and continues: the record keeps the data and
sends it once the sink works; at the end the run waits a minute for it (soakwatch check fails in this case).
Exit codes: 0 pass, 1 fail, 2 usage or plan error, 3 inconclusive, 4 the monitor itself failed.""",
)
@click.argument("plan", required=False, type=click.Path(path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="What to poll without a plan: local, snmp://HOST, ssh://USER@HOST … May be repeated.",
)
@click.option(
    "--process",
    "processes",
    multiple=True,
    metavar="NAME",
    help="Process to watch: NAME, GLOB, pid:N, cmdline:REGEX or pidfile:FILE. May be repeated.",
)
@click.option("--interval", show_default="1s", help="Time between polls without a plan, at least 200ms.")
@click.option(
    "--duration",
    show_default="that of the plan, else 30m",
    help="Length of the run; with a plan, its last 'soak' phase is shortened or extended to fit.",
)
@click.option("--name", help="Name of the run without a plan.")
@runs_option("Folder of all runs.")
@click.option(
    "--into", type=click.Path(path_type=Path), show_default="RUNS/TIME-NAME", help="Exact folder of this run."
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path, dir_okay=False),
    show_default="PLAN with the suffix .reference.yaml, if it exists",
    help="What the generators can send, as written by soakwatch calibrate.",
)
@click.option("--setup", "setup_file", type=click.Path(path_type=Path, dir_okay=False), hidden=True)  # of a campaign
@click.option("--baseline", metavar="RUN", help="Use the baseline of an earlier run.")
@click.option("--no-web", is_flag=True, help="Do not serve the live page and its API.")
@click.option(
    "--resume-unfinished",
    is_flag=True,
    help="If the newest run of this plan in RUNS was cut off (killed, power failure), resume it instead of a new one.",
)
@group_option("this run")
@label_option("Label of this run, such as release=7.2; replaces the plan's of the same name.")
@set_option
@sign_option
@stop_option
@report_options()
@take_over_option
@outlives_terminal
def command(
    terminal: Terminal,
    plan: Path | None,
    targets: tuple[str, ...],
    processes: tuple[str, ...],
    interval: str | None,
    duration: str | None,
    name: str | None,
    runs_folder: Path,
    into: Path | None,
    reference: Path | None,
    setup_file: Path | None,
    baseline: str | None,
    no_web: bool,  # noqa: FBT001
    resume_unfinished: bool,  # noqa: FBT001
    group: str,
    labels: dict[str, str],
    values: tuple[str, ...],
    sign_with: Path | None,
    timestamp: str,
    stop_on_fail: tuple[str, ...],
    asked: Mapping[str, str],
    taken_over: Path | None,
) -> int:
    """Run PLAN, or a soak described by the options, to its end, then judge it and write the report."""
    from dataclasses import replace
    from functools import partial

    from soakwatch.campaign.run_setup import setup_of
    from soakwatch.cli.foreground import resume_to_the_end, run_to_the_end
    from soakwatch.core.clock import SteadyClock
    from soakwatch.core.secrets import secret
    from soakwatch.core.yaml import read_text
    from soakwatch.engine.first_polls import PlanRefusedError
    from soakwatch.engine.hooks.setup import check_outside
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.engine.preflight import preflight
    from soakwatch.engine.references import choose_references
    from soakwatch.engine.start import begin, discard, unfinished_run
    from soakwatch.judge.live.client import warm_judge
    from soakwatch.plan import load_plan, quick_plan
    from soakwatch.runs.catalog import folders_of, kept_if_filled, new_folder
    from soakwatch.runs.sealing import Sealing
    from soakwatch.transfer.sinks.registry import destinations

    if plan is not None and (targets or processes or interval or name):
        raise click.UsageError("with a plan, give targets, processes, interval and name in the plan, not as options")
    any_rule, stop_rules = parse_stop_on_fail(stop_on_fail)
    sealing = Sealing(sign_with, timestamp)
    go_on = partial(
        resume_to_the_end,
        terminal,
        no_web=no_web,
        stop_on_fail=any_rule,
        stop_rules=stop_rules,
        sealing=sealing,
        words=words_of_process(),
    )
    if taken_over is not None:
        return go_on(taken_over, places=asked_places(asked))
    if plan is None and resume_unfinished:
        raise click.UsageError("--resume-unfinished needs a plan, by whose name the run is found")
    if plan is None and values:
        raise click.UsageError("--set changes a plan: name the plan, or give the options of a run without one")
    if plan is None:
        if not targets and not processes:
            raise click.UsageError("name a plan, or --target local, or a --process to watch")
        loaded = quick_plan(targets or ("local",), processes, interval, duration or "30m", name)
    else:
        loaded = load_plan(plan, values=values)
        if duration is not None:
            loaded = loaded.lasting(duration)
    loaded = loaded.labelled(labels)
    sealing.try_out()
    places = asked_places(asked)
    if resume_unfinished:
        cut_off = unfinished_run(folders_of(runs_folder) if into is None else (into,), loaded.name)
        if cut_off is not None:
            click.echo(f"{cut_off} was cut off: it is resumed, and no new run begins", err=True)
            return go_on(cut_off, places=places)
    check_outside(loaded)
    check_notifications(loaded)
    for to in destinations(loaded.sinks).values():
        for needed in to.secrets:
            secret(needed)
    clock = SteadyClock()
    references = choose_references(loaded, reference, baseline, runs_folder, clock.now_ns() * 1e-9)
    for warning in references.warnings:
        click.echo(f"soakwatch: warning: {warning}", err=True)
    for problem in preflight(loaded, clock.now_ns()):
        click.echo(f"soakwatch: warning: {problem}; the run waits for its start nevertheless", err=True)
    folder = into or new_folder(runs_folder, loaded.name, clock.now_ns())
    with warm_judge(loaded.rules) as warm:
        with nullcontext() if into is not None else kept_if_filled(folder):
            course, record = begin(
                loaded,
                folder,
                clock,
                ["soakwatch", *sys.argv[1:]],
                stop_on_fail=any_rule,
                stop_rules=stop_rules,
                against=references,
                group=group,
                setup=None if setup_file is None else setup_of(read_text(setup_file)),
            )
        try:
            return run_to_the_end(
                terminal,
                replace(course, sealing=sealing),
                record,
                clock,
                web=None if no_web else loaded.web,
                places=places,
                words=words_of_process(),
                warm=warm,
            )
        except PlanRefusedError:
            if into is None and discard(folder):
                click.echo(f"nothing was judged; {folder} was removed")
            else:
                click.echo(
                    f"nothing was judged; {folder} contains the first seconds: remove it, or name another folder"
                )
            raise
