"""Show what runs, what waits, the schedules, and the last jobs that are over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import click

from soakwatch.cli.options import server_options

_RECENT = 10
Rows = Sequence[Mapping[str, object]]


@click.command(
    epilog="""\b
Examples:
  soakwatch queue list
  soakwatch queue list --json | jq -r '.queue[].plan'
  soakwatch queue list --server https://lab:8720"""
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@server_options
def command(as_json: bool, server: str | None, token: str | None, ca: str | None, runs_folder: Path) -> None:  # noqa: FBT001
    """Show the queue of a lab server."""
    import json

    from soakwatch.core.tables import show_table
    from soakwatch.web.lab_client import lab_server

    state = lab_server(server, token, ca, runs_folder).ask("GET", "/api/lab")
    if as_json:
        click.echo(json.dumps(state, indent=2, ensure_ascii=False))
        return
    running, queue = cast("Rows", state["running"]), cast("Rows", state["queue"])
    schedules, recent = cast("Rows", state["schedules"]), cast("Rows", state["recent"])[:_RECENT]
    if not (running or queue or schedules or recent):
        click.echo("nothing runs, waits or is scheduled: soakwatch submit PLAN queues a plan")
        return
    tables: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = [
        (("job", "state", "plan", "testbed", "user", ""), [*map(_going, running), *map(_waiting, queue)]),
        (("schedule", "plan", "when", "next", "user", ""), [_schedule(one) for one in schedules]),
        (("job", "verdict", "plan", "testbed", "user", "run", "reason"), [_over(one) for one in recent]),
    ]
    for number, (head, rows) in enumerate([table for table in tables if table[1]]):
        if number:
            click.echo()
        show_table(head, rows)


def _going(job: Mapping[str, object]) -> tuple[str, ...]:
    since = f"since {_short(job['begin'])}, planned for {job['planned']}"
    note = f"; {job['note']}" if job["note"] else ""
    return str(job["id"]), "stopping" if job["stopping"] else "running", *_what(job), f"{since}{note}"


def _waiting(job: Mapping[str, object]) -> tuple[str, ...]:
    return str(job["id"]), f"place {job['place']}", *_what(job), str(job["waits"])


def _over(job: Mapping[str, object]) -> tuple[str, ...]:
    reason = str(job["reason"])[: 120 if job["verdict"] else 400]  # of one without a verdict it ends with what to do
    return str(job["id"]), str(job["verdict"] or job["state"]), *_what(job), str(job["run"]), reason


def _what(job: Mapping[str, object]) -> tuple[str, str, str]:
    return str(job["plan"]), str(job["testbed"]), str(job["user"])


def _schedule(one: Mapping[str, object]) -> tuple[str, ...]:
    when = f"{one['cron']} ({one['zone']})" if one["cron"] else f"at {_short(one['at'])}"
    notes = [] if one["enabled"] else ["over" if one["at"] else "disabled"]
    missed = cast("Sequence[str]", one["missed"])
    notes += [f"missed {_short(missed[-1])}: no server was running"] if missed else []
    notes += [str(one["trouble"])] if one["trouble"] else []
    return str(one["id"]), str(one["plan"]), when, _short(one["next"]), str(one["user"]), "; ".join(notes)


def _short(moment: object) -> str:
    """A time to the minute, "-" for none."""
    return "-" if moment is None else f"{str(moment)[:16].replace('T', ' ')}Z"
