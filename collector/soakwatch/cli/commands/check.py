"""Check a plan and its devices: parse it, poll every source, and show what the run can and cannot detect."""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from soakwatch.cli.options import runs_option, set_option
from soakwatch.core.errors import EXIT_FAIL, EXIT_PASS, EXIT_USAGE, PlanError
from soakwatch.core.open_files import allow_open_files
from soakwatch.core.tables import say

if TYPE_CHECKING:
    from soakwatch.engine.plan_check import SourceCheck
    from soakwatch.plan import Plan
    from soakwatch.plan.label_plan import LabelPlan
    from soakwatch.transfer.sinks.check import SinkCheck


_MAX_METRICS = 12  # of a source, on a terminal


@click.command(
    epilog="""\b
Examples:
  soakwatch check plan.yaml
  soakwatch check plan.yaml --no-connect
  soakwatch check plan.yaml --set duration=10m --set defaults.snmp.interval=5s
\b
Sinks are tested without writing to them. A run starts even if a sink is unreachable or rejects its token: the record
keeps the data and sends it once the sink works.
\b
Exit codes: 0 no problems; 1 something that the plan names cannot be sampled, or a sink is unreachable; 2 the plan is
invalid or names an os, profile or probe that is not there, or a sink rejects its token, organisation or bucket."""
)
@click.argument("plan", type=click.Path(path_type=Path))
@runs_option("Folder of all runs.")
@click.option("--no-connect", is_flag=True, help="Only read the plan, and ask no device.")
@click.option("--verbose", is_flag=True, help="Name the rules, and show each target and all metrics.")
@set_option
def command(plan: Path, runs_folder: Path, values: tuple[str, ...], *, no_connect: bool, verbose: bool) -> int:
    """Parse PLAN, poll every source twice, and show what will be sampled, what it can detect, and the disk needed.

    The first line says whether the run can begin. Three and more targets that are read alike are shown as one.
    A load that is a command is started for some seconds.
    """
    from soakwatch.cli.check_summary import first_line, warnings_in
    from soakwatch.engine.hooks.setup import check_outside
    from soakwatch.engine.notify.setup import check_notifications
    from soakwatch.plan import load_plan
    from soakwatch.plan.rule_plan import planned_rules

    loaded = load_plan(plan, values=values)
    if unknown := loaded.unknown_names():
        raise PlanError(*unknown)
    if warning := allow_open_files(sum(len(target.sources) for target in loaded.targets)):
        say(f"warning: {warning}")
    check_outside(loaded)
    notified = check_notifications(loaded)
    seen = None if no_connect else _look(loaded, runs_folder)
    sinks: tuple[SinkCheck, ...] = ()
    problems: tuple[str, ...] = ()
    if seen is not None:
        sinks, sink_problems = _check_sinks(loaded)
        problems = (*seen.problems, *sink_problems)
        ready = first_line(loaded, seen.checks, len(problems), warnings_in(seen.checks) + len(seen.warnings))
        say(ready)
        for sentence in problems:
            say(f"soakwatch: {sentence}", err=True)
        for sentence in seen.warnings:
            say(f"warning: {sentence}")
        click.echo()
    _show_plan(loaded, tuple(rule.name for rule in planned_rules(loaded.rules)), verbose=verbose)
    for line in notified:
        click.echo(line)
    _show_references(loaded, runs_folder)
    if seen is None:
        return EXIT_PASS
    for check in sinks:
        if check.error is None:
            click.echo(f"sink: {check.where} accepts lines")
    _show_sources(loaded, runs_folder, seen, verbose=verbose)
    if sys.stdout.isatty():  # the first line has scrolled away
        say(ready)
        for sentence in problems:
            say(sentence, indent=2)
        next_step = "mend that, and check again" if problems else f"begin it with: soakwatch run {plan}"
        say(f"next: {next_step}")
    if any(check.wrong for check in sinks):
        return EXIT_USAGE
    return EXIT_FAIL if problems else EXIT_PASS


def _show_plan(plan: Plan, rules: tuple[str, ...], *, verbose: bool) -> None:
    from soakwatch.core.units import show_seconds

    phases = ", ".join(f"{phase.name} {show_seconds(phase.seconds)}" for phase in plan.phases)
    start = f", from {plan.start.words(datetime.now(UTC))}" if plan.start else ""
    say(f"{plan.name}: {show_seconds(plan.duration_s)} ({phases}){start}")
    named = f" ({', '.join(rules)})" if verbose and rules else ""
    changed = sorted({rule.name for rule in plan.rules})
    say(f"rules: {len(rules) or 'none'}{named}" + (f"; the plan sets {', '.join(changed)}" if changed else ""))
    if plan.start and plan.start.seconds_until(time.time()) < 0:
        say("note: the planned start is in the past: the run would start at once")
    for event in plan.events:
        within = f", finished within {show_seconds(event.within_s)}" if event.within_s else ""
        when = f"at {show_seconds(event.at_s)}" + (f" of {event.phase}" if event.phase else "")
        when += f", every {show_seconds(event.every_s)}" if event.every_s else ""
        script = f", by {shlex.join(event.run)}" if event.run else ""
        say(f"event: {event.kind} {when} on {event.target or 'every target'}{within}{script}")
    if (probe := plan.observer) is not None:
        say(
            f"observer: in {probe.phase}, {probe.pairs} pauses of {show_seconds(probe.probe_s)} within "
            f"{show_seconds(probe.seconds)}, in which only the CPU of {', '.join(probe.targets)} is read"
        )
    for hook in plan.hooks:
        say(f"hook: on {' and '.join(hook.on)} of {hook.rule}: {', '.join(hook.actions)}")


def _show_references(plan: Plan, runs: Path) -> None:
    import time

    from soakwatch.engine.references import choose_references

    now_s = time.time()
    references = choose_references(plan, None, None, runs, now_s)
    for sentence in references.sentences(now_s):
        say(sentence)
    for warning in references.warnings:
        say(f"note: {warning}")


def _check_sinks(plan: Plan) -> tuple[tuple[SinkCheck, ...], tuple[str, ...]]:
    """The results of checking the plan's sinks, and a sentence for each one that does not accept lines."""
    from soakwatch.transfer.sinks.check import check_sinks
    from soakwatch.transfer.sinks.registry import destinations

    checks = check_sinks(destinations(plan.sinks).values())
    return checks, tuple(f"{plan.origin}: sinks: {check.error}" for check in checks if check.error is not None)


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of polling a plan's sources: labels as read now, and problems and warnings as sentences."""

    checks: tuple[SourceCheck, ...]
    labels: tuple[tuple[LabelPlan, str, str], ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def _look(plan: Plan, runs: Path) -> Seen:
    """Poll every source of a plan."""
    import asyncio
    import tempfile
    import time

    from soakwatch.core.text import prefixed
    from soakwatch.core.units import show_bytes, show_seconds
    from soakwatch.engine.plan_check import (
        absent_processes,
        check_sources,
        disk_bytes,
        free_bytes,
        silent_generators,
    )
    from soakwatch.engine.read_labels import labels_now

    with tempfile.TemporaryDirectory(prefix="soakwatch-check-") as folder:
        checks = asyncio.run(check_sources(plan, Path(folder)))
        labels = asyncio.run(labels_now(plan, Path(folder)))
    problems = [
        f"{check.source.location}: {prefixed(check.target.name, check.source.poller, check.error)}"
        for check in checks
        if check.error
    ]
    problems += [
        f"{label.location}: the label {label.name} cannot be read: {trouble}" for label, _, trouble in labels if trouble
    ]
    problems += [
        f"{plan.origin}: {target.name}: no process {name!r} is running: its findings would be inconclusive"
        for target, name in absent_processes(checks)
    ]
    need, free = disk_bytes(checks, plan.duration_s), free_bytes(runs)
    if need > free:
        problems.append(f"the record needs about {show_bytes(need)}, but only {show_bytes(free)} are free in {runs}")
    late = [check for check in checks if check.error is None and check.seconds > check.interval_s]
    for check in late:
        took, interval = show_seconds(check.seconds), show_seconds(check.interval_s)
        problems.append(
            f"{check.source.location}: a poll takes {took}, longer than its interval of {interval}: raise interval"
        )
    return Seen(checks, tuple(labels), tuple(problems), silent_generators(checks, time.time()))


def _show_sources(plan: Plan, runs: Path, seen: Seen, *, verbose: bool) -> None:
    from soakwatch.cli.check_summary import alike, merge_checks, merge_sentences, names_of
    from soakwatch.cli.tables import show_source_check
    from soakwatch.core.units import show_bytes
    from soakwatch.engine.plan_check import disk_bytes, free_bytes
    from soakwatch.engine.provable import provable
    from soakwatch.engine.sensitivity import sensitivity

    for group in [(check,) for check in seen.checks] if verbose else alike(seen.checks):
        most = None if verbose or not sys.stdout.isatty() else _MAX_METRICS
        show_source_check(merge_checks(group), plan.duration_s, who=names_of(group), most=most)
    for label, text, trouble in seen.labels:
        if not trouble:
            say(f"label: {label.name}={text}" + ("" if label.source is None else ", as read now"))
    click.echo("\nWhat this run can detect:")
    if proves := provable(plan, seen.checks):
        say(proves, indent=2)
    sentences = sensitivity(plan, seen.checks)
    every = [f"{who}: {text}" if who else text for who, text in sentences]
    for sentence in every if verbose else merge_sentences(sentences):
        say(sentence, indent=2)
    need, free = disk_bytes(seen.checks, plan.duration_s), free_bytes(runs)
    click.echo()
    needed = f"about {show_bytes(need)} needed (3 bytes a sample)" if need else "how much is needed is not known"
    say(f"Disk: {needed}, {show_bytes(free)} free in {runs}")
