"""Runs as a person runs them: a soak, an interruption, a kill, a resume, and every kind of bad luck."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.commands import MAX_WAIT_S, Command, Started, command_in, starting_in, wait_until

from soakwatch.record import RecordView
from soakwatch_model.sample import PollOutcome

Until = Callable[[Callable[[], bool], str], None]

ME = f"pid:{os.getpid()}"


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """The folder of one run without a plan, too short for two readings of a file system, and what the command said."""
    for _ in range(3):  # all of this machine is judged, which drops packets when another test asks it to
        folder = tmp_path_factory.mktemp("finished")
        done = command_in(folder)("run", "--process", ME, "--interval", "200ms", "--duration", "8s")
        if done.returncode == 3:
            break
    return folder, done


@pytest.fixture
def finished(finished_once: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> Path:
    """A copy of that run below the test's own folder, where it may be changed."""
    folder, done = finished_once
    assert done.returncode == 3, done.stdout + done.stderr
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return one_run(tmp_path)


def one_run(folder: Path) -> Path:
    """The only run below a folder."""
    (run,) = [path.parent for path in folder.glob("runs/*/record.sqlite")]
    return run


def polls_so_far(run: Path) -> int:
    """Committed polls of a record that is being written."""
    with RecordView.open(run) as view:
        return view.counts().polls


def test_a_run_without_a_plan_leaves_a_record_and_its_reports(
    finished_once: tuple[Path, subprocess.CompletedProcess[str]], finished: Path, soakwatch: Command
) -> None:
    """`soakwatch run --process …` needs no plan; a few seconds are too short for a verdict and it says so."""
    assert "INCONCLUSIVE" in finished_once[1].stdout
    for name in ("report.html", "verdict.json", "junit.xml", "report.md"):
        assert (finished / name).stat().st_size > 500
    with RecordView.open(finished) as view:
        assert {phase.name for phase in view.phases()} == {"soak"}
        (local,) = [ledger for ledger in view.ledgers(view.window()) if ledger.target == "local"]
        assert 1 <= local.got <= local.due <= 51  # on a busy machine it begins later
        assert local.got + sum(local.lost.values()) == local.due
    listed = soakwatch("runs").stdout
    assert "ended" in listed
    assert "inconclusive" in listed


def test_judging_again_gives_the_same_verdict_bit_for_bit(finished: Path, soakwatch: Command, tmp_path: Path) -> None:
    """`judge` and `report` compute from the record alone what the run wrote at its end."""
    again = soakwatch("judge", "last", "--json", "-")
    assert again.returncode == 3
    assert again.stdout == (finished / "verdict.json").read_text()
    soakwatch("report", "last", "--json", "v.json", "--junit", "j.xml", "--md", "r.md", "--html", "r.html")
    pairs = (("v.json", "verdict.json"), ("j.xml", "junit.xml"), ("r.md", "report.md"), ("r.html", "report.html"))
    for theirs, ours in pairs:
        assert (tmp_path / theirs).read_bytes() == (finished / ours).read_bytes()


def test_a_record_can_be_mailed(finished: Path, soakwatch: Command, tmp_path: Path) -> None:
    """The one file, under another name in another folder, gives the same verdict."""
    (tmp_path / "attachment.db").write_bytes((finished / "record.sqlite").read_bytes())
    mailed = soakwatch("judge", "attachment.db", "--json", "-")
    assert mailed.stdout == (finished / "verdict.json").read_text()


@pytest.mark.slow
def test_a_process_that_never_appears_is_inconclusive(started: Started, tmp_path: Path) -> None:
    """No process, no pass: exit 3, and the report names the watch."""
    run = tmp_path / "run"
    words = ("--process", "no-such-daemon", "--interval", "200ms", "--duration", "10m", "--into", run, "--no-web")
    process = started("run", *words)
    wait_until(lambda: (run / "record.sqlite").exists() and polls_so_far(run) > 10, "ten polls")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=MAX_WAIT_S)
    assert process.returncode == 3
    assert "no such process ever ran" in output
    assert "no-such-daemon" in output


@dataclass(frozen=True, slots=True)
class Interrupted:
    """A run of ten minutes that was interrupted in its baseline, what it said, and what was said to it meanwhile."""

    run: Path
    code: int
    output: str
    asked: Mapping[str, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Interrupted:
    """One such run: others resume it, and mark events on it, while it goes on; then comes a Ctrl-C."""
    folder = tmp_path_factory.mktemp("interrupted")
    soakwatch, run = command_in(folder), folder / "run"
    (folder / "plan.yaml").write_text(
        f"""
phases: [{{baseline: 5m}}, {{soak: 5m}}]
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [process]}}}}]}}}}
watch: {{processes: [{{pid: {os.getpid()}, name: pytest}}]}}
"""
    )
    with starting_in(folder) as start:
        process = start("run", "plan.yaml", "--into", "run", "--no-web")
        wait_until(lambda: (run / "record.sqlite").exists() and polls_so_far(run) > 10, "ten polls")
        asked = {
            "resume": soakwatch("resume", "run"),
            "begin": soakwatch("event", "run", "failover", "--begin", "--label", "ticket=4711"),
            "end": soakwatch("event", "run", "failover", "--end"),
            "end again": soakwatch("event", "run", "failover", "--end"),
            "of another target": soakwatch("event", "run", "failover", "--target", "moon"),
        }
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=MAX_WAIT_S)
    return Interrupted(run, process.returncode, output, asked)


def test_ctrl_c_ends_the_run_properly(interrupted: Interrupted) -> None:
    """An interrupted run is judged with what is there, and its record is closed."""
    assert interrupted.code == 3, interrupted.output
    assert "INCONCLUSIVE" in interrupted.output
    assert "ended early" in interrupted.output
    assert (interrupted.run / "report.html").is_file()
    with RecordView.open(interrupted.run) as view:
        assert view.meta("ended_ns") is not None
        assert 1 < view.window().seconds < 600


def test_a_run_that_is_being_written_cannot_be_resumed(interrupted: Interrupted) -> None:
    """Two monitors never write one record."""
    assert interrupted.asked["resume"].returncode == 2
    assert "being written" in interrupted.asked["resume"].stderr


def test_events_are_marked_from_another_terminal(interrupted: Interrupted) -> None:
    """`soakwatch event` begins and ends an event on a run that goes on; both times are in the record."""
    asked = interrupted.asked
    assert asked["begin"].returncode == asked["end"].returncode == 0
    assert (asked["end again"].returncode, len(asked["end again"].stderr.strip().splitlines())) == (2, 1)
    assert "no target 'moon'" in asked["of another target"].stderr
    with RecordView.open(interrupted.run) as view:
        (failover,) = [stored.event for stored in view.events() if stored.event.kind == "failover"]
    assert failover.end_ns is not None
    assert failover.end_ns > failover.begin_ns
    assert failover.detail == {"ticket": "4711"}
    assert "failover" in (interrupted.run / "report.html").read_text()


def test_a_run_that_never_reached_its_soak_is_inconclusive(interrupted: Interrupted) -> None:
    """Interrupted in the baseline, a run does not judge the growth of a soak by it."""
    findings = json.loads((interrupted.run / "verdict.json").read_text())["findings"]
    (growth,) = [f for f in findings if f["rule"] == "memory_growth" and f["target"] == "dut"]
    assert growth["outcome"] == "inconclusive"
    assert "never started" in growth["reason"]


def test_killed_and_resumed(started: Started, soakwatch: Command, until: Until, tmp_path: Path) -> None:
    """kill -9 loses at most the batch in flight; `resume` goes on, and the gap is an event and a counted gap. What is
    resumed ends at SIGTERM as at a Ctrl-C. Only a process is judged, for what else the machine does is not known."""
    plan = f"""
name: local
duration: 10m
targets: {{local: {{sources: [{{local: {{interval: 200ms, probes: [process]}}}}]}}}}
watch: {{processes: [{{pid: {os.getpid()}, name: pytest}}]}}
"""
    (tmp_path / "plan.yaml").write_text(plan)
    process = started("run", "plan.yaml", "--no-web")
    until(lambda: any(tmp_path.glob("runs/*/record.sqlite")), "the record")
    run = one_run(tmp_path)
    until(lambda: polls_so_far(run) > 10, "ten polls")
    before = polls_so_far(run)
    process.kill()
    process.wait()
    assert polls_so_far(run) >= before
    assert "broken off" in soakwatch("runs").stdout
    killed_s = time.monotonic()
    until(lambda: time.monotonic() > killed_s + 0.5, "two due times without a monitor")
    before = polls_so_far(run)
    resumed = started("resume", "last", "--no-web")
    until(lambda: polls_so_far(run) > before + 10, "ten polls of the second life")
    resumed.send_signal(signal.SIGTERM)
    output, _ = resumed.communicate(timeout=MAX_WAIT_S)
    assert resumed.returncode == 3, output
    with RecordView.open(run) as view:
        gaps = [stored.event for stored in view.events() if stored.event.kind == "gap"]
        assert len(gaps) == 1
        (local,) = [ledger for ledger in view.ledgers(view.window()) if ledger.target == "local"]
        intervals = view.window().seconds / 0.2
        assert intervals - 10 <= local.due <= intervals + 1
        assert local.got + sum(local.lost.values()) == local.due
        assert local.lost[PollOutcome.GAP.value] >= 1
        assert len(view.spans()) == 2
        assert view.spans()[1].end_ns - view.spans()[1].begin_ns > 10**9
        assert len(view.phases()) == 1
    again = soakwatch("resume", "last")
    assert again.returncode == 2
    assert "has ended" in again.stderr


@pytest.mark.slow
def test_resumed_after_its_planned_end(started: Started, soakwatch: Command, until: Until, tmp_path: Path) -> None:
    """A run whose planned end has passed is closed and judged with what it has: all later polls are a counted gap."""
    plan = f"""
phases: [{{baseline: 2s}}, {{soak: 2s}}, {{recovery: 2s}}]
targets: {{dut: {{sources: [{{local: {{interval: 200ms, probes: [process]}}}}]}}}}
watch: {{processes: [{{pid: {os.getpid()}, name: pytest}}]}}
"""
    (tmp_path / "plan.yaml").write_text(plan)
    process = started("run", "plan.yaml", "--into", "here", "--no-web")
    run = tmp_path / "here"
    until(lambda: (run / "record.sqlite").exists() and polls_so_far(run) > 3, "three polls")
    process.kill()
    process.wait()
    with RecordView.open(run) as view:
        end_ns = int(view.meta("start_ns") or 0) + 6 * 10**9
        polled = view.counts().polls
    until(lambda: time.time_ns() > end_ns, "the planned end")
    done = soakwatch("resume", run, "--no-web")
    assert done.returncode == 3, done.stdout + done.stderr
    with RecordView.open(run) as view:
        (local,) = [ledger for ledger in view.ledgers(view.window()) if ledger.target == "dut"]
        assert 20 <= local.due <= 30
        assert local.got + sum(local.lost.values()) == local.due
        assert local.lost[PollOutcome.GAP.value] >= local.due - polled - 2
        assert [phase.name for phase in view.phases()] == ["baseline", "soak", "recovery"]


def test_a_second_run_in_the_same_folder_is_refused(finished: Path, soakwatch: Command) -> None:
    """A folder holds one run; the first is not touched."""
    before = (finished / "record.sqlite").read_bytes()
    done = soakwatch("run", "--process", ME, "--interval", "200ms", "--duration", "5s", "--into", finished, "--no-web")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert (finished / "record.sqlite").read_bytes() == before


def small_disk(folder: Path, kibibytes: int) -> None:
    """Mount a small filesystem, or skip where that is not allowed."""
    folder.mkdir()
    mounting = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k", "soakwatch-test", folder], capture_output=True, check=False
    )
    if mounting.returncode:
        pytest.skip("a filesystem of its own needs root")


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_the_record_stays_readable(soakwatch: Command, tmp_path: Path) -> None:
    """When the disk fills up in the middle, the run ends with exit 4 and what was committed can be judged."""
    disk = tmp_path / "disk"
    small_disk(disk, 600)
    try:
        words = ("--process", ME, "--interval", "200ms", "--duration", "10s", "--into", disk / "run", "--no-web")
        done = soakwatch("run", *words)
        assert done.returncode == 4, done.stdout + done.stderr
        errors = [line for line in done.stderr.splitlines() if line.startswith("soakwatch: ")]
        assert len(errors) == 1
        assert "full" in errors[0]
        with RecordView.open(disk / "run") as view:
            assert view.counts().polls > 3
        judged = soakwatch("judge", disk / "run")
        assert judged.returncode == 3, judged.stdout + judged.stderr
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_read_only_disk_is_one_sentence(soakwatch: Command, tmp_path: Path) -> None:
    """A folder that cannot be written is refused before anything begins."""
    disk = tmp_path / "disk"
    small_disk(disk, 540)
    try:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        done = soakwatch("run", "--process", ME, "--duration", "2s", "--runs", disk)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert "read-only" in done.stderr.lower()
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_record_of_a_newer_version_is_refused(finished: Path, soakwatch: Command) -> None:
    """A newer record is neither misread nor changed."""
    file = finished / "record.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for words in (("judge", finished), ("report", finished), ("event", finished, "failover")):
        done = soakwatch(*words)
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
        assert "newer" in done.stderr


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_truncated_record_is_one_sentence(finished: Path, soakwatch: Command, share: float) -> None:
    """A record that was cut off says so and what can be done."""
    file = finished / "record.sqlite"
    os.truncate(file, int(file.stat().st_size * share))
    done = soakwatch("judge", finished)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert re.search(r"truncated|damaged|empty|not a record", done.stderr)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run",), "name a plan, or --target local, or a --process to watch"),
        (("run", "nowhere.yaml"), "nowhere.yaml"),
        (("run", "--process", "x", "--duration", "10 parsecs"), "parsecs"),
        (("run", "--process", "x", "--duration", "10"), "10"),
        (("run", "--target", "ssh://lab"), "ssh"),
        (
            ("run", "--target", "snmp://127.0.0.1?version=2c&community=env:SOAKWATCH_X", "--duration", "10m"),
            "command line: 127.0.0.1 snmp: the environment variable SOAKWATCH_X is not set: export it before the run",
        ),
        (("judge", "last"), "there is no run in runs/"),
        (("judge", "nowhere"), "nowhere is not a run"),
        (("event", "last", "failover", "--begin", "--end"), "exclude each other"),
        (("jugde", "last"), "judge"),
    ],
)
def test_bad_words_get_one_sentence(soakwatch: Command, words: tuple[str, ...], sentence: str) -> None:
    """Usage errors are exit 2, one line on stderr, no traceback."""
    done = soakwatch(*words)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert sentence in done.stderr


def test_a_plan_with_phases_events_and_load(soakwatch: Command, tmp_path: Path) -> None:
    """A plan's phases, scripted events and load are in the record and in verdict.json; what five seconds are too short
    for is not required."""
    ticks = "while :; do echo 'load.request.rate 12, load.failures 0'; sleep 0.2; done"
    plan = f"""
phases: [{{baseline: 2s}}, {{soak: 3s}}]
targets:
  dut:
    role: dut
    sources: [{{local: {{interval: 200ms, probes: [process]}}}}]
  tg:
    role: generator
    sources: [{{command: {{interval: 500ms, run: [sh, -c, "{ticks}"]}}}}]
watch: {{processes: [{{pid: {os.getpid()}, name: pytest}}]}}
events: [{{kind: failover, at: 1s}}]
# how many polls a busy machine answers, and how near the end, is not what is asked here
rules: {{coverage: {{floor: 1%, gap: 100%}}, loss: false}}
"""
    (tmp_path / "plan.yaml").write_text(plan)
    done = soakwatch("run", "plan.yaml", "--no-web")
    assert done.returncode == 0, done.stdout + done.stderr
    verdict = json.loads((one_run(tmp_path) / "verdict.json").read_text())
    assert [phase["name"] for phase in verdict["phases"]] == ["baseline", "soak"]
    with RecordView.open(one_run(tmp_path)) as view:
        (rate,) = view.keys(["load.request.rate"])
        assert set(view.series(rate).values) == {12.0}
        assert [stored.event.kind for stored in view.events() if stored.origin == "plan"] == ["failover"]


@pytest.mark.slow
def test_stop_on_fail_ends_a_run_at_its_first_failure(started: Started, until: Until, tmp_path: Path) -> None:
    """With --stop-on-fail a restart ends the run at the next live judgement, and fails it."""
    sleeper = subprocess.Popen(["sleep", "300"])
    process = started(
        "run",
        "--process",
        f"pid:{sleeper.pid}",
        "--interval",
        "200ms",
        "--duration",
        "10m",
        "--stop-on-fail",
        "--into",
        "here",
        "--no-web",
    )
    run = tmp_path / "here"
    until(lambda: (run / "record.sqlite").exists() and polls_so_far(run) > 10, "ten polls")
    sleeper.kill()
    sleeper.wait()
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 1, output
    assert "has not come back" in output
    with RecordView.open(run) as view:
        assert view.window().seconds < 600
