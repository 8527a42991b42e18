"""The ledger and the locks: what a crash can leave behind, and what a folder is refused for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.collector.campaign.conftest import Here, Write

from soakwatch.campaign import ledger as kinds
from soakwatch.campaign import locks
from soakwatch.campaign.attempt import ABORT, RunJob, carry_out, fence, read_result
from soakwatch.campaign.campaign_model import CampaignError
from soakwatch.campaign.ledger import open_ledger, read_ledger


def filled(folder: Path) -> None:
    """A ledger of three lines."""
    with open_ledger(folder) as ledger:
        ledger.add(1, kinds.CAMPAIGN, name="x")
        ledger.add(2, kinds.BEGIN, cell="a=b", repetition=1, attempt=1, folder="runs/b-r1")
        ledger.add(3, kinds.END, cell="a=b", repetition=1, attempt=1, verdict="pass")


def test_a_torn_last_line_is_as_if_it_was_never_written(tmp_path: Path) -> None:
    """Cut at every byte, the ledger is a beginning of itself, and what is appended then is read back."""
    filled(tmp_path)
    file = tmp_path / kinds.LEDGER
    whole = file.read_bytes()
    entries = read_ledger(tmp_path)
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    for length in range(len(whole) + 1):
        file.write_bytes(whole[:length])
        left = sum(end <= length for end in ends)
        assert read_ledger(tmp_path) == entries[:left]
        with open_ledger(tmp_path) as ledger:
            ledger.add(9, kinds.COMPLETE)
        assert [entry.number for entry in read_ledger(tmp_path)] == list(range(left + 1))


def test_a_missing_or_damaged_line_in_between_is_an_error_with_its_place(tmp_path: Path) -> None:
    """A ledger is never read over what is not there."""
    filled(tmp_path)
    file = tmp_path / kinds.LEDGER
    first, second, third = file.read_bytes().splitlines(keepends=True)
    for wrong, line in ((first + third, 2), (first + b"{]\n" + third, 2), (b"\0\0\n" + second + third, 1)):
        file.write_bytes(wrong)
        with pytest.raises(CampaignError, match=rf"ledger\.jsonl:{line}: this line is damaged, or one before it"):
            read_ledger(tmp_path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    """One driver at a time."""
    with open_ledger(tmp_path), pytest.raises(CampaignError, match="is being run by another process"):  # noqa: SIM117
        with open_ledger(tmp_path):
            pass


def test_a_testbed_is_held_until_the_last_process_that_has_it_is_gone() -> None:
    """Killed or not, no process keeps a testbed behind its end; another one waits, and may be told not to."""
    file = locks.testbed_file("rack 1")
    script = (
        "import time\nfrom soakwatch.campaign.locks import testbed_lock\n"
        "with testbed_lock('rack 1', 'campaign x', lambda: 0):\n    print('mine', flush=True)\n    time.sleep(600)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "mine\n"
        assert locks.held(file)
        assert file.read_text() == f"campaign x (pid {other.pid})\n"
        with locks.testbed_lock("rack 1", "me", lambda: True) as mine:
            assert mine is None
        other.kill()
        other.wait()
        with locks.testbed_lock("rack 1", "me", lambda: False) as mine:
            assert mine is not None
    finally:
        other.kill()
        other.wait()
        if other.stdout is not None:
            other.stdout.close()


def test_a_run_that_was_given_up_never_begins_late(tmp_path: Path) -> None:
    """A process that was only just starting when its run was found to be lost ends without running it."""
    place = tmp_path / "runs" / "a-r1"
    assert fence(place)
    job = RunJob("name: x\n", {}, "", 1.0, "campaign x")
    result = carry_out(job, place, lambda: True)
    assert (result.stopped, result.verdict, result.reason) == (True, None, "stopped before it began")
    assert (place / "stop").read_text(encoding="utf-8") == ABORT
    assert read_result(place) == result
    assert not (place / "run.log").exists()


def test_a_changed_copy_is_another_campaign(here: Here, write: Write, tmp_path: Path) -> None:
    """One sentence each for a folder that is none, one of another campaign, and one whose copy was changed."""
    text = "name: x\nplan: plan.yaml\nmatrix: {n: {set: phases.soak, values: [1s]}}\n"
    write(text)
    folder = tmp_path / "f"
    folder.mkdir()
    (folder / "notes.txt").touch()
    said = here("campaign", "run", "campaign.yaml", "--folder", folder)
    assert (said.returncode, "is not empty and is not a campaign folder" in said.stderr) == (2, True)
    (folder / "notes.txt").unlink()
    for name in ("campaign.yaml", "plan.yaml"):
        (folder / name).write_bytes((tmp_path / name).read_bytes())
    line = {"n": 0, "time_ns": 1, "kind": "campaign", "name": "x", "digest": "0"}
    (folder / "ledger.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    for words, sentence in (
        (("resume", folder), "campaign.yaml is another campaign than the one that was begun in"),
        (("run", "campaign.yaml", "--folder", folder), "is the folder of another version of x"),
        (("resume", tmp_path), "is not a campaign folder: it has no ledger.jsonl"),
        (("run", "campaign.yaml", "--on", "ftp://lab"), "'ftp://lab' is no address of a scheduler"),
    ):
        said = here("campaign", *words)
        assert said.returncode == 2, said.stderr
        assert sentence in said.stderr
        assert len(said.stderr.splitlines()) == 1
