"""Minutes on the clocks of the run and of its phases: what counters counted, over the time in which they did."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.collector.transfer.sinks.memory_sink import MemorySink, feed_of

from soakwatch.record import Record
from soakwatch.record.minutes import MINUTE_NS
from soakwatch.transfer.sinks.aligned import ZERO_NS
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample
from soakwatch_testing.records import SECOND, T0


def answered(source: int, due_ns: int, samples: Iterable[tuple[str, float, int]]) -> Poll:
    """A poll with samples of metrics without an object."""
    made = tuple(Sample(metric, "", value, time_ns) for metric, value, time_ns in samples)
    return Poll(source, due_ns, due_ns, 1, PollOutcome.OK, None, Answer(made, (), ()))


def minutes(sink: MemorySink, metric: str, since: str = "run") -> list[tuple[int, float, float]]:
    """Minute, mean and highest."""
    points = sink.of("soakwatch_aligned", metric=metric, since=since)
    return [((time_ns - ZERO_NS) // MINUTE_NS, float(f["mean"]), float(f["max"])) for time_ns, f in points]


@pytest.fixture
def sent(tmp_path: Path) -> MemorySink:
    """Five minutes of a generator that loses two packets a second; once two of its ticks came in one poll."""
    with Record.create(tmp_path / "run") as record:
        record.target("tg", "generator")
        source = record.source("tg", "iperf3", "tg/iperf3", SECOND, required=True)
        record.begin_phase("baseline", T0)
        for second in range(300):
            if second == 90:
                record.begin_phase("soak", T0 + 90 * SECOND)
            due_ns = T0 + second * SECOND
            counted = [("load.lost.packets", 2 * second, due_ns), ("load.tx.packets", 500 * second, due_ns)]
            if second == 100:  # what should have come with the poll before
                counted = [
                    (name, value - {"load.lost.packets": 2, "load.tx.packets": 500}[name], t)
                    for name, value, t in counted
                ]
                counted += [("load.lost.packets", 200, due_ns + 2), ("load.tx.packets", 50_000, due_ns + 2)]
            if second >= 200:  # it was started anew
                counted = [(name, value % 400 if "lost" in name else value - 100_000, t) for name, value, t in counted]
            if second != 99:
                record.put([answered(source.id, due_ns, counted)])
        record.end_phase(T0 + 300 * SECOND)
        record.finish()
    sink = MemorySink()
    feed_of(tmp_path / "run", sink).finish()
    return sink


def test_two_readings_of_one_poll_make_no_rate(sent: MemorySink) -> None:
    """722 packets in two nanoseconds were 361 billion a second."""
    lost = minutes(sent, "load.lost.packets")
    assert [minute for minute, _, _ in lost] == [0, 1, 2, 3, 4]
    assert [mean for _, mean, _ in lost] == pytest.approx([2.0] * 5)
    assert max(most for _, _, most in lost) <= 4.0


def test_each_phase_has_a_clock_of_its_own(sent: MemorySink) -> None:
    assert [minute for minute, *_ in minutes(sent, "load.lost.packets", "baseline")] == [0, 1]
    assert [minute for minute, *_ in minutes(sent, "load.lost.packets", "soak")] == [0, 1, 2, 3]


def test_the_load_can_be_compared(sent: MemorySink) -> None:
    assert {minute: round(mean) for minute, mean, _ in minutes(sent, "load")} == dict.fromkeys(range(5), 500)
    assert sent.of("soakwatch_aligned", metric="load", what="packets", since="soak", role="generator")


def test_what_came_at_once_is_one_point_of_the_load(sent: MemorySink) -> None:
    rates = [float(fields["value"]) for _, fields in sent.of("soakwatch_load", what="packets")]
    assert len(rates) == 300 - 1 - 1 - 1  # a poll is missing, the first reading and the restart have no rate
    assert max(rates) <= 1000.0
    assert sorted(rates)[3] == pytest.approx(500.0)
