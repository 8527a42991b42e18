"""Lines of commands on a terminal: wrapped between words, whole elsewhere."""

from __future__ import annotations

import io

import pytest

from soakwatch.core.console import CommandConsole

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
