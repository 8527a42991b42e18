"""The agent as a service: real processes, killed, asked nonsense, started twice, attached to."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Self

import pytest

from soakwatch_agent.framing import MAX_QUESTION, Frame, frame_of, question_line
from soakwatch_agent.segments import find_segments, lines_of
from soakwatch_agent.serve import connected
from soakwatch_agent.service import ServeError
from soakwatch_agent.wire import decode

_AGENT = (sys.executable, "-m", "soakwatch_agent")
_OPEN: dict[str, object] = {"run": "r", "interval_ns": 100_000_000, "probes": ["load", "memory"]}

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts agents in ``tmp_path/a``; what still runs at the end is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **pipes: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*_AGENT, *arguments, "--dir", str(tmp_path / "a")], **pipes)  # type: ignore[call-overload]
        running.append(process)
        return process  # type: ignore[no-any-return]

    yield begin
    for process in running:
        with process:
            process.kill()


class Talk:
    """A plain client of the socket."""

    def __init__(self, path: Path) -> None:
        deadline = time.monotonic() + 120
        while True:
            self.socket = socket.socket(socket.AF_UNIX)
            try:
                self.socket.connect(str(path))
                break
            except OSError:
                self.socket.close()
                assert time.monotonic() < deadline, "no agent listens"
                time.sleep(0.02)
        self.socket.settimeout(20)
        self.reader: BinaryIO = self.socket.makefile("rb")
        try:
            self.hello = frame_of(self.reader.readline())
        except (ValueError, OSError):
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()
        self.socket.close()

    def ask(self, word: str, **body: object) -> list[Frame]:
        """The frames of an answer."""
        self.socket.sendall(question_line(1, word, body))  # type: ignore[arg-type]
        return self.answer()

    def answer(self) -> list[Frame]:
        frames = []
        while True:
            frame = frame_of(self.reader.readline())
            frames.append(frame)
            if frame.word != "look":
                return frames

    def polls(self, after: int, wait_s: float = 5.0) -> list[Frame]:
        """Polls after a number, at least one, and the frame that ends them."""
        deadline = time.monotonic() + wait_s
        while True:
            frames = self.ask("looks", run="r", ack=after, after=after, most=500, fresh_ns=0)
            if len(frames) > 1 or time.monotonic() > deadline:
                return frames
            time.sleep(0.02)


def refused(frames: list[Frame]) -> str:
    """The sentence of an error."""
    assert frames[-1].word == "error"
    return str(frames[-1].body["text"])


def test_it_keeps_polling_while_nobody_asks_and_after_kill_9_in_the_middle_of_writing(
    tmp_path: Path, start: Start
) -> None:
    """Six lives that end by SIGKILL at random moments: every number of the spool is there, every line whole."""
    chance = random.Random(3)
    folder = tmp_path / "a"
    epochs = set()
    for life in range(6):
        process = start("run", "--no-recorder")
        with Talk(folder / "socket") as talk:
            epochs.add(talk.hello.body["epoch"])
            if life == 0:
                assert talk.ask("open", **_OPEN)[-1].word == "done"
        time.sleep(0.2 + 0.25 * chance.random())
        process.kill()
        process.wait()
    segments = find_segments(str(folder))
    lines = [line for segment in segments for line, _ in lines_of(segment.path)]
    assert all(line is not None for line in lines)
    assert [line.seq for line in lines if line] == list(range(1, len(lines) + 1))
    assert len(lines) >= 12  # the settings were kept: each life looked on by itself
    polls = [decode(line.wire.decode()) for line in lines if line]
    assert all(a.due_ns < b.due_ns for a, b in pairwise(polls))
    assert len(epochs) == 1  # one boot is one time, however often the agent dies


def test_the_keeper_starts_it_again_and_stop_ends_both(tmp_path: Path, start: Start) -> None:
    """kill -9 of the agent under ``--keep``: another one answers; after ``stop`` the keeper leaves with 0."""
    keeper = start("run", "--keep", "--no-recorder")
    with Talk(tmp_path / "a/socket") as talk:
        first = talk.ask("status")[-1].body["pid"]
    assert isinstance(first, int)
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 120
    while True:
        with suppress(AssertionError, ValueError, OSError), Talk(tmp_path / "a/socket") as talk:
            if talk.ask("status")[-1].body["pid"] != first:
                break
        assert time.monotonic() < deadline
    subprocess.run([*_AGENT, "stop", "--dir", str(tmp_path / "a")], check=True, timeout=240, capture_output=True)
    assert keeper.wait(240) == 0


@pytest.mark.parametrize("keep", [(), ("--keep",)])
def test_an_agent_whose_folder_was_deleted_leaves(tmp_path: Path, start: Start, keep: tuple[str, ...]) -> None:
    """Nobody could reach it any more: it would keep polling until the host's next start. Its keeper leaves as well."""
    process = start("run", "--no-recorder", *keep)
    with Talk(tmp_path / "a/socket") as talk:
        assert talk.ask("open", **_OPEN)[-1].word == "done"
        agent = talk.ask("status")[-1].body["pid"]
    (tmp_path / "a").rename(tmp_path / "deleted")  # all at once: it may be writing there
    shutil.rmtree(tmp_path / "deleted")
    assert process.wait(240) == 0
    assert not Path(f"/proc/{agent}").exists()
    assert not (tmp_path / "a").exists()


def test_attach_starts_it_and_a_second_one_in_the_folder_is_refused(tmp_path: Path, start: Start) -> None:
    """``attach --start`` is all that a session needs; two agents never share a spool."""
    attached = start("attach", "--start", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert attached.stdin is not None
    assert attached.stdout is not None
    try:
        assert frame_of(attached.stdout.readline()).word == "hello"
        attached.stdin.write(question_line(1, "status"))
        attached.stdin.flush()
        assert frame_of(attached.stdout.readline()).body["lost"] == 0
        second = start("run", stderr=subprocess.PIPE)
        _, printed = second.communicate(timeout=240)
        assert second.returncode == 2
        assert b"runs in" in printed
        assert printed.count(b"\n") == 1
        attached.stdin.close()
        assert attached.wait(240) == 0
        attached.stdout.close()
    finally:
        subprocess.run([*_AGENT, "stop", "--dir", str(tmp_path / "a")], timeout=240, capture_output=True, check=False)


def test_nothing_that_a_stranger_says_ends_it(tmp_path: Path, start: Start) -> None:
    """Garbage, oversized lines, wrong types and versions: one sentence each, and the agent answers the next."""
    start("run", "--no-recorder")
    path = tmp_path / "a/socket"
    chance = random.Random(5)
    with Talk(path) as talk:
        for line, sentence in (
            (b"hello\n", "not a JSON object"),
            (b"[1]\n", "not a JSON object"),
            (b'{"v":2,"ask":"ping"}\n', "speaks version 1"),
            (b'{"v":1}\n', "no word 'ask'"),
            (b'{"v":1,"ask":"dance"}\n', "unknown question"),
            (b'{"v":1,"ask":"open","run":""}\n', "1 to 200"),
            (b'{"v":1,"ask":"open","run":"r","interval_ns":1}\n', "interval is out of range"),
            (b'{"v":1,"ask":"open","run":"r","interval_ns":true}\n', "'interval_ns' is not a whole number"),
            (b'{"v":1,"ask":"open","run":"r","interval_ns":1000000000,"probes":["gpu"]}\n', "there is no probe 'gpu'"),
            (b'{"v":1,"ask":"open","run":"r","interval_ns":1000000000,"processes":[["a","pid","x"]]}\n', "not a pid"),
            (b'{"v":1,"ask":"looks","run":"another"}\n', "another run"),
            (b'{"v":1,"ask":"window","from_ns":0,"to_ns":1}\n', "without a flight recorder"),
        ):
            talk.socket.sendall(line)
            assert sentence in refused(talk.answer()), line
        talk.ask("open", **_OPEN)
        for _ in range(300):
            body = {"v": 1, "ask": chance.choice(["open", "looks", "window", "rest", "ping"]), "run": "r"}
            for key in (
                "ack",
                "after",
                "most",
                "fresh_ns",
                "interval_ns",
                "phase_ns",
                "from_ns",
                "probes",
                "processes",
            ):
                body[key] = chance.choice([None, -1, 0, 1, 10**30, 1.5, "x", [], [[]], {}, True, [["a", "b"]]])
            talk.socket.sendall((json.dumps(body) + "\n").encode())
            assert talk.answer()[-1].word in {"done", "error"}
        talk.socket.sendall(b"x" * (MAX_QUESTION + 10) + b"\n")
        assert "longer than" in refused(talk.answer())
    with Talk(path) as talk:
        assert talk.ask("ping")[-1].word == "done"


def test_one_run_at_a_time_and_rest_between_runs(tmp_path: Path, start: Start) -> None:
    """A run that is being served is not taken away; one that ended in order makes room at once, and polling rests."""
    start("run", "--no-recorder")
    with Talk(tmp_path / "a/socket") as talk:
        talk.ask("open", **_OPEN)
        assert len(talk.polls(0)) > 1
        assert "serves another run" in refused(talk.ask("open", **{**_OPEN, "run": "s"}))
        talk.ask("rest", run="r")
        last = talk.ask("status")[-1].body["last"]
        time.sleep(0.4)
        status = talk.ask("status")[-1].body
        assert isinstance(last, int)
        assert isinstance(status["last"], int)
        assert status["last"] <= last + 1
        assert status["interval_s"] is None
        assert talk.ask("open", **{**_OPEN, "run": "s"})[-1].word == "done"


def test_the_child_of_a_new_session_takes_over_from_a_dead_session(tmp_path: Path, start: Start) -> None:
    """``serve`` in a session that nobody has noticed to be dead: the next one ends it and goes on with its spool."""
    first = start("serve", "--no-recorder", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert first.stdin is not None
    assert first.stdout is not None
    agent = frame_of(first.stdout.readline()).body["agent"]
    second = start("serve", "--no-recorder", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert second.stdin is not None
    assert second.stdout is not None
    assert frame_of(second.stdout.readline()).body["agent"] == agent
    assert first.wait(240) == 0
    second.stdin.close()
    assert second.wait(240) == 0
    for process in (first, second):
        assert process.stdout is not None
        process.stdout.close()
    first.stdin.close()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["attach"], "no agent runs in"),
        (["run", "--https", "127.0.0.1:0"], "needs --token-file, --cert and --key"),
        (["run", "--cert", "x"], "belong to --https"),
        (["status"], "no agent runs in"),
    ],
)
def test_what_cannot_be_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    """Exit code 2, one line, no traceback."""
    done = subprocess.run(
        [*_AGENT, *arguments, "--dir", str(tmp_path / "a")], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr


def test_a_folder_whose_path_is_longer_than_a_sockets_is_one_like_any_other(tmp_path: Path) -> None:
    """Started by whoever attaches, asked how it stands, and ended."""
    folder = str(tmp_path / ("deep in a home " * 8).strip() / "a")
    assert len(folder) > 107

    def agent(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*_AGENT, *words, "--dir", folder], input="", capture_output=True, text=True, timeout=240, check=False
        )

    try:
        attached = agent("attach", "--start")
        assert (attached.returncode, attached.stderr) == (0, "")
        assert agent("status").stdout.startswith("hello ")
    finally:
        stopped = agent("stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")


def test_attach_reports_why_no_agent_starts(tmp_path: Path) -> None:
    """What the agent said when it ended stands in its log."""
    (tmp_path / "a" / "socket").mkdir(parents=True)  # where it would listen
    with pytest.raises(ServeError, match=r"does not start; the last line of its log: soakwatch-agent: .* socket"):
        connected(str(tmp_path / "a"), start=True, timeout_s=3)
