"""Checks a plan: parses it, looks at every source, and says what the run can and cannot show."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS, EXIT_USAGE

if TYPE_CHECKING:
    from soakwatch.plan import Plan


@click.command(
    epilog="""\b
Examples:
  soakwatch check plan.yaml
  soakwatch check plan.yaml --no-connect
\b
A sink is asked whether it takes lines; none is written. A run whose sink cannot be reached, or refuses its token,
begins all the same: the record keeps what the sink lacks, and it is sent once that is mended.
\b
Exit codes: 0 all is well; 1 something that the plan names cannot be sampled, or a sink cannot be reached; 2 the plan
cannot be used, or a sink refuses its token, organisation or bucket."""
)
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of the runs.  [runs]")
@click.option("--no-connect", is_flag=True, help="Only parse the plan.")
def command(plan: Path, runs: Path, no_connect: bool) -> int:  # noqa: FBT001 - click's signature
    """Parse PLAN, look twice at every source, and show what will be sampled, what that can show, and the disk needed.

    A load that is a command is started for these looks, for some seconds.
    """
    from soakwatch.engine.hooks.setup import check_outside
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.plan import load_plan
    from soakwatch.plan.rules import planned_rules

    loaded = load_plan(plan)
    check_outside(loaded)
    notified = check_notifications(loaded)
    rules = planned_rules(loaded.rules)
    _show_plan(loaded, tuple(rule.name for rule in rules))
    for line in notified:
        click.echo(line)
    _show_against(loaded, runs)
    if no_connect:
        return EXIT_PASS
    return max(_look_at_sinks(loaded), _connect(loaded, runs))


def _show_plan(plan: Plan, rules: tuple[str, ...]) -> None:
    from soakwatch.core.units import show_seconds

    phases = ", ".join(f"{phase.name} {show_seconds(phase.seconds)}" for phase in plan.phases)
    start = f", from {plan.start:%Y-%m-%d %H:%M:%S} UTC" if plan.start else ""
    click.echo(f"{plan.name}: {show_seconds(plan.duration_s)} ({phases}){start}")
    click.echo(f"rules: {', '.join(rules) or 'none'}")
    if plan.start and plan.start < datetime.now(UTC):
        click.echo("note: the planned start has passed: the run would begin at once")
    for event in plan.events:
        within = f", to be over within {show_seconds(event.within_s)}" if event.within_s else ""
        when = f"at {show_seconds(event.at_s)}" + (f" of {event.phase}" if event.phase else "")
        when += f", every {show_seconds(event.every_s)}" if event.every_s else ""
        deed = f", by {shlex.join(event.run)}" if event.run else ""
        click.echo(f"event: {event.kind} {when} on {event.target or 'every target'}{within}{deed}")
    for hook in plan.hooks:
        click.echo(f"hook: on {' and '.join(hook.on)} of {hook.rule}: {', '.join(hook.deeds)}")


def _show_against(plan: Plan, runs: Path) -> None:
    import time

    from soakwatch.engine.references import against

    now_s = time.time()
    held = against(plan, None, None, runs, now_s)
    for sentence in held.sentences(now_s):
        click.echo(sentence)
    for warning in held.warnings:
        click.echo(f"note: {warning}")


def _look_at_sinks(plan: Plan) -> int:
    from soakwatch.sinks.beforehand import look_at_sinks

    looks = look_at_sinks(plan.sinks)
    for look in looks:
        if look.trouble is None:
            click.echo(f"sink: {look.where} takes lines")
        else:
            click.echo(f"soakwatch: {plan.origin}: sinks: {look.trouble}", err=True)
    if any(look.wrong for look in looks):
        return EXIT_USAGE
    return EXIT_FAIL if any(look.trouble for look in looks) else EXIT_PASS


def _connect(plan: Plan, runs: Path) -> int:
    import asyncio
    import tempfile

    from soakwatch.cli.tables import show_look
    from soakwatch.core.prefix import prefixed
    from soakwatch.core.units import show_bytes, show_seconds
    from soakwatch.engine.plan_check import absent_processes, disk_bytes, free_bytes, look_everywhere
    from soakwatch.engine.sensitivity import sensitivity

    with tempfile.TemporaryDirectory(prefix="soakwatch-check-") as folder:
        looks = asyncio.run(look_everywhere(plan, Path(folder)))
    for look in looks:
        show_look(look, plan.duration_s)
    wrong = [
        f"{look.source.place}: {prefixed(look.target.name, look.source.poller, look.error)}"
        for look in looks
        if look.error
    ]
    wrong += [
        f"{plan.origin}: {target.name}: no process {name!r} is running: its findings would be inconclusive"
        for target, name in absent_processes(looks)
    ]
    click.echo("\nWhat this can show:")
    for sentence in sensitivity(plan, looks):
        click.echo(f"  {sentence}")
    need, free = disk_bytes(looks, plan.duration_s), free_bytes(runs)
    click.echo(f"\nDisk: about {show_bytes(need)} (3 bytes a sample); {show_bytes(free)} are free for {runs}")
    if need > free:
        wrong.append(f"the record needs about {show_bytes(need)}, and {show_bytes(free)} are free for {runs}")
    late = [look for look in looks if look.error is None and look.seconds > look.interval_s]
    for look in late:
        took, interval = show_seconds(look.seconds), show_seconds(look.interval_s)
        wrong.append(
            f"{look.source.place}: a look takes {took}, longer than its interval of {interval}: raise interval"
        )
    for sentence in wrong:
        click.echo(f"soakwatch: {sentence}", err=True)
    return EXIT_FAIL if wrong else EXIT_PASS
