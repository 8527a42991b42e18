"""``soakwatch campaign run --on``: runs on the workers that have the testbed, each once though a worker dies."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from tests.collector.cluster.conftest import ROOT
from tests.commands import Command, Started, wait_until

from soakwatch.record import RecordView
from soakwatch_testing.dask_servers import DaskServers

CAMPAIGN = """name: short
plan:
  name: short
  duration: 2s
  targets: {{dut: {{role: dut, sources: [{{local: {{interval: 500ms}}}}]}}}}
  rules: {{memory_growth: {{tolerance: 50%}}}}
matrix:
  limit: {{set: rules.memory_growth.tolerance, values: [{values}]}}
testbeds: {beds}
"""


def ledger(folder: Path) -> list[dict[str, object]]:
    """The lines of a campaign's ledger that are whole."""
    file = folder / "ledger.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def attempt_of(line: Mapping[str, object]) -> tuple[object, ...]:
    """Which attempt a line is about."""
    return line["cell"], line["repetition"], line["attempt"]


def works_in(folder: Path) -> list[int]:
    """The processes whose command names something below a folder, but for the workers themselves."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "soakwatch.cli" in words and any(word.startswith(f"{folder}/") for word in words):
            found.append(process.pid)
    return found


@pytest.mark.slow
def test_each_run_is_made_once_though_a_worker_dies(tmp_path: Path, started: Started) -> None:
    """Killed in the middle of a run, whose processes end with it: the run is lost, and made again on the worker that
    comes with the same testbed. Records come back whole."""
    (tmp_path / "short.yaml").write_text(CAMPAIGN.format(values="40%, 50%, 60%", beds="{a: {}, b: {}}"))
    folder = tmp_path / "campaigns" / "short"
    with DaskServers(tmp_path / "lab", environment={"PYTHONPATH": str(ROOT)}) as servers:
        servers.add_worker("one", "a")
        servers.add_worker("two", "b")
        command = started("campaign", "run", "short.yaml", "--on", servers.address)
        two = servers.folder / "two"
        wait_until(lambda: bool(works_in(two)) or command.poll() is not None, "a run on the second worker")
        servers.kill_worker("two")
        wait_until(lambda: not works_in(two), "the end of what the worker had begun")
        servers.add_worker("three", "b")
        code = command.wait(240)
        assert command.stdout is not None
        said = command.stdout.read()
    assert code == 3, said
    assert "was lost: the worker that had begun it died" in said
    counted = Counter((line["kind"], line.get("testbed")) for line in ledger(folder))
    assert counted["lost", "b"] == 1
    ended = [line for line in ledger(folder) if line["kind"] == "end"]
    assert sorted(str(line["cell"]) for line in ended) == ["limit=40%", "limit=50%", "limit=60%"]
    begun = {attempt_of(line): folder / str(line["folder"]) for line in ledger(folder) if line["kind"] == "begin"}
    assert len(begun) == 4
    for line in ended:
        with RecordView.open(begun[attempt_of(line)]) as view:
            assert view.meta("verdict") == line["verdict"]


@pytest.mark.slow
def test_ctrl_c_brings_what_was_measured(
    lab: DaskServers, tmp_path: Path, started: Started, soakwatch: Command
) -> None:
    """Status says where the run is; the run on the worker ends in order, and its record is there."""
    text = CAMPAIGN.format(values="40%", beds="{a: {}}").replace("duration: 2s", "duration: 10m")
    (tmp_path / "short.yaml").write_text(text)
    command = started("campaign", "run", "short.yaml", "--on", lab.address)
    wait_until(lambda: bool(works_in(lab.folder)) or command.poll() is not None, "the run")
    wait_until(lambda: any(lab.folder.rglob("record.sqlite")), "its record")
    folder = tmp_path / "campaigns" / "short"
    stands = json.loads(soakwatch("campaign", "status", folder, "--json").stdout)
    assert [(one["state"], one["stage"]) for one in stands["running"]] == [("running", "on the cluster")]
    assert "on the cluster" in soakwatch("campaign", "status", folder).stdout
    command.send_signal(signal.SIGINT)
    command.wait(240)
    with RecordView.open(next(folder.glob("runs/*"))) as view:
        assert view.meta("ended_ns") is not None
    assert not works_in(lab.folder)
