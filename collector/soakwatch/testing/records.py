"""Small records of one source, for tests and benches: fifty series whose readings show when they were due."""

from __future__ import annotations

from pathlib import Path

from soakwatch.record import Record, RecordView, SeriesKey
from soakwatch_agent.sample import Answer, Poll, PollOutcome, Sample

SECOND = 10**9
T0 = 1_700_000_000 * SECOND
KEYS = tuple(SeriesKey("dut", "process.memory.usage", f"process=p{n}") for n in range(50))


def small_poll(source: int, second: int) -> Poll:
    """The poll that was due ``at`` seconds after ``T0``, with a reading of each of ``KEYS``."""
    due = T0 + second * SECOND
    samples = tuple(Sample(key.metric, key.object, second * 4096 + n, due) for n, key in enumerate(KEYS))
    return Poll(source, due, due, 1, PollOutcome.OK, None, Answer(samples, (), ()))


def small_record(folder: Path, polls: int = 0) -> Record:
    """A new record with one source and so many polls."""
    record = Record.create(folder)
    source = record.source("dut", "local", "dut/local", SECOND, required=True)
    record.put([small_poll(source.id, second) for second in range(polls)])
    return record


def first_values(path: Path) -> list[float]:
    """The readings of the first of ``KEYS``."""
    with RecordView.open(path) as view:
        values: list[float] = view.series(KEYS[0]).value.tolist()
        return values
