"""A record that is older than what the bucket keeps: how much is dropped is said, and nothing is left behind of it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from soakwatch.cli.main import run
from soakwatch.record import Record
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.influxdb.write import Writer
from soakwatch.transfer.sinks.push import push
from soakwatch_model.sample import Answer, Poll, PollOutcome, Sample, object_text
from soakwatch_testing.influxd import ORG, Influxd
from soakwatch_testing.records import SECOND

DAY_S = 86_400
POLLS, SERIES = 100, 40
LONG = "a process with a very long name, as Java makes them, " * 6


@pytest.fixture
def short(influxd: Influxd, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Influxdb:
    """A bucket that keeps an hour."""
    name = request.node.name[:60]
    monkeypatch.setenv("SINK_TOKEN", influxd.token)
    influxd.make_bucket(name, 3600)
    return Influxdb(influxd.url, ORG, name, "env:SINK_TOKEN")


def recorded(folder: Path, begin_s: float, every_s: int = 60) -> Path:
    """A device whose keys are long, polled from so many seconds before now."""
    begin_ns = time.time_ns() - round(begin_s * SECOND)
    with Record.create(folder) as record:
        record.target("dut", "dut")
        source = record.source("dut", "local", "dut/local", every_s * SECOND, required=True)
        record.begin_phase("soak", begin_ns)
        for index in range(POLLS):
            due_ns = begin_ns + index * every_s * SECOND
            samples = tuple(
                Sample("process.memory.usage", object_text(process=f"{LONG}{number}"), float(index), due_ns)
                for number in range(SERIES)
            )
            record.put([Poll(source.id, due_ns, due_ns, 1, PollOutcome.OK, None, Answer(samples, (), ()))])
        record.end_phase(begin_ns + POLLS * every_s * SECOND)
        record.set_meta("verdict", "pass")
        record.set_meta("ended_ns", str(begin_ns + POLLS * every_s * SECOND))
        record.finish()
    return folder


def stored(influxd: Influxd, bucket: str) -> dict[str, int]:
    """Points by measurement."""
    names = [str(row["name"]) for row in influxd.influxql("SHOW MEASUREMENTS", bucket)]
    counts = {name: influxd.influxql(f'SELECT count(*) FROM "{name}"', bucket) for name in names}
    return {
        name: max(int(value) for column, value in rows[0].items() if column != "time")
        for name, rows in counts.items()
        if rows
    }


def test_a_record_of_days_ago_is_dropped_whole_and_that_is_said(
    tmp_path: Path, short: Influxdb, influxd: Influxd, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = recorded(tmp_path / "run", 3 * DAY_S)
    where = f"{short.url}?org={ORG}&bucket={short.bucket}&token={short.token}"
    assert run(["sink", str(folder), "--to", where]) == 1
    output = capfd.readouterr()
    said = re.fullmatch(r"wrote (\d+) lines of run, (\d+) rejected\n", output.out)
    assert said, output.out
    left = stored(influxd, short.bucket)
    assert left == {}, "nothing, and no minute of a run that nobody knows either"
    assert int(said[1]) == 0
    assert int(said[2]) > POLLS * SERIES + POLLS
    (reason,) = set(re.findall(r"^rejected: (.*?): (\d+) lines, the first is ", output.err, re.MULTILINE))
    assert reason == ("older than the bucket's retention of 1h0m0s", said[2])


def test_a_run_of_which_the_end_is_kept_is_counted_line_by_line(
    tmp_path: Path, short: Influxdb, influxd: Influxd
) -> None:
    """It began hours before the hour that is kept, of whose oldest shard the server keeps the begin as well."""
    folder = recorded(tmp_path / "run", 4 * 3600, 144)
    pushed = push(folder, "run", short, 30)
    assert pushed.error is None
    left = stored(influxd, short.bucket)
    samples, polls = left["process.memory.usage"], left["soakwatch_poll"]
    assert 0 < samples < POLLS * SERIES
    assert "soakwatch_aligned" not in left
    dropped = POLLS * SERIES - samples + POLLS - polls
    strip = 4 * 12  # the phase again each 5 min
    assert dropped <= pushed.rejected < dropped + strip + 10, "and phase, verdict, account"
    assert set(pushed.reasons) == {"older than the bucket's retention of 1h0m0s"}
    assert pushed.reasons["older than the bucket's retention of 1h0m0s"] == pushed.rejected


def test_the_number_that_a_server_dropped_is_read_behind_keys_of_any_length(short: Influxdb, influxd: Influxd) -> None:
    """Keys may hold what reads like the number."""
    old_ns = time.time_ns() - 3 * DAY_S * SECOND
    writer = Writer(short, lambda _: None)
    try:
        writer.write([b"m,k=dropped\\=1\\ %s,n=%d value=1.0 %d" % (b"x" * 30_000, n, old_ns) for n in range(9)])
        writer.write([b"m,n=%d value=1.0 %d" % (n, old_ns + n * DAY_S * SECOND // 2) for n in range(7)])
        assert (writer.written, writer.refused) == (1, 15)
    finally:
        writer.close()
    assert stored(influxd, short.bucket) == {"m": 1}
