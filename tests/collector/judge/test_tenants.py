"""Tenants of a run: whose the series of a record are, and whole runs of tables that are judged by them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.in_process import command_here

PLAN = """\
duration: 1h
targets:
  dut: {sources: [local]}
  tg: {role: generator, sources: [{csv: {file: /dev/null}}]}
tenants:
  red: {flow: "1"}
  blue: {target: tg, flow: ["2", "3"]}
"""


def table(file: Path, lost: float, name: Callable[[str], str]) -> None:
    """Half an hour of two tenants; red's load is raised fourfold three times, which costs blue ``lost``."""
    t = np.arange(0, 1800, 5)
    raised = np.isin(t // 180, (1, 2, 4, 5, 7, 8)).astype(float)
    red, blue = np.cumsum(5000 * (1 + 3 * raised)), np.cumsum(np.full(t.size, 5000.0))
    back = np.cumsum(np.round(5000 * (1 - lost * raised)))
    rows = ["time,target,metric,object,value"]
    for whose, sent, received in (("1", red, red), ("2", blue, back)):
        for way, value in (("tx", sent), ("rx", received)):
            rows += [
                f'{1_700_000_000 + s},tg,load.flow.{way}.packets,"{name(whose)}",{v:.0f}'
                for s, v in zip(t.tolist(), value.tolist(), strict=True)
            ]
    rows += [f"{1_700_000_000 + s},dut,system.cpu.utilization,,0.3" for s in t.tolist()]
    file.write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize(("lost", "code"), [(0.0, 0), (0.02, 1)])
def test_a_table_of_two_tenants_is_imported_and_judged(tmp_path: Path, lost: float, code: int) -> None:
    """The plan says which flow is whose; only the run in which red's load costs blue packets fails."""
    run = command_here(tmp_path)
    table(tmp_path / "night.csv", lost, lambda flow: f"flow={flow}")
    (tmp_path / "plan.yaml").write_text(PLAN)
    assert run("import", "night.csv", "--role", "tg=generator", "--name", "night").returncode == 0
    judged = run(
        "judge", "last", "--plan", "plan.yaml", "--rule", "tenant_isolation", "--json", tmp_path / "verdict.json"
    )
    assert judged.returncode == code, judged.stdout
    finding = json.loads((tmp_path / "verdict.json").read_text())["findings"][0]
    assert (finding["object"], finding["outcome"]) == ("tenant=red", "fail" if lost else "pass")
    assert ("blue lost" in judged.stdout) == bool(lost)


def test_a_label_names_the_tenant_without_a_plan(tmp_path: Path) -> None:
    """What a table calls ``tenant=…`` is that tenant's."""
    run = command_here(tmp_path)
    table(tmp_path / "night.csv", 0.02, lambda flow: f"flow={flow},tenant={'red' if flow == '1' else 'blue'}")
    judged = run("judge", "night.csv", "--role", "tg=generator", "--rule", "tenant_isolation")
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "while the load of red was raised" in judged.stdout
