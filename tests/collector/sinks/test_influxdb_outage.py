"""A sink beside a run, through what happens to databases: whatever it is, in the end every sample is there, once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from soakwatch.record import Record, RecordView
from soakwatch.sinks.backlog import backlog
from soakwatch.sinks.beside import SinksBeside
from soakwatch.sinks.influxdb import Influxdb
from soakwatch.testing.influxd import BUCKET, Influxd
from soakwatch.testing.records import KEYS, T0, small_poll, small_record

SOAKWATCH = Path(sys.executable).with_name("soakwatch")
LONGEST_S = 60.0


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that happens in another process."""
    deadline = time.monotonic() + LONGEST_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def plan_of(to: Influxdb) -> str:
    """A plan that feeds this sink."""
    return (
        "name: fed\nduration: 1m\ntargets: {dut: {sources: [local]}}\n"
        f"sinks: [{{influxdb: {{url: '{to.url}', org: {to.org}, bucket: {to.bucket}, token: '{to.token}',"
        " timeout: 5s}}]\n"
    )


class Fed:
    """A record that a sink is fed from while it grows."""

    def __init__(self, record: Record, sinks: SinksBeside, said: list[str]) -> None:
        self.record, self.sinks, self.said = record, sinks, said
        self.polls = 0

    def grow(self, polls: int) -> None:
        """So many more polls."""
        self.record.put([small_poll(1, at) for at in range(self.polls, self.polls + polls)])
        self.polls += polls

    def caught_up(self) -> bool:
        """Whether the cursor in the record stands at its end."""
        sink = self.sinks.all[0]
        return f"1:{self.polls}" in self.record.cursor(sink.where).split()  # the second source is the sink itself


@contextmanager
def fed(folder: Path, to: Influxdb, *, again: bool = False) -> Iterator[Fed]:
    said: list[str] = []
    with Record.open(folder) if again else small_record(folder) as record:
        record.set_meta("plan", plan_of(to))
        record.target("dut", "dut")
        sinks = SinksBeside([to], folder, record, lambda: T0, said.append)
        sinks.start()
        try:
            yield Fed(record, sinks, said)
        finally:
            sinks.close()


def counted(server: Influxd, bucket: str = BUCKET) -> int:
    """The samples that the database has."""
    rows = server.influxql('SELECT count(value) FROM "process.memory.usage"', bucket)
    return int(rows[0]["count"]) if rows else 0


def test_a_killed_server_loses_nothing(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as one:
        one.grow(100)
        until(one.caught_up, "the first polls are not written")
        own_influxd.kill()
        one.grow(100)
        until(lambda: any("cannot be reached" in line for line in one.said), f"nothing is said: {one.said}")
        one.grow(100)
        own_influxd.start()
        until(one.caught_up, f"it does not go on: {one.said}")
        until(lambda: any("takes lines again" in line for line in one.said), f"nothing is said: {one.said}")
        assert counted(own_influxd) == 300 * len(KEYS)
        assert one.sinks.all[0].refused == 0


def test_a_killed_feed_goes_on_at_its_cursor(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as one:
        one.grow(100)
        until(one.caught_up, "the first polls are not written")
        sink = one.sinks.all[0]
        assert sink._process is not None
        sink._process.kill()
        one.grow(50)
        until(one.caught_up, "nobody goes on")
        assert counted(own_influxd) == 150 * len(KEYS)


def test_another_life_of_the_run_goes_on_at_the_cursor(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as one:
        one.grow(60)
        until(one.caught_up, "the first polls are not written")
    own_influxd.delete_bucket(BUCKET)  # so that what is sent again would be seen
    own_influxd.make_bucket(BUCKET)
    with fed(tmp_path / "run", address, again=True) as other:
        other.polls = 60
        other.grow(40)
        until(other.caught_up, "nobody goes on")
        assert counted(own_influxd) == 40 * len(KEYS)


def test_a_wrong_token_is_said_without_it_and_a_run_goes_on(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "hunter2")
    with fed(tmp_path / "run", replace(address, token="env:WRONG")) as one:
        one.grow(10)
        until(lambda: bool(one.said), "nothing is said")
        assert "does not let this token write into lab/soak" in one.said[0]
        assert "hunter2" not in " ".join(one.said)
        assert backlog(tmp_path / "run", "").polls == 10
        one.sinks.finish(wait_s=0.5)
        assert "10 polls are missing" in one.said[-1]
    assert counted(own_influxd) == 0


def test_a_deleted_bucket_is_waited_for(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as one:
        one.grow(10)
        until(one.caught_up, "the first polls are not written")
        own_influxd.delete_bucket(BUCKET)
        one.grow(10)
        until(lambda: any("has no bucket soak" in line for line in one.said), f"nothing is said: {one.said}")
        own_influxd.make_bucket(BUCKET)
        until(one.caught_up, "it does not go on")
        assert counted(own_influxd) == 10 * len(KEYS)


def test_refused_lines_are_kept_and_counted(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    clash = f"process.memory.usage,process=p7,role=dut,run=run,target=dut value=1i {T0}"
    assert own_influxd.write(clash.encode()).status_code == 204
    with fed(tmp_path / "run", address) as one:
        one.grow(2)
        until(one.caught_up, "it does not go on")
        until(lambda: one.sinks.all[0].refused > 0, "nothing was refused")
    kept = (tmp_path / "run" / "sink-1-refused.txt").read_text()
    assert "conflict" in kept
    assert any("refuses lines" in line for line in one.said)


def test_a_run_feeds_its_sink_and_ends_with_the_verdict_there(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_of(address).replace("duration: 1m", "duration: 12s"))
    environment = {**os.environ, "COLUMNS": "200", "PYTHONWARNINGS": "error"}
    process = subprocess.Popen(
        [SOAKWATCH, "run", plan, "--into", tmp_path / "run", "--no-web"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    try:
        until(lambda: bool(own_influxd.influxql("SELECT count(ok) FROM soakwatch_poll")), "nothing arrives")
        own_influxd.kill()
        own_influxd.start()
        said, _ = process.communicate(timeout=100)
    finally:
        process.kill()
        process.wait()
    assert process.returncode in {0, 1, 3}, said
    assert "lines)" in said, said
    with RecordView.open(tmp_path / "run") as view:
        verdict, recorded = view.meta("verdict"), view.counts()
        keys = view.keys()
    sampled = {key.metric for key in keys}
    assert "monitor.sink.lag" in sampled
    rows = own_influxd.influxql("SELECT verdict FROM soakwatch_verdict")
    assert [row["verdict"] for row in rows] == [verdict]
    assert own_influxd.influxql("SELECT count(ok) FROM soakwatch_poll")[0]["count"] == recorded.polls
    written = sum(
        int(row["count"]) for name in sampled for row in own_influxd.influxql(f'SELECT count(value) FROM "{name}"')
    )
    assert written == recorded.samples
