"""The drill on a finished record, through the command: which faults that very run would have seen."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.bench.accuracy.lives import healthy
from tests.bench.accuracy.night import write_run

from soakwatch.cli.main import soakwatch

PLACES = 3


def drill(*words: object) -> tuple[str, str]:
    """What the command printed on standard output, and on standard error."""
    done = CliRunner().invoke(
        soakwatch, ["drill", *map(str, words)], standalone_mode=False, env={"COLUMNS": "200"}, catch_exceptions=False
    )
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of eight healthy hours: processes, traffic with port counters, a reading a minute."""
    folder = tmp_path_factory.mktemp("drill") / "night"
    write_run(healthy(61, (28800.0, 60.0, 16)), folder)
    return folder


def by_kind(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {kind["kind"]: kind for kind in document["kinds"]}


@pytest.mark.slow
def test_a_big_fault_is_found_everywhere_and_a_tiny_one_nowhere(night: Path, tmp_path: Path) -> None:
    """Sizes go up, the limits follow from the counts, the same seed gives the same table, and the record stays."""
    record = night / "record.sqlite"
    before = hashlib.sha256(record.read_bytes()).hexdigest()
    seeded = (night, "--places", PLACES, "--seed", 4)
    files = ("--json", tmp_path / "drill.json", "--markdown", tmp_path / "drill.md")
    shown, said = drill(*seeded, "--kinds", "leak,loss,restart,silence", *files)
    kinds = by_kind(json.loads((tmp_path / "drill.json").read_text(encoding="utf-8")))
    again = by_kind(json.loads(drill(*seeded, "--kinds", "loss,restart", "--json", "-")[0]))
    assert again == {name: kinds[name] for name in again}
    assert set(again) == {"loss", "restart"}
    assert hashlib.sha256(record.read_bytes()).hexdigest() == before
    assert "copies are judged" in said
    for name, kind in kinds.items():
        sizes = [tried["size"] for tried in kind["sizes"]]
        assert sizes == sorted(sizes), name
        for tried in kind["sizes"]:
            assert 0 <= tried["failed"] <= tried["found"] <= tried["places"] == PLACES, (name, tried)
            known = kind["smallest_found"]
            assert known is None or tried["size"] < known or tried["found"] == PLACES
        last = kind["sizes"][-1]
        assert last["found"] == PLACES, (name, kind)
        if kind["smallest_failed"] is not None:
            assert kind["smallest_failed"] >= kind["smallest_found"]
    for name in ("leak", "loss", "silence"):
        assert kinds[name]["sizes"][0]["found"] == 0, name
    assert 0.5 <= kinds["leak"]["smallest_found"] / kinds["leak"]["stated"]["growth"] <= 4
    assert kinds["restart"]["sizes"][0]["rules"] == {"process_restart": PLACES}
    assert "coverage" in kinds["silence"]["sizes"][-1]["rules"]
    table = (tmp_path / "drill.md").read_text(encoding="utf-8")
    for name in kinds:
        assert f"\n{name} " in shown
        assert f"\n| {name} |" in table


@pytest.mark.slow
def test_more_places_keep_those_there_were(night: Path) -> None:
    """Place by place from the seed: with one more, no size is found in fewer, nor in more than one more."""
    counts = []
    for places in (2, 3):
        found = json.loads(drill(night, "--kinds", "latency", "--places", places, "--json", "-")[0])["kinds"][0]
        counts.append({tried["size"]: tried["found"] for tried in found["sizes"]})
    for size in counts[0].keys() & counts[1].keys():
        assert 0 <= counts[1][size] - counts[0][size] <= 1


def test_what_a_run_does_not_have_is_said_and_a_wrong_word_is_refused(tmp_path: Path) -> None:
    write_run(healthy(7, (7200.0, 60.0, 8)), tmp_path / "bare")
    shown, _ = drill(tmp_path / "bare", "--kinds", "stall,latency", "--places", 1)
    assert "not tried" in shown
    assert "note: stall: no traffic and no probed peer was recorded for the whole run" in shown
    refused = CliRunner().invoke(soakwatch, ["drill", str(tmp_path / "bare"), "--kinds", "leek"])
    assert refused.exit_code == 2
    assert "did you mean 'leak'?" in refused.stderr
