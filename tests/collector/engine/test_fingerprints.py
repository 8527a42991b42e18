"""What targets are, asked of their sources at the begin and the end of a run, and what differs then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from soakwatch.core.fingerprints import BEGIN_KEY, END_KEY, NOTES, REPORTED_BY, differences, event_detail
from soakwatch.core.redaction import Redaction
from soakwatch.engine import fingerprints as module
from soakwatch.engine.fingerprints import Fingerprinting, Reporter
from soakwatch.engine.run_record import run_record
from soakwatch.record import Record, RecordView
from soakwatch.sources.abc import Fingerprints, SourceError, SourceUnreadyError
from soakwatch_model.tree import Tree

HOST: dict[str, Any] = {
    "cpu": {"governor": "performance"},
    "processes": {"sshd": 3},
    "memory": {"total_bytes": 2, "free_bytes": 1},
}


@dataclass
class Source:
    """A source that answers polls, and tells one tree after the other."""

    trees: list[Mapping[str, Tree] | Exception | None]
    answering: bool = True
    asked: int = 0
    forever: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def fingerprints(self) -> Fingerprints | None:
        """Itself."""
        return self

    async def fingerprint(self) -> Mapping[str, Tree]:
        """The next tree; None never comes."""
        self.asked += 1
        tree = self.trees.pop(0)
        if tree is None:
            await self.forever.wait()
            raise AssertionError
        if isinstance(tree, Exception):
            raise tree
        return tree


@dataclass(frozen=True)
class Bench:
    """A run's fingerprints without its polls."""

    folder: Path

    def run(self, tellers: list[Reporter], *, resumed: bool = False, ticks: int = 2) -> None:
        """Ask them as a run does: each second, and at the end."""

        async def go(asks: Fingerprinting) -> None:
            await asks.start(self.folder, resumed=resumed)
            for _ in range(ticks):
                await asks.tick(tellers)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            await asks.finish(tellers, 7)
            await asks.close()

        self.each(go)

    def each(self, go: Callable[[Fingerprinting], Awaitable[None]]) -> None:
        """Do something with the record open."""

        async def with_record() -> None:
            record = Record.open(self.folder) if any(self.folder.iterdir()) else Record.create(self.folder)
            try:
                await go(Fingerprinting(run_record(record, lambda: 7, threaded=False), Redaction(["env:SOAK_SECRET"])))
            finally:
                record.close()

        asyncio.run(with_record())

    def trees(self, key: str) -> Mapping[str, Mapping[str, Tree]]:
        """What the record has."""
        with RecordView.open(self.folder) as view:
            kept: Mapping[str, Mapping[str, Tree]] = json.loads(view.meta(key) or "null")
            return kept

    def changes(self) -> list[tuple[str, dict[str, str]]]:
        """What the record says that differs."""
        with RecordView.open(self.folder) as view:
            found = [stored.event for stored in view.events() if stored.event.kind == "setup.change"]
            return [(event.target, dict(event.detail)) for event in found]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench of its own."""
    return Bench(tmp_path)


def test_begin_and_end_are_kept_and_a_difference_is_an_event(bench: Bench) -> None:
    now = {**HOST, "cpu": {"governor": "powersave"}, "processes": {"sshd": 9}, "memory": {"total_bytes": 2}}
    bench.run([Reporter("dut", "ssh", Source([HOST, now])), Reporter("tg", "trex", Source([{"generator": {}}] * 2))])
    assert bench.trees(BEGIN_KEY)["dut"]["cpu"] == {"governor": "performance"}
    assert bench.trees(BEGIN_KEY)["dut"][REPORTED_BY] == {"cpu": "ssh", "processes": "ssh", "memory": "ssh"}
    assert bench.trees(END_KEY)["dut"]["cpu"] == {"governor": "powersave"}
    assert bench.changes() == [("dut", {"cpu governor": "performance -> powersave"})]


def test_sources_of_a_target_are_one_tree_in_the_order_of_the_plan(bench: Bench) -> None:
    first: dict[str, Any] = {"device": {"model": "X"}}
    second: dict[str, Any] = {"device": {"model": "x", "serial": "7"}, "licences": ["base"]}
    bench.run([Reporter("dut", "snmp", Source([first] * 2)), Reporter("dut", "ssh", Source([second] * 2))])
    tree = bench.trees(BEGIN_KEY)["dut"]
    assert tree["device"] == {"model": "X", "serial": "7"}
    assert tree[REPORTED_BY] == {"device": "snmp, ssh", "licences": "ssh"}
    assert bench.changes() == []


def test_what_fails_is_a_note_and_no_difference(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOAK_SECRET", "geheim")
    refused, broken = SourceError("the password geheim is wrong"), ValueError("geheim")
    bench.run([Reporter("dut", "ssh", Source([HOST, refused])), Reporter("fw", "snmp", Source([broken, HOST]))])
    assert bench.trees(END_KEY)["dut"] == {NOTES: ["ssh did not report what it is: the password *** is wrong"]}
    assert bench.trees(BEGIN_KEY)["fw"] == {NOTES: ["snmp did not report what it is: its poller raised ValueError"]}
    assert bench.changes() == []


def test_a_run_does_not_wait_long_for_a_source_that_never_tells(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "END_S", 0.05)
    slow, quick = Source([None]), Source([HOST] * 2)
    bench.run([Reporter("dut", "ssh", slow), Reporter("tg", "local", quick)])
    assert bench.trees(BEGIN_KEY)["dut"] == {NOTES: ["ssh had not reported yet what it is when the run ended"]}
    assert bench.trees(BEGIN_KEY)["tg"]["cpu"] == HOST["cpu"]
    assert slow.asked == 1


def test_a_source_that_is_not_ready_is_asked_again(bench: Bench) -> None:
    source = Source([SourceUnreadyError("the cost of its polls is still being measured"), HOST, HOST])
    bench.run([Reporter("dut", "ssh", source)], ticks=3)
    assert bench.trees(BEGIN_KEY)["dut"]["cpu"] == HOST["cpu"]
    assert source.asked == 3


def test_a_run_that_ends_at_once_asks_once(bench: Bench) -> None:
    source, silent = Source([HOST]), Source([], answering=False)
    nothing = Source([{}, {}])
    bench.run([Reporter("dut", "ssh", source), Reporter("fw", "snmp", silent), Reporter("tg", "otg", nothing)], ticks=0)
    assert bench.trees(BEGIN_KEY) == bench.trees(END_KEY)
    assert (source.asked, silent.asked) == (1, 0)


def test_a_resumed_run_keeps_what_was_told_at_its_begin(bench: Bench) -> None:
    changed: dict[str, Any] = {"cpu": {"governor": "powersave"}}
    bench.run([Reporter("dut", "ssh", Source([HOST]))], ticks=0)
    bench.run([Reporter("dut", "ssh", Source([changed]))], resumed=True)
    assert bench.trees(BEGIN_KEY)["dut"]["cpu"] == {"governor": "performance"}
    assert bench.changes() == [("dut", {"cpu governor": "performance -> powersave"})]


def test_differences_name_modules_by_their_names_and_end_somewhere() -> None:
    begin: dict[str, Any] = {"modules_hw": [{"name": "slot 1", "serial": "A"}, {"name": "slot 2", "serial": "B"}]}
    end: dict[str, Any] = {"modules_hw": [{"name": "slot 0", "serial": "C"}, *begin["modules_hw"]]}
    assert differences(begin, end) == {
        "modules_hw slot 0 name": "absent -> slot 0",
        "modules_hw slot 0 serial": "absent -> C",
    }
    many = event_detail(
        differences({"sysctls": {str(n): 1 for n in range(25)}}, {"sysctls": {str(n): 2 for n in range(25)}})
    )
    assert len(many) == 21
    assert many["more"] == "5"
    other: dict[str, Any] = {"cpu": {"governor": "powersave"}, REPORTED_BY: {"cpu": "agent"}}
    assert differences({**HOST, REPORTED_BY: {"cpu": "ssh"}}, other) == {}, "another source may say it in other words"


def test_what_moves_by_design_is_no_difference() -> None:
    """Interfaces of containers, interrupts under irqbalance, delays that the card adapts; all else of a card is one."""

    def host(card: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"nics": {"eth0": card, **more}, "processes": {"irqbalance": 1}}

    begin = host({"mtu": 1500, "irqs": {"rx": "0"}, "coalescing": {"adaptive_rx": True, "rx_usecs": 3, "tx_usecs": 1}})
    end = host(
        {"mtu": 1500, "irqs": {"rx": "1"}, "coalescing": {"adaptive_rx": True, "rx_usecs": 80, "tx_usecs": 1}},
        veth1={"virtual": True, "mtu": 1500},
    )
    assert differences(begin, end) == {}
    larger = host({**end["nics"]["eth0"], "mtu": 9000})
    assert differences(begin, larger) == {"nics eth0 mtu": "1500 -> 9000"}
    unbalanced = [{**tree, "processes": {"sshd": 1}} for tree in (begin, end)]
    assert differences(*unbalanced) == {"nics eth0 irqs rx": "0 -> 1"}


def test_the_balloon_of_a_virtual_machine_is_no_difference_and_a_lost_module_is_one() -> None:
    def host(node: int, total: int, *dimms: str, **more: Any) -> dict[str, Any]:
        modules = [{"name": name, "size_bytes": 17179869184} for name in dimms]
        memory = {"total_bytes": total, "dimms": modules}
        return {"host": more, "memory": memory, "numa": {"node0": {"memory_bytes": node}}}

    begin = host(16_603_369_472, 25_276_510_208, "A1", "A2", virtual="kvm")
    assert differences(begin, host(25_276_510_208, 16_603_369_472, "A1", "A2", virtual="kvm")) == {}
    halved = differences(begin, host(8_000_000_000, 12_000_000_000, "A1", "A2", virtual="kvm"))
    assert list(halved) == ["memory total", "numa node0 memory"]
    gone = differences(begin, host(16_603_369_472, 25_276_510_208, "A1", virtual="kvm"))
    assert all(path.startswith("memory dimms A2") for path in gone)
    assert gone
    real = differences(host(17_000_000_000, 34_000_000_000), host(17_000_000_000, 17_000_000_000))
    assert real == {"memory total": "31.7 GiB -> 15.8 GiB"}
