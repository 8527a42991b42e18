"""The seam between the wrapper (polling.py) and a source: a poller is its question and its answer.

A module ``pollers/NAME.py`` or ``loads/NAME.py`` holds

* its docstring, whose first line is shown by ``soakwatch pollers`` or ``soakwatch loads``,
* ``Config``, a subclass of ``SourceConfig`` with the source's own keys,
* ``async def start(config: Config, site: SourceContext, stack: AsyncExitStack) -> Poller``, which connects and
  enters every resource that it opens into the caller's stack.

Intervals, timeouts, retries, logging, and the record are the wrapper's; a poller raises ``SourceError`` (or lets
any exception out) and the wrapper makes a Poll of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from soakwatch.core.units import Seconds
from soakwatch_model.metric_queries import usual_in
from soakwatch_model.sample import Answer
from soakwatch_model.shown import CPU

if TYPE_CHECKING:  # it knows rules, whose arithmetic no list of sources loads
    from soakwatch.core.event_kinds import FindingKey
    from soakwatch_model.tree import Tree

CPU_METRICS: Final = frozenset(usual_in(CPU))
"""How busy a device is, in the forms in which devices tell it."""
_HOST = re.compile(r"[^\s/@-][^\s/@]{0,252}")


def _host(value: object) -> object:
    if isinstance(value, str) and _HOST.fullmatch(value) is None:
        raise ValueError("a host is a name or an address and nothing else: a user or a port has a key of its own")
    return value


HostName = Annotated[str, BeforeValidator(_host), WithJsonSchema({"type": "string", "pattern": f"^{_HOST.pattern}$"})]
"""A name or an address. With ``user:password@`` before it, it is refused and not repeated."""


class SourceError(Exception):
    """A poll that failed, in one sentence without secrets."""


class SourceUnreadyError(SourceError):
    """A poll without data yet: what it needs is being fetched in the background, for a later poll."""


class RequestsLostError(SourceError):
    """A poll that was answered in part: some of its requests, or their answers, were lost on the way."""


class LoginRefusedError(SourceError):
    """The other end was reached and does not let this login in: asking it again soon may lock the account."""


class Poller(Protocol):
    """One source, connected."""

    async def poll(self, now_ns: int) -> Answer:
        """One poll; ``now_ns`` is the steady time of its start, for samples that carry no time of their own."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What a source found out about its device when it connected, for people and for the record. No secrets.

    ``identity`` says what it is and how that is known (``profile``, ``system``, ``version``, ``host key`` ...);
    ``promised`` are the metrics that should be there by the profile, whether the device has them or not; ``notes``
    are sentences (a cadence that the device cannot keep, a key that was trusted on first use); ``cadences`` are the
    seconds between readings of metrics that come less often than the source is polled; ``renewals`` those after which
    the device renews values that are read more often.
    """

    identity: Mapping[str, str]
    promised: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cadences: Mapping[str, float] = field(default_factory=dict)
    renewals: Mapping[str, float] = field(default_factory=dict)


@runtime_checkable
class Identifies(Protocol):
    """A poller that can identify its peer. The record keeps it as an event, again whenever the identity changes."""

    def facts(self) -> Facts:
        """What is known now."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A poller that goes on to find out why its target did not answer, for longer than a poll may take."""

    async def cause(self) -> SourceError | None:
        """Why the last polls failed, as soon as that is known, within seconds; None where nothing was found out."""
        ...


@runtime_checkable
class Fingerprints(Protocol):
    """A poller that can tell what its target is, so that a test report can be repeated: model, software, settings."""

    async def fingerprint(self) -> Mapping[str, Tree]:
        """Sections of JSON, and ``notes`` with a sentence for each fact that could not be read; empty: nothing to tell.

        Asked beside the polls after the first answered one, and once more before the source closes: no poll may be
        late for it. The caller limits its time. Raises SourceError, which becomes a note, and SourceUnreadyError to be
        asked again a second later. No secrets.
        """
        ...


@dataclass(frozen=True, slots=True)
class BackfilledPoll:
    """One poll that the source made by itself while it could not be fetched; times are steady times of the run."""

    start_ns: int
    duration_ns: int
    answer: Answer


@runtime_checkable
class Backfills(Protocol):
    """A poller whose source polls by itself and stores what could not be fetched (the agent's spool)."""

    def recovered(self) -> Iterable[BackfilledPoll]:
        """Looks that were made up for since the last call, oldest first, a bounded number at a time.

        Each is put in the record under the due time that it belongs to, where the poll had been lost.
        """
        ...


@runtime_checkable
class ReadsCpuAlone(Protocol):
    """A poller that can leave its device alone but for its CPU, so that the cost of its polls can be measured."""

    async def poll_cpu(self, now_ns: int) -> Answer:
        """One poll that asks for nothing but ``CPU_METRICS``, with as few requests as that takes; an empty answer where
        there are none. Raises SourceError."""
        ...


@runtime_checkable
class CapturesDetail(Protocol):
    """A poller that can capture the details of a moment afterwards (the agent's flight recorder)."""

    def capture_moment(self, when_ns: int, why: str, finding: FindingKey | None = None) -> None:
        """Something happened to this source's target at that steady time: capture its details, if there is room.

        ``finding`` is that of a live finding which is the reason.
        """
        ...

    async def final_captures(self, end_ns: int) -> Sequence[Answer]:
        """The run ends: the captures that are complete or can be fetched now; nothing is waited for."""
        ...


@runtime_checkable
class Drivable(Protocol):
    """A load that the run itself starts, changes and stops, because its plan says ``drive: true``."""

    async def drive(self, level: float) -> None:
        """Send ``level`` times the full load from now on; 0 rests. Raises SourceError, and may be asked again."""
        ...


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    """One watch on processes; ``name`` is shown, ``how`` is name (or glob), cmdline, pid or pidfile."""

    name: str
    how: str
    what: str


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Where a source stands: its target, what to watch there, the run's folder and its steady clock.

    ``unpolled_ns``: in a run that was resumed, when the first poll was due that nobody made.
    """

    target: str
    role: str
    processes: tuple[WatchedProcess, ...]
    interfaces: tuple[str, ...] | None  # globs; None = all
    folder: Path
    now_ns: Callable[[], int]
    interval_s: float
    trial: bool = False  # a poll before the run: nothing that belongs to a run may be changed
    unpolled_ns: int | None = None


class SourceConfig(BaseModel):
    """Keys that every source has."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    asks_management: ClassVar[bool] = False
    """Whether a poll is a request to the device's management, whose response time is worth a sample of its own."""
    resting: ClassVar[Literal["polled", "cpu", "silent"]] = "polled"
    """What becomes of it while its device is left alone to measure what polls cost: it is polled as ever, only the CPU
    is read (where its poller is one that ``ReadsCpuAlone``), or nothing is asked."""

    interval: Annotated[Seconds, Field(default=1.0, ge=0.2, le=86400, description="time between polls")]
    timeout: Annotated[
        Seconds | None,
        Field(default=None, gt=0, description="a poll is abandoned after this; default: the interval, 1s to 30s"),
    ]
    required: Annotated[
        bool,
        Field(default=True, description="no pass without enough polls of this source"),
    ]

    def require_known(self) -> None:
        """Raises PlanError, one sentence, if a key names what is not installed here: a profile, an os, a probe.

        Asks no device. What only reads a plan does not ask: the record may come from a machine that had it.
        """

    @property
    def asks_device(self) -> bool:
        """Whether a poll is a request to the device itself; False if it asks who polled the device before."""
        return True

    @property
    def lossless(self) -> str:
        """Of a load, why no loss can ever be counted, so that no capacity can be found with it; "" where it can."""
        return ""


@dataclass(frozen=True, slots=True)
class Timing:
    """When a source is due: ``anchor_ns + k * interval_ns``; a poll is abandoned after ``timeout_s``."""

    anchor_ns: int
    interval_ns: int
    timeout_s: float


def timing(anchor_ns: int, interval_s: float, timeout_s: float | None = None) -> Timing:
    """Timing with the default timeout: the interval, but at least 1 s and at most 30 s."""
    return Timing(anchor_ns, round(interval_s * 1e9), timeout_s or min(max(interval_s, 1.0), 30.0))
