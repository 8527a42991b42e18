"""``soakwatch judge`` with many records: which verdicts change and why, on this machine and on a cluster."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from tests.collector.cluster.conftest import GROWTH, ROOT
from tests.commands import Command, Started, wait_until

from soakwatch.record import Record
from soakwatch_testing.dask_servers import DaskServers


def lines_of(text: str) -> dict[str, Mapping[str, object]]:
    """The JSON lines by record; none comes twice."""
    lines = [json.loads(line) for line in text.splitlines()]
    found = {line["record"]: line for line in lines}
    assert len(found) == len(lines)
    return found


def digests(folder: Path) -> dict[str, str]:
    """The record files as they are."""
    files = folder.rglob("record.sqlite")
    return {str(file): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


@pytest.mark.slow
def test_what_changes_is_said_with_its_finding(soakwatch: Command, runs: Path) -> None:
    """A folder stands for its runs; verdicts that stay are counted only, and no record is changed."""
    before = digests(runs)
    done = soakwatch("judge", "runs", "--plan", "tolerant.yaml")
    assert done.returncode == 1, done.stdout + done.stderr
    head, row, _, counts = done.stdout.splitlines()
    assert head.split() == ["run", "before", "now", "because", "of"]
    assert row.split()[:5] == ["runs/much", "✗", "fail", "✓", "pass"]
    assert "memory_growth on dut process=nginx,instance=0: fail, now pass: memory of nginx grew from" in row
    assert counts == "4 records: 1 verdict changed; now 3 pass, 1 fail"
    done = soakwatch("judge", "runs/well", "runs/little", "runs/well/record.sqlite", "--plan=strict.yaml", "--jobs=2")
    assert done.returncode == 1
    assert "runs/little  ✓ pass  ✗ fail  memory_growth on dut" in done.stdout
    assert done.stdout.splitlines()[-1] == "2 records: 1 verdict changed; now 1 pass, 1 fail"
    assert soakwatch("judge", "runs", "--rule", "drops", "--jobs", 1).returncode == 3
    assert digests(runs) == before


@pytest.mark.slow
def test_json_lines_come_as_records_do(soakwatch: Command, runs: Path) -> None:
    """To a file beside the table, or on standard output alone; every key is there."""
    done = soakwatch("judge", "runs", "--plan", "tolerant.yaml", "--json", "-")
    found = lines_of(done.stdout)
    assert set(found) == {f"runs/{name}" for name in GROWTH}
    much = found["runs/much"]
    assert (much["before"], much["now"], much["changed"], much["trouble"]) == ("fail", "pass", True, None)
    because = much["because"]
    assert isinstance(because, dict)
    assert (because["rule"], because["before"], because["now"]) == ("memory_growth", "fail", "pass")
    assert found["runs/well"]["because"] is None
    done = soakwatch("judge", "runs", "--plan", "tolerant.yaml", "--json", "all.jsonl")
    assert lines_of((runs.parent / "all.jsonl").read_text()) == found
    assert "1 verdict changed" in done.stdout


def test_what_cannot_be_judged_is_named(soakwatch: Command, runs: Path) -> None:
    """A damaged record, a folder without one, and one that a run is writing cost the others nothing."""
    file = runs / "most" / "record.sqlite"
    file.write_bytes(file.read_bytes()[:5000])
    (runs / "empty").mkdir()
    (runs / "notes.txt").write_text("no record")
    done = soakwatch("judge", *sorted(runs.iterdir()), "--plan", "tolerant.yaml", "--jobs", 1)
    assert done.returncode == 2
    assert f"{runs}/most could not be judged: record.sqlite is damaged" in done.stdout
    assert f"{runs}/empty could not be judged: it holds no record" in done.stdout
    assert f"{runs}/notes.txt could not be judged: " in done.stdout
    assert done.stdout.splitlines()[-1] == "6 records: 1 verdict changed; now 3 pass, 3 could not be judged"


@pytest.mark.slow
def test_a_run_without_a_verdict_has_none_before(soakwatch: Command, runs: Path) -> None:
    """It is no change, and is shown."""
    with Record.open(runs / "well") as record:
        record.set_meta("verdict", "")
    done = soakwatch("judge", "runs", "--jobs", 1)
    assert "runs/well  not judged  ✓ pass" in done.stdout
    assert done.stdout.splitlines()[-1] == "4 records: 0 verdicts changed, 1 had none; now 2 pass, 2 fail"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("runs", "--against", "last"), "--against: only valid for one RUN"),
        (("runs", "--unit", "a=%"), "--unit: only valid for one RUN"),
        (("runs/well", "none"), "none is not a run"),
        (("runs", "-"), "- is no run: tables and databases are judged one at a time"),
        (("runs", "--rule", "run_difference"), "judge one RUN, with --against"),
        (("runs", "--jobs", "2", "--on", "dask://a"), "--jobs is for processes of this machine"),
        (("runs", "--on", "lab7"), "'lab7' is no address of a scheduler: write dask://HOST:8786"),
        (
            ("runs", "--on", "tls://127.0.0.1:9"),
            "needs certificates: name them in DASK_DISTRIBUTED__COMM__TLS__CA_",
        ),
        (("runs", "--plan", "none.yaml"), "none.yaml"),
    ],
)
def test_bad_input_is_one_sentence(soakwatch: Command, runs: Path, words: tuple[str, ...], sentence: str) -> None:
    """With the remedy."""
    done = soakwatch("judge", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_on_a_cluster_all_are_judged_once_though_a_worker_dies(
    runs: Path, tmp_path: Path, started: Started, soakwatch: Command
) -> None:
    """By two workers, of which one stops in the middle of a record and is killed then: each record has one line, that
    of this machine."""
    for copy in range(5):
        for name in GROWTH:
            shutil.copytree(runs / name, tmp_path / "many" / f"{name}-{copy}")
    out = tmp_path / "all.jsonl"
    with DaskServers(tmp_path / "lab", environment={"PYTHONPATH": str(ROOT)}) as servers:
        servers.add_worker("one")
        two = servers.add_worker("two")
        command = started("judge", "many", "--plan", "tolerant.yaml", "--on", servers.address, "--json", out)
        wait_until(lambda: out.exists() and len(out.read_text().splitlines()) >= 2, "two records")
        two.send_signal(signal.SIGSTOP)
        wait_until(lambda: len(out.read_text().splitlines()) >= 14 or command.poll() is not None, "most of them")
        servers.kill_worker("two")
        assert command.wait(240) == 1
        assert command.stdout is not None
        assert "20 records: 5 verdicts changed; now 15 pass, 5 fail" in command.stdout.read()
    here = soakwatch("judge", "many", "--plan", "tolerant.yaml", "--json", "-")
    assert lines_of(out.read_text()) == lines_of(here.stdout)


@pytest.mark.slow
def test_ctrl_c_ends_it(lab: DaskServers, runs: Path, tmp_path: Path, started: Started) -> None:
    """With the code of shells, no traceback, and the lines that were there."""
    for copy in range(15):
        shutil.copytree(runs / "well", tmp_path / "many" / f"well-{copy}")
    for words in (("--jobs", "1"), ("--on", lab.address)):
        out = tmp_path / f"{words[0]}.jsonl"
        command = started("judge", "many", *words, "--json", out)
        wait_until(partial(_holds_text, out), "a record")
        command.send_signal(signal.SIGINT)
        assert command.wait(240) == 130
        assert command.stdout is not None
        assert command.stdout.read() == ""
        lines_of(out.read_text())


def _holds_text(file: Path) -> bool:
    return file.exists() and bool(file.read_text())
