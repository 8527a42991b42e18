"""Polls that were lost and answered late (an agent's spool): on a dashboard they are no gap any more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from tests.collector.transfer.sinks.test_influxdb_traps import plan_of

from soakwatch.record import Record
from soakwatch.transfer.sinks.feed import Feed, FeedState
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer
from soakwatch.transfer.sinks.push import push
from soakwatch_model.sample import NOTHING, Answer, Poll, PollOutcome, Sample
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import SECOND, T0

BucketOf = Callable[[str], Influxdb]
HELD = range(10, 20)


def answered(source: int, index: int) -> Poll:
    due = T0 + index * SECOND
    return Poll(source, due, due, 1, PollOutcome.OK, None, Answer((Sample("system.uptime", "", index, due),), (), ()))


def lost(source: int, index: int) -> Poll:
    due = T0 + index * SECOND
    return Poll(source, due, due, 0, PollOutcome.MISSED, "the monitor was late", NOTHING)


def three_pieces(source: int) -> tuple[list[Poll], list[Poll], list[Poll]]:
    """Before and with the loss; what came late, and then the next; a loss for which nobody made up."""
    first = [answered(source, index) for index in range(10)] + [lost(source, index) for index in HELD]
    second = [answered(source, index) for index in HELD] + [answered(source, 20)]
    third = [lost(source, 21), answered(source, 22)]
    return first, second, third


def shown(server: Influxd, bucket: str) -> tuple[int, float, list[int]]:
    """The samples, the share of answered polls, and when a strip of coverage is red."""
    samples = server.influxql('SELECT count(value) FROM "system.uptime"', bucket)[0]["count"]
    share = server.influxql("SELECT mean(ok) FROM soakwatch_poll", bucket)[0]["mean"]
    span = f"time >= {T0} AND time < {T0 + 23 * SECOND}"
    strip = server.influxql(f"SELECT min(ok) FROM soakwatch_poll WHERE {span} GROUP BY time(1s) fill(none)", bucket)
    return samples, share, [(row["time"] - T0) // SECOND for row in strip if row["min"] < 1]


@pytest.mark.parametrize("again", [1, 2], ids=["once", "twice"])
def test_an_old_record_shows_late_answers_as_answers(
    again: int, tmp_path: Path, bucket_of: BucketOf, influxd: Influxd
) -> None:
    to = bucket_of(f"late-{again}")
    with Record.create(tmp_path / "run") as record:
        source = record.source("dut", "agent", "dut/agent", SECOND, required=True)
        for piece in three_pieces(source.id):
            record.put(piece)
        record.finish()
    for _ in range(again):
        assert push(tmp_path / "run", "run", to, 30).rejected == 0
    samples, share, red = shown(influxd, to.bucket)
    assert (samples, red) == (22, [21])
    assert share == pytest.approx(32 / 33)
    outcomes = influxd.influxql("SELECT count(ok) FROM soakwatch_poll GROUP BY outcome", to.bucket)
    assert {row["outcome"]: row["count"] for row in outcomes} == {"missed": 11, "ok": 22}
    (left,) = influxd.influxql("SELECT error FROM soakwatch_poll WHERE outcome='missed' AND ok=0", to.bucket)
    assert left["error"] == "the monitor was late"


@pytest.fixture
def a_feed() -> Iterator[Callable[[Path, Influxdb, list[FeedState], str], Feed]]:
    """Feeds from a cursor; what they tell is kept."""
    with ExitStack() as stack:

        def new_feed(folder: Path, to: Influxdb, states: list[FeedState], cursor: str) -> Feed:
            writer = Writer(to, lambda _: None)
            stack.callback(writer.close)
            return Feed(folder, "run", writer, Event(), lambda state: states.append(replace(state)), cursor)

        yield new_feed


@pytest.mark.parametrize("restarted", [False, True], ids=["one life", "a feed that is killed in between"])
def test_a_loss_that_was_written_before_its_answer_came_is_mended(
    restarted: bool,
    tmp_path: Path,
    bucket_of: BucketOf,
    influxd: Influxd,
    a_feed: Callable[[Path, Influxdb, list[FeedState], str], Feed],
) -> None:
    """While the run goes on: first the gap is written, and is red; then the answers come, perhaps to another feed."""
    to = bucket_of(f"late-live-{restarted}")
    folder = tmp_path / "run"
    states: list[FeedState] = []
    with Record.create(folder) as record:
        record.set_meta("plan", plan_of(to))
        source = record.source("dut", "agent", "dut/agent", SECOND, required=True)
        first, second, third = three_pieces(source.id)
        record.put(first)
        feed = a_feed(folder, to, states, "")
        for _ in range(2):
            feed.step()
        assert shown(influxd, to.bucket)[2] == list(HELD)
        record.put(second)
        if restarted:
            feed = a_feed(folder, to, states, states[-1].cursor)
        for _ in range(2):
            feed.step()
        assert shown(influxd, to.bucket)[2] == []
        record.put(third)
        for _ in range(2):
            feed.step()
    assert shown(influxd, to.bucket)[2] == [21]
