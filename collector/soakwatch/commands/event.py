"""Marks an event on a run, while it goes on or afterwards: failover, upgrade, reboot, config change."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import click

from soakwatch.runs import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch event last failover
  soakwatch event last upgrade --begin --target dut --expect reboot=1 --within 10m
  soakwatch event last upgrade --end
  soakwatch event last config --at 2026-11-21T20:15:00Z --label ticket=4711
\b
--expect says what is allowed, and required, within the time of --within: an upgrade that expects reboot=1 fails
if the device did not reboot, or rebooted twice."""
)
@click.argument("run", metavar="RUN")
@click.argument("kind")
@click.option("--begin", is_flag=True, help="The event begins now; a later --end closes it.")
@click.option("--end", is_flag=True, help="The open event of this kind ends now.")
@click.option("--at", "moment", help="When it happened, ISO 8601 with a zone (default: now).")
@click.option("--target", default="", help="The target that it happened to (default: all).")
@click.option("--expect", multiple=True, metavar="WHAT=N", help="What it brings: reboot=1, process.restart=2 …")
@click.option("--within", metavar="D", help="How long after its begin all must be over.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Anything worth knowing. May be repeated.")
@click.option("--runs", "runs_folder", type=click.Path(path_type=Path), default=DEFAULT_RUNS, show_default=True,
              help="Folder in which RUN is looked up.")  # fmt: skip
def command(
    run: str, kind: str, begin: bool, end: bool, moment: str | None, target: str, expect: tuple[str, ...],  # noqa: FBT001
    within: str | None, labels: tuple[str, ...], runs_folder: Path,
) -> None:  # fmt: skip
    """Mark an event of KIND (a word of your own, such as failover) on RUN."""
    from soakwatch.errors import SoakwatchError
    from soakwatch.record import RecordView, add_outside_event
    from soakwatch.record.outside import end_outside_event
    from soakwatch.runs import find_run
    from soakwatch.units import seconds
    from soakwatch_rules.rule import Event

    if begin and end:
        raise click.UsageError("an event that begins and ends at once is a plain event: omit both")
    folder = find_run(run, runs_folder)
    at_ns = time.time_ns() if moment is None else _moment(moment)
    with RecordView.open(folder) as view:
        roles = view.roles()
    if target and target not in roles:
        raise SoakwatchError(f"the run has no target {target!r}: it has {', '.join(sorted(roles))}")
    if end:
        if not end_outside_event(folder, kind, target, at_ns):
            raise SoakwatchError(f"no open event {kind!r} in {folder}: begin one with --begin")
        click.echo(f"{kind} ended")
        return
    try:
        deadline = None if within is None else at_ns + round(seconds(within) * 1e9)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--within") from error
    wanted = {name: _count(name, text) for name, text in (_pair(pair) for pair in expect)}
    event = Event(
        kind, target, "", at_ns, None if begin else at_ns, dict(_pair(pair) for pair in labels), wanted, deadline
    )
    add_outside_event(folder, target, event, origin="user")
    click.echo(f"{kind} {'began' if begin else 'marked'}" + (f" on {target}" if target else ""))


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not ISO 8601, such as 2026-11-21T20:15:00Z", param_hint="--at") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{text!r} has no zone: write {text}Z for UTC", param_hint="--at")
    return round(moment.timestamp() * 1e9)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise click.UsageError(f"{text!r} is not KEY=VALUE")
    return key, value


def _count(name: str, text: str) -> int:
    if not text.isdecimal():
        raise click.BadParameter(f"{name}={text}: a number of times, such as {name}=1", param_hint="--expect")
    return int(text)
