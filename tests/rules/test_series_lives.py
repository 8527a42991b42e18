"""Lives between restarts, and how long an object is known not to have lived."""

from __future__ import annotations

import numpy as np
import pytest

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.finding import Outcome
from soakwatch_model.series import Series
from soakwatch_model.window import Window
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.series_lives import dead_seconds, lives
from soakwatch_rules.signals import readings

S = 10**9
THING = "process=web,instance=1"
WINDOW = Window(0, 1000 * S)


def event(kind: str, at_s: float, object_name: str = THING) -> Event:
    """An event that a probe reported."""
    return Event(kind, "dut", object_name, round(at_s * S), round(at_s * S))


def memory(begin: int, end: int) -> Series:
    """A reading a second between two seconds, and none before or after."""
    values = np.full(1000, np.nan)
    values[begin:end] = 1e6
    return readings("process.memory.usage", values, 1.0, object=THING).finite()


@pytest.mark.parametrize(
    ("begin", "end", "events", "dead"),
    [
        (0, 1000, (), 0),
        (0, 400, (event("process.exit", 400),), 600),
        (300, 1000, (event("process.start", 300),), 300),
        (300, 400, (event("process.start", 300), event("process.exit", 400)), 900),
        (0, 400, (), 0),  # readings that stop with no event are missing, not dead
        (0, 400, (event("process.exit", 400, "process=other,instance=0"),), 0),
    ],
)
def test_only_what_an_event_explains_is_dead(begin: int, end: int, events: tuple[Event, ...], dead: float) -> None:
    """Before a start and after an exit no reading was due; a gap that nothing explains stays a gap."""
    assert dead_seconds(memory(begin, end), WINDOW, events) == pytest.approx(dead, abs=1.5)


def test_a_restart_makes_two_lives() -> None:
    """Each life has its own readings."""
    lifetimes = lives(memory(0, 1000), WINDOW, [event("process.restart", 600)])
    assert [len(life.series) for life in lifetimes] == pytest.approx([600, 400], abs=1)


def test_memory_is_judged_over_the_time_that_the_process_lived() -> None:
    """A process that lived a tenth of the run, all of it seen, is judged; one that was seen a tenth is not."""
    series = memory(300, 400)
    explained = (event("process.start", 300), event("process.exit", 400))
    assert MemoryGrowth().judge(Case("dut", THING, WINDOW, (series,), events=explained))[0].outcome is Outcome.PASS
    unexplained = MemoryGrowth().judge(Case("dut", THING, WINDOW, (series,)))[0]
    assert unexplained.outcome is Outcome.INCONCLUSIVE
