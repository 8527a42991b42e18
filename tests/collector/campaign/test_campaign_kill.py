"""A driver that is killed at any moment: nothing is run twice, nothing is lost; and which runs are made again."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.collector.campaign.conftest import PLAN, Entries, Write
from tests.collector.conftest import Until
from tests.commands import Command, Started

from soakwatch.record import RecordView

SIX = """\
name: six
plan: plan.yaml
matrix:
  every: {set: targets.dut.sources.local.interval, values: [200ms, 250ms, 300ms]}
testbeds: {left: , right: }
repeat: 2
seed: 3
"""


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_killed_three_times_nothing_is_run_twice_and_nothing_is_lost(
    seed: int, started: Started, write: Write, ledger_of: Entries, tmp_path: Path, until: Until
) -> None:
    """The driver is killed three times at random moments; then ledger and folders say the same, each run has one end,
    and a second attempt is there only where the first was broken off."""
    rng = random.Random(seed)
    write(SIX)
    folder = tmp_path / "campaigns" / "six"
    words: tuple[object, ...] = ("campaign", "run", "campaign.yaml")
    lines = 0
    for _ in range(3):
        process = started(*words)
        words = ("campaign", "resume", folder)
        wanted = lines + rng.randint(2, 4)

        def grown(wanted: int = wanted, process: subprocess.Popen[str] = process) -> bool:
            there = (folder / "ledger.jsonl").is_file() and len(ledger_of(folder)) >= wanted
            return there or process.poll() is not None

        until(grown, "the ledger grows")
        time.sleep(rng.uniform(0, 1.5))  # the moment that is tried
        process.send_signal(signal.SIGKILL)
        process.wait()
        lines = len(ledger_of(folder))
    last = started(*words)
    printed, _ = last.communicate(timeout=280)
    assert last.returncode in {0, 3}, printed
    check_all_done(folder, ledger_of(folder), 6)


def check_all_done(folder: Path, entries: list[dict[str, object]], wanted: int) -> None:
    """Ledger and folders agree, and every run was made once."""
    ends = [entry for entry in entries if entry["kind"] == "end"]
    assert len(ends) == len({(entry["cell"], entry["repetition"]) for entry in ends}) == wanted
    folders = {str(entry["folder"]): entry for entry in entries if entry["kind"] == "begin"}
    begins = [entry for entry in entries if entry["kind"] == "begin"]
    assert len(folders) == len(begins), "no folder is used twice"
    assert {f"runs/{path.name}" for path in (folder / "runs").iterdir()} <= set(folders)
    lost = {(entry["cell"], entry["repetition"], entry["attempt"]) for entry in entries if entry["kind"] == "lost"}
    spans: dict[object, list[tuple[int, int]]] = {}
    for begin in begins:
        name = (begin["cell"], begin["repetition"], begin["attempt"])
        if name in lost:
            continue
        place = folder / str(begin["folder"])
        with RecordView.open(place) as view:
            metas = view.metas()
        (end,) = [entry for entry in ends if (entry["cell"], entry["repetition"]) == name[:2]]
        assert end["attempt"] == begin["attempt"]
        assert end["verdict"] == metas["verdict"]
        labels = json.loads(metas["labels"])
        assert (labels["cell"], labels["repetition"]) == (begin["cell"], str(begin["repetition"]))
        spans.setdefault(begin["testbed"], []).append((int(str(end["begin_ns"])), int(str(end["end_ns"]))))
    for begin in begins:
        attempt = int(str(begin["attempt"]))
        earlier = {(begin["cell"], begin["repetition"], number) for number in range(1, attempt)}
        assert earlier <= lost, "a run is made again only after it was broken off"
    for times in spans.values():
        ordered = sorted(times)
        assert all(before[1] <= after[0] for before, after in pairwise(ordered))
    assert entries[-1]["kind"] == "complete"


def test_a_run_outlives_its_driver_and_its_verdict_is_taken(
    soakwatch: Command, started: Started, write: Write, ledger_of: Entries, tmp_path: Path, until: Until
) -> None:
    """Killed while a run polls: the run goes on, status says so, and resume waits for it instead of another."""
    write(
        "name: one\nplan: plan.yaml\nmatrix: {n: {set: phases.soak, values: [2s]}}\nafter: [touch, '{folder}/after']\n"
    )
    folder = tmp_path / "campaigns" / "one"
    process = started("campaign", "run", "campaign.yaml")
    until((folder / "runs" / "2s-r1" / "record.sqlite").exists, "the run records")
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = soakwatch("campaign", "resume", folder)
    assert done.returncode in {0, 3}, done.stdout + done.stderr
    assert "1 of 1 runs done" in done.stdout
    kinds = [entry["kind"] for entry in ledger_of(folder)]
    assert kinds == ["campaign", "begin", "end", "complete"]
    assert (folder / "runs" / "2s-r1" / "after").exists()


@pytest.mark.slow
def test_a_generator_at_fault_is_tried_again_as_often_as_retry_says(
    soakwatch: Command, write: Write, ledger_of: Entries, tmp_path: Path
) -> None:
    """The reason is in the ledger; without retry, or for the device's own doubt, nothing is made again."""
    gone = "  gen: {role: generator, sources: [{command: {interval: 300ms, run: [sh, -c, test ! -e gone]}}]}\n"
    write(
        "name: one\nplan: plan.yaml\nmatrix: {n: {set: phases.soak, values: [1s]}}\nretry: {inconclusive: 1}\n"
        "before: [rm, -f, gone]\n",
        PLAN.replace("rules:", gone + "events: [{kind: failover, at: 600ms, run: [touch, gone]}]\nrules:"),
    )
    done = soakwatch("campaign", "run", "campaign.yaml")
    folder = tmp_path / "campaigns" / "one"
    ends = [entry for entry in ledger_of(folder) if entry["kind"] in {"end", "lost"}]
    assert done.returncode == 3, done.stdout + done.stderr
    assert [entry["attempt"] for entry in ends] == [1, 2], done.stdout
    assert all(entry["verdict"] == "inconclusive" and "gen" in str(entry["fault"]) for entry in ends)
    assert "not the device's fault, it will be run again: " in done.stdout
    said = json.loads(soakwatch("campaign", "status", folder, "--json").stdout)
    assert (said["runs"], said["done"], len(said["attempts"])) == (1, 1, 2)
