"""The limit of open files: raised for a fleet where the system lets it, told where it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
PLAN = """\
duration: 10m
targets:
  sw[1-500]: {role: dut, sources: [{tcp: {host: "127.0.0.[1-500]", port: 9}}]}
"""
RAISED = (
    "import resource\n"
    "resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))\n"
    "from soakwatch.core.open_files import allow_open_files\n"
    "print(allow_open_files(100), allow_open_files(500), resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
)


def test_the_limit_is_raised_as_far_as_it_is_needed() -> None:
    """A plan that fits leaves it as it is; 500 sources of four files and the monitor's own need 2,200."""
    said = subprocess.run([sys.executable, "-c", RAISED], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["2200"]


def test_check_says_where_the_system_does_not_let_it(tmp_path: Path) -> None:
    """Of a plan of 500 targets in a shell that may open 1,000 files."""
    (tmp_path / "plan.yaml").write_text(PLAN)
    soakwatch = Path(sys.executable).with_name("soakwatch")
    words = ["sh", "-c", f"ulimit -n 1000; exec {soakwatch} check --no-connect plan.yaml"]
    said = subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    warning = "warning: 500 sources may need 2,200 open files, and this process may have 1,000: raise its limit (ulimit"
    assert said.startswith(warning)
