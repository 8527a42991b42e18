"""Campaigns of short runs, run as commands: order and folders, commands around runs, Ctrl-C, two campaigns at once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.collector.campaign.conftest import PLAN, Entries, Here, Write
from tests.collector.conftest import Until
from tests.commands import Command, Started

from soakwatch.record import RecordView

TWO = """\
name: two
plan: plan.yaml
labels: {build: "17"}
matrix:
  every: {set: targets.dut.sources.local.interval, values: [250ms, 300ms]}
  side:
    - {name: left, set: {phases.soak: 800ms}}
    - {name: right, set: {}}
exclude: [{every: 300ms, side: left}]
"""


def begun(entries: list[dict[str, object]]) -> list[tuple[object, object]]:
    """Cell and repetition of every run that was begun, in order."""
    return [(entry["cell"], entry["repetition"]) for entry in entries if entry["kind"] == "begin"]


def test_a_campaign_runs_every_cell_in_order_with_labels_and_commands(
    soakwatch: Command, here: Here, write: Write, ledger_of: Entries, tmp_path: Path
) -> None:
    """Each run has its folder, its plan, its labels and the output of its commands; status says the rest."""
    write(
        TWO.replace("exclude: [", "exclude: [{every: 250ms, side: right}, ")
        + "before_all: [touch, all-begun]\nafter_all: [touch, all-over]\n"
        "before: [sh, -c, 'echo before {side} $SOAKWATCH_CELL']\nafter: [sh, -c, 'echo $SOAKWATCH_VERDICT; exit 3']\n"
    )
    order = [
        (run["cell"], run["repetition"])
        for run in json.loads(here("campaign", "plan", "campaign.yaml", "--json").stdout)["runs"]
    ]
    done = soakwatch("campaign", "run", "campaign.yaml", "--junit", "out/", "--json", "out/c.json")
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    suites = ET.parse(tmp_path / "out/junit.xml").getroot()
    assert [suite.get("name") for suite in suites] == ["every=250ms,side=left", "every=300ms,side=right"]
    assert (suites.get("failures"), suites.get("tests")) == ("0", "2")
    assert (suites.get("errors") == "0") == (done.returncode == 0)
    assert (json.loads((tmp_path / "out/c.json").read_text())["verdict"] == "pass") == (done.returncode == 0)
    folder = tmp_path / "campaigns" / "two"
    entries = ledger_of(folder)
    assert begun(entries) == order
    assert Counter(entry["kind"] for entry in entries) == {"campaign": 1, "begin": 2, "end": 2, "complete": 1}
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["250ms-left-r1", "300ms-right-r1"]
    left = folder / "runs" / "250ms-left-r1"
    with RecordView.open(left) as view:
        labels = json.loads(view.meta("labels") or "{}")
        verdict = view.meta("verdict")
    assert labels == {
        "build": "17",
        "every": "250ms",
        "side": "left",
        "campaign": "two",
        "cell": "every=250ms,side=left",
        "repetition": "1",
    }
    assert "interval: 250ms" in (left / "plan.yaml").read_text(encoding="utf-8")
    assert (left / "before.log").read_text(encoding="utf-8") == "before left every=250ms,side=left\n"
    assert (left / "after.log").read_text(encoding="utf-8") == f"{verdict}\n"
    assert "warning: the command after it (sh): exit code 3" in done.stdout
    assert (tmp_path / "all-begun").exists()
    assert (tmp_path / "all-over").exists()
    said = json.loads(here("campaign", "status", folder, "--json").stdout)
    assert (said["runs"], said["done"], said["complete"], said["running"]) == (2, 2, True, [])
    assert said["exit_code"] == done.returncode
    listed = here("runs", folder / "runs")
    assert "250ms-left-r1" in listed.stdout

    again = here("campaign", "run", "campaign.yaml")
    assert again.returncode == 2
    assert "already holds this campaign: continue it with soakwatch campaign resume" in again.stderr
    write(TWO.replace("800ms", "900ms"))
    other = here("campaign", "run", "campaign.yaml")
    assert other.returncode == 2
    assert "is the folder of another version of two" in other.stderr
    assert here("campaign", "status", tmp_path).stderr.strip().endswith("it has no ledger.jsonl; name campaigns/NAME")


@pytest.mark.slow
def test_ctrl_c_judges_what_runs_and_resume_makes_it_again(
    here: Here, started: Started, write: Write, ledger_of: Entries, tmp_path: Path, until: Until
) -> None:
    """The run that was stopped has a verdict on what it had, and another attempt; nothing else is run twice."""
    write(TWO, PLAN.replace("500ms", "200s"))
    folder = tmp_path / "campaigns" / "two"
    process = started("campaign", "run", "campaign.yaml")

    def polling() -> bool:
        said = here("campaign", "status", folder, "--json")
        running = json.loads(said.stdout)["running"] if said.returncode == 0 else []
        return any(one["stage"] == "baseline" for one in running)

    until(polling, "the first run polls")
    process.send_signal(signal.SIGINT)
    assert process.wait(240) == 3
    lost = [entry for entry in ledger_of(folder) if entry["kind"] == "lost"]
    assert len(lost) == 1
    assert lost[0]["verdict"] == "inconclusive"
    assert "ended early" in str(lost[0]["reason"])
    assert ledger_of(folder)[-1]["kind"] == "stopped"
    write(TWO)  # the folder has its own copy
    other = started("campaign", "resume", folder)
    until(lambda: len(begun(ledger_of(folder))) == 2, "the run begins again")
    second = here("campaign", "resume", folder)
    assert second.returncode == 2
    assert "is being run by another process" in second.stderr
    assert begun(ledger_of(folder))[0] == begun(ledger_of(folder))[1]
    other.send_signal(signal.SIGINT)
    other.send_signal(signal.SIGINT)
    printed, _ = other.communicate(timeout=240)
    assert other.returncode == 3, printed
    assert ledger_of(folder)[-1]["kind"] == "stopped"


@pytest.mark.slow
def test_a_command_before_that_fails_keeps_the_run_from_beginning(
    soakwatch: Command, write: Write, ledger_of: Entries, tmp_path: Path
) -> None:
    """It is without a verdict, with the reason; the other goes on; resume tries it again."""
    write(
        TWO.replace("every: 300ms, side", "side")
        + "before: [sh, -c, 'test {every} != 300ms || test -e {campaign}.ready']\n"
    )
    done = soakwatch("campaign", "run", "campaign.yaml")
    assert done.returncode == 3, done.stdout
    folder = tmp_path / "campaigns" / "two"
    (lost,) = [entry for entry in ledger_of(folder) if entry["kind"] == "lost"]
    assert (lost["cell"], lost["reason"]) == (
        "every=300ms,side=right",
        "the command before it (sh): exit code 1",
    )
    assert "1 of 2 runs done" in done.stdout
    (tmp_path / "two.ready").touch()
    again = soakwatch("campaign", "resume", folder)
    assert again.returncode in {0, 3}
    assert "2 of 2 runs done" in again.stdout
    assert len(begun(ledger_of(folder))) == 3


@pytest.mark.slow
def test_two_campaigns_never_hold_a_testbed_at_once(
    started: Started, write: Write, ledger_of: Entries, tmp_path: Path
) -> None:
    """Runs of two campaigns on one testbed follow each other; a pinned cell runs on its own testbed only."""
    text = (
        "plan: plan.yaml\nmatrix:\n  every: {set: targets.dut.sources.local.interval, values: [250ms]}\n"
        "  testbed: [rack-1, rack-2]\ntestbeds: {rack-1: , rack-2: }\n"
    )
    write("name: one\n" + text, name="one.yaml")
    write("name: other\n" + text, name="other.yaml")
    both = [started("campaign", "run", f"{name}.yaml") for name in ("one", "other")]
    for process in both:
        printed, _ = process.communicate(timeout=240)
        assert process.returncode in {0, 3}, printed
    spans: dict[object, list[tuple[int, int]]] = {}
    for name in ("one", "other"):
        for entry in ledger_of(tmp_path / "campaigns" / name):
            if entry["kind"] == "end":
                assert entry["cell"] == f"every=250ms,testbed={entry['testbed']}"
                spans.setdefault(entry["testbed"], []).append((int(str(entry["begin_ns"])), int(str(entry["end_ns"]))))
    assert sorted(map(str, spans)) == ["rack-1", "rack-2"]
    for times in spans.values():
        (_, first_end), (second_begin, _) = sorted(times)
        assert first_end <= second_begin
