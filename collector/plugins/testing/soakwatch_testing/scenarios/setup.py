"""Machines that are set up well, and machines with one setting that limits results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from soakwatch_model.case import Case, TargetFacts
from soakwatch_model.event import Event
from soakwatch_model.roles import DUT, GENERATOR
from soakwatch_model.series import Series
from soakwatch_model.tree import Tree
from soakwatch_model.window import Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import times

S: Final = 10**9
_TIME: Final = "system.cpu.core.time"
_POLLS: Final = {"core=2": "the system keeps it for one program (isolated, nohz_full)"}
Branch = dict[str, Tree]


def link(width: int, most: int, speed: float = 8.0, fastest: float = 8.0) -> Branch:
    """A PCIe link: current and maximum width and speed."""
    return {
        "current_link_width": width,
        "max_link_width": most,
        "current_link_speed": speed,
        "max_link_speed": fastest,
    }


def card(**more: Tree) -> Branch:
    """A 25 Gbit/s network card in a suitable slot, with interrupts on all cores of its node."""
    return {
        "driver": "ice",
        "firmware": "4.40",
        "state": "up",
        "duplex": "full",
        "speed_mbps": 25_000,
        "rx_queues": 8,
        "numa_node": 0,
        "pcie": link(8, 8),
        "irqs": {f"ice-eth-TxRx-{n}": str(n) for n in range(8)},
        "irq_cores": "0-7",
        "rss": {"entries": 128, "queues": "0-7"},
        **more,
    }


def host(nics: Mapping[str, Branch], **cpu: Tree) -> Branch:
    """A host with two sockets of 16 cores, set up for measuring."""
    at = {name: f"0000:3b:00.{function}" for function, name in enumerate(nics)}
    on_bus: Branch = {at[name]: {"vendor": "0x8086", "device": "0x159b", "interfaces": name} for name in nics}
    return {
        "host": {"kernel": "6.1.0-30-amd64"},
        "cpu": {"online": "0-15", "governor": "performance", "turbo": False, **cpu},
        "memory": {"numa_nodes": 2, "hugepages": 1024},
        "numa": {"node0": {"cores": "0-7"}, "node1": {"cores": "8-15"}},
        "cstates": {"driver": "intel_idle", "states": idle("on all cores")},
        "nics": {name: {"pci_address": at[name], **facts} for name, facts in nics.items()},
        "pci_network": on_bus,
    }


def idle(deep_off: str) -> list[Tree]:
    """The idle states of a processor, with the deep one off ``on all cores``, ``on 2-7`` or ``no`` (on)."""
    states = (("POLL", 0, "no"), ("C1", 2, "no"), ("C6", 133, deep_off))
    return [{"name": name, "latency_us": exit_us, "disabled": off} for name, exit_us, off in states]


VIRTUAL: Final[Branch] = {
    "host": {"kernel": "6.1.0-30-amd64", "virtual": "kvm"},
    "cpu": {"online": "0-3"},
    "memory": {"numa_nodes": 1, "hugepages": 0},
    "nics": {
        "eth0": {"driver": "virtio_net", "state": "up", "rx_queues": 1, "tx_queues": 1},
        "docker0": {"virtual": True, "state": "down", "rx_queues": 1},
        "veth0": {"virtual": True, "state": "up", "duplex": "full", "speed_mbps": 10_000, "rx_queues": 4},
    },
}
"""An ordinary virtual machine: no clock of its own, no PCIe link, one queue."""
SOUND: Final = host({"eth0": card(), "eth1": card()})


def cores(
    rng: np.random.Generator, softirq: Sequence[float], t: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> tuple[Series, ...]:
    """CPU times of cores that spend these shares on softirqs, a tenth on other work, and are idle otherwise."""
    series = []
    for core, share in enumerate(softirq):
        apart = float(t[1] - t[0])
        spent = np.clip(share + 0.02 * rng.standard_normal(t.size), 0, 0.99) * apart
        rest = np.clip(apart * 0.9 - spent, 0, None)
        for mode, each in (("softirq", spent), ("idle", rest)):
            series.append(readings(_TIME, np.cumsum(each), apart, object=f"core={core},mode={mode}"))
    return tuple(series)


def setup(
    name: str,
    machine: Mapping[str, Tree],
    *,
    polls: Mapping[str, str] | None = None,
    role: str = DUT,
    softirq: Sequence[float] = (),
    changed: Mapping[str, str] | None = None,
) -> Scenario:
    """A machine of this description; ``softirq`` is what its cores spend on receiving."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        window = Window(0, round(hours * 3600 * S))
        events: tuple[Event, ...] = ()
        if changed is not None:
            events = (Event("setup.change", "dut", "", window.end_ns - S, window.end_ns - S, changed),)
        facts = TargetFacts(polling=dict(polls or {}), fingerprint=machine)
        return Signal(Case("dut", "", window, cores(rng, softirq, t), events=events, role=role, facts=facts), Truth())

    return Scenario("setup", name, make, hours=2.0, cadence_s=10.0)


_VFIO: Final[Branch] = {"0000:3b:00.0": {"driver": "vfio-pci", "vendor": "0x8086", "numa_node": 0, "pcie": link(8, 16)}}
_DEEP: Final[Branch] = {**SOUND, "cstates": {"states": idle("no")}}
_CHASSIS: Final[Branch] = {
    "device": {"vendor": "Example", "model": "R9000", "software": "7.2"},
    "modules_hw": [
        {"name": "slot 1", "model": "LC-36", "serial": "A1", "firmware": "1.2", "software": "7.2"},
        {"name": "slot 2", "model": "LC-36", "serial": "A2", "firmware": "1.2", "software": "7.2"},
    ],
}
_MIXED: Final[Branch] = {
    "modules_hw": [
        {"name": "slot 1", "model": "LC-36", "serial": "A1", "firmware": "1.2", "software": "7.2"},
        {"name": "slot 2", "model": "LC-36", "serial": "A2", "firmware": "1.1", "software": "7.2"},
    ],
}

SCENARIOS = (
    setup("virtual machine", VIRTUAL),
    setup("virtual machine that generates", VIRTUAL, role=GENERATOR),
    setup("virtual machine, one queue busy", VIRTUAL, softirq=(0.4, 0.0, 0.0, 0.0)),
    setup("two cores, one receives", VIRTUAL, softirq=(0.8, 0.0)),
    setup("sound host", SOUND),
    setup("sound host that polls", SOUND, polls=_POLLS),
    setup("sound host, even load", SOUND, softirq=(0.7,) * 8),
    setup("sound host, light load on one core", SOUND, softirq=(0.2, *(0.0,) * 7)),
    setup("chassis, modules alike", _CHASSIS),
    setup("kernel router with powersave", host({"eth0": card()}, governor="powersave")),
    setup("deep idle states, nothing polls", _DEEP),
    setup("a port at rest that is slow", host({"eth0": card(state="down", pcie=link(4, 8))})),
    setup("reported nothing", {}),
    setup("x4 of x8", host({"eth0": card(pcie=link(4, 8)), "eth1": card()})),
    setup("2.5 of 8 GT/s, perhaps at rest", host({"eth0": card(pcie=link(8, 8, 2.5))})),
    setup("5 of 8 GT/s, the slot's most", host({"eth0": card(pcie={**link(8, 8, 5.0), "slot_max_link_speed": 5.0})})),
    setup("x8 of x16, bound to vfio-pci", {**SOUND, "pci_network": _VFIO}),
    setup("half duplex", host({"eth0": card(duplex="half", speed_mbps=100)})),
    setup("firmware differs", host({"eth0": card(), "eth1": card(firmware="4.20")})),
    setup("modules differ", _MIXED),
    setup("interrupts on the other node", host({"eth0": card(numa_node=1)})),
    setup("powersave where cores poll", host({"eth0": card()}, governor="powersave"), polls=_POLLS),
    setup("powersave on a generator", host({"eth0": card()}, governor="schedutil"), role=GENERATOR),
    setup("governors differ", host({"eth0": card()}, governor="performance (12 cores), powersave (4 cores)")),
    setup("turbo differs", host({"eth0": card()}, turbo="on (8 cores), off (8 cores)")),
    setup("deep idle states where cores poll", _DEEP, polls=_POLLS),
    setup("deep idle states where others poll", {**SOUND, "cstates": {"states": idle("on 2-7")}}, polls=_POLLS),
    setup("one core of eight receives", SOUND, softirq=(0.85, *(0.0,) * 7)),
    setup("RSS table of one queue", host({"eth0": card(rss={"entries": 128, "queues": "0"})})),
    setup("interrupts on one core", host({"eth0": card(irq_cores="0")})),
    setup("governor changed", SOUND, changed={"cpu governor": "performance -> powersave"}),
)
