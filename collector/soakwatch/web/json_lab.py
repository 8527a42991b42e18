"""The queue of a lab server as JSON: jobs, schedules, plans and audit. Texts are not escaped, as pages set them as
text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from soakwatch.core.formatting import printable
from soakwatch.core.units import show_seconds
from soakwatch.lab.lab_model import AuditEntry, Job, JobState, Schedule
from soakwatch.lab.plans_folder import CAMPAIGN, Listed
from soakwatch.runs.mark_event import moment_text
from soakwatch.web.endpoint import Schema

TEXT: Schema = {"type": "string"}
_WHEN: Schema = {"type": ["string", "null"], "format": "date-time"}
_NUMBER: Schema = {"type": ["integer", "null"]}
_TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
LABELS: Schema = {"type": "object", "additionalProperties": TEXT, "examples": [{"testbed": "rack-3", "release": "7.2"}]}
VALUES: Schema = {"type": "array", "items": TEXT, "examples": [["duration=2h"]]}

JOB: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "plan": {"type": "string", "description": "its path below the plans folder"},
        "kind": {"enum": ["run", "campaign"]},
        "labels": _TEXTS,
        "set": {"type": "array", "items": TEXT},
        "testbed": {"type": "string", "description": "the testbeds that labels name, else the hosts"},
        "state": {"enum": [state.value for state in JobState]},
        "place": {"type": ["integer", "null"], "description": "place in the queue, from 1"},
        "waits": {"type": "string", "description": "what it waits for"},
        "verdict": {"enum": ["pass", "fail", "inconclusive", None]},
        "exit_code": {"type": ["integer", "null"], "description": "that of soakwatch submit --wait, once it is over"},
        "reason": TEXT,
        "note": TEXT,
        "user": TEXT,
        "role": TEXT,
        "asked": _WHEN,
        "begin": _WHEN,
        "end": _WHEN,
        "planned_s": {"type": "number"},
        "planned": TEXT,
        "schedule": {"type": ["string", "null"]},
        "due": _WHEN,
        "stopping": {"type": "boolean", "description": "it was asked to end, and is not over yet"},
        "stop": {**_WHEN, "description": "when it was asked to end"},
        "run": {"type": "string", "description": "the run or campaign, for use in paths; empty before it begins"},
        "page": {"type": "string", "description": "the path of its page"},
        "resumes": {"type": "string", "description": "the run or campaign that it goes on with; empty for a new one"},
    },
    "required": ["id", "plan", "kind", "state", "verdict", "exit_code", "reason", "user", "testbed", "run"],
}
SCHEDULE: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "examples": ["s3"]},
        "plan": TEXT,
        "labels": _TEXTS,
        "set": {"type": "array", "items": TEXT},
        "cron": TEXT,
        "zone": TEXT,
        "at": _WHEN,
        "next": _WHEN,
        "enabled": {"type": "boolean"},
        "missed": {"type": "array", "items": TEXT, "description": "the last times that passed while no server ran"},
        "missed_count": {"type": "integer"},
        "trouble": TEXT,
        "last_job": _NUMBER,
        "user": TEXT,
        "role": TEXT,
        "made": _WHEN,
    },
    "required": ["id", "plan", "cron", "zone", "at", "next", "enabled", "missed", "user"],
}
AUDIT_ENTRY: Schema = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "time": _WHEN,
        "user": TEXT,
        "role": TEXT,
        "action": TEXT,
        "plan": TEXT,
        "job": _NUMBER,
        "schedule": {"type": ["string", "null"]},
        "run": TEXT,
        "words": TEXT,
    },
    "required": ["id", "time", "user", "role", "action", "plan", "run"],
}
PLAN: Schema = {
    "type": "object",
    "properties": {
        "plan": TEXT,
        "kind": {"enum": ["run", "campaign", ""]},
        "name": TEXT,
        "testbed": TEXT,
        "planned_s": {"type": ["number", "null"]},
        "planned": TEXT,
        "trouble": {"type": "string", "description": "why it cannot be run; empty if it can"},
    },
    "required": ["plan", "kind", "trouble"],
}
STATE: Schema = {
    "type": "object",
    "properties": {
        "at_once": {"type": "integer", "description": "runs that may go on at once"},
        "trouble": {"type": "string", "description": "why the queue is not worked on; empty if it is"},
        "running": {"type": "array", "items": JOB},
        "queue": {"type": "array", "items": JOB},
        "recent": {"type": "array", "items": JOB, "description": "jobs that are over, the newest first"},
        "schedules": {"type": "array", "items": SCHEDULE},
        "audit": {"type": "array", "items": AUDIT_ENTRY, "description": "the newest first"},
    },
    "required": ["running", "queue", "recent", "schedules", "audit"],
}


def job_data(job: Job, place: int | None = None, waits: str = "") -> Mapping[str, object]:
    """A job; of one that waits its ``place`` in the queue, and what for."""
    run, page = _run(job)
    return {
        "id": job.id,
        "plan": job.order.plan,
        "kind": job.kind,
        "labels": {name: printable(text) for name, text in job.order.labels.items()},
        "set": [printable(value) for value in job.order.values],
        "testbed": printable(job.testbed.words),
        "state": job.state.value,
        "place": place,
        "waits": printable(waits),
        "verdict": job.verdict,
        "exit_code": job.exit_code,
        "reason": printable(job.reason),
        "note": printable(job.note),
        "user": printable(job.user.name),
        "role": job.user.role,
        "asked": _when(job.asked_ns),
        "begin": _when(job.begin_ns),
        "end": _when(job.end_ns),
        "planned_s": job.planned_s,
        "planned": show_seconds(round(job.planned_s)),
        "schedule": None if job.schedule is None else f"s{job.schedule}",
        "due": _when(job.due_ns),
        "stopping": job.stop_ns is not None and not job.over,
        "stop": _when(job.stop_ns),
        "run": run,
        "page": page,
        "resumes": job.resumes.rpartition("/")[2],
    }


def waiting_words(job: Job, running: Sequence[Job], before: Sequence[Job], elsewhere: str, at_once: int) -> str:
    """What a job in the queue waits for, in words."""
    for other in running:
        if job.testbed.conflicts(other.testbed):
            return f"job {other.id} has {_shared(job, other)}"
    for other in before:
        if job.testbed.conflicts(other.testbed):
            return f"job {other.id} is before it on {_shared(job, other)}"
    if elsewhere:
        return elsewhere
    return f"{at_once} runs go on, which is the most at once" if len(running) >= at_once else ""


def schedule_data(made: Schedule) -> Mapping[str, object]:
    """A schedule."""
    return {
        "id": f"s{made.id}",
        "plan": made.order.plan,
        "labels": {name: printable(text) for name, text in made.order.labels.items()},
        "set": [printable(value) for value in made.order.values],
        "cron": made.cron,
        "zone": made.zone,
        "at": _when(made.at_ns),
        "next": _when(made.next_ns),
        "enabled": made.enabled,
        "missed": [moment_text(time_ns) for time_ns in made.missed],
        "missed_count": made.missed_count,
        "trouble": printable(made.trouble),
        "last_job": made.last_job,
        "user": printable(made.user.name),
        "role": made.user.role,
        "made": _when(made.made_ns),
    }


def audit_data(entry: AuditEntry) -> Mapping[str, object]:
    """Who did what."""
    return {
        "id": entry.id,
        "time": _when(entry.time_ns),
        "user": printable(entry.user.name),
        "role": entry.user.role,
        "action": entry.action,
        "plan": entry.plan,
        "job": entry.job,
        "schedule": None if entry.schedule is None else f"s{entry.schedule}",
        "run": entry.run,
        "words": printable(entry.words),
    }


def plan_data(listed: Listed) -> Mapping[str, object]:
    """A plan of the folder."""
    return {
        "plan": listed.plan,
        "kind": listed.kind,
        "name": printable(listed.name),
        "testbed": printable(listed.testbed),
        "planned_s": listed.planned_s,
        "planned": "" if listed.planned_s is None else show_seconds(round(listed.planned_s)),
        "trouble": printable(listed.trouble),
    }


def _run(job: Job) -> tuple[str, str]:
    """The name of a job's run or campaign, and the path of its page."""
    if not job.folder:
        return "", ""
    name = job.folder.rpartition("/")[2]
    return name, f"/campaigns/{quote(name, safe='')}" if job.kind == CAMPAIGN else f"/runs/{quote(name, safe='')}/"


def _shared(job: Job, other: Job) -> str:
    bed, its = job.testbed, other.testbed
    both = set(bed.names) & set(its.names) if bed.names and its.names else set(bed.hosts) & set(its.hosts)
    return printable(", ".join(sorted(both)))


def _when(time_ns: int | None) -> str | None:
    return None if time_ns is None else moment_text(time_ns)
