"""The events of a run as its record gets them, from whoever reports them: pollers, people, hooks, other programs."""

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
    """Reads every event of a record once; up to the number ``heard`` an earlier monitor acted on them."""

    def __init__(self, out: RunRecord, heard: int) -> None:
        self._out, self._heard = out, heard
        self._newest = 0  # number of an event
        self._shown: deque[str] = deque(maxlen=MAX_SHOWN)  # of a storm of days only the newest are shown
        self._steps: deque[str] = deque(maxlen=MAX_SHOWN)

    def is_new(self, stored: StoredEvent) -> bool:
        """Whether it is for this monitor to act on."""
        return stored.id > self._heard

    async def read(self) -> Sequence[StoredEvent]:
        """The events since the last call, old ones included. Raises RecordError."""
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
