"""What generators tell of themselves: version and configuration, at doubles on sockets and in files of real ones."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.collector.sources.loads.generator_kit import Load, acted

from soakwatch.sources.abc import Fingerprints
from soakwatch.sources.generator_tree import told_command
from soakwatch_model.tree import Tree
from soakwatch_testing.load_bench import LoadBench
from soakwatch_testing.otg_server import FakeFlow, OtgServer, otg_server
from soakwatch_testing.pktgen_server import FakePort, PktgenServer, pktgen_server
from soakwatch_testing.trex_model import TrexModel
from soakwatch_testing.trex_parts import Port
from soakwatch_testing.trex_server import TrexServer, trex_server

DATA = Path(__file__).parent / "data"


def told(name: str, keys: dict[str, object], level: float | None = None) -> Mapping[str, Tree]:
    """What a load tells after its first poll."""

    async def ask(load: Load) -> Mapping[str, Tree]:
        if level is not None:
            await load.drive(level)
        await load.poll()
        assert isinstance(load.poller, Fingerprints)
        return await load.poller.fingerprint()

    return acted(name, keys, ask)


def about(tree: Mapping[str, Tree]) -> tuple[str, str, dict[str, Tree]]:
    section = tree["generator"]
    assert isinstance(section, dict)
    config = section.get("config", {})
    assert isinstance(config, dict)
    return str(section["name"]), str(section.get("version", "")), config


@pytest.mark.parametrize("drive", [False, True])
def test_trex_tells_its_version_its_machine_and_its_ports(drive: bool) -> None:
    with trex_server(TrexServer(TrexModel(ports=[Port(), Port()]))) as server:
        keys = {"host": "127.0.0.1", "port": server.port, "publisher": server.publisher, "drive": drive}
        name, version, config = about(told("trex", keys))
    assert (name, version) == ("TRex", TrexModel().version)
    assert (config["mode"], config["hostname"], config["dp_core_count"]) == ("STL", "tg", 2)
    ports = config["ports"]
    assert isinstance(ports, list)
    assert ports[0] == {"name": "port 0", "driver": "net_ice", "supp_speeds": [100000]}


def test_pktgen_tells_versions_and_what_no_phase_changes() -> None:
    with pktgen_server(PktgenServer(ports={0: FakePort()})) as server:
        name, version, config = about(told("pktgen", {"host": "127.0.0.1", "port": server.port}))
    assert (name, version, config["DPDK"]) == ("Pktgen-DPDK", "22.07.1", "DPDK 22.07.0")
    ports = config["ports"]
    assert isinstance(ports, list)
    assert isinstance(ports[0], dict)
    assert {"name", "pkt_size", "tx_count"} <= set(ports[0])
    assert "tx_rate" not in ports[0]


def test_otg_tells_ports_and_flows_and_no_rate_that_the_run_drives() -> None:
    with otg_server(OtgServer([FakeFlow("f1")])) as server:
        name, version, config = about(told("otg", {"url": f"http://127.0.0.1:{server.port}"}))
        driven = about(told("otg", {"url": f"http://127.0.0.1:{server.port}", "drive": True}))[2]
    assert (name, version) == ("Open Traffic Generator", "0.1-test")
    for flows, has_rate in ((config["flows"], True), (driven["flows"], False)):
        assert isinstance(flows, list)
        assert isinstance(flows[0], dict)
        assert ("rate" in flows[0]) is has_rate


def test_a_command_is_told_without_its_secrets() -> None:
    words = [sys.executable, "-c", "import time; print('load.requests 1', flush=True); time.sleep(60)"]
    tree = told("command", {"run": [*words, "--token", "abc123", "--api-key=k9", "http://me:hush@dut/"]})
    name, version, config = about(tree)
    assert (name, version) == (sys.executable, "")
    assert str(config["command"]).endswith("--token *** --api-key=*** http://***@dut/")
    assert tree["notes"] == [f"generator: {sys.executable} does not tell its version here"]


def test_files_tell_what_stands_in_them(tmp_path: Path) -> None:
    file = tmp_path / "wrk.txt"
    for name, has_settings in (("wrk", True), ("locust", False)):
        with LoadBench(name, {"file": file}) as bench:
            bench.poll(0)
            file.write_bytes((DATA / "wrk-4.1.txt").read_bytes() if name == "wrk" else b"")
            bench.poll(3)
            tree = bench.fingerprint()
        config = about(tree)[2]
        assert (config.get("connections"), config.get("threads")) == ((5, 1) if has_settings else (None, None))
        notes = tree["notes"]
        assert isinstance(notes, list)
        assert ("generator: the file of locust does not tell how it was called" in notes) is not has_settings
        file.unlink()


def test_a_csv_of_an_unknown_generator_tells_nothing(tmp_path: Path) -> None:
    file = tmp_path / "figures.csv"
    file.write_text("time,rate\n")
    columns = {"rate": "load.tx.packet.rate"}
    with LoadBench("csv", {"file": file, "columns": columns, "time_column": "time"}) as bench:
        assert bench.fingerprint() == {}


def test_a_long_command_is_cut() -> None:
    assert told_command(["x"] * 70).endswith(" ... and 6 words more")
