"""Packets lost at each stage of a real way through network namespaces: the verdict of a real run names the stage."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import environment

BENCH = Path(__file__).parents[1] / "bench" / "loss_stages.py"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("only", "ways"), [("htb 30", 4), ("drop 20", 2), ("ring 50", 1), ("socket 50", 3)])
def test_the_verdict_names_the_stage_at_which_packets_were_lost(only: str, ways: int) -> None:
    """By a queue that is too small, at random, by a ring that runs full, by a socket that is read too seldom."""
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        pytest.skip("network namespaces need root, and random drops iptables")
    words = [sys.executable, str(BENCH), "--only", only, "--each"]
    said = subprocess.run(words, capture_output=True, text=True, check=True, env=environment(), timeout=880).stdout
    assert f"| all | {ways} | {ways} |" in said, said
