"""Jobs of a lab server on the command line: times as people write them, what is said of a job, and waiting for it."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

import click

from soakwatch.core.errors import EXIT_BROKEN, PlanError
from soakwatch.core.tables import harmless
from soakwatch.core.units import seconds, show_seconds
from soakwatch.runs.mark_event import moment, moment_text
from soakwatch.web.lab_client import Answer, LabServer, NoAnswerError

PATIENCE_S = 600.0
"""How long a server that is waited for may be gone: it may be starting again."""
_ASK_EVERY_S = 1.0
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


def moment_of(text: str, now: datetime | None = None) -> str:
    """A time as ``--at`` takes it, as ISO 8601 in UTC. Raises PlanError.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    >>> moment_of("20:00", noon), moment_of("11:59", noon), moment_of("+90m", noon)
    ('2026-11-30T20:00:00.000000Z', '2026-12-01T11:59:00.000000Z', '2026-11-30T13:30:00.000000Z')
    """
    now = now or datetime.now().astimezone()
    if clock := _CLOCK.fullmatch(text.strip()):
        then = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        if then <= now:
            then = then + timedelta(days=1)
        return moment_text(round(then.timestamp()) * 10**9)
    try:
        if text.startswith("+"):
            return moment_text(round((now + timedelta(seconds=seconds(text[1:]))).timestamp()) * 10**9)
        return moment_text(moment(text.strip()))
    except (ValueError, OverflowError) as error:
        raise PlanError(f"--at: {error}; or the next HH:MM, or a time from now such as +2h") from None


def said(text: str) -> str:
    """A sentence of a server as a terminal may show it."""
    return harmless(text)


def job_of_schedule(lab: LabServer, schedule: str) -> Answer:
    """The job that a schedule makes, waited for. Raises SoakwatchError for one that is refused, missed or removed."""
    while True:
        state = _patiently(lab, "/api/lab")
        listed = state.get("schedules")
        made = next((one for one in listed if one["id"] == schedule), None) if isinstance(listed, list) else None
        if made is None:
            raise PlanError(f"schedule {schedule} was removed before its time came")
        if made["last_job"] is not None:
            return lab.ask("GET", f"/api/lab/jobs/{made['last_job']}")
        if made["trouble"]:
            raise PlanError(str(made["trouble"]))
        if made["missed_count"]:
            raise PlanError(
                f"the time of schedule {schedule} passed while no server was running: submit the plan again"
            )
        time.sleep(_ASK_EVERY_S)


def wait_for(lab: LabServer, job: Answer, *, quiet: bool = False) -> Answer:
    """Wait until a job is over, and say how it stands when that changes; returns it as it is then."""
    shown = ""
    while job.get("exit_code") is None:
        words = str(job["state"]) + (f": {job['waits']}" if job.get("waits") else "")
        if job["state"] == "running":
            words = f"running since {job['begin']}, planned for {job['planned']}: {lab.base}{job['page']}"
        if words != shown and not quiet:
            click.echo(said(f"job {job['id']} {words}"))
        shown = words
        time.sleep(_ASK_EVERY_S)
        try:
            job = _patiently(lab, f"/api/lab/jobs/{job['id']}")
        except KeyboardInterrupt:
            click.echo(f"\njob {job['id']} goes on; end it with: soakwatch queue cancel {job['id']}", err=True)
            raise
    verdict = str(job.get("verdict") or job["state"])
    reason = f": {job['reason']}" if job.get("reason") else ""
    if not quiet:
        click.echo(said(f"job {job['id']} {verdict}{reason}"))
        if job.get("page"):
            click.echo(said(f"page  {lab.base}{job['page']}"))
    return job


def _patiently(lab: LabServer, path: str) -> Answer:
    """An answer; a server that is gone is waited for. Raises SoakwatchError."""
    gone_s: float | None = None
    while True:
        try:
            return lab.ask("GET", path)
        except NoAnswerError as error:
            now_s = time.monotonic()
            if gone_s is None:
                gone_s = now_s
                click.echo(f"soakwatch: {error}; waiting for it", err=True)
            if now_s - gone_s > PATIENCE_S:
                raise _GoneError(
                    f"{error}; it was waited for {show_seconds(PATIENCE_S)}, and the job may go on"
                ) from None
            time.sleep(2 * _ASK_EVERY_S)


class _GoneError(NoAnswerError):
    exit_code = EXIT_BROKEN
