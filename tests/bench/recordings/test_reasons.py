"""What the replay says of an object that made no sample is true: never asked, filtered, refused, or made of another."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bench.recordings.compare import ELSEWHERE, MISSING, WRONG
from tests.bench.recordings.device import Pair, run_device

HR = "1.3.6.1.2.1.25"
STORAGE = f"{HR}.2.3.1"
ROWS = {
    "1.3.6.1.2.1.1.1.0": "4|a made device",
    "1.3.6.1.2.1.1.2.0": "6|1.3.6.1.4.1.9.6.1.99",
    "1.3.6.1.2.1.1.3.0": "67|123456",
    f"{STORAGE}.2.4": f"6|{HR}.2.1.4",  # a disk
    f"{STORAGE}.3.4": "4|flash",
    f"{STORAGE}.4.4": "2|1024",
    f"{STORAGE}.5.4": "2|1000",
    f"{STORAGE}.6.4": "2|500",
    f"{HR}.3.3.1.2.7": "2|250",
    "1.3.6.1.4.1.9.6.1.101.1.7.0": "66|12",
    "1.3.6.1.4.1.89.1.7.0": "66|13",
    "1.3.6.1.4.1.99999.1.0": "66|15",
}


def told(tmp_path: Path, rows: dict[str, str], oids: list[str], part: str = "processors") -> list[tuple[str, str]]:
    """Kind and sentence of what is expected of each of the OIDs."""
    key = "processor" if part == "processors" else "mempool"
    each = [
        {f"{key}_oid": f".{oid}", f"{key}_used_oid": f".{oid}", f"{key}_usage": 99, f"{key}_used": 1e9}
        | {f"{key}_precision": 1, f"{key}_descr": oid, f"{key}_perc": 99, f"{key}_total": 2e9, f"{key}_free": 1e9}
        for oid in oids
    ]
    expected = {
        "os": {"discovery": {"devices": [{"os": "made"}]}},
        part: {"discovery": {part: each}, "poller": "matches discovery"},
    }
    (tmp_path / "a.json").write_text(json.dumps(expected))
    (tmp_path / "a.snmprec").write_text("".join(f"{oid}|{value}\n" for oid, value in rows.items()))
    result = run_device(Pair("a", tmp_path / "a.snmprec", tmp_path / "a.json"), 30.0)
    assert not result.trouble
    assert result.profile == "cisco-sb"
    return [(difference.kind, difference.why) for difference in result.differences]


def test_each_object_has_the_reason_that_holds_for_it(tmp_path: Path) -> None:
    oids = ["1.3.6.1.4.1.99999.1.0", f"{HR}.3.3.1.2.7", "1.3.6.1.4.1.89.1.7.0", "1.3.6.1.4.1.9.6.1.101.1.7.0"]
    never, refused, replaced, wrong = told(tmp_path, ROWS, oids)
    assert never == (MISSING, "1.3.6.1.4.1.99999.1.0 was never asked: no group of profile cisco-sb names it")
    assert refused[1].startswith(f"{HR}.3.3.1.2.7 was asked and refused: system.cpu.core.utilization core=7: ")
    assert replaced[1] == (
        "1.3.6.1.4.1.89.1.7.0 was asked and filtered: group cpu reads 1.3.6.1.4.1.9.6.1.101.1.7.0 in its place"
    )
    assert wrong[0] == WRONG


def test_a_sample_of_another_object_is_told_apart_from_none(tmp_path: Path) -> None:
    [(kind, words)] = told(tmp_path, ROWS, ["1.3.6.1.4.1.99999.1.0"])
    assert kind == ELSEWHERE
    assert words.endswith("; system.cpu.utilization = 0.12 came from 1.3.6.1.4.1.9.6.1.101.1.7.0")


def test_a_row_that_a_group_does_not_keep_was_filtered(tmp_path: Path) -> None:
    [(kind, words)] = told(tmp_path, ROWS, [f"{STORAGE}.6.4"], "mempools")
    assert kind == MISSING
    assert "is part of system.filesystem.usage mountpoint=flash" in words
    rows = {**ROWS, f"{STORAGE}.2.4": f"6|{HR}.2.1.6"}  # a removable disk: no group keeps it
    [(kind, words)] = told(tmp_path, rows, [f"{STORAGE}.6.4"], "mempools")
    assert kind == MISSING
    assert "was asked and filtered: its row is not one that group host_memory keeps (by type, descr)" in words
