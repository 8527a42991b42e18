"""The seam between the wrapper (polling.py) and a source: a poller is its question and its answer.

A module ``pollers/NAME.py`` or ``loads/NAME.py`` holds

* its docstring, whose first line is shown by ``soakwatch pollers`` or ``soakwatch loads``,
* ``Config``, a subclass of ``SourceConfig`` with the source's own keys,
* ``async def start(config: Config, site: Site, stack: AsyncExitStack) -> Poller``, which connects and enters every
  resource that it opens into the caller's stack.

Intervals, timeouts, retries, logging, and the record are the wrapper's; a poller raises ``SourceFailed`` (or lets
any exception out) and the wrapper makes a Poll of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from soakwatch.units import Seconds
from soakwatch_agent.sample import Answer


class SourceFailed(Exception):  # noqa: N818 - the field says "the source failed"
    """A look that brought nothing, in one sentence that may be shown to anybody: no secrets."""


class Poller(Protocol):
    """One source, connected."""

    async def poll(self, now_ns: int) -> Answer:
        """One look; ``now_ns`` is the steady time of its begin, for samples that carry no time of their own."""
        ...


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    """One watch on processes; ``name`` is shown, ``how`` is name (or glob), cmdline, pid or pidfile."""

    name: str
    how: str
    what: str


@dataclass(frozen=True, slots=True)
class Site:
    """Where a source stands: its target, what to watch there, the run's folder and its steady clock."""

    target: str
    role: str
    processes: tuple[WatchedProcess, ...]
    interfaces: tuple[str, ...] | None  # globs; None = all
    folder: Path
    now_ns: Callable[[], int]
    interval_s: float


class SourceConfig(BaseModel):
    """Keys that every source has."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interval: Annotated[Seconds, Field(default=1.0, ge=0.2, le=86400, description="time between polls")]
    timeout: Annotated[
        Seconds | None,
        Field(default=None, gt=0, description="a poll is abandoned after this; default: the interval, 1s to 30s"),
    ]
    required: Annotated[
        bool,
        Field(default=True, description="no pass without enough polls of this source"),
    ]
