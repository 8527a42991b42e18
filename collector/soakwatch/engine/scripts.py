"""Scripts of planned events: started with the event, run in parallel, killed at the end of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final

from soakwatch.core.redaction import Redaction
from soakwatch.core.run_command import CommandResult, RunsCommand, run_command
from soakwatch.plan import EventPlan
from soakwatch.record import Artifact, artifact_name
from soakwatch.record.queue import Notes
from soakwatch_model.event import Event

FAILED: Final = "script.failed"
"""Kind of the event that says that the command of a planned event failed."""


class Scripts:
    """The running commands of planned events. Await ``end`` before the record is closed."""

    def __init__(
        self,
        notes: Notes,
        now_ns: Callable[[], int],
        environment: Mapping[str, str],
        redaction: Redaction,
        command: RunsCommand = run_command,
    ) -> None:
        self._notes, self._now_ns, self._redaction, self._command = notes, now_ns, redaction, command
        self._environment = dict(environment)
        self._running: dict[int, asyncio.Task[None]] = {}
        self._over = asyncio.Event()

    def runs(self, index: int) -> bool:
        """True while an earlier command of planned event ``index`` still runs."""
        task = self._running.get(index)
        return task is not None and not task.done()

    def start(self, index: int, planned: EventPlan, event: Event, number: int) -> None:
        """Starts the command of an event that is recorded under ``number``."""
        self._running[index] = asyncio.create_task(self._run(planned, event, number))

    async def end(self) -> None:
        """The run is over: kills what still runs, and ends its events."""
        self._over.set()
        if self._running:
            await asyncio.wait(self._running.values())

    async def _run(self, planned: EventPlan, event: Event, number: int) -> None:
        own = {"SOAKWATCH_EVENT": event.kind, "SOAKWATCH_TARGET": event.target}
        result = await self._command(
            planned.run or (), {**self._environment, **own}, planned.timeout_s, self._over, self._redaction
        )
        end_ns = self._now_ns()
        outcome = await self._kept(event, number, result)
        failed = result.failure and not result.over
        if result.failure:
            outcome["failed" if failed else "cut"] = result.failure
        await self._notes.ended(number, None if planned.lasts_s is not None else end_ns, outcome)
        if failed:
            detail = {"event": event.kind, "reason": result.failure}
            await self._notes.event(Event(FAILED, event.target, "", end_ns, end_ns, detail))

    async def _kept(self, event: Event, number: int, result: CommandResult) -> dict[str, str]:
        """Stores the output as an artifact, if any; returns the detail of the event about it."""
        if not result.output:
            return {}
        name = artifact_name("scripts", f"{stamp(event.begin_ns)}-{number}-{event.kind}.txt")
        about = f"{event.kind} {event.target}".strip()
        trouble = await self._notes.keep(Artifact(name, "text/plain", result.output, event.begin_ns, "script", about))
        return {"output": f"not kept: {trouble}" if trouble else name}


def stamp(time_ns: int) -> str:
    """A time as part of a file name, to the millisecond.

    >>> stamp(1_700_000_000_123_456_789)
    '20231114T221320.123Z'
    """
    moment = datetime.fromtimestamp(time_ns // 10**9, UTC)
    return f"{moment:%Y%m%dT%H%M%S}.{time_ns // 10**6 % 1000:03d}Z"
