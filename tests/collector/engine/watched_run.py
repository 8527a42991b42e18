"""A real run in this process and the tester beside it, who does the next thing when the record shows the last one.

The run lasts until the tester ends it: however busy the machine is, nothing is missed or waited for in vain.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.commands import MAX_WAIT_S

from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView
from soakwatch.runs.mark_event import EventRequest, record_event
from soakwatch_model.event import Event

UNTIL_OVER = "[{soak: {for: 10m, until: event over}}]"
"""The phases of a run that ``end_run`` ends."""


_OVER = threading.Event()


@contextmanager
def acting(acts: Callable[[], None]) -> Iterator[None]:
    """Someone who acts while the block, a run, goes on. What goes wrong with it ends the run and is raised."""
    _OVER.clear()

    def failed(acted: Future[None]) -> None:
        if acted.exception() is not None and not _OVER.is_set():
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C, for which a run ends

    with ThreadPoolExecutor(1) as pool:
        acted = pool.submit(acts)
        acted.add_done_callback(failed)
        try:
            yield
        except (AssertionError, KeyboardInterrupt):
            if acted.done():
                acted.result()
            raise
        _OVER.set()
        acted.result()


def wait_for(happened: Callable[[], bool], what: str) -> None:
    """Until something has happened, which is no longer waited for once the run is over."""

    deadline = time.monotonic() + MAX_WAIT_S
    while True:
        over = _OVER.is_set()
        if happened():
            return
        assert not over, f"the run ended without {what}"
        assert time.monotonic() < deadline, f"{what} did not happen within {MAX_WAIT_S:g} s"
        time.sleep(0.2)  # reading a record costs more than looking for a file


def events_of(run: Path) -> list[Event]:
    """The events that a run has recorded so far; none before it has a record."""
    with suppress(RecordError), RecordView.open(run) as view:
        return [stored.event for stored in view.events()]
    return []


def wait_for_polls(run: Path, number: int = 4, *, of: str = "") -> None:
    """Until each source of a run but the monitor's own has brought so many polls; ``of``: those of one target."""

    def polled() -> bool:
        with suppress(RecordError), RecordView.open(run) as view:
            wanted = [source for source in view.sources() if source.target == of or not of]
            polls = [len(view.answered_ns(source.id)) for source in wanted if source.target != "monitor"]
            return bool(polls) and min(polls) >= number
        return False

    wait_for(polled, f"{number} polls of each source")


def wait_for_events(run: Path, kind: str, number: int = 1, *, over: bool = False) -> None:
    """Until a run has recorded so many events of a kind; ``over``: that have ended."""

    def happened() -> bool:
        events = [event for event in events_of(run) if event.kind == kind]
        return sum(event.end_ns is not None or not over for event in events) >= number

    wait_for(happened, f"{number} events {kind}")


def end_run(run: Path) -> None:
    """End its last phase, as whoever reports the event that it waits for."""
    record_event(run, EventRequest("mark", "over"), time.time_ns())
