"""A whole run as a command: its scripts, its hooks, and what of them is in the record and the reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.collector.engine.hooks.hooks_kit import posts

from soakwatch.record import RecordView

SOAKWATCH = Path(sys.executable).with_name("soakwatch")


def soakwatch(folder: Path, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command in a folder."""
    return subprocess.run(
        [SOAKWATCH, *map(str, words)],
        cwd=folder,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": "error", "COLUMNS": "160", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def test_scripts_and_hooks_of_a_run(tmp_path: Path) -> None:
    """A script kills the watched process: its event ends with it, the failure sets off command, webhook and capture,
    and the reports have what they brought. A script that fails is reported; no secret is anywhere."""
    victim = subprocess.Popen(["sleep", "300"])
    try:
        with posts() as server:
            plan = f"""\
name: hooked
duration: 14s
targets: {{dut: {{sources: [{{local: {{interval: 500ms}}}}]}}}}
watch: {{processes: [{{pid: {victim.pid}, name: victim}}]}}
events:
  - {{kind: crash, at: 5s, target: dut, run: [sh, -c, "echo killing $SOAKWATCH_NAME; kill -9 {victim.pid}; sleep 1"]}}
  - {{kind: flap, at: 3s, every: 3s, run: [sh, -c, 'echo $TOKEN_OF_DUT; echo no such port $TOKEN_OF_DUT >&2; exit 7']}}
hooks:
  - {{rule: process_restart, webhook: env:WEBHOOK, capture: {{commands: [echo evidence]}}}}
  - on: [start, end]
    run: [sh, -c, 'echo $SOAKWATCH_ON $SOAKWATCH_OUTCOME >> $SOAKWATCH_RUN/told; echo $TOKEN_OF_DUT']
  - {{on: end, run: [sh, -c, 'sleep 0; exit 9']}}
"""
            (tmp_path / "plan.yaml").write_text(plan)
            done = soakwatch(
                tmp_path,
                "run",
                "plan.yaml",
                "--no-web",
                "--into",
                "run",
                WEBHOOK=f"{server.address}/T0K3N-IN-PATH",
                TOKEN_OF_DUT="s3cret-s3cret",
            )
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
    (crash,) = [event for event in events if event.kind == "crash"]
    assert crash.begin_ns == begin_ns + 5 * 10**9
    assert crash.end_ns is not None
    assert 1.0 < (crash.end_ns - crash.begin_ns) * 1e-9 < 3.0
    assert kept[crash.detail["output"]].data == b"killing hooked\n"
    flaps = [event for event in events if event.kind == "flap"]
    assert [(event.begin_ns - begin_ns) / 1e9 for event in flaps] == [3.0, 6.0, 9.0, 12.0]
    assert {event.detail["failed"] for event in flaps} == {"exit code 7: no such port ***"}
    failures = [event.detail for event in events if event.kind == "script.failed"]
    assert failures == [{"event": "flap", "reason": "exit code 7: no such port ***"}] * 4
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
    again = soakwatch(tmp_path, "judge", "run", "--json", "again.json")
    assert again.returncode == 1
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads((tmp_path / "run/verdict.json").read_text())


def test_a_run_whose_scripts_cannot_run_does_not_begin(tmp_path: Path) -> None:
    """A program that is not there, and a webhook without its secret, are refused before anything is recorded."""
    (tmp_path / "plan.yaml").write_text(
        "duration: 1m\ntargets: {dut: {sources: [local]}}\nevents: [{kind: a, at: 1s, run: no-such-program}]\n"
        "hooks: [{webhook: env:SURELY_NOT_SET}]\n"
    )
    done = soakwatch(tmp_path, "run", "plan.yaml")
    assert done.returncode == 2
    program, secret = done.stdout.splitlines()
    assert "plan.yaml: events, number 1 (a): run: program 'no-such-program' not found" in program
    assert "plan.yaml: hooks, number 1: webhook: the environment variable SURELY_NOT_SET is not set" in secret
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.timeout(200)
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
        begun = time.monotonic()
        done = soakwatch(tmp_path, "run", "plan.yaml", "--no-web", "--into", "run")
        assert time.monotonic() - begun < 110
    finally:
        victim.kill()
        victim.wait()
    assert done.returncode == 1, done.stdout
    with RecordView.open(tmp_path / "run") as view:
        assert [artifact.data for artifact in view.artifacts()] == [b"evidence\n"]
        assert view.window().seconds < 180
