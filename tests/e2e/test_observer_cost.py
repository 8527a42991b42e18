"""What the monitor costs, in a whole run: this machine by the collector itself, and by a real agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.commands import command_in

from soakwatch_testing.agents import LocalAgent

PLAN = """\
name: weighed
duration: 130s
targets:
  here: {{shared: true, sources: [{{local: {{interval: 1s}}}}]}}
  box: {{shared: true, sources: [{{agent: {{socket: {socket}, interval: 1s}}}}]}}
rules:
  observer_cost: {{limit: 50%}}
"""


@pytest.mark.slow
def test_a_real_run_weighs_itself(tmp_path: Path) -> None:
    """Both targets have a figure above 0 by whoever counted it, in the verdict and in the report."""
    agent = LocalAgent(tmp_path / "agent", ("--no-recorder",))
    agent.start()
    try:
        (tmp_path / "plan.yaml").write_text(PLAN.format(socket=agent.socket))
        run = command_in(tmp_path)("run", "plan.yaml", "--no-web", "--runs", "runs", timeout=600)
    finally:
        agent.kill()
    folder = next((tmp_path / "runs").iterdir())
    verdict = json.loads((folder / "verdict.json").read_text())
    judged = {f["target"]: f for f in verdict["findings"] if f["rule"] == "observer_cost"}
    assert {target: finding["outcome"] for target, finding in judged.items()} == {"box": "pass", "here": "pass"}
    assert all(0 < finding["measured"] < 0.5 for finding in judged.values())
    assert "agent" in judged["box"]["reason"]
    assert "local" in judged["here"]["reason"]
    for line in ("here: the monitor took", "box: the monitor took"):
        assert line in run.stdout
        assert line in (folder / "report.html").read_text()
