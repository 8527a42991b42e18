"""Marks an event on a run, while it goes on or afterwards: failover, upgrade, reboot, config change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

import click

from soakwatch.runs.catalog import DEFAULT_RUNS


@click.command(
    epilog="""\b
Examples:
  soakwatch event last failover
  soakwatch event last upgrade --begin --target dut --expect reboot=1 --within 10m
  soakwatch event last upgrade --end
  soakwatch event last config --at 2026-11-21T20:15:00Z --label ticket=4711
\b
--expect says what is allowed, and required, within the time of --within: an upgrade that expects reboot=1 fails
if the device did not reboot, or rebooted twice.
--end needs no --target where one event of KIND is open; of several it says which, and how to choose.
Two events of one kind, target and object cannot overlap. What lies in the future, or outside of the run, is refused:
the clocks of two machines may be a minute apart. What is to come is written into the plan's events."""
)
@click.argument("run", metavar="RUN")
@click.argument("kind")
@click.option("--begin", is_flag=True, help="The event begins now; a later --end closes it.")
@click.option("--end", is_flag=True, help="The open event of this kind ends now.")
@click.option("--at", "moment", help="When it happened, ISO 8601 with a zone (default: now).")
@click.option("--until", help="When it was over, if that is known already, ISO 8601 with a zone.")
@click.option("--target", default="", help="The target that it happened to (default: all).")
@click.option("--object", "thing", default="", help="What of the target it happened to, such as interface=eth0.")
@click.option("--expect", multiple=True, metavar="WHAT=N", help="What it brings: reboot=1, process.restart=2 …")
@click.option("--within", metavar="D", help="How long after its begin all must be over.")
@click.option("--label", "labels", multiple=True, metavar="K=V", help="Anything worth knowing. May be repeated.")
@click.option(
    "--runs",
    "runs_folder",
    type=click.Path(path_type=Path),
    default=DEFAULT_RUNS,
    show_default=True,
    help="Folder in which RUN is looked up.",
)
def command(
    run: str,
    kind: str,
    begin: bool,  # noqa: FBT001
    end: bool,  # noqa: FBT001
    moment: str | None,
    until: str | None,
    target: str,
    thing: str,
    expect: tuple[str, ...],
    within: str | None,
    labels: tuple[str, ...],
    runs_folder: Path,
) -> None:
    """Mark an event of KIND (a word of your own, such as failover) on RUN."""
    from soakwatch.core.units import seconds
    from soakwatch.record import RecordView
    from soakwatch.runs.catalog import find_run
    from soakwatch.runs.mark_event import EventRequest, record_event

    if begin and end:
        raise click.UsageError("an event that begins and ends at once is a plain event: omit both")
    if until is not None and (begin or end):
        raise click.UsageError("--until is for an event that is over: omit --begin and --end")
    deed: Literal["mark", "begin", "end"] = "begin" if begin else "end" if end else "mark"
    try:
        within_s = None if within is None else seconds(within)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--within") from error
    ask = EventRequest(
        deed,
        kind,
        _moment(moment, "--at"),
        _moment(until, "--until"),
        target,
        thing,
        {name: _count(name, text) for name, text in _pairs(expect)},
        within_s,
        dict(_pairs(labels)),
    )
    folder = find_run(run, runs_folder)
    stored = record_event(folder, ask, time.time_ns())
    told = {"mark": "marked", "begin": "began", "end": "ended"}[deed]
    click.echo(f"{stored.event.kind} {told}" + (f" on {stored.event.target}" if stored.event.target else ""))
    with RecordView.open(folder) as view:
        if view.meta("ended_ns"):
            click.echo(f"the run has ended: judge it again with 'soakwatch judge {run}'")


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
        raise click.UsageError("a key is given twice: say it once")
    return [(key, value) for key, _, value in pairs]


def _count(name: str, text: str) -> int:
    if not (text.isdecimal() and text.isascii() and len(text) < 10):
        raise click.BadParameter(f"{name}={text}: a number of times, such as {name}=1", param_hint="--expect")
    return int(text)
