"""A sink beside a run, through what happens to databases: whatever it is, in the end every sample is there, once."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collector.engine.watched_run import UNTIL_OVER, acting, end_run, wait_for, wait_for_polls
from tests.commands import MAX_WAIT_S, start, wait_until
from tests.in_process import command_here

from soakwatch.record import Record, RecordView
from soakwatch.record.backlog import backlog
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch.transfer.sinks.supervisor import SinkProcesses
from soakwatch_testing.influxd import BUCKET, Influxd
from soakwatch_testing.records import KEYS, T0, small_poll, small_record


def plan_of(to: Influxdb) -> str:
    """A plan that feeds this sink."""
    return (
        "name: fed\nduration: 1m\ntargets: {dut: {sources: [local]}}\n"
        f"sinks: [{{influxdb: {{url: '{to.url}', org: {to.org}, bucket: {to.bucket}, token: '{to.token}',"
        " timeout: 5s}}]\n"
    )


class Fed:
    """A record that a sink is fed from while it grows."""

    def __init__(self, record: Record, sinks: SinkProcesses, messages: list[str]) -> None:
        self.record, self.sinks, self.messages = record, sinks, messages
        self.polls = 0

    def grow(self, polls: int) -> None:
        """So many more polls."""
        self.record.put([small_poll(1, index) for index in range(self.polls, self.polls + polls)])
        self.polls += polls

    def caught_up(self) -> bool:
        """Whether the cursor in the record stands at its end."""
        sink = self.sinks.all[0]
        return f"1:{self.polls}" in self.record.cursor(sink.where).split()  # the second source is the sink itself


@contextmanager
def fed(folder: Path, to: Influxdb, *, again: bool = False) -> Iterator[Fed]:
    messages: list[str] = []
    with Record.open(folder) if again else small_record(folder) as record:
        record.set_meta("plan", plan_of(to))
        record.target("dut", "dut")
        sinks = SinkProcesses({"influxdb-1": to}, folder, record, lambda: T0, messages.append)
        sinks.start()
        try:
            yield Fed(record, sinks, messages)
        finally:
            sinks.close()


def counted(server: Influxd, bucket: str = BUCKET) -> int:
    """The samples that the database has."""
    rows = server.influxql('SELECT count(value) FROM "process.memory.usage"', bucket)
    return int(rows[0]["count"]) if rows else 0


def test_a_killed_server_loses_nothing(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as feeding:
        feeding.grow(100)
        wait_until(feeding.caught_up, "the first polls are not written")
        own_influxd.kill()
        feeding.grow(100)
        wait_until(
            lambda: any("cannot be reached" in line for line in feeding.messages),
            f"nothing is reported: {feeding.messages}",
        )
        feeding.grow(100)
        own_influxd.start()
        wait_until(feeding.caught_up, f"it does not go on: {feeding.messages}")
        wait_until(
            lambda: any("accepts lines again" in line for line in feeding.messages),
            f"nothing is reported: {feeding.messages}",
        )
        assert counted(own_influxd) == 300 * len(KEYS)
        assert feeding.sinks.all[0].refused == 0


@pytest.mark.slow
def test_a_killed_feed_goes_on_at_its_cursor(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as feeding:
        feeding.grow(100)
        wait_until(feeding.caught_up, "the first polls are not written")
        sink = feeding.sinks.all[0]
        assert sink._child is not None
        sink._child.kill()
        feeding.grow(50)
        wait_until(feeding.caught_up, "nobody goes on")
        assert counted(own_influxd) == 150 * len(KEYS)


@pytest.mark.slow
def test_another_life_of_the_run_goes_on_at_the_cursor(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as feeding:
        feeding.grow(60)
        wait_until(feeding.caught_up, "the first polls are not written")
    own_influxd.delete_bucket(BUCKET)  # so that what is sent again would be seen
    own_influxd.make_bucket(BUCKET)
    with fed(tmp_path / "run", address, again=True) as other:
        other.polls = 60
        other.grow(40)
        wait_until(other.caught_up, "nobody goes on")
        assert counted(own_influxd) == 40 * len(KEYS)


def test_a_wrong_token_is_reported_without_quoting_it_and_a_run_goes_on(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "hunter2")
    with fed(tmp_path / "run", replace(address, token="env:WRONG")) as feeding:
        feeding.grow(10)
        wait_until(lambda: bool(feeding.messages), "nothing is reported")
        assert "does not authorise this token for lab/soak" in feeding.messages[0]
        assert "hunter2" not in " ".join(feeding.messages)
        assert backlog(tmp_path / "run", "").polls >= 10  # those of the sink itself are polls too
        feeding.sinks.finish(wait_s=0.5)
        assert "polls or the verdict are missing" in feeding.messages[-1]
    assert counted(own_influxd) == 0


@pytest.mark.slow
def test_a_token_that_is_mended_where_it_is_kept_lets_everything_through(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    kept = tmp_path / "token"
    kept.write_text("hunter2\n")
    with fed(tmp_path / "run", replace(address, token=f"file:{kept}")) as feeding:
        feeding.grow(10)
        wait_until(lambda: bool(feeding.messages), "nothing is reported")
        kept.unlink()  # as somebody does who writes it anew
        feeding.grow(10)
        kept.write_text(f"{own_influxd.token}\n")
        wait_until(feeding.caught_up, f"it does not go on: {feeding.messages}")
        wait_until(lambda: len(feeding.messages) == 2, f"not reported once each: {feeding.messages}")
        assert "check token, org and bucket" in feeding.messages[0]
        assert "accepts lines again" in feeding.messages[1]
        assert own_influxd.token not in " ".join(feeding.messages)
    assert counted(own_influxd) == 20 * len(KEYS)


@pytest.mark.slow
def test_a_token_that_is_not_there_is_waited_for(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    """The file of the token is missing as the feed begins, and the run does not give up on the database."""
    kept = tmp_path / "token"
    with fed(tmp_path / "run", replace(address, token=f"file:{kept}")) as feeding:
        feeding.grow(10)
        wait_until(lambda: bool(feeding.messages), "nothing is reported")
        assert "cannot be written: the secret file" in feeding.messages[0]
        assert "cannot be written" in feeding.sinks.all[0].words
        kept.write_text(own_influxd.token)
        wait_until(feeding.caught_up, f"it does not go on: {feeding.messages}")
        wait_until(lambda: feeding.sinks.all[0].words == "", "it is still reported as behind")
    assert counted(own_influxd) == 10 * len(KEYS)


def test_a_feed_that_cannot_begin_does_not_delay_the_end(tmp_path: Path, address: Influxdb) -> None:
    with fed(tmp_path / "run", replace(address, token=f"file:{tmp_path}/no-such")) as feeding:
        feeding.grow(10)
        wait_until(lambda: bool(feeding.messages), "nothing is reported")
        feeding.sinks.finish(wait_s=1000)
        assert "waiting for it, at most 16 min 40 s (Ctrl-C skips this)" in feeding.messages[-2]
        assert "polls or the verdict are missing" in feeding.messages[-1]


@pytest.mark.slow
def test_a_deleted_bucket_is_waited_for(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    with fed(tmp_path / "run", address) as feeding:
        feeding.grow(10)
        wait_until(feeding.caught_up, "the first polls are not written")
        own_influxd.delete_bucket(BUCKET)
        feeding.grow(10)
        wait_until(
            lambda: any("has no bucket soak" in line for line in feeding.messages),
            f"nothing is reported: {feeding.messages}",
        )
        own_influxd.make_bucket(BUCKET)
        wait_until(feeding.caught_up, "it does not go on")
        assert counted(own_influxd) == 10 * len(KEYS)


def test_refused_lines_are_kept_and_counted(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    clash = f"process.memory.usage,process=p7,role=dut,run=run,target=dut value=1i {T0}"
    assert own_influxd.write(clash.encode()).status_code == 204
    with fed(tmp_path / "run", address) as feeding:
        feeding.grow(2)
        wait_until(feeding.caught_up, "it does not go on")
        wait_until(lambda: feeding.sinks.all[0].refused > 0, "nothing was refused")
    kept = (tmp_path / "run" / "sink-1-refused.txt").read_text()
    assert "conflict" in kept
    assert any("refuses lines" in line for line in feeding.messages)


@pytest.mark.slow
def test_whoever_does_not_want_to_wait_for_a_database_gets_the_verdict(tmp_path: Path) -> None:
    """The server is away to the end: that is messages; Ctrl-C ends that, and the exit code is a verdict's."""
    (tmp_path / "token").write_text("x")
    plan = tmp_path / "plan.yaml"
    nobody = Influxdb("http://127.0.0.1:9", "lab", "soak", f"file:{tmp_path}/token")
    plan.write_text(plan_of(nobody).replace("duration: 1m", "duration: 5s"))
    words = ("run", plan, "--into", tmp_path / "run", "--no-web")
    process = start(words, tmp_path, stderr=subprocess.STDOUT)
    try:
        assert process.stdout is not None
        messages: list[str] = []
        for line in process.stdout:
            if "Ctrl-C skips this" in line and "Ctrl-C skips this" not in "".join(messages):
                process.send_signal(signal.SIGINT)
            messages.append(line)
        assert process.wait(MAX_WAIT_S) in {0, 1, 3}, messages
    finally:
        process.kill()
        process.communicate()
    text = "".join(messages)
    assert "warning: http://127.0.0.1:9 cannot be reached: is InfluxDB running there?; the run goes on" in text
    assert re.search(r"lab/soak is [1-9].* behind \([1-9].* polls waiting\): cannot be reached", text), text
    assert "waiting for it, at most 1 min" in text
    assert f"soakwatch sink {tmp_path / 'run'} --to influxdb-1" in text
    assert "Traceback" not in text


def test_a_run_feeds_its_sink_and_ends_with_the_verdict_there(
    tmp_path: Path, own_influxd: Influxd, address: Influxdb
) -> None:
    (tmp_path / "plan.yaml").write_text(plan_of(address).replace("duration: 1m", f"phases: {UNTIL_OVER}"))

    def acts() -> None:
        wait_for(lambda: bool(own_influxd.influxql("SELECT count(ok) FROM soakwatch_poll")), "a poll there")
        own_influxd.kill()
        own_influxd.start()
        wait_for_polls(tmp_path / "run")
        end_run(tmp_path / "run")

    with acting(acts):
        done = command_here(tmp_path, merged=True)("run", "plan.yaml", "--into", "run", "--no-web")
    assert done.returncode in {0, 1, 3}, done.stdout
    assert "lines)" in done.stdout
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
