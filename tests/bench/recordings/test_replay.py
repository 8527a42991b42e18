"""The replay of recorded devices, on devices that are made here."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPLAY = Path(__file__).parent / "replay.py"
HR = "1.3.6.1.2.1.25"
IF = "1.3.6.1.2.1.2.2.1"
IFX = "1.3.6.1.2.1.31.1.1.1"

MADE = {
    "1.3.6.1.2.1.1.1.0": "4|a made device",
    "1.3.6.1.2.1.1.2.0": "6|1.3.6.1.4.1.99999.1",
    "1.3.6.1.2.1.1.3.0": "67|123456",
    f"{HR}.3.2.1.2.7": f"6|{HR}.3.1.3",
    f"{HR}.3.2.1.3.7": "4|a processor",
    f"{HR}.3.3.1.1.7": "6|0.0",
    f"{HR}.3.3.1.2.7": "2|42",
    f"{HR}.2.3.1.1.1": "2|1",
    f"{HR}.2.3.1.2.1": f"6|{HR}.2.1.2",
    f"{HR}.2.3.1.3.1": "4|Physical memory",
    f"{HR}.2.3.1.4.1": "2|1024",
    f"{HR}.2.3.1.5.1": "2|1000000",
    f"{HR}.2.3.1.6.1": "2|250000",
    f"{IF}.1.3": "2|3",
    f"{IF}.2.3": "4|Ethernet 3",
    f"{IF}.3.3": "2|6",
    f"{IF}.5.3": "66|1000000000",
    f"{IF}.7.3": "2|1",
    f"{IF}.8.3": "2|2",
    f"{IF}.10.3": "65|1705032704",
    f"{IF}.13.3": "65|17",
    f"{IF}.14.3": "65|0",
    f"{IF}.16.3": "65|5",
    f"{IF}.19.3": "65|0",
    f"{IF}.20.3": "65|0",
    f"{IFX}.1.3": "4|eth3",
    f"{IFX}.6.3": "70|6000000000",
    f"{IFX}.10.3": "70|5",
    f"{IFX}.15.3": "66|1000",
}


@dataclass
class Folder:
    """A folder of recordings that a test makes."""

    path: Path

    def add(self, name: str, **changes: object) -> None:
        """A made device; changes are of what is expected (``usage``, ``used``, ``discards``, ``oper``)."""
        expected = {
            "os": {"discovery": {"devices": [{"os": "made", "version": "1"}]}, "poller": "matches discovery"},
            "processors": {
                "discovery": {
                    "processors": [
                        {
                            "processor_oid": f".{HR}.3.3.1.2.7",
                            "processor_usage": changes.get("usage", 42),
                            "processor_precision": 1,
                        }
                    ]
                },
                "poller": "matches discovery",
            },
            "mempools": {
                "discovery": {
                    "mempools": [
                        {
                            "mempool_descr": "Physical memory",
                            "mempool_precision": 1024,
                            "mempool_perc": 25,
                            "mempool_used": changes.get("used", 256_000_000),
                            "mempool_used_oid": f".{HR}.2.3.1.6.1",
                            "mempool_free": 768_000_000,
                            "mempool_total": 1_024_000_000,
                        }
                    ]
                },
                "poller": "matches discovery",
            },
            "ports": {
                "poller": {
                    "ports": [
                        {
                            "ifIndex": 3,
                            "ifName": "eth3",
                            "ifDescr": "Ethernet 3",
                            "ifOperStatus": changes.get("oper", "down"),
                            "ifAdminStatus": "up",
                            "ifSpeed": 1_000_000_000,
                            "ifInOctets": 6_000_000_000,
                            "ifOutOctets": 5,
                            "ifInDiscards": changes.get("discards", 17),
                            "ifInMulticastPkts": 0,
                        }
                    ]
                }
            },
        }
        (self.path / "data" / f"{name}.json").write_text(json.dumps(expected))
        lines = "".join(f"{oid}|{value}\n" for oid, value in reversed(MADE.items()))
        (self.path / "snmpsim" / f"{name}.snmprec.gz").write_bytes(gzip.compress(lines.encode()))

    def replay(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the runner on it."""
        return replay(self.path, *options)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty folder of recordings."""
    for name in ("snmpsim", "data"):
        (tmp_path / name).mkdir()
    return Folder(tmp_path)


def replay(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the runner."""
    command = [sys.executable, str(REPLAY), str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.slow
def test_a_device_that_is_read_as_expected_passes(folder: Folder) -> None:
    folder.add("good")
    done = folder.replay()
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1/1 match, 0 explained, 0 not (100.00%") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"usage": 44}, "- bad processors processor"),
        ({"used": 300_000_000}, "used 300000000 expected, 256000000 seen"),
        ({"discards": 18}, "ifInDiscards 18 expected, 17 seen"),
        ({"oper": "up"}, "ifOperStatus up expected, system.network.up 0 seen"),
    ],
    ids=["processor", "memory", "discards", "state"],
)
def test_a_difference_is_found_named_and_fails(folder: Folder, changes: dict[str, object], message: str) -> None:
    folder.add("bad", **changes)
    folder.add("good")
    done = folder.replay()
    assert done.returncode == 1
    assert message in done.stdout
    assert "- good" not in done.stdout
    assert "BELOW THE FLOOR" in done.stdout


@pytest.mark.slow
def test_an_explanation_excuses_one_difference_and_is_reported_when_it_is_stale(folder: Folder, tmp_path: Path) -> None:
    folder.add("bad", discards=18)
    folder.add("good")
    words = tmp_path / "explained.yaml"
    entry = {"part": "ports", "what": "port eth3", "contains": "ifInDiscards 18", "why": "it was counted later"}
    words.write_text(json.dumps([{"recording": name, **entry} for name in ("bad", "good")]))
    done = folder.replay("--explained", str(words))
    assert done.returncode == 0, done.stdout
    assert "= it was counted later" in done.stdout
    assert "good ports port eth3: no such difference any more" in done.stdout
    words.write_text("[{recording: bad}]")
    refused = folder.replay("--explained", str(words))
    assert refused.returncode == 2
    assert "entry 1 needs the keys" in refused.stderr


@pytest.mark.slow
def test_broken_files_are_reported_and_end_nothing(folder: Folder) -> None:
    folder.add("good")
    for name in ("cut", "empty", "json", "lines"):
        folder.add(name)
    cut = folder.path / "snmpsim" / "cut.snmprec.gz"
    cut.write_bytes(cut.read_bytes()[:100])
    (folder.path / "snmpsim" / "empty.snmprec.gz").write_bytes(b"")
    (folder.path / "data" / "json.json").write_text("[" * 100_000)
    (folder.path / "snmpsim" / "lines.snmprec.gz").unlink()
    (folder.path / "snmpsim" / "lines.snmprec").write_bytes(b"\xff\x00|\n1.3.6|4\n1.3.6.1.2.1.1.3.0|67|soon\n" * 50)
    (folder.path / "snmpsim" / "lonely.snmprec").write_text("1.3.6.1.2.1.1.3.0|67|1\n")
    done = folder.replay("--json", str(folder.path / "out.json"))
    assert done.returncode == 1
    assert not done.stderr
    for name, why in (("cut", "cut off"), ("empty", "cut off"), ("json", "cannot be read")):
        assert any(line.startswith(f"! {name}: ") and why in line for line in done.stdout.splitlines()), done.stdout
    assert "1 recordings have no expectation" in done.stdout
    devices = {device["name"]: device for device in json.loads((folder.path / "out.json").read_text())["devices"]}
    assert devices["good"]["trouble"] == ""
    assert devices["good"]["tallies"]["ports"]["matched"] == 1
    assert devices["lines"]["tallies"]["ports"]["matched"] == 0


@pytest.mark.slow
def test_a_device_gets_its_time_and_not_more(folder: Folder) -> None:
    folder.add("good")
    done = folder.replay("--limit", "0.001")
    assert done.returncode == 1
    assert "! good: " in done.stdout
    assert "processors 0/1 match" in done.stdout.replace(" " * 2, " "), done.stdout


@pytest.mark.slow
def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    done = replay(tmp_path)
    assert done.returncode == 2
    assert "no snmpsim/NAME.snmprec[.gz] with a data/NAME.json[.gz] beside it" in done.stderr
