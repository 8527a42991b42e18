"""Standard output and error that vanish, or take nothing: nobody who writes fails or waits."""

from __future__ import annotations

import io
import os
import subprocess
import threading
from pathlib import Path

import pytest
from tests.commands import SOAKWATCH, environment

from soakwatch.cli.outlet import MAX_WAITING, Terminal
from soakwatch.core.console import CommandConsole


def test_what_a_vanished_reader_does_not_take_is_lost_and_told_once() -> None:
    """The descriptor leads to nothing from then on, for children too."""
    reader, writer = os.pipe()
    terminal = Terminal()
    os.close(reader)
    terminal.put(writer, b"to nobody")
    assert terminal.drain()
    assert [loss.reason for loss in terminal.losses()] == ["Broken pipe"]
    assert terminal.losses() == []
    assert os.write(writer, b"by somebody else") == 16
    os.close(writer)


def test_a_full_disk_is_tried_again_and_told_once() -> None:
    """It may have room later."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        terminal = Terminal()
        for _ in range(3):
            terminal.put(full.fileno(), b"x")
            assert terminal.drain()
        assert [loss.reason for loss in terminal.losses()] == ["No space left on device"]


def test_a_terminal_that_takes_nothing_makes_nobody_wait() -> None:
    """Nothing is lost of what it takes later, in order; of too much the oldest is."""
    reader, writer = os.pipe()
    terminal = Terminal()
    sent = [b"%07d " % number for number in range(20_000)]  # more than a pipe holds
    for part in sent:
        terminal.put(writer, part)
    assert not terminal.drain(patience_s=0.05)
    taken = b""
    while len(taken) < sum(map(len, sent)):
        taken += os.read(reader, 1 << 16)
    assert taken == b"".join(sent)
    assert terminal.drain()
    terminal.put(writer, bytes(1 << 17))  # fills the pipe, and waits
    block = bytes(1 << 20)
    for _ in range(2 * MAX_WAITING // len(block)):
        terminal.put(writer, block)
    terminal.give_up(writer, "it took nothing")
    os.close(reader)
    assert terminal.drain()
    os.close(writer)


def test_without_memory_for_a_thread_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the end writes it, in order; no writer sees the error."""

    def no_room(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    reader, writer = os.pipe()
    terminal = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_room)
        terminal.put(writer, b"first ")
        terminal.put(writer, b"second")
        assert terminal.drain()
        assert os.read(reader, 100) == b"first second"
    terminal.put(writer, b"third")
    assert terminal.drain()
    assert os.read(reader, 100) == b"third"
    os.close(reader)
    os.close(writer)


def test_a_broken_pipe_is_no_verdict() -> None:
    """rich alone would end the process with code 1, which is that of a fail."""

    class Broken(io.StringIO):
        def write(self, _: str, /) -> int:
            raise BrokenPipeError

    console = CommandConsole(file=Broken())
    with pytest.raises(BrokenPipeError):
        console.print("a line")


def test_commands_without_standard_streams_keep_their_exit_codes(tmp_path: Path) -> None:
    """Closed or full: a complaint that nobody can read is no failure of its own."""
    line = (
        f"'{SOAKWATCH}' rules no_such_rule >&- 2>/dev/full; echo $? > a; '{SOAKWATCH}' --version >&- 2>&-; echo $? > b"
    )
    subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), check=True)
    assert [(tmp_path / name).read_text(encoding="utf-8").strip() for name in "ab"] == ["2", "0"]
