"""Mark an event on a running or finished run: failover, upgrade, reboot, config change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import click

from soakwatch.cli.options import runs_option


@click.command(
    epilog="""\b
Examples:
  soakwatch event last failover
  soakwatch event last upgrade --begin --target dut --expect reboot=1 --within 10m
  soakwatch event last upgrade --end
  soakwatch event last config --at 2026-11-21T20:15:00Z --label ticket=4711
\b
--expect names what is allowed, and required, within the time of --within: an upgrade that expects reboot=1 fails
if the device did not reboot, or rebooted twice.
--end needs --target only if several events of KIND are open.
Two events of one kind, target and object cannot overlap. Times outside of the run or more than a minute in the future
are rejected; future events belong in the plan's events."""
)
@click.argument("run", metavar="RUN")
@click.argument("kind")
@click.option("--begin", is_flag=True, help="Start the event now; a later --end closes it.")
@click.option("--end", is_flag=True, help="End the open event of this kind now.")
@click.option("--at", "moment", metavar="TIME", show_default="now", help="When it happened: ISO 8601 with a time zone.")
@click.option("--until", metavar="TIME", help="When it ended, if it is over: ISO 8601 with a time zone.")
@click.option("--target", default="", show_default="all", help="Target of the event.")
@click.option("--object", "object_", default="", help="Object of the target, such as interface=eth0.")
@click.option(
    "--expect",
    multiple=True,
    metavar="KIND=N",
    help="What must follow: reboot=1, process.restart=2 … May be repeated.",
)
@click.option("--within", metavar="DURATION", help="Deadline for recovery, counted from the start of the event.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Additional information. May be repeated.")
@runs_option()
def command(
    run: str,
    kind: str,
    begin: bool,  # noqa: FBT001
    end: bool,  # noqa: FBT001
    moment: str | None,
    until: str | None,
    target: str,
    object_: str,
    expect: tuple[str, ...],
    within: str | None,
    labels: tuple[str, ...],
    runs_folder: Path,
) -> None:
    """Mark an event of KIND (any name, such as failover) on RUN."""
    from soakwatch.core.units import seconds
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.mark_event import EventRequest, record_event

    if begin and end:
        raise click.UsageError("--begin and --end exclude each other: omit both for an event without a duration")
    if until is not None and (begin or end):
        raise click.UsageError("--until is for an event that is over: omit --begin and --end")
    action: Literal["mark", "begin", "end"] = "begin" if begin else "end" if end else "mark"
    try:
        within_s = None if within is None else seconds(within)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--within") from error
    request = EventRequest(
        action,
        kind,
        _moment(moment, "--at"),
        _moment(until, "--until"),
        target,
        object_,
        {name: _count(name, text) for name, text in _pairs(expect)},
        within_s,
        dict(_pairs(labels)),
    )
    folder = find_run(run, runs_folder)
    stored = record_event(folder, request, time.time_ns())
    done = {"mark": "marked", "begin": "started", "end": "ended"}[action]
    click.echo(f"{stored.event.kind} {done}" + (f" on {stored.event.target}" if stored.event.target else ""))
    with RecordView.open(folder) as view:
        if view.meta("ended_ns"):
            click.echo(f"the run has ended: to judge it with this event, run 'soakwatch judge {run}'")


def _moment(text: str | None, option: str) -> int | None:
    from soakwatch.runs.mark_event import moment

    try:
        return None if text is None else moment(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint=option) from None


def _pairs(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in texts]
    for text, (key, _, value) in zip(texts, pairs, strict=True):
        if not (key and value):
            raise click.UsageError(f"{text!r} is not KEY=VALUE")
    if len({key for key, _, _ in pairs}) < len(pairs):
        raise click.UsageError("a key is given twice: give it once")
    return [(key, value) for key, _, value in pairs]


def _count(name: str, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise click.BadParameter(f"{name}={text}: expected a count, such as {name}=1", param_hint="--expect")
    return int(text)
