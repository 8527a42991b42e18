"""Check a plan: parse it, poll every source, and show what the run can and cannot detect."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import runs_option
from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS, EXIT_USAGE

if TYPE_CHECKING:
    from soakwatch.plan import Plan


@click.command(
    epilog="""\b
Examples:
  soakwatch check plan.yaml
  soakwatch check plan.yaml --no-connect
\b
Sinks are tested without writing to them. A run starts even if a sink is unreachable or rejects its token: the record
keeps the data and sends it once the sink works.
\b
Exit codes: 0 no problems; 1 something that the plan names cannot be sampled, or a sink is unreachable; 2 the plan is
invalid, or a sink rejects its token, organisation or bucket."""
)
@click.argument("plan", type=click.Path(path_type=Path))
@runs_option("Folder of all runs.")
@click.option("--no-connect", is_flag=True, help="Only parse the plan.")
def command(plan: Path, runs_folder: Path, no_connect: bool) -> int:  # noqa: FBT001 - click's signature
    """Parse PLAN, poll every source twice, and show what will be sampled, what it can detect, and the disk needed.

    A load that is a command is started for some seconds.
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
    _show_references(loaded, runs_folder)
    if no_connect:
        return EXIT_PASS
    return max(_check_sinks(loaded), _connect(loaded, runs_folder))


def _show_plan(plan: Plan, rules: tuple[str, ...]) -> None:
    from soakwatch.core.units import show_seconds

    phases = ", ".join(f"{phase.name} {show_seconds(phase.seconds)}" for phase in plan.phases)
    start = f", from {plan.start:%Y-%m-%d %H:%M:%S} UTC" if plan.start else ""
    click.echo(f"{plan.name}: {show_seconds(plan.duration_s)} ({phases}){start}")
    click.echo(f"rules: {', '.join(rules) or 'none'}")
    if plan.start and plan.start < datetime.now(UTC):
        click.echo("note: the planned start is in the past: the run would start at once")
    for event in plan.events:
        within = f", finished within {show_seconds(event.within_s)}" if event.within_s else ""
        when = f"at {show_seconds(event.at_s)}" + (f" of {event.phase}" if event.phase else "")
        when += f", every {show_seconds(event.every_s)}" if event.every_s else ""
        script = f", by {shlex.join(event.run)}" if event.run else ""
        click.echo(f"event: {event.kind} {when} on {event.target or 'every target'}{within}{script}")
    if (probe := plan.observer) is not None:
        click.echo(
            f"observer: in {probe.phase}, {probe.pairs} pauses of {show_seconds(probe.probe_s)} within "
            f"{show_seconds(probe.seconds)}, in which only the CPU of {', '.join(probe.targets)} is read"
        )
    for hook in plan.hooks:
        click.echo(f"hook: on {' and '.join(hook.on)} of {hook.rule}: {', '.join(hook.actions)}")


def _show_references(plan: Plan, runs: Path) -> None:
    import time

    from soakwatch.engine.references import against

    now_s = time.time()
    references = against(plan, None, None, runs, now_s)
    for sentence in references.sentences(now_s):
        click.echo(sentence)
    for warning in references.warnings:
        click.echo(f"note: {warning}")


def _check_sinks(plan: Plan) -> int:
    from soakwatch.sinks.check import check_sinks
    from soakwatch.sinks.registry import destinations

    checks = check_sinks(destinations(plan.sinks).values())
    for check in checks:
        if check.error is None:
            click.echo(f"sink: {check.where} accepts lines")
        else:
            click.echo(f"soakwatch: {plan.origin}: sinks: {check.error}", err=True)
    if any(check.wrong for check in checks):
        return EXIT_USAGE
    return EXIT_FAIL if any(check.error for check in checks) else EXIT_PASS


def _connect(plan: Plan, runs: Path) -> int:
    import asyncio
    import tempfile

    from soakwatch.cli.tables import show_source_check
    from soakwatch.core.text import prefixed
    from soakwatch.core.units import show_bytes, show_seconds
    from soakwatch.engine.plan_check import absent_processes, check_sources, disk_bytes, free_bytes
    from soakwatch.engine.read_labels import labels_now
    from soakwatch.engine.sensitivity import sensitivity

    with tempfile.TemporaryDirectory(prefix="soakwatch-check-") as folder:
        checks = asyncio.run(check_sources(plan, Path(folder)))
        labels = asyncio.run(labels_now(plan, Path(folder)))
    for check in checks:
        show_source_check(check, plan.duration_s)
    problems = [
        f"{check.source.location}: {prefixed(check.target.name, check.source.poller, check.error)}"
        for check in checks
        if check.error
    ]
    for label, text, trouble in labels:
        if trouble:
            problems.append(f"{label.location}: the label {label.name} cannot be read: {trouble}")
        else:
            click.echo(f"label: {label.name}={text}" + ("" if label.source is None else ", as read now"))
    problems += [
        f"{plan.origin}: {target.name}: no process {name!r} is running: its findings would be inconclusive"
        for target, name in absent_processes(checks)
    ]
    click.echo("\nWhat this run can detect:")
    for sentence in sensitivity(plan, checks):
        click.echo(f"  {sentence}")
    need, free = disk_bytes(checks, plan.duration_s), free_bytes(runs)
    click.echo(f"\nDisk: about {show_bytes(need)} needed (3 bytes a sample), {show_bytes(free)} free in {runs}")
    if need > free:
        problems.append(f"the record needs about {show_bytes(need)}, but only {show_bytes(free)} are free in {runs}")
    late = [check for check in checks if check.error is None and check.seconds > check.interval_s]
    for check in late:
        took, interval = show_seconds(check.seconds), show_seconds(check.interval_s)
        problems.append(
            f"{check.source.location}: a poll takes {took}, longer than its interval of {interval}: raise interval"
        )
    for sentence in problems:
        click.echo(f"soakwatch: {sentence}", err=True)
    return EXIT_FAIL if problems else EXIT_PASS
