"""Commands about runs, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Run a command in an empty folder and return what it printed."""
    return command_here(tmp_path)
