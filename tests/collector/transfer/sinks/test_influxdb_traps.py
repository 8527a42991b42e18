"""The traps of influxdb-client and of InfluxDB, one by one: the client falls into each, the sink does not."""

from __future__ import annotations

import multiprocessing
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from influxdb_client.client.influxdb_client import InfluxDBClient
from tests.commands import wait_until

from soakwatch.record import Record
from soakwatch.transfer.sinks.abc import RefusedLine, SinkUnavailableError
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer
from soakwatch.transfer.sinks.push import push
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_testing.influxd import Influxd
from soakwatch_testing.records import KEYS, SECOND, T0, small_poll, small_record

BucketOf = Callable[[str], Influxdb]


@contextmanager
def writing(to: Influxdb, refused: list[RefusedLine] | None = None) -> Iterator[Writer]:
    writer = Writer(to, (refused if refused is not None else []).append)
    try:
        yield writer
    finally:
        writer.close()


def count(server: Influxd, bucket: str, measurement: str = "m") -> int:
    rows = server.influxql(f'SELECT count(value) FROM "{measurement}"', bucket)
    return int(rows[0]["count"]) if rows else 0


def test_flush_and_close_are_not_needed_what_was_taken_is_stored(bucket_of: BucketOf, influxd: Influxd) -> None:
    """`flush()` does nothing, and without `close()` the batching API loses its queue: here a return means stored."""
    with writing(bucket_of("trap-flush")) as writer:
        writer.write([f"m value={n}.0 {n}".encode() for n in range(100)])
        assert count(influxd, "trap-flush") == 100


@pytest.mark.parametrize("wrong", ["token", "bucket", "org"])
def test_nothing_is_dropped_in_silence(
    wrong: str, bucket_of: BucketOf, influxd: Influxd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batching never raises: 400, 401 and 404 go to a callback, the batch is gone. Here each is reported and waits."""
    to = bucket_of(f"trap-{wrong}")
    monkeypatch.setenv("WRONG", "x")
    org, bucket = ("no-such" if wrong == "org" else to.org), ("no-such" if wrong == "bucket" else to.bucket)
    bad = Influxdb(to.url, org, bucket, "env:WRONG" if wrong == "token" else to.token)
    with writing(bad) as writer:
        with pytest.raises(SinkUnavailableError) as caught:
            writer.write([b"m value=1.0 1"])
        assert caught.value.wrong
        assert (writer.written, writer.refused) == (0, 0)
    with writing(to) as writer:
        writer.write([b"m value=1.0 1"])
    assert count(influxd, to.bucket) == 1


def test_one_dead_server_does_not_delay_a_healthy_one(
    tmp_path: Path, bucket_of: BucketOf, influxd: Influxd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All batching writers share one scheduler thread. Here each sink has a process, and the deaf one is still waited
    for when the healthy one has everything."""
    healthy = bucket_of("trap-healthy")
    messages: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as deaf, small_record(tmp_path / "run", 100) as record:
        dead = Influxdb(f"http://127.0.0.1:{deaf.getsockname()[1]}", "o", "b", healthy.token, timeout_s=600)
        record.set_meta("plan", plan_of(dead, healthy))
        sinks = SinkProcesses(
            {"influxdb-1": dead, "influxdb-2": healthy}, tmp_path / "run", record, lambda: T0, messages.append
        )
        sinks.start()
        try:
            wait_until(lambda: "1:100" in sinks.all[1].cursor.split(), "the healthy one waits")
            assert sinks.all[0].cursor == ""
        finally:
            sinks.close()
    assert count(influxd, "trap-healthy", KEYS[0].metric) == 100 * len(KEYS)


@pytest.mark.slow
def test_an_outage_needs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client's queue is unbounded (64 bytes a point). Here what waits is the record, which lies on the disk."""
    monkeypatch.setenv("SINK_TOKEN", "x")
    to = Influxdb("http://127.0.0.1:9", "o", "b", "env:SINK_TOKEN")
    messages: list[str] = []
    with small_record(tmp_path / "run", 100) as record:
        record.set_meta("plan", plan_of(to))
        sinks = SinkProcesses({"influxdb-1": to}, tmp_path / "run", record, lambda: T0, messages.append)
        sinks.start()
        try:
            wait_until(lambda: bool(messages), "nothing is reported")
            process = sinks.all[0]._child
            assert process is not None
            before = psutil.Process(process.pid).memory_info().rss
            for begin in range(100, 10_100, 500):
                record.put([small_poll(1, index) for index in range(begin, begin + 500)])
            assert psutil.Process(process.pid).memory_info().rss - before < 10_000_000  # of 500,000 points
        finally:
            sinks.close()


def test_a_writer_still_writes_after_a_fork(bucket_of: BucketOf, influxd: Influxd) -> None:
    """After `fork()` the thread of the batching API is not there, and nothing leaves. Here there is none."""
    with writing(bucket_of("trap-fork")) as writer:
        child = multiprocessing.get_context("fork").Process(target=writer.write, args=([b"m value=1.0 1"],))
        child.start()
        child.join(240)
        assert child.exitcode == 0
    assert count(influxd, "trap-fork") == 1


def test_only_one_kind_of_exception_leaves_a_writer(own_influxd: Influxd, address: Influxdb) -> None:
    """SYNCHRONOUS raises ApiException or urllib3's errors as they come, and does not try again."""
    with writing(address) as writer:
        own_influxd.stop()
        with pytest.raises(SinkUnavailableError, match="cannot be reached"):
            writer.write([b"m value=1.0 1"])
        own_influxd.start()
        writer.write([b"m value=1.0 1"])
        own_influxd.kill()
        with pytest.raises(SinkUnavailableError):  # over a connection that was alive
            writer.write([b"m value=2.0 2"])


def test_times_are_nanoseconds_and_none_lands_in_1970(tmp_path: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    """`Point.time()` with another precision than the call's put whole seconds into 1970 without an error."""
    to = bucket_of("trap-times")
    folder = tmp_path / "run"
    odd_ns = T0 + 123_456_789
    with Record.create(folder) as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        samples = (Sample("system.cpu.utilization", "", 0.5, odd_ns),)
        record.put([Poll(source.id, T0, odd_ns, 7, PollOutcome.OK, None, Answer(samples, (), ()))])
    push(folder, "run", to, 30)
    assert [row["time"] for row in influxd.influxql('SELECT value FROM "system.cpu.utilization"', "trap-times")] == [
        odd_ns
    ]
    rows = influxd.influxql("SELECT ok FROM soakwatch_poll", "trap-times")
    assert [row["time"] for row in rows] == [T0]


def test_a_first_whole_number_does_not_fix_the_type(tmp_path: Path, bucket_of: BucketOf, influxd: Influxd) -> None:
    """A first integer 0 makes the field an integer for ever, and later floats give 422."""
    to = bucket_of("trap-type")
    folder = tmp_path / "run"
    values = (0, 1, 0.5, True)
    with Record.create(folder) as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        for index, value in enumerate(values):
            samples = (Sample("system.cpu.utilization", "", value, T0 + index * SECOND),)
            due = T0 + index * SECOND
            record.put([Poll(source.id, due, due, 0, PollOutcome.OK, None, Answer(samples, (), ()))])
    pushed = push(folder, "run", to, 30)
    assert (pushed.rejected, pushed.error) == (0, None)
    rows = influxd.influxql('SELECT value FROM "system.cpu.utilization"', "trap-type")
    assert [row["value"] for row in rows] == [float(value) for value in values]


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_reading_that_is_not_a_number_leaves_a_gap_and_harms_no_neighbour(
    odd: float, tmp_path: Path, bucket_of: BucketOf, influxd: Influxd
) -> None:
    """Fields that are no finite number vanish in the client; the sink writes no such line, and missing is never 0."""
    to = bucket_of(f"trap-{odd}")
    folder = tmp_path / "run"
    with Record.create(folder) as record:
        source = record.source("dut", "local", "dut/local", SECOND, required=True)
        for index in range(3):
            due = T0 + index * SECOND
            samples = tuple(
                Sample("process.memory.usage", object_text(process=name), value, due)
                for name, value in (("a", 1.0), ("b", odd if index == 1 else 2.0))
            )
            record.put([Poll(source.id, due, due, 0, PollOutcome.OK, None, Answer(samples, (), ()))])
    pushed = push(folder, "run", to, 30)
    assert (pushed.rejected, pushed.error) == (0, None)
    rows = influxd.influxql('SELECT value FROM "process.memory.usage" GROUP BY process', to.bucket)
    assert [row["value"] for row in rows if row["process"] == "a"] == [1, 1, 1]
    assert [(row["time"] - T0, row["value"]) for row in rows if row["process"] == "b"] == [(0, 2), (2 * SECOND, 2)]


def test_a_partial_write_stores_the_good_lines_and_names_the_bad(bucket_of: BucketOf, influxd: Influxd) -> None:
    """422: good points are stored, bad ones dropped; the client raises, and says nothing of which."""
    to = bucket_of("trap-422")
    influxd.write(b"clash value=1i 1", to.bucket)
    refused: list[RefusedLine] = []
    with writing(to, refused) as writer:
        writer.write([b"m value=1.0 1", b"clash,process=a value=2.0 2", b"m value=3.0 3"])
    assert [bad.line for bad in refused] == [b"clash,process=a value=2.0 2"]
    assert "field type conflict" in refused[0].reason
    assert (writer.written, writer.refused, count(influxd, to.bucket)) == (2, 1, 2)


def test_lines_beyond_the_retention_are_counted_exactly(influxd: Influxd, bucket_of: BucketOf) -> None:
    """A bucket that keeps an hour drops all of an old record, with 422 for each batch: reported, and not asked line by
    line."""
    to = bucket_of("trap-retention")
    influxd.make_bucket("trap-hour", 3600)
    refused: list[RefusedLine] = []
    with writing(Influxdb(to.url, to.org, "trap-hour", to.token), refused) as writer:
        writer.write([f"m value={n}.0 {n}".encode() for n in range(500)])
    assert (writer.written, writer.refused, len(refused)) == (0, 500, 500)
    assert "etention" in refused[0].reason


def test_one_bad_line_does_not_cost_the_batch(bucket_of: BucketOf, influxd: Influxd) -> None:
    """400 rejects the whole batch; the good lines are written all the same."""
    to = bucket_of("trap-400")
    refused: list[RefusedLine] = []
    lines = [f"m value={n}.0 {n}".encode() for n in range(1000)]
    lines[617] = b"no line at all"
    with writing(to, refused) as writer:
        writer.write(lines)
    assert [(bad.line, "unable to parse" in bad.reason) for bad in refused] == [(b"no line at all", True)]
    assert count(influxd, to.bucket) == 999


def test_a_bad_secret_is_in_no_exception(bucket_of: BucketOf, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client raises holds the answer's headers; what the sink raises holds a sentence of its own."""
    to = bucket_of("trap-secret")
    monkeypatch.setenv("WRONG", "hunter2")
    with writing(Influxdb(to.url, to.org, to.bucket, "env:WRONG")) as writer:
        with pytest.raises(SinkUnavailableError) as caught:
            writer.write([b"m value=1.0 1"])
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
        assert "hunter2" not in repr(caught.value)


def test_ping_is_true_even_with_a_bad_token(influxd: Influxd) -> None:
    """Which is why `soakwatch check` asks whether it may write (tests of the check show that it does)."""
    with InfluxDBClient(influxd.url, token="wrong", org="lab") as client:
        assert client.ping()


def plan_of(*sinks: Influxdb) -> str:
    """A plan that feeds these sinks."""
    sinks_text = ", ".join(
        f"{{influxdb: {{url: '{to.url}', org: {to.org}, bucket: {to.bucket}, token: '{to.token}', timeout: 600s}}}}"
        for to in sinks
    )
    return f"name: fed\nduration: 1m\ntargets: {{dut: {{sources: [local]}}}}\nsinks: [{sinks_text}]\n"
