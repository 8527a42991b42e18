"""Commands of plans run in the process of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.commands import Command
from tests.in_process import command_here


@pytest.fixture
def soakwatch(tmp_path: Path) -> Command:
    """Runs a command in an empty folder, in this process."""
    return command_here(tmp_path)
