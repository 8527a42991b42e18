"""A whole run by its command: its scripts, its hooks, and what of them is in the record and the reports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import posts
from tests.collector.engine.watched_run import UNTIL_OVER, acting, end_run, wait_for_events, wait_for_polls
from tests.in_process import command_here

from soakwatch.record import RecordView


def test_scripts_and_hooks_of_a_run(tmp_path: Path) -> None:
    """A script kills the watched process: its event ends with it, the failure sets off command, webhook and capture,
    and the reports have what they brought. A script that fails is reported; no secret is anywhere."""
    soakwatch, run = command_here(tmp_path, merged=True), tmp_path / "run"
    go, gone, crash = tmp_path / "go", tmp_path / "gone", tmp_path / "crash.sh"

    def acts() -> None:
        wait_for_polls(run)
        go.touch()
        wait_for_events(run, "crash", over=True)
        wait_for_events(run, "process.exit")
        wait_for_events(run, "script.failed", 3)
        end_run(run)

    victim = subprocess.Popen(["sleep", "300"])
    crash.write_text(
        f"[ ! -e {gone} ] || exit 0\nuntil [ -e {go} ]; do sleep 0.1; done\n"
        f"echo killing $SOAKWATCH_NAME\nkill -9 {victim.pid}\nsleep 0.3\ntouch {gone}\n"
    )
    try:
        with posts() as server:
            plan = f"""\
name: hooked
phases: {UNTIL_OVER}
targets: {{dut: {{sources: [{{local: {{interval: 200ms, timeout: 10s}}}}]}}}}
watch: {{processes: [{{pid: {victim.pid}, name: victim}}]}}
events:
  - kind: crash
    at: 1s
    every: 2s
    target: dut
    run: [sh, {crash}]
  - {{kind: flap, at: 1s, every: 1s, run: [sh, -c, 'echo $TOKEN_OF_DUT; echo no such port $TOKEN_OF_DUT >&2; exit 7']}}
hooks:
  - {{rule: process_restart, webhook: env:WEBHOOK, capture: {{commands: [echo evidence]}}}}
  - on: [start, end]
    run: [sh, -c, 'echo $SOAKWATCH_ON $SOAKWATCH_OUTCOME >> $SOAKWATCH_RUN/told; echo $TOKEN_OF_DUT']
  - {{on: end, run: [sh, -c, 'sleep 0; exit 9']}}
"""
            (tmp_path / "plan.yaml").write_text(plan)
            secrets = {"WEBHOOK": f"{server.address}/T0K3N-IN-PATH", "TOKEN_OF_DUT": "s3cret-s3cret"}
            with acting(acts):
                done = soakwatch("run", "plan.yaml", "--no-web", "--into", "run", **secrets)
    finally:
        victim.kill()
        victim.wait()
    assert done.returncode == 1, done.stdout
    assert "files in the record" in done.stdout
    assert (tmp_path / "run/told").read_text() == "start\nend fail\n"
    with RecordView.open(tmp_path / "run") as view:
        begin_ns = int(view.meta("start_ns") or 0)
        events = [stored.event for stored in view.events()]
        kept = {artifact.name: artifact for artifact in view.artifacts()}
    (killed,) = [event for event in events if event.kind == "crash" and "output" in event.detail]
    assert (killed.begin_ns - begin_ns) % (2 * 10**9) == 10**9
    assert killed.end_ns is not None
    assert killed.end_ns > gone.stat().st_mtime_ns, "it ends with its script"
    assert kept[killed.detail["output"]].data == b"killing hooked\n"
    flaps = [event for event in events if event.kind == "flap"]
    assert {(event.begin_ns - begin_ns) % 10**9 for event in flaps} == {0}, "each second, unless the last still runs"
    failed = [event.detail["failed"] for event in flaps if "failed" in event.detail]
    assert set(failed) == {"exit code 7: no such port ***"}
    failures = [event.detail for event in events if event.kind == "script.failed"]
    assert failures == [{"event": "flap", "reason": "exit code 7: no such port ***"}] * len(failed)
    assert len(failed) >= 3
    assert [event.detail["reason"] for event in events if event.kind == "hook.failed"] == ["sh: exit code 9"]
    (body,) = server.bodies
    assert (body["rule"], body["outcome"], body["target"], body["run"]) == ("process_restart", "fail", "dut", "hooked")
    (evidence,) = [artifact for artifact in kept.values() if artifact.kind == "capture"]
    assert evidence.data == b"evidence\n"
    assert evidence.about.startswith("echo evidence (fail process_restart dut")
    page = (tmp_path / "run/report.html").read_text()
    assert '<section id="artifacts">' in page
    assert "killing hooked" in page
    everything = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir()) + done.stdout.encode()
    assert b"s3cret-s3cret" not in everything
    assert b"T0K3N-IN-PATH" not in everything
    assert not any(b"s3cret" in artifact.data for artifact in kept.values())
    again = soakwatch("judge", "run", "--json", "again.json")
    assert again.returncode == 1
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "run/verdict.json").read_text())


def test_a_run_whose_scripts_cannot_run_does_not_begin(tmp_path: Path) -> None:
    """A program that is not there, and a webhook without its secret, are refused before anything is recorded."""
    (tmp_path / "plan.yaml").write_text(
        "duration: 1m\ntargets: {dut: {sources: [local]}}\nevents: [{kind: a, at: 1s, run: no-such-program}]\n"
        "hooks: [{webhook: env:SURELY_NOT_SET}]\n"
    )
    done = command_here(tmp_path, merged=True)("run", "plan.yaml")
    assert done.returncode == 2
    program, secret = done.stdout.splitlines()
    assert "plan.yaml: events, number 1 (a): run: program 'no-such-program' not found" in program
    assert "plan.yaml: hooks, number 1: webhook: the environment variable SURELY_NOT_SET is not set" in secret
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_a_live_failure_of_a_chosen_rule_captures_and_stops(tmp_path: Path) -> None:
    """The evidence of a live failure is taken while the run goes on, is there when it is stopped, and is taken once."""
    victim = subprocess.Popen(["sleep", "300"])
    plan = f"""\
duration: 10m
targets: {{dut: {{sources: [{{local: {{interval: 500ms}}}}]}}}}
watch: {{processes: [{{pid: {victim.pid}, name: victim}}]}}
events: [{{kind: crash, at: 5s, target: dut, run: [kill, '-9', '{victim.pid}']}}]
hooks: [{{capture: {{commands: [sleep 12; echo evidence]}}}}]
stop_on_fail: [process_restart]
"""
    (tmp_path / "plan.yaml").write_text(plan)
    try:
        done = command_here(tmp_path, merged=True)("run", "plan.yaml", "--no-web", "--into", "run")
    finally:
        victim.kill()
        victim.wait()
    assert done.returncode == 1, done.stdout
    with RecordView.open(tmp_path / "run") as view:
        assert [artifact.data for artifact in view.artifacts()] == [b"evidence\n"]
        assert view.window().seconds < 600, "it was stopped before its planned end"
