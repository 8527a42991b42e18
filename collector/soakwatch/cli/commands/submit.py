"""Submit a plan to a lab server: queue it now, at a time or by cron, and wait for its verdict if asked."""

from __future__ import annotations

from pathlib import Path

import click

from soakwatch.cli.options import LabelCommand, label_option, server_options, set_option


@click.command(
    cls=LabelCommand,
    epilog="""\b
Examples:
  soakwatch submit night.yaml
  soakwatch submit night.yaml --wait && echo "passed"
  soakwatch submit fw/night.yaml --set duration=2h --label release=7.2 testbed=rack-3
  soakwatch submit night.yaml --at 20:00
  soakwatch submit night.yaml --cron '0 20 * * mon-fri' --zone Europe/Vienna
  SOAKWATCH_TOKEN=... soakwatch submit night.yaml --server https://lab:8720 --wait
\b
PLAN is a plan or campaign by its path in the folder that the server was started with (serve --plans DIR).
--at takes a time with its zone (2026-11-30T20:00:00+01:00), the next HH:MM of this machine, or a time from now (+2h).
One run at a time goes on on a testbed: the label testbed, else the hosts of the plan's targets.
Ctrl-C ends the waiting, not the job: soakwatch queue cancel ends that.
Exit codes with --wait: 0 pass, 1 fail, 2 refused, 3 inconclusive or cancelled, 4 the monitor or the server failed.""",
)
@click.argument("plan")
@click.option("--at", metavar="TIME", help="Queue it once, at this time.")
@click.option("--cron", metavar="'M H DAY MONTH WEEKDAY'", help="Queue it again and again.")
@click.option("--zone", metavar="NAME", show_default="the server's", help="Time zone of --cron, such as Europe/Vienna.")
@set_option
@label_option("Label of the run, such as release=7.2.")
@click.option("--wait", is_flag=True, help="Wait for the end, and return the verdict as the exit code.")
@click.option("--json", "as_json", is_flag=True, help="Print the job (with --wait at its end) or schedule as JSON.")
@server_options
def command(
    plan: str,
    at: str | None,
    cron: str | None,
    zone: str | None,
    values: tuple[str, ...],
    labels: dict[str, str],
    wait: bool,  # noqa: FBT001 - click's signature
    as_json: bool,  # noqa: FBT001
    server: str | None,
    token: str | None,
    ca: str | None,
    runs_folder: Path,
) -> int:
    """Submit PLAN to a lab server."""
    import json

    from soakwatch.cli.lab_jobs import job_of_schedule, moment_of, said, wait_for
    from soakwatch.web.lab_client import lab_server

    if at and cron:
        raise click.UsageError("--at is once, --cron again and again: give one of them")
    if cron and wait:
        raise click.UsageError("--wait ends with the job, and --cron goes on: leave one of them out")
    if zone and not cron:
        raise click.UsageError("--zone belongs to --cron: write the zone of --at into its time")
    lab = lab_server(server, token, ca, runs_folder)
    order: dict[str, object] = {"plan": plan, "labels": labels, "set": list(values)}
    if at or cron:
        when = {"at": moment_of(at)} if at else {"cron": cron or "", **({"zone": zone} if zone else {})}
        made = lab.ask("POST", "/api/lab/schedules", {**order, **when})
        if as_json and not wait:
            click.echo(json.dumps(made, indent=2, ensure_ascii=False))
        elif not as_json:
            click.echo(said(f"schedule {made['id']}: {plan}, next at {str(made['next'])[:19]}Z"))
        if not wait:
            return 0
        job = job_of_schedule(lab, str(made["id"]))
    else:
        job = lab.ask("POST", "/api/lab/jobs", order)
        if not as_json:
            where = f"place {job['place']} in the queue" if job["place"] is not None else str(job["state"])
            waits = f"; {job['waits']}" if job["waits"] else ""
            click.echo(said(f"job {job['id']}: {plan} on {job['testbed']}, {where}{waits}"))
    if wait:
        job = wait_for(lab, job, quiet=as_json)
    if as_json:
        click.echo(json.dumps(job, indent=2, ensure_ascii=False))
    code = job["exit_code"]
    return code if isinstance(code, int) else 0
