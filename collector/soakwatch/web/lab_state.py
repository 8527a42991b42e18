"""The state of a lab server's queue as pages get it, made once for each change, however many ask."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence

from soakwatch.lab.dispatcher import Dispatcher
from soakwatch.lab.lab import Lab
from soakwatch.lab.lab_model import Job, JobState, Testbed
from soakwatch.web.json_lab import audit_data, job_data, schedule_data, waiting_words

RECENT, AUDIT = 50, 25
"""Jobs that are over, and entries of the audit, of the state: the newest."""


class LabStates:
    """The last state that was made, with its ETag. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[object, ...] = ()
        self._made = (b"", "")

    def read(self, lab: Lab, dispatcher: Dispatcher) -> tuple[bytes, str]:
        """The state as JSON, and its ETag."""
        with self._lock:
            key = (id(lab), lab.store.version, dispatcher.trouble, *dispatcher.waits.items())
            if key != self._key:
                content = json.dumps(lab_state(lab, dispatcher), ensure_ascii=True, separators=(",", ":")).encode()
                self._made = content, f'"{hashlib.sha256(content).hexdigest()[:24]}"'
                self._key = key
            return self._made


def lab_state(lab: Lab, dispatcher: Dispatcher) -> Mapping[str, object]:
    """All that the page shows, as ``STATE`` of ``json_lab`` describes it."""
    store = lab.store
    with store.still():
        running, queue = store.jobs(JobState.RUNNING), store.jobs(JobState.QUEUED)
        recent, schedules, audit = store.ended_jobs(RECENT), store.schedules(), store.audit(AUDIT)
    waits, most = dispatcher.waits, dispatcher.at_once
    first: dict[Testbed, Job] = {}  # of each testbed, as many wait for the same one
    listed = []
    for place, job in enumerate(queue, 1):
        words = waiting_words(job, running, tuple(first.values()), waits.get(job.id, ""), most)
        listed.append(job_data(job, place, words))
        first.setdefault(job.testbed, job)
    return {
        "at_once": most,
        "trouble": dispatcher.trouble,
        "running": [job_data(job) for job in running],
        "queue": listed,
        "recent": [job_data(job) for job in recent],
        "schedules": [schedule_data(made) for made in schedules],
        "audit": [audit_data(entry) for entry in audit],
    }


def one_job(lab: Lab, dispatcher: Dispatcher, number: int) -> Mapping[str, object]:
    """A job, with its place in the queue if it waits. Raises UnknownError."""
    with lab.store.still():
        job = lab.job(number)
        running, queue = lab.store.jobs(JobState.RUNNING), lab.store.jobs(JobState.QUEUED)
    if job.state is not JobState.QUEUED:
        return job_data(job)
    before: Sequence[Job] = [other for other in queue if other.rank < job.rank]
    words = waiting_words(job, running, before, dispatcher.waits.get(job.id, ""), dispatcher.at_once)
    return job_data(job, len(before) + 1, words)
