"""A sink beside a run, through what happens to databases: whatever it is, in the end every sample is there, once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from soakwatch.plan.sink import Influxdb
from soakwatch.record import Record, RecordView
from soakwatch.record.backlog import backlog
from soakwatch.sinks.beside import SinksBeside
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
        assert backlog(tmp_path / "run", "").polls >= 10  # those of the sink itself are polls too
        one.sinks.finish(wait_s=0.5)
        assert "polls are missing" in one.said[-1]
    assert counted(own_influxd) == 0


def test_a_token_that_is_mended_where_it_is_kept_lets_everything_through(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    kept = tmp_path / "token"
    kept.write_text("hunter2\n")
    with fed(tmp_path / "run", replace(address, token=f"file:{kept}")) as one:
        one.grow(10)
        until(lambda: bool(one.said), "nothing is said")
        kept.unlink()  # as somebody does who writes it anew
        one.grow(10)
        kept.write_text(f"{own_influxd.token}\n")
        until(one.caught_up, f"it does not go on: {one.said}")
        until(lambda: len(one.said) == 2, f"it is not told once each: {one.said}")
        assert "mend token, org or bucket" in one.said[0]
        assert "takes lines again" in one.said[1]
        assert own_influxd.token not in " ".join(one.said)
    assert counted(own_influxd) == 20 * len(KEYS)


def test_a_token_that_is_not_there_is_waited_for(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    """The file of the token is missing as the feed begins, and the run does not give up on the database."""
    kept = tmp_path / "token"
    with fed(tmp_path / "run", replace(address, token=f"file:{kept}")) as one:
        one.grow(10)
        until(lambda: bool(one.said), "nothing is said")
        assert "cannot be fed: the secret's file" in one.said[0]
        assert "cannot be fed" in one.sinks.all[0].words
        kept.write_text(own_influxd.token)
        until(one.caught_up, f"it does not go on: {one.said}")
        until(lambda: one.sinks.all[0].words == "", "it is still said to be behind")
    assert counted(own_influxd) == 10 * len(KEYS)


def test_a_feed_that_cannot_begin_does_not_hold_up_the_end(tmp_path: Path, address: Influxdb) -> None:
    with fed(tmp_path / "run", replace(address, token=f"file:{tmp_path}/no-such")) as one:
        one.grow(10)
        until(lambda: bool(one.said), "nothing is said")
        one.sinks.finish(wait_s=1000)
        assert "it is waited for, 16m40s at most (Ctrl-C: no longer)" in one.said[-2]
        assert "polls are missing" in one.said[-1]


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


def test_whoever_does_not_want_to_wait_for_a_database_gets_the_verdict(tmp_path: Path) -> None:
    """The server is away to the end: that is said; Ctrl-C ends that, and the exit code is a verdict's."""
    (tmp_path / "token").write_text("x")
    plan = tmp_path / "plan.yaml"
    nobody = Influxdb("http://127.0.0.1:9", "lab", "soak", f"file:{tmp_path}/token")
    plan.write_text(plan_of(nobody).replace("duration: 1m", "duration: 5s"))
    process = subprocess.Popen(
        [SOAKWATCH, "run", plan, "--into", tmp_path / "run", "--no-web"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            if "Ctrl-C: no longer" in line and "Ctrl-C: no longer" not in "".join(said):
                process.send_signal(signal.SIGINT)
            said.append(line)
        assert process.wait(LONGEST_S) in {0, 1, 3}, said
    finally:
        process.kill()
        process.communicate()
    text = "".join(said)
    assert "warning: http://127.0.0.1:9 cannot be reached: is InfluxDB running there?; the run goes on" in text
    assert re.search(r"lab/soak is [1-9].* behind \([1-9].* polls wait\): cannot be reached", text), text
    assert "it is waited for, 1m at most" in text
    assert f"soakwatch sink {tmp_path / 'run'} --to … sends it" in text
    assert "Traceback" not in text


def test_a_run_feeds_its_sink_and_ends_with_the_verdict_there(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(plan_of(address).replace("duration: 1m", "duration: 12s"))
    environment = {**os.environ, "COLUMNS": "200", "PYTHONWARNINGS": "error"}
    process = subprocess.Popen(
        [SOAKWATCH, "run", plan, "--into", tmp_path / "run", "--no-web"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
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
