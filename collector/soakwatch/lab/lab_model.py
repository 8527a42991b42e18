"""What a lab server knows: jobs in a queue, schedules that make jobs, the audit of users, and what a testbed is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from soakwatch.core.errors import EXIT_BROKEN, EXIT_FAIL, EXIT_INCONCLUSIVE, EXIT_PASS, EXIT_USAGE, SoakwatchError

TESTBED = "testbed"
"""The label of a plan or submission that names the testbed."""


class LabError(SoakwatchError):
    """What was asked of the queue cannot be done; ``str()`` is one sentence with the remedy."""


class StoreError(LabError):
    """The file of the queue cannot be read or written."""


class UnknownError(LabError):
    """There is no such plan, job or schedule."""


class ConflictError(LabError):
    """It contradicts how the job or the server stands."""


class NotAllowedError(LabError):
    """The user's role does not allow it."""


class JobState(StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"  # with a verdict
    REFUSED = "refused"  # it did not begin: the plan cannot be run
    BROKEN = "broken off"  # without a verdict
    CANCELLED = "cancelled"  # before it began


OVER = frozenset({JobState.ENDED, JobState.REFUSED, JobState.BROKEN, JobState.CANCELLED})
EXIT_CODES: Mapping[str, int] = {"pass": EXIT_PASS, "fail": EXIT_FAIL, "inconclusive": EXIT_INCONCLUSIVE}
VERDICTS: Mapping[int, str] = {code: verdict for verdict, code in EXIT_CODES.items()}


@dataclass(frozen=True, slots=True)
class User:
    """Who asks: the name and the role (viewer, operator, admin), as the server established them."""

    name: str
    role: str


SERVER = User("soakwatch", "server")
"""The server itself: what schedules and restarts do."""


@dataclass(frozen=True, slots=True)
class Testbed:
    """What a run occupies: the testbeds that labels ``names``, and the ``hosts`` that its plan polls.

    >>> rack, other = Testbed(("rack-3",), ("fw1",)), Testbed(("rack-4",), ("fw1",))
    >>> rack.conflicts(rack), rack.conflicts(other), rack.conflicts(Testbed((), ("fw1", "fw2")))
    (True, False, True)
    """

    names: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def conflicts(self, other: Testbed) -> bool:
        """Whether two runs must not go on at once: they have a name in common, or, where one of them has no name, a
        host."""
        if self.names and other.names:
            return not set(self.names).isdisjoint(other.names)
        return not set(self.hosts).isdisjoint(other.hosts)

    @property
    def words(self) -> str:
        """The names, else the hosts."""
        return ", ".join(self.names or self.hosts)


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be run: a plan or campaign by its path below the plans folder, with labels and changed values."""

    plan: str
    labels: Mapping[str, str] = field(default_factory=dict)
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """One run or campaign that was asked for. Times are UTC ns, None where it has not come to that.

    ``kind`` is "run" or "campaign". ``rank`` orders those that wait. ``schedule`` made it for the time ``due_ns``.
    ``folder`` is the folder of its run or campaign below that of all runs, "" before it begins; ``resumes`` that of one
    that was broken off, with which it goes on; ``resumed`` how often the server let it go on by itself. ``stop_ns`` is
    when it was asked to end, ``kill`` that it did not, so that somebody wants its processes killed. ``note`` is what
    else is to be known, such as that the plan was changed while it waited.
    """

    id: int
    order: Order
    kind: str
    testbed: Testbed
    digest: str
    planned_s: float
    user: User
    asked_ns: int
    rank: int = 0
    state: JobState = JobState.QUEUED
    schedule: int | None = None
    due_ns: int | None = None
    begin_ns: int | None = None
    end_ns: int | None = None
    stop_ns: int | None = None
    stopped_by: str = ""
    stop_reason: str = ""
    folder: str = ""
    verdict: str | None = None
    reason: str = ""
    note: str = ""
    resumes: str = ""
    kill: bool = False
    resumed: int = 0

    @property
    def over(self) -> bool:
        """Whether nothing is left to come."""
        return self.state in OVER

    @property
    def exit_code(self) -> int | None:
        """What a command that waited for it returns; None while it is not over."""
        if not self.over:
            return None
        if self.state is JobState.ENDED:
            return EXIT_CODES.get(self.verdict or "", EXIT_BROKEN)
        return {JobState.REFUSED: EXIT_USAGE, JobState.CANCELLED: EXIT_INCONCLUSIVE}.get(self.state, EXIT_BROKEN)


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a plan is queued: by ``cron`` in the time zone ``zone``, or once at ``at_ns``.

    ``next_ns`` is when next, None if never again or while it is not ``enabled``. ``missed`` are the times (UTC ns) that
    passed while no server ran, the newest last, of at most a few; ``missed_count`` counts all of them.
    """

    id: int
    order: Order
    user: User
    made_ns: int
    cron: str = ""
    zone: str = "UTC"
    at_ns: int | None = None
    next_ns: int | None = None
    enabled: bool = True
    missed: tuple[int, ...] = ()
    missed_count: int = 0
    last_job: int | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who did what, when (UTC ns), to which plan, job, schedule or run; ``id`` is 0 before it is kept.

    ``told`` says whether the record of the run has it too.
    """

    time_ns: int
    user: User
    action: str
    plan: str = ""
    job: int | None = None
    schedule: int | None = None
    run: str = ""
    words: str = ""
    told: bool = False
    id: int = 0
