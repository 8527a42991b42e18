"""``command``: ticks of a process, its end, what cannot be read, and levels."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.commands import command_in, start, wait_until

from soakwatch.core.stderr_tail import last_line
from soakwatch.record import RecordView
from soakwatch.sources.abc import SourceError
from soakwatch.sources.loads.command import parse_tick
from soakwatch_model.metric import BY_NAME
from soakwatch_model.sample import Answer
from soakwatch_testing.load_bench import LoadBench, last


def until(bench: LoadBench, wanted: Callable[[Answer], bool]) -> Answer:
    """Poll until an answer is as wanted, for two minutes at most."""
    deadline = time.monotonic() + 120
    seconds = 0.0
    while True:
        seconds += 1
        answer = bench.poll(seconds)
        if wanted(answer):
            return answer
        assert time.monotonic() < deadline, answer
        bench.wait(0.05)


def failure(bench: LoadBench) -> str:
    """Poll until it fails, for two minutes at most; returns the reason."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            bench.poll(1)
        except SourceError as failed:
            return str(failed)
        bench.wait(0.05)
    pytest.fail("it never failed")


def alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_command_that_ends_reports_its_last_words_without_secrets() -> None:
    """The exit code and the last line of stderr; what looks like a secret is left out."""
    script = "echo first >&2; echo 'login: password=hunter2 refused for http://bob:pw@dut/' >&2; exit 7"
    with LoadBench("command", {"run": ["sh", "-c", script]}) as bench:
        text = failure(bench)
    assert text == "the command ended with exit code 7: login: password=… refused for http://…@dut/"


def test_what_a_command_leaves_behind_does_not_hide_its_end() -> None:
    """Something that it started holds its output open: the command has ended all the same."""
    with LoadBench("command", {"run": ["sh", "-c", "sleep 60 & exit 4"]}) as bench:
        assert failure(bench) == "the command ended with exit code 4"


def test_a_command_that_is_killed_says_so() -> None:
    """The signal has its name."""
    with LoadBench("command", {"run": ["sh", "-c", "kill -9 $$"]}) as bench:
        assert failure(bench) == "the command was stopped by SIGKILL"


def test_a_flood_of_errors_does_not_block_the_command() -> None:
    """A megabyte on stderr is read and forgotten, but for its end; the tick after it comes."""
    script = "import sys; sys.stderr.write('x' * 2**20); print('load.requests 3'); sys.stderr.write('\\nlast')"
    with LoadBench("command", {"run": [sys.executable, "-c", script]}) as bench:
        until(bench, lambda answer: "load.requests" in last(answer))
        assert failure(bench) == "the command ended with exit code 0: last"


def test_lines_that_cannot_be_read_are_counted() -> None:
    """Each counts, their texts are reported, the good lines are stored."""
    script = (
        "echo hello; echo '{\"load.requests\": 1e999}'; echo 'load.latency{colour=red} 1';"
        " echo '{\"load.requests\": 7}';"
        " head -c 70000 /dev/zero | tr '\\0' a; echo; exec sleep 60"
    )
    seen: list[str] = []

    def complete(answer: Answer) -> bool:
        seen.extend(fault.text for fault in answer.faults)
        return last(answer)["load.lines.unread"] == 4

    with LoadBench("command", {"run": ["sh", "-c", script]}) as bench:
        until(bench, complete)
    assert len(seen) == 4, seen
    assert any("'hello'" in text for text in seen)
    assert any("has labels that" in text for text in seen)


def test_everything_it_started_ends_with_it(tmp_path: Path) -> None:
    """A child that ignores signals is killed with its parent."""
    pid = tmp_path / "pid"
    script = f"(trap '' INT TERM; echo $BASHPID > {pid}; while :; do sleep 0.2; done) & wait"
    with LoadBench("command", {"stop_signal": "TERM", "run": ["bash", "-c", script]}) as bench:
        deadline = time.monotonic() + 120
        while not (pid.exists() and pid.read_text().strip()):
            assert time.monotonic() < deadline
            bench.wait(0.05)
        child = int(pid.read_text())
        assert alive(child)
    deadline = time.monotonic() + 120
    while alive(child):  # it was killed; the kernel takes its time
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed(folder: Path, more: str = "") -> int:
    """A run of a shell that starts another process; its collector is killed with kill -9. The pid of that process."""
    pid = folder / "pid"
    script = f"(trap '' INT; echo $BASHPID > {pid}.new; mv {pid}.new {pid}; while :; do sleep 0.2; done) & wait"
    (folder / "plan.yaml").write_text(
        "duration: 20m\ntargets:\n  dut:\n    sources: [{local: {probes: [cpu]}}]\n"
        "  tg:\n    role: generator\n    sources:\n"
        f"      - command: {{interval: 1s, {more}run: [bash, -c, {json.dumps(script)}]}}\n"
    )
    collector = start(["run", "plan.yaml", "--no-web"], folder)
    try:
        wait_until(lambda: pid.exists() or collector.poll() is not None, "the start of the command")
        assert alive(int(pid.read_text()))
    finally:
        collector.kill()
        collector.communicate()
    return int(pid.read_text())


def test_a_load_ends_with_its_killed_collector(tmp_path: Path) -> None:
    """Nobody could end it: the shell and what it started are gone all the same."""
    child = killed(tmp_path)
    wait_until(lambda: not alive(child), "the end of the load")


def test_a_load_outlives_its_killed_collector_if_the_plan_says_so(tmp_path: Path) -> None:
    """Its process is there after the collector is gone, until somebody ends it."""
    child = killed(tmp_path, "outlives: true, ")
    try:
        assert alive(child)
    finally:
        os.killpg(os.getpgid(child), signal.SIGKILL)


def test_a_driven_command_gets_its_level(tmp_path: Path) -> None:
    """Level and rate are among its words and in its environment; 0 is rest; what it started is ended."""
    pids = tmp_path / "pids"
    figures = "load.offered.rate $1, load.users $SOAKWATCH_RATE, load.loss $SOAKWATCH_LEVEL"
    script = f'echo $$ >> {pids}; echo "{figures}"; exec sleep 60'
    keys: dict[str, object] = {"drive": True, "full": 2000, "run": ["sh", "-c", script, "load", "{rate}"]}
    with LoadBench("command", keys) as bench:
        assert last(bench.poll(0)) == {"load.lines.unread": 0, "load.sending": 0}
        assert not pids.exists()
        bench.drive(0.5)
        latest = last(until(bench, lambda answer: "load.users" in last(answer)))
        assert (latest["load.offered.rate"], latest["load.users"], latest["load.loss"]) == (1000, 1000, 0.5)
        bench.drive(1.0)
        answer = until(bench, lambda answer: "load.users" in last(answer))
        assert last(answer)["load.offered.rate"] == 2000
        bench.drive(0)
        assert last(bench.poll(90))["load.sending"] == 0
        first, second = map(int, pids.read_text().split())
        assert not alive(first)
        assert not alive(second)
        bench.drive(0.25)
        until(bench, lambda answer: last(answer).get("load.offered.rate") == 500)
        *_, third = map(int, pids.read_text().split())
        assert alive(third)
    assert not alive(third)


def test_a_change_of_level_is_an_event() -> None:
    """Its counters start again, and the record says why."""
    with LoadBench("command", {"drive": True, "run": ["sleep", "60"]}) as bench:
        bench.drive(0.5)
        assert bench.poll(1).events == ()
        bench.drive(0.5)
        assert bench.poll(2).events == ()
        bench.drive(1)
        (event,) = bench.poll(3).events
        assert (event.kind, dict(event.detail)) == ("generator.restart", {"cause": "restarted for the level 1"})


def test_without_drive_nothing_is_driven() -> None:
    """A command that the plan does not drive cannot be, and its words stay as they are."""
    with LoadBench("command", {"run": ["sh", "-c", "echo 'load.users {level}'; exec sleep 60"]}) as bench:
        with pytest.raises(TypeError, match="not driven"):
            bench.drive(1)
        answer = until(bench, lambda answer: answer.faults != ())
        assert "'{level}'" in answer.faults[0].text


def test_a_driven_command_that_does_not_start_says_so() -> None:
    """A program that is not there."""
    with (
        LoadBench("command", {"drive": True, "run": ["/no/such/load"]}) as bench,
        pytest.raises(SourceError, match="cannot start /no/such/load: No such file"),
    ):
        bench.drive(1)


def test_lines_of_any_kind_are_harmless() -> None:
    """Random lines: samples of the catalogue or a fault, never an exception."""
    dice = random.Random(5)
    parts = ['{"load.requests": ', "load.requests", "load.latency{quantile=p99}", "{", "}", "[", "1e400", "9" * 400]
    parts += ["nan", "true", ",", " ", '"', "\\", "=", "é", "\x00", "-1", "null", ":"]
    for _ in range(4000):
        line = "".join(dice.choices(parts, k=dice.randrange(1, 12)))
        for sample in parse_tick(line, 1)[0]:
            assert sample.metric in BY_NAME
    assert parse_tick("{" * 60_000, 1)[1]
    assert parse_tick('{"load.requests": ' + "[" * 60_000, 1)[1]
    assert parse_tick('{"load.requests": ' + "9" * 400 + "}", 1)[1]
    for _ in range(300):
        last_line(dice.randbytes(200), {})


@pytest.mark.slow
def test_a_run_has_the_figures_of_its_command(tmp_path: Path) -> None:
    """A whole run: counters, unread lines and a driven level in the record."""
    ticks = "i=0; echo oops; while :; do i=$((i+1)); echo load.requests $i, load.failures 0; sleep 0.2; done"
    (tmp_path / "plan.yaml").write_text(
        "duration: 3s\ntargets:\n  dut:\n    sources: [{local: {probes: [cpu]}}]\n"
        "  tg:\n    role: generator\n    sources:\n"
        f"      - command: {{interval: 500ms, run: [sh, -c, {json.dumps(ticks)}]}}\n"
    )
    done = command_in(tmp_path)("run", "plan.yaml", "--no-web")
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with RecordView.open(run) as view:
        (requests,) = view.keys(["load.requests"])
        (unread,) = view.keys(["load.lines.unread"])
        values = view.series(requests).values.tolist()
        assert values == sorted(values)
        assert values[-1] >= 8
        assert view.series(unread).values.tolist()[-1] == 1


@pytest.mark.slow
def test_phases_drive_a_command(tmp_path: Path) -> None:
    """A plan with a rest, half and full load: the record has the levels and what the command was given."""
    ticks = "while :; do echo load.offered.rate {rate}; sleep 0.1; done"
    (tmp_path / "plan.yaml").write_text(
        "phases: [{baseline: {for: 2s, load: 0%}}, {soak: {for: 2s, load: 50%}}, {stress: {for: 2s, load: 100%}}]\n"
        "targets:\n  dut:\n    sources: [{local: {probes: [cpu]}}]\n  tg:\n    role: generator\n    sources:\n"
        f"      - command: {{interval: 500ms, drive: true, full: 200, run: [sh, -c, {json.dumps(ticks)}]}}\n"
    )
    done = command_in(tmp_path)("run", "plan.yaml", "--no-web")
    assert done.returncode in {0, 1, 3}, done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    with RecordView.open(run) as view:
        values = {key.metric: view.series(key).values.tolist() for key in view.keys(None) if key.target == "tg"}
        restarts = [stored.event.kind for stored in view.events() if stored.event.kind == "generator.restart"]
    assert list(dict.fromkeys(values["load.level"])) == [0, 0.5, 1]
    assert list(dict.fromkeys(values["load.offered.rate"])) == [100, 200]
    assert set(values["load.sending"]) == {0}
    assert restarts == ["generator.restart"]
