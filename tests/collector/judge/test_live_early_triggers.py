"""What wakes the live judge before its minute is over: readings, standstills, events; and what does not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from soakwatch.judge.live.early_triggers import EarlyTriggers
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample

SECOND = 10**9


def poll(at_s: float, *readings: tuple[str, float], outcome: PollOutcome = PollOutcome.OK) -> Poll:
    """One poll of source 1."""
    due = round(at_s * SECOND)
    samples = tuple(Sample(metric, "", value, due) for metric, value in readings)
    return Poll(1, due, due, 1, outcome, None, Answer(samples, (), ()) if samples else NOTHING)


def woken(polls: Sequence[Poll]) -> list[float]:
    """The times (s) of the polls that woke."""
    triggers, woken_at = EarlyTriggers(), []
    for poll in polls:
        triggers.add(poll)
        if triggers.take():
            woken_at.append(poll.due_ns / SECOND)
    return woken_at


@pytest.mark.parametrize(
    ("metric", "values", "wakes"),
    [
        ("process.start_time", (100, 100.9, 100, 207, 207), [3]),  # the kernel's time of boot is rounded
        ("process.up", (1, 1, 0, 0, 1), [2, 4]),
        ("system.memory.oom_kills", (4, 4, 5, 5, 5), [2]),
        ("system.boot.id", (7, 7, 9, 9, 9), [2]),
        ("system.uptime", (50, 51, 52, 3, 4), [3]),
        ("system.memory.usage", (5, 90, 5, 90, 5), []),
    ],
)
def test_what_is_not_as_it_was_wakes(metric: str, values: tuple[float, ...], wakes: list[float]) -> None:
    """Once, at the poll that shows it."""
    assert woken([poll(second, (metric, value)) for second, value in enumerate(values)]) == wakes


def test_a_standstill_wakes_when_rules_know_it_and_when_it_ends() -> None:
    """After eleven seconds, after thirty-one, and with the first packet; a pause of a few seconds does not."""
    counted = [
        second if second < 10 else 10 if second < 13 else second if second < 60 else 60 if second < 100 else second
        for second in range(120)
    ]
    assert woken([poll(second, ("load.rx.packets", value)) for second, value in enumerate(counted)]) == [71, 91, 100]
    rates = [0.0 if 60 <= second < 100 else 900.0 for second in range(120)]
    assert woken([poll(second, ("load.rx.packet.rate", value)) for second, value in enumerate(rates)]) == [70, 90, 100]


def test_a_source_that_does_not_answer_wakes_when_that_may_be_a_hang() -> None:
    """Two failed polls are nothing; silence of eleven and of thirty-one seconds is, and so is its end."""
    lost = [*range(5, 7), *range(20, 60)]
    polls = [poll(second, outcome=PollOutcome.TIMEOUT if second in lost else PollOutcome.OK) for second in range(70)]
    assert woken(polls) == [31, 51, 60]
