"""`soakwatch run`, `watch` and `stop` on terminals: what is seen there, and what Ctrl-C does to whom."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import takewhile
from pathlib import Path

import pytest
from tests.collector.cli.terminals import Terminal
from tests.commands import Command, command_in, start, wait_until

from soakwatch.cli.display.follow import RecordedRun
from soakwatch.core.errors import RecordError
from soakwatch.record import RecordView, StoredEvent
from soakwatch.runs.mark_event import EventConflictError, EventRefusedError
from soakwatch.runs.run_state import StateReader
from soakwatch.runs.stop_run import MAX_REASON_LENGTH, stop_run
from soakwatch_testing.records import small_record

ME = f"pid:{os.getpid()}"
LONG = ("run", "--process", ME, "--interval", "200ms", "--duration", "10m", "--into", "run")
ALONE = (*LONG, "--no-web")
Terminals = Callable[..., Terminal]


@contextmanager
def terminals(folder: Path) -> Iterator[Terminals]:
    """Starts commands in a folder, each on a terminal of its own; they are killed at the end."""
    opened: list[Terminal] = []

    def on_terminal(*words: object, columns: int = 100, rows: int = 40, **environment: str) -> Terminal:
        opened.append(Terminal(words, columns, rows, folder, environment))
        return opened[-1]

    try:
        yield on_terminal
    finally:
        for terminal in opened:
            terminal.close()


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[Terminals]:
    """Start a command on a terminal of its own, in an empty folder."""
    with terminals(tmp_path) as opening:
        yield opening


@dataclass(frozen=True, slots=True)
class Running:
    """A run that goes on on its terminal, beside which others may be opened; tests leave it as it is."""

    run: Terminal
    on_terminal: Terminals


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One run for those that only look at it."""
    with terminals(tmp_path_factory.mktemp("running")) as opening:
        run = opening(*ALONE, columns=120)
        run.until(lambda text: "Ctrl-C ends" in text, "the picture")
        yield Running(run, opening)


def piped(folder: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command with its output in a pipe."""
    return command_in(folder, **variables)(*words)


def test_a_run_is_watched_left_alone_stopped_and_its_end_seen(on_terminal: Terminals, tmp_path: Path) -> None:
    """Two terminals show the same; Ctrl-C on the second leaves the run; `stop` ends it, and both tell the verdict."""
    run = on_terminal(*ALONE, columns=80, rows=24)
    answered = re.compile(r"local/local +\d+ +[1-9]\d* +\d")
    run.until(
        lambda text: bool(answered.search(text)) and "Ctrl-C ends the run properly" in text,
        "an answered poll, the keys",
    )
    assert "phase soak" in run.text
    visitor = on_terminal("watch", "run", columns=60, rows=20)
    visitor.until(
        lambda text: all(part in text for part in ("phase soak", "local/local", "soakwatch stop ends it")),
        "the phase, the sources and the keys",
    )
    assert max(len(line) for line in visitor.text.splitlines()) < 60
    visitor.interrupt()
    assert visitor.end() == 130
    assert "the run continues" in visitor.text
    assert not visitor.screen.cursor.hidden
    witness = on_terminal("watch", "run", "--verdict", columns=120)
    witness.until(lambda text: "phase soak" in text, "the phase")
    stopped = piped(tmp_path, "stop", "run", "--reason", "the rack is\nneeded")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    again = piped(tmp_path, "stop", "run")
    assert again.returncode != 0
    assert "already" in again.stderr
    assert run.end() == 3
    assert witness.end() == 3
    assert "INCONCLUSIVE" in witness.text
    assert "full report: soakwatch report run" in witness.text
    assert "local/local" not in witness.text.replace("coverage local/local", "")  # the picture is gone
    with RecordView.open(tmp_path / "run") as view:
        (stop,) = [stored.event for stored in view.events() if stored.event.kind == "run.stop"]
    assert stop.detail == {"reason": "the rack is needed", "by": "command line"}
    late = piped(tmp_path, "stop", "run")
    assert "the run is over already" in late.stderr
    assert late.returncode != 0
    assert piped(tmp_path, "watch", "run").returncode == 0  # without --verdict it only says what it is


@pytest.mark.slow
def test_a_run_is_watched_over_http(on_terminal: Terminals, tmp_path: Path) -> None:
    """With the token of its server; what is seen is the same, and it can be stopped there as well."""
    run = on_terminal(*LONG)
    run.until(lambda text: bool(re.search(r"local/local +\d+ +[1-9]\d* +\d", text)), "an answered poll")
    url = (tmp_path / "run" / "web.url").read_text().strip()
    token = (tmp_path / "run" / "web.token").read_text().strip()
    visitor = on_terminal("watch", url, SOAKWATCH_TOKEN=token)
    visitor.until(lambda text: bool(re.search(r"local/local +\d+ +[1-9]\d* +\d", text)), "the sources")
    assert "phase soak" in visitor.text
    visitor.until(lambda text: bool(re.search(r"devices +local: memory of pid\S+ \S+ [KMG]iB", text)), "what it reads")
    once = piped(tmp_path, "watch", url, "--once", SOAKWATCH_TOKEN=token)
    assert once.returncode == 0
    assert re.search(r"^local/local +\d+ +[1-9]\d* +\d", once.stdout, re.MULTILINE)
    assert "\x1b" not in once.stdout
    refused = piped(tmp_path, "watch", url, "--once", SOAKWATCH_TOKEN="f" * 43)
    assert refused.returncode != 0
    assert "rejects this token" in refused.stderr
    assert piped(tmp_path, "stop", url, "--reason", "seen enough", SOAKWATCH_TOKEN=token).returncode == 0
    assert run.end() == 3
    visitor.end()
    assert token not in visitor.raw.decode()


def test_a_monitor_that_was_killed_is_reported(on_terminal: Terminals, tmp_path: Path) -> None:
    """The record says nothing of it: whoever watches does, with what can be done; the exit code is 4."""
    run = on_terminal(*ALONE)
    run.until(lambda text: bool(re.search(r"local/local +\d+ +[1-9]\d* +\d", text)), "an answered poll")
    visitor = on_terminal("watch", "run")
    visitor.until(lambda text: "phase soak" in text, "the phase")
    run.process.kill()
    assert visitor.end() == 4
    assert "broke off: its monitor ended without a verdict" in visitor.text
    assert "soakwatch resume run" in visitor.text
    with pytest.raises(EventConflictError, match="broke off"):
        stopped(tmp_path / "run")


def test_a_viewer_that_is_terminated_gives_the_cursor_back(running: Running) -> None:
    """SIGTERM, as of a closing session."""
    visitor = running.on_terminal("watch", "run")
    visitor.until(lambda text: "Ctrl-C leaves" in text, "the picture")
    visitor.process.terminate()
    assert visitor.end() == 143
    assert not visitor.screen.cursor.hidden
    assert running.run.process.poll() is None


def test_a_window_that_is_pulled_narrow_is_drawn_anew(running: Running) -> None:
    """From 120 columns to 60 and back while the run goes on: each picture fits its window."""
    run = running.run
    for columns, at_least in ((60, 0), (120, 60)):
        seen = len(run.raw)
        run.resize(columns, 40)

        def fits(seen: int = seen, at_least: int = at_least, columns: int = columns) -> int:
            """How many of the last pictures, for what was on its way when the window changed has its old width."""
            widths = pictures(run.raw[seen:])
            return sum(1 for _ in takewhile(lambda width: at_least <= width < columns, reversed(widths)))

        run.until(lambda _text: fits() >= 3, f"three pictures in a row for {columns} columns")


def pictures(raw: bytes) -> list[int]:
    """The width of each whole picture."""
    whole = re.findall(rb"\x1b\[\?2026h(.*?)\x1b\[\?2026l", raw, re.DOTALL)
    plain = (re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", each.decode()).replace("\r", "") for each in whole)
    return [max(map(len, text.splitlines()), default=0) for text in plain]


@pytest.mark.slow
def test_without_a_terminal_there_are_plain_lines(tmp_path: Path) -> None:
    """No control codes in a pipe: a line at the start, at each phase and at the end."""
    done = piped(
        tmp_path, "run", "--process", ME, "--interval", "200ms", "--duration", "4s", "--into", "run", "--no-web"
    )
    assert "\x1b" not in done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert re.match(r"\[\d+ s\] phase (waiting|soak)", lines[1])
    assert any(re.match(r"\[\d+ s\] phase soak; \d s left; polls \d+ due", line) for line in lines)
    assert any(line.startswith("finished after 4") for line in lines)
    seen = piped(tmp_path, "watch", "run", "--verdict", PYTHONIOENCODING="ascii")
    assert seen.returncode == done.returncode == 3
    assert seen.stdout.splitlines()[0].startswith("? INCONCLUSIVE")
    assert seen.stdout.isascii()


def stopped(folder: Path, reason: str = "") -> StoredEvent:
    """The request to stop the run in a folder now."""
    return stop_run(folder, StateReader(folder).read(time.time_ns()), reason, "a test")


def test_a_reason_is_short_and_a_record_alone_cannot_be_stopped(tmp_path: Path) -> None:
    """What a stop refuses, with a sentence; a run that waits for its start, however long, can be stopped, once."""
    with small_record(tmp_path / "run", 1):
        pass
    with pytest.raises(EventRefusedError, match="limit is 500"):
        stopped(tmp_path / "run", "x" * (MAX_REASON_LENGTH + 1))
    with pytest.raises(EventConflictError, match="broke off"):
        stopped(tmp_path / "run")
    with small_record(tmp_path / "later", 1) as record:
        record.set_meta("start_ns", str(time.time_ns() + 36_000 * 10**9))
        assert RecordedRun(tmp_path / "later").read().status.standing == "waiting"
        assert stopped(tmp_path / "later", "no rack").event.detail == {"reason": "no rack", "by": "a test"}
        with pytest.raises(EventConflictError, match="already requested"):
            stopped(tmp_path / "later")


def stands_waiting(folder: Path) -> bool:
    """Whether the run in a folder has set up its sources and waits."""
    try:
        state = StateReader(folder).read(time.time_ns())
    except RecordError:
        return False
    return state.standing == "waiting" and bool(state.sources)


def test_a_run_that_waits_for_its_start_is_stopped(tmp_path: Path, soakwatch: Command) -> None:
    """`stop` ends it at once; it has no poll, is judged by nobody, and decides nothing."""
    at = datetime.now(UTC) + timedelta(hours=10)
    (tmp_path / "plan.yaml").write_text(
        f"start: {at:%Y-%m-%dT%H:%M:%SZ}\ntargets:\n  me: {{role: dut, sources: [local]}}\nduration: 1m\n"
    )
    with start(("run", "plan.yaml", "--into", "run", "--no-web"), tmp_path, stderr=subprocess.STDOUT) as run:
        try:
            wait_until(partial(stands_waiting, tmp_path / "run"), "the wait for the start")
            asked = soakwatch("stop", "run", "--reason", "no rack today")
            assert asked.returncode == 0, asked.stderr
            printed, _ = run.communicate(timeout=240)
        finally:
            run.kill()
    assert run.returncode == 3
    assert "stopped before its start: nothing was polled" in printed
    recorded = RecordedRun(tmp_path / "run").read()
    assert (recorded.over, recorded.verdict, recorded.exit_code) == (True, "inconclusive", 3)
    assert recorded.reason.startswith("stopped before its start")


def test_what_is_left_of_a_killed_run_is_over(tmp_path: Path) -> None:
    """Its record has no end, and nobody writes it."""
    with small_record(tmp_path / "run", 1):
        pass
    recorded = RecordedRun(tmp_path / "run").read()
    assert recorded.over
    assert recorded.status.standing == "broken off"
    assert recorded.exit_code == 4
    assert json.dumps(recorded.report) == '""'
