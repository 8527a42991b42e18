"""The main job from end to end: the demo's two services, its load, its crash, its verdict and its report."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from soakwatch.cli.demo import LEAKER, TWIN, demo_plan, process_name

NAMES = (LEAKER, TWIN)
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.timeout(900)
def test_the_demo_fails_the_leaker_and_passes_its_twin(soakwatch: Command, tmp_path: Path) -> None:
    """One command soaks real processes under real load, and finds the leak and the restart and nothing else."""
    done = soakwatch("demo", timeout=800)
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert str(folder.name) in done.stdout
    document = json.loads((folder / "verdict.json").read_text())
    assert document["verdict"] == "fail"
    assert document["targets"]["leaker"]["verdict"] == "fail"
    assert document["targets"]["twin"]["verdict"] == "pass"
    failed = {(f["rule"], f["target"]) for f in document["findings"] if f["outcome"] == "fail"}
    lost = {("loss", "leaker")}  # as many requests as failed while it was down
    assert failed - lost == {("memory_growth", "leaker"), ("process_restart", "leaker")}
    assert [phase["name"] for phase in document["phases"]] == ["baseline", "soak", "spike", "recovery"]
    page = (folder / "report.html").read_text()
    assert "load.request.rate" in page or "request" in page
    judged = soakwatch("judge", folder, "--json", "-")
    assert judged.returncode == 1
    assert judged.stdout == (folder / "verdict.json").read_text()


def test_a_demo_watches_no_service_of_another_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them on one machine: each finds its own leaker by its command line, and its own twin."""
    plans = []
    for demo in (4711, 47110):
        monkeypatch.setattr(os, "getpid", lambda demo=demo: demo)
        commands = {
            name: f"python -m soakwatch.cli.demo_service --name {process_name(name)} --port 0" for name in NAMES
        }
        plans.append((demo_plan((18_081, 18_082)), commands))
    for own, (plan, _) in enumerate(plans):
        for target in plan.targets[: len(NAMES)]:
            (watched,) = target.processes
            found = [
                (other, name)
                for other, (_, commands) in enumerate(plans)
                for name, command in commands.items()
                if re.search(watched.what, command)
            ]
            assert found == [(own, target.name)]
