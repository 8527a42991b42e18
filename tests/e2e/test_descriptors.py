"""A watched process that runs into its limit of open files, seen by a whole run on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from soakwatch.cli.main import run

_LEAKS = """
import sys, time
held = []
while True:
    try:
        held.append(open("/dev/null"))
    except OSError:
        pass
    time.sleep(0.005)
"""


@pytest.mark.slow
def test_a_process_at_its_limit_of_open_files_fails(tmp_path: Path) -> None:
    """It may open 64 files and holds them all: the run fails and says how many of how many."""
    marker = f"{tmp_path.name}-leaks-{os.getpid()}"  # another suite beside this one has its own
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        f"""
name: descriptors
duration: 6s
targets:
  here: {{sources: [{{local: {{interval: 500ms}}}}]}}
watch: {{processes: [{{cmdline: {marker}, name: leaky}}]}}
rules: {{saturation: {{lasting: 2s}}}}
""",
        encoding="utf-8",
    )
    limited = ["prlimit", "--nofile=64:64", sys.executable, "-c", _LEAKS, marker]
    with subprocess.Popen(limited) as child:
        try:
            code = run(["run", str(plan), "--runs", str(tmp_path / "runs")])
        finally:
            child.kill()
    verdict = json.loads(next((tmp_path / "runs").glob("*/verdict.json")).read_text(encoding="utf-8"))
    (finding,) = [f for f in verdict["findings"] if f["rule"] == "saturation" and f["metric"] == "process.open_files"]
    assert (code, finding["outcome"]) == (1, "fail"), finding["reason"]
    assert "of 64 descriptors" in finding["reason"]
