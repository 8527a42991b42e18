"""What happens to databases and collectors, together: a disk that is full, and both of them killed. Samples written are
samples recorded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.bench.sink_drill import DRILLS, Outcome, fill, small_disk
from tests.collector.engine.watched_run import UNTIL_OVER, end_run
from tests.collector.transfer.sinks.test_influxdb_outage import counted, fed, plan_of
from tests.commands import MAX_WAIT_S, start, wait_until

from soakwatch.record import RecordView
from soakwatch.transfer.sinks.influxdb import Influxdb
from soakwatch_testing.influxd import BUCKET, ORG, Influxd, start_influxd
from soakwatch_testing.records import KEYS


def needs_root() -> None:
    """Skips where no disk of its own can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("a small disk is mounted by root only")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk for the engine of a server in ``tmp_path``."""
    needs_root()
    with small_disk(tmp_path / "influxd" / "engine") as folder:
        yield folder


def test_a_full_disk_of_the_server_loses_nothing(
    tmp_path: Path, disk: Path, influxd_program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        server = start_influxd(influxd_program, tmp_path / "influxd", stack)
        monkeypatch.setenv("SINK_TOKEN", server.token)
        to = Influxdb(server.url, ORG, BUCKET, "env:SINK_TOKEN", timeout_s=5)
        feeding = stack.enter_context(fed(tmp_path / "run", to))
        feeding.grow(100)
        wait_until(feeding.caught_up, "the first polls are not written")
        fill(disk)
        feeding.grow(400)
        wait_until(lambda: bool(feeding.messages), "nothing is reported")
        assert "has no space left on its disk: free some there" in feeding.messages[0], feeding.messages
        (disk / "filled").unlink()
        server.stop()  # as the sentence says: it does not try again what it could not open
        server.start()
        wait_until(feeding.caught_up, f"it does not go on: {feeding.messages}")
        assert counted(server) == 500 * len(KEYS)
        assert feeding.sinks.all[0].refused == 0


@pytest.mark.slow
def test_both_are_killed_and_the_run_is_resumed(tmp_path: Path, own_influxd: Influxd, address: Influxdb) -> None:
    """Neither had time to say good-bye. The second life sends from the cursor on, perhaps a batch twice."""
    plan, folder = tmp_path / "plan.yaml", tmp_path / "run"
    plan.write_text(
        plan_of(replace(address, token=f"file:{tmp_path}/token")).replace("duration: 1m", f"phases: {UNTIL_OVER}")
    )
    (tmp_path / "token").write_text(own_influxd.token)
    first = start(
        ("run", plan, "--into", folder, "--no-web"),
        tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=None,
    )
    try:
        wait_until(lambda: bool(own_influxd.influxql("SELECT count(ok) FROM soakwatch_poll")), "nothing arrives")
    finally:
        first.kill()
        first.wait()
    own_influxd.kill()
    second = start(("resume", folder, "--no-web"), tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    try:
        assert second.stdout is not None
        lines = iter(second.stdout.readline, "")
        messages = [next(lines)]
        while "cannot be reached" not in messages[-1]:
            messages.append(next(lines))
        own_influxd.start()
        end_run(folder)
        messages += lines
        assert second.wait(MAX_WAIT_S) in {0, 1, 3}, messages
    finally:
        second.kill()
        second.wait()
        assert second.stdout is not None
        second.stdout.close()
    with RecordView.open(folder) as view:
        recorded, verdict = view.counts(), view.meta("verdict")
        sampled = view.keys()
        gaps = [stored for stored in view.events() if stored.event.kind == "gap"]
    assert gaps
    names = {key.metric for key in sampled}
    written = sum(
        int(row["count"]) for name in names for row in own_influxd.influxql(f'SELECT count(value) FROM "{name}"')
    )
    assert written == recorded.samples
    assert own_influxd.influxql("SELECT count(ok) FROM soakwatch_poll")[0]["count"] == recorded.polls
    assert [row["verdict"] for row in own_influxd.influxql("SELECT verdict FROM soakwatch_verdict")] == [verdict]
    assert any("lines)" in line for line in messages), messages


@pytest.mark.slow
@pytest.mark.parametrize("name", DRILLS)
def test_a_drill_writes_what_was_recorded(name: str, tmp_path: Path, influxd_program: Path) -> None:
    """A run of the installed collector, a server that is away for half a minute: not a sample nor a poll is lost."""
    if name == "full":
        needs_root()
    outcome: Outcome = DRILLS[name](influxd_program, tmp_path, 30.0)
    assert (outcome.written, outcome.polls_written) == (outcome.recorded, outcome.polls), outcome.output
    assert outcome.refused == 0
    assert outcome.longest_lag_s >= 20
