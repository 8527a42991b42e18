"""A picture that is drawn over itself: nothing flickers, nothing is left behind, what others say stays."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import pyte
import pytest
from rich.console import Console
from rich.text import Text

from soakwatch.cli.display.live_region import Frame, drawable, framed

COLUMNS, ROWS = 40, 12


class Tty(io.StringIO):
    """A file that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass(frozen=True)
class Rows:
    """These lines, whatever the width."""

    rows: Sequence[str]

    def lines(self, width: int, height: int) -> Sequence[Text]:
        lines = [Text(row) for row in self.rows[:height]]
        for line in lines:
            line.truncate(width)
        return lines


class Seen:
    """A console and the screen on which its output is seen."""

    def __init__(self) -> None:
        self.file = Tty()
        self.console = Console(file=self.file, force_terminal=True, width=COLUMNS, height=ROWS, legacy_windows=False)
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)

    def new(self) -> str:
        """What was written since."""
        text = self.file.getvalue()
        self.file.seek(0)
        self.file.truncate()
        return text.replace("\n", "\r\n")  # as a terminal line does

    def lines(self) -> list[str]:
        """The lines on the screen."""
        self.stream.feed(self.new())
        shown = [line.rstrip() for line in self.screen.display]
        while shown and not shown[-1]:
            shown.pop()
        return shown


def test_what_does_not_change_is_never_blank() -> None:
    """Written letter by letter, the second picture takes nothing away before something else stands there."""
    seen = Seen()
    with framed(seen.console) as frame:
        frame.draw(Rows(["title stays", "counter 9", "a long line that becomes short", "foot stays"]))
        assert seen.lines()[:2] == ["title stays", "counter 9"]
        frame.draw(Rows(["title stays", "counter 10", "short", "foot stays"]))
        for letter in seen.new():
            seen.stream.feed(letter)
            shown = [line.rstrip() for line in seen.screen.display]
            assert shown[0] == "title stays"
            assert shown[3] == "foot stays"
            assert shown[1].startswith("counter ")
        assert seen.lines() == ["title stays", "counter 10", "short", "foot stays"]
        frame.draw(Rows(["one line"]))
        assert seen.lines() == ["one line"]
    assert seen.lines() == []
    assert not seen.screen.cursor.hidden


def test_what_is_printed_meanwhile_stays_above() -> None:
    """On the console and on standard error; the picture is there once only."""
    seen = Seen()
    with framed(seen.console) as frame:
        frame.draw(Rows(["picture", "second"]))
        seen.console.print("hello", markup=False)
        frame.draw(Rows(["picture", "third"]))
        assert seen.lines() == ["hello", "picture", "third"]
    assert seen.lines() == ["hello"]


def test_standard_error_stays_above_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning of the log does not tear the picture; afterwards the stream is as it was."""
    seen = Seen()
    monkeypatch.setattr(sys, "stderr", seen.file)
    with framed(seen.console) as frame:
        frame.draw(Rows(["picture"]))
        print("dut/snmp: [bold]no[/] answer", file=sys.stderr)
        assert seen.lines() == ["dut/snmp: [bold]no[/] answer", "picture"]
    assert sys.stderr is seen.file
    assert seen.lines() == ["dut/snmp: [bold]no[/] answer"]


def test_a_picture_higher_than_the_screen_is_cut_and_not_scrolled() -> None:
    seen = Seen()
    with framed(seen.console) as frame:
        for turn in range(5):
            frame.draw(Rows([f"line {n} of turn {turn}" for n in range(50)]))
        shown = seen.lines()
        assert len(shown) < ROWS
        assert all(line.endswith("turn 4") for line in shown)


def test_a_terminal_that_becomes_narrow_keeps_nothing_of_the_old_picture() -> None:
    """The terminal has broken the old lines into more of them; all of those are drawn over."""
    seen = Seen()
    with framed(seen.console) as frame:
        frame.draw(Rows(["w" * 39, "v" * 39]))
        seen.lines()
        seen.console.width = 20  # as a terminal that breaks lines anew shows it
        seen.screen = pyte.Screen(20, ROWS)
        seen.stream = pyte.Stream(seen.screen)
        seen.stream.feed("w" * 20 + "\r\n" + "w" * 19 + "\r\n" + "v" * 20 + "\r\n" + "v" * 19)
        frame.draw(Rows(["new"]))
        assert seen.lines() == ["new"]


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    """Drawing says so; leaving the block does not."""
    seen = Seen()

    def gone(_text: str) -> int:
        raise OSError(5, "Input/output error")

    with framed(seen.console) as frame:
        seen.file.write = gone  # type: ignore[method-assign]
        with pytest.raises(OSError, match="Input/output"):
            frame.draw(Rows(["picture"]))


def test_only_a_terminal_that_can_move_its_cursor_gets_a_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a pipe, not even where colours are wanted in it, and not a dumb terminal."""
    monkeypatch.setenv("TERM", "xterm")
    assert drawable(Console(file=Tty(), force_terminal=True))
    assert not drawable(Console(file=io.StringIO()))
    assert not drawable(Console(file=io.StringIO(), force_terminal=True))
    monkeypatch.setenv("TERM", "dumb")
    assert not drawable(Console(file=Tty()))


def test_a_frame_without_a_picture_says_nothing_of_itself() -> None:
    """What is printed before the first picture is only that."""
    seen = Seen()
    seen.console.push_render_hook(Frame(seen.console))
    seen.console.print("hello", markup=False)
    assert seen.lines() == ["hello"]
