"""Reads the events of a run from its record, whoever reported them: pollers, people, hooks, other programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.engine.run_record import RunRecord
from soakwatch.record import StoredEvent
from soakwatch.runs.clock_steps import step_words
from soakwatch.runs.watching import event_words, worth_showing

MAX_SHOWN = 5


class EventFeed:
    """Reads every event of a record once; an earlier monitor acted on those up to number ``handled``."""

    def __init__(self, out: RunRecord, handled: int) -> None:
        self._out, self._handled = out, handled
        self._newest = 0  # number of the last event read
        self._shown: deque[str] = deque(maxlen=MAX_SHOWN)  # the newest only: a storm may last for days
        self._steps: deque[str] = deque(maxlen=MAX_SHOWN)

    def is_new(self, stored: StoredEvent) -> bool:
        """True if no earlier monitor has acted on it."""
        return stored.id > self._handled

    async def read(self) -> Sequence[StoredEvent]:
        """The events since the last call; the first call returns also those before a resume. Raises RecordError."""
        events = await self._out.queue.call(self._out.record.events_after, self._newest)
        for stored in events:
            self._newest = stored.id
            if worth_showing(stored):
                self._shown.appendleft(event_words(stored))
            if stored.event.kind == CLOCK_STEP:
                self._steps.append(step_words(stored))
        return events

    @property
    def shown(self) -> tuple[str, ...]:
        """The newest events in words, newest first."""
        return tuple(self._shown)

    @property
    def clock_steps(self) -> tuple[str, ...]:
        """The newest steps of the monitor's wall clock in words, oldest first."""
        return tuple(self._steps)
