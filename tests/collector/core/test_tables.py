"""Tables and sentences on a terminal of eighty columns: nothing breaks inside a word, a path or an address."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import pytest

from soakwatch.core.console import CommandConsole
from soakwatch.core.tables import say, show_table

FOLDER, PAGE = "/srv/soak/rack-7/runs/20261121T200000Z-overnight-fw", "http://127.0.0.1:8720/runs/overnight"


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Standard output as a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    with redirect_stdout(_Screen()) as shown:
        yield shown


def test_a_row_that_does_not_fit_is_a_block_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with screen(monkeypatch) as shown:
        show_table(("run", "so far", "folder", "page"), [("overnight", "not judged yet", FOLDER, PAGE)])
    assert shown.getvalue().splitlines() == [
        "overnight",
        "  so far  not judged yet",
        f"  folder  {FOLDER}",
        f"  page    {PAGE}",
    ]


def test_words_of_a_table_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "what is left of a line goes on in the next one, word by word, however narrow the column is"
    with screen(monkeypatch) as shown:
        show_table(("run", "verdict", "note"), [("20261121T200000Z-overnight", "inconclusive", text)])
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    words = [word for line in lines[1:] for word in line.split()]
    assert sorted(words) == sorted(["20261121T200000Z-overnight", "inconclusive", *text.split()])


def test_a_sentence_is_wrapped_between_words_and_a_path_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/srv/" + "x" * 90
    with screen(monkeypatch) as shown:
        say(f"the record of this run needs more room than there is on the disk, which is that of {path}", indent=2)
    lines = shown.getvalue().splitlines()
    assert lines[-1] == f"    {path}"
    assert all(len(line) <= 80 and line.startswith("  ") for line in lines[:-1])


LINE = "recording to runs/20261129T110042Z-demo. API: http://127.0.0.1:8720 (token in runs/20261129T110042Z-demo/t)"


@pytest.mark.parametrize("terminal", [True, False])
def test_no_path_and_no_address_is_broken(terminal: bool) -> None:
    """At 60 columns each word stays in one piece, also one that is longer; a file gets the line as it is."""
    target = io.StringIO()
    CommandConsole(file=target, width=60, force_terminal=terminal).say(LINE)
    lines = target.getvalue().splitlines()
    assert [word for line in lines for word in line.split()] == LINE.split()
    assert len(lines) == (3 if terminal else 1)
    assert all(len(line) <= 60 for line in lines) is terminal
