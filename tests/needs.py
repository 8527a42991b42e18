"""Programs that a test needs: without them it is skipped, but never in CI, where tests/run has installed them."""

from __future__ import annotations

import os
import shutil

import pytest


def needs(*programs: str) -> None:
    """Skips where one of the programs is not installed; fails in CI."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            if os.environ.get("CI"):
                pytest.fail(f"{program} is not installed: tests/run installs it")
            pytest.skip(f"{program} is not installed")
