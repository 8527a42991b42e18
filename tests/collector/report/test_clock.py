"""The section "clock" of a report: each step of the monitor's wall clock, and silence where there was none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from soakwatch.core.event_kinds import CLOCK_STEP
from soakwatch.record import StoredEvent
from soakwatch.report.page import Page
from soakwatch.report.sections import clock
from soakwatch_model.event import Event

T0 = 1_795_204_800 * 10**9


def page_with(*seconds: str) -> Page:
    """A page of a record in which the clock was set so far."""
    events = [
        StoredEvent(n, "monitor", Event(CLOCK_STEP, "", "", T0, T0, {"seconds": s})) for n, s in enumerate(seconds)
    ]
    return cast("Page", SimpleNamespace(source=SimpleNamespace(events=lambda: events)))


def test_each_step_is_told_with_what_it_means() -> None:
    """Direction, amount and time; and that the run's own times are right."""
    assert clock.blocks(page_with()) is None
    told = repr(clock.blocks(page_with("+3600.000", "-3600.000")))
    assert "The wall clock of the monitor was set forward by 1 h at 2026-11-20 20:00:00 UTC." in told
    assert "set back by 1 h" in told
    assert "follow a clock that does not step" in told
