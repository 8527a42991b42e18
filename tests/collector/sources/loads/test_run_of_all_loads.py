"""One run that reads and drives a generator of each kind: what each of them brought is in its record.

The engine runs in this process: commands, the live page, the judge and the reports have tests of their own.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collector.sources.loads.iperf3_kit import clients_of, command
from tests.commands import MAX_WAIT_S

from soakwatch.core.clock import SteadyClock
from soakwatch.engine.soak import Soak
from soakwatch.engine.start import begin
from soakwatch.judge.record_verdict import judge_record
from soakwatch.judge.verdict import Verdict
from soakwatch.plan import Plan, plan_from_text
from soakwatch.record import RecordView, SeriesKey
from soakwatch.testing.otg_server import FakeFlow, OtgServer, otg_server
from soakwatch.testing.pktgen_server import FakePort, PktgenServer, pktgen_server
from soakwatch.testing.ports import free_port
from soakwatch.testing.trex_model import TrexModel
from soakwatch.testing.trex_parts import Group, Port
from soakwatch.testing.trex_server import TrexServer, trex_server
from soakwatch_rules.rule import Event

PHASES = [
    {"baseline": {"for": "10s", "load": 0}},
    {"soak": {"for": "20s", "load": "50%"}},
    {"stress": {"for": "20s", "load": "100%"}},
    {"recovery": {"for": "1h", "load": 0}},
]
"""The last one is interrupted as soon as everything has been read in it, however long that takes."""
IPERF3_RATE = 500
"""Packets a second of 1,000 bytes at full load: 4 Mbit/s."""
TICKS = "i=0; echo oops; while :; do i=$((i+1)); echo load.requests $i, load.failures 0; sleep 0.5; done"
OFFERED = "while :; do echo load.offered.rate {rate}; sleep 0.5; done"
SENDER = """
import socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("127.0.0.1", 0))
while True:
    for _ in range(400):
        end.sendto(b"x" * 400, end.getsockname())
        end.recv(400)
    time.sleep(0.3)
"""
"""Sends to itself by way of the loopback."""


@dataclass(frozen=True)
class Servers:
    """The doubles: one of each kind that is driven, and one that only is read."""

    otg: OtgServer
    otg_driven: OtgServer
    pktgen: PktgenServer
    pktgen_driven: PktgenServer
    trex: TrexServer
    trex_driven: TrexServer
    iperf3_port: int


@dataclass(frozen=True)
class Ended:
    """The run at its end."""

    servers: Servers
    series: dict[tuple[str, str, str], list[float]]
    times_ns: dict[tuple[str, str, str], list[int]]
    events: list[Event]
    failed: dict[str, tuple[str, ...]]
    phases: dict[str, tuple[int, int]]
    verdict: Verdict

    def values(self, target: str, metric: str, name: str = "") -> list[float]:
        """The readings of one series; none if there is none."""
        return self.series.get((target, metric, name), [])

    def last_before(self, target: str, metric: str, end_ns: int) -> float:
        """The last reading before a time."""
        key = target, metric, ""
        return [value for at, value in zip(self.times_ns[key], self.series[key], strict=True) if at < end_ns][-1]

    def identity(self, target: str) -> dict[str, Any]:
        """What a generator said of itself at the begin."""
        return next(
            dict(event.detail) for event in self.events if event.kind == "device.identity" and event.target == target
        )


def _pktgen_ports() -> dict[int, FakePort]:
    """Port 0 sends 1000 packets a poll, two of which are lost; port 1 is down and rests."""
    sending = FakePort(1000, 2**40, 2**40 - 7, lost=2, sending=True, latency_us=(10.0, 25.0, 80.0))
    return {0: sending, 1: FakePort(link="<--Down-->")}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """All the doubles, listening."""
    flow = FakeFlow("up", step=1000, lost=10, tx=2**50, rx=2**50, sending=True)
    model = TrexModel(ports=[Port(state="TX"), Port(state="TX")], groups={7: Group(latency=14.0)})
    with ExitStack() as stack:
        yield Servers(
            stack.enter_context(otg_server(OtgServer([flow], quoted=True))),
            stack.enter_context(otg_server(OtgServer([FakeFlow("up", rate={"choice": "pps", "pps": "400"})]))),
            stack.enter_context(pktgen_server(PktgenServer(ports=_pktgen_ports()))),
            stack.enter_context(pktgen_server(PktgenServer(ports=_pktgen_ports()))),
            stack.enter_context(trex_server(TrexServer(model, speed=0.5))),
            stack.enter_context(trex_server(TrexServer(TrexModel(), speed=0.5))),
            free_port(),
        )


def _sources(servers: Servers) -> dict[str, dict[str, dict[str, object]]]:
    """The sources of the generators, by target."""
    each: dict[str, object] = {"interval": "1s", "timeout": "60s"}  # a busy machine answers late, not never
    driven = {**each, "drive": True}
    late = ["sh", "-c", f"sleep 1; exec iperf3 -c 127.0.0.1 -p {free_port()} -u -b 4M -l 1000 -t 2 -J"]
    sources: dict[str, dict[str, dict[str, object]]] = {
        "otg": {"otg": {**each, "url": f"http://127.0.0.1:{servers.otg.port}"}},
        "otg-driven": {"otg": {**driven, "url": f"http://127.0.0.1:{servers.otg_driven.port}"}},
        "pktgen": {"pktgen": {**each, "port": servers.pktgen.port}},
        "pktgen-driven": {"pktgen": {**driven, "port": servers.pktgen_driven.port, "send": "0", "rate": 40}},
        "trex": {"trex": {**each, "host": "127.0.0.1", "port": servers.trex.port}},
        "trex-driven": {"trex": {**driven, "host": "127.0.0.1", "port": servers.trex_driven.port, "rate": 2}},
        "command": {"command": {**each, "run": ["sh", "-c", TICKS]}},
        "command-driven": {"command": {**driven, "full": 200, "run": ["sh", "-c", OFFERED]}},
        "interface": {"interface": {"ports": ["lo"], "sends_above": 500}},
    }
    if shutil.which("iperf3") is not None:
        port = servers.iperf3_port
        client = {"server": "127.0.0.1", "port": port, "rate": "4M", "udp": True, "length": 1000}
        sources["iperf3-sink"] = {"iperf3": {**each, "serve": True, "port": port}}
        sources["iperf3-driven"] = {"iperf3": {**driven, **client, "required": False}}  # its server is another source
        sources["late-sink"] = {"iperf3": {"serve": True, "port": int(late[2].split(" -p ")[1].split()[0])}}
        sources["late"] = {"iperf3": {"run": late}}
    return sources


def _all_read(record: Path, targets: set[str]) -> bool:
    """Whether every generator has been read in the last phase."""
    with RecordView.open(record) as view:
        begins = [phase.window.begin_ns for phase in view.phases() if phase.name == "recovery"]
        if not begins:
            return False
        read = {key.target for key in view.keys(None) if int(view.series(key).time_ns[-1]) > begins[0] + 10**9}
    return targets <= read


async def _run(plan: Plan, folder: Path) -> None:
    """The run, until all generators have been read in its last phase."""
    clock = SteadyClock()
    course, record = begin(plan, folder, clock, ["test"], stop_on_fail=False)
    with record:
        soak = Soak(course, record, clock)
        watching = asyncio.create_task(soak.watch())
        targets = {target.name for target in plan.targets}
        until = time.monotonic() + MAX_WAIT_S
        while not watching.done() and not _all_read(folder, targets):
            assert time.monotonic() < until, f"not all generators were read within {MAX_WAIT_S:g} s"
            await asyncio.sleep(1)
        soak.stop()
        await watching
        record.finish()


@pytest.fixture(scope="module")
def ended(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The run: rest, half and full load for some seconds each, and rest again."""
    folder = tmp_path_factory.mktemp("loads")
    targets: dict[str, object] = {
        name: {"role": "generator", "sources": [source]} for name, source in _sources(servers).items()
    }
    targets["dut"] = {"sources": [{"local": {"interval": "1s", "timeout": "60s", "probes": ["load"]}}]}
    plan = plan_from_text(json.dumps({"name": "loads", "phases": PHASES, "targets": targets}), "plan.yaml")
    sender = subprocess.Popen([sys.executable, "-c", SENDER])
    try:
        asyncio.run(_run(plan, folder / "run"))
    finally:
        sender.kill()
        sender.wait()
    with RecordView.open(folder / "run") as view:
        window = view.window()
        read = {key: view.series(key) for key in view.keys(None) if key.target != "dut"}
        return Ended(
            servers,
            {_named(key): series.values.tolist() for key, series in read.items()},
            {_named(key): series.time_ns.tolist() for key, series in read.items()},
            [stored.event for stored in view.events()],
            {each.target: tuple(each.errors) for each in view.ledgers(window) if "failed" in each.lost},
            {phase.name: (phase.window.begin_ns, phase.window.end_ns) for phase in view.phases()},
            judge_record(view, only=["generator_health"], ended=True),
        )


def _named(key: SeriesKey) -> tuple[str, str, str]:
    return key.target, key.metric, key.object


def test_otg_is_read_and_driven(ended: Ended) -> None:
    """Flows as counters; at rest, half and full as the phases say, and at rest when the run is over."""
    sent = ended.values("otg", "load.flow.tx.packets", "flow=up")
    assert len(sent) >= 4
    assert all(after > before and (after - before) % 1000 == 0 for before, after in pairwise(sent))
    lost = ended.values("otg", "load.drop.estimate")
    assert all(after > before and (after - before) % 10 == 0 for before, after in pairwise(lost))
    assert ended.identity("otg")["API"] == "1.62.0"
    assert set(ended.values("otg-driven", "load.offered.packet.rate")) == {0.0, 200.0, 400.0}
    assert set(ended.values("otg-driven", "load.level")) == {0.0, 0.5, 1.0}
    assert set(ended.values("otg-driven", "load.sending")) == {0.0, 1.0}
    assert not ended.servers.otg_driven.flows[0].sending


def test_pktgen_is_read_and_driven(ended: Ended) -> None:
    sent = ended.values("pktgen", "load.tx.packets")
    assert len(sent) >= 4
    assert all(after > before and (after - before) % 1000 == 0 for before, after in pairwise(sent))
    assert set(ended.values("pktgen", "load.port.up", "port=1")) == {0.0}
    assert ended.identity("pktgen")["generator"] == "Pktgen-DPDK"
    assert set(ended.values("pktgen-driven", "load.offered.packet.rate")) == {0.0, 200.0, 400.0}
    assert set(ended.values("pktgen-driven", "load.level")) == {0.0, 0.5, 1.0}
    assert set(ended.values("pktgen-driven", "load.sending")) == {0.0, 1.0}
    assert not ended.servers.pktgen_driven.ports[0].sending


def test_trex_is_read_and_driven(ended: Ended) -> None:
    """Totals as counters, flows, latency, ports, facts; the ports rest and are released when the run is over."""
    sent = ended.values("trex", "load.tx.packets")
    assert len(sent) >= 5
    assert set(np.diff(sent)) == {1000.0}
    assert set(ended.values("trex", "load.sending")) == {1.0}
    assert ended.values("trex", "load.port.tx.packets", "port=1")[0] > 0
    assert set(ended.values("trex", "load.flow.latency", "flow=7,quantile=max")) == {14e-6}
    identity = ended.identity("trex")
    assert identity["generator"] == "TRex v3.04 STL"
    assert "drain" in identity["notes"]
    assert set(ended.values("trex-driven", "load.offered.packet.rate")) == {0.0, 2000.0, 4000.0}
    assert set(ended.values("trex-driven", "load.level")) == {0.0, 0.5, 1.0}
    assert set(ended.values("trex-driven", "load.sending")) == {0, 1}
    ports = ended.servers.trex_driven.model.ports
    assert [(port.state, port.owner) for port in ports] == [("STREAMS", ""), ("STREAMS", "")]


def test_a_command_is_read_and_driven(ended: Ended) -> None:
    """Its counters and unread lines; a driven one is given the rate, and begins anew where that changes."""
    requests = ended.values("command", "load.requests")
    assert requests == sorted(requests)
    assert requests[-1] > requests[0]
    assert ended.values("command", "load.lines.unread")[-1] == 1
    assert set(ended.values("command-driven", "load.level")) == {0, 0.5, 1}
    assert list(dict.fromkeys(ended.values("command-driven", "load.offered.rate"))) == [100, 200]
    assert set(ended.values("command-driven", "load.sending")) == {0}
    restarts = [event.target for event in ended.events if event.kind == "generator.restart"]
    assert restarts.count("command-driven") == 1


def test_an_interface_is_read(ended: Ended) -> None:
    """What went out by it, and that something did."""
    sent = ended.values("interface", "load.tx.packets")
    assert sent[-1] - sent[0] >= 1000
    assert sent == ended.values("interface", "load.port.tx.packets", "port=lo")
    assert max(ended.values("interface", "load.sending")) == 1


def test_iperf3_is_driven_from_level_to_level(ended: Ended) -> None:
    """Its counters go on over the levels, are those of the other end, and are no more than it was set to."""
    if shutil.which("iperf3") is None:
        pytest.skip("no iperf3 here")
    assert clients_of(ended.servers.iperf3_port) == []
    sent = ended.values("iperf3-driven", "load.tx.packets")
    assert sent == sorted(sent)
    reached = 0.0
    for phase, level in (("soak", 0.5), ("stress", 1.0)):
        begin_ns, end_ns = ended.phases[phase]
        before, reached = reached, ended.last_before("iperf3-driven", "load.tx.packets", end_ns)
        assert 0 < reached - before <= 1.1 * IPERF3_RATE * level * (end_ns - begin_ns) * 1e-9 + IPERF3_RATE, phase
    assert ended.values("iperf3-sink", "load.rx.packets")[-1] == pytest.approx(sent[-1], abs=IPERF3_RATE)
    assert sorted(set(ended.values("iperf3-driven", "load.level"))) == [0, 0.5, 1]
    assert sorted(set(ended.values("iperf3-driven", "load.offered.packet.rate"))) == [0, 250, 500]
    assert ended.values("iperf3-sink", "load.offered.packet.rate") == [], "what is offered is told once"
    assert sorted(set(ended.values("iperf3-driven", "load.sending"))) == [0, 1]
    (healthy,) = [finding for finding in ended.verdict.findings if finding.target == "iperf3-driven"]
    assert "counters never fell" in healthy.reason or "commanded" in healthy.reason, healthy.reason


def test_iperf3_as_a_command_tells_its_figures_at_its_end(ended: Ended) -> None:
    """A server that is kept, and a client whose document comes when it is done: both are in the record."""
    if shutil.which("iperf3") is None:
        pytest.skip("no iperf3 here")
    sent = ended.values("late", "load.tx.packets")
    got = ended.values("late-sink", "load.rx.packets")
    assert sent[0] == got[0] == 0
    assert sent == sorted(sent)
    assert sent[-1] == pytest.approx(2 * IPERF3_RATE, abs=10)
    assert got[-1] + ended.values("late-sink", "load.lost.packets")[-1] == pytest.approx(sent[-1], abs=10)
    assert max(ended.values("late-sink", "load.sending")) == 1
    assert ended.values("late", "load.sending")[-1] == 0
    assert not {"late", "late-sink"} & set(ended.failed), ended.failed


def test_missing_generators_end_a_run_before_it_begins(tmp_path: Path) -> None:
    """Required ones that cannot be reached: one sentence for each, no traceback."""
    otg, pktgen, trex = free_port(), free_port(), free_port()
    sources = {
        "otg": {"otg": {"url": f"http://127.0.0.1:{otg}", "timeout": "60s"}},
        "pktgen": {"pktgen": {"port": pktgen, "timeout": "60s"}},
        "trex": {"trex": {"host": "127.0.0.1", "port": trex, "timeout": "60s"}},
    }
    targets: dict[str, object] = {name: {"role": "generator", "sources": [each]} for name, each in sources.items()}
    targets["dut"] = {"sources": [{"local": {"probes": ["load"]}}]}
    (tmp_path / "plan.yaml").write_text(json.dumps({"name": "x", "duration": "5s", "targets": targets}))
    done = command(tmp_path, "run", "plan.yaml", "--no-web")
    output = done.stdout + done.stderr
    assert done.returncode in {2, 3}, output
    assert "Traceback" not in output
    assert re.search(rf"{otg}.*refuses the connection: nothing listens on that port", output)
    assert re.search(rf"{pktgen} cannot be reached \(connection refused\)", output)
    assert f"cannot reach TRex at 127.0.0.1 port {trex}" in output
