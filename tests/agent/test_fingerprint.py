"""A fingerprint says what a test report needs to be repeated: read of a small machine made of files and of a driver."""

from __future__ import annotations

import errno
import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

from soakwatch_agent.facts.ethtool import ethtool, query_drivers
from soakwatch_agent.facts.machine import Machine, Notes
from soakwatch_agent.facts.memory import dimms
from soakwatch_agent.fingerprint import fingerprint
from soakwatch_agent.nics import nics
from soakwatch_model.tree import Tree

CPU = "/sys/devices/system/cpu"
SLOT = "/sys/bus/pci/devices/0000:81:00.0"


def machine(folder: Path, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> Path:
    """A root with these files and symbolic links."""
    for path, text in files.items():
        file = folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    for path, target in (links or {}).items():
        link = folder / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    return folder


def card(folder: str, **more: str) -> dict[str, str]:
    """The files of a network card on the PCI bus."""
    facts = {"class": "0x020000", "vendor": "0x8086", "device": "0x1592", "numa_node": "1", **more}
    return {f"{folder}/{name}": text for name, text in facts.items()}


def test_a_slot_that_is_slower_than_its_card_is_known(tmp_path: Path) -> None:
    """What the bridge above the card could do stands beside the link of the card."""
    bridge = "/sys/devices/pci0000:80/0000:80:01.0"
    own = f"{bridge}/0000:81:00.0"
    speeds = {"current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe"}
    files = {**card(own, **speeds), f"{bridge}/max_link_speed": "8.0 GT/s PCIe"}
    links = {SLOT: "../../../devices/pci0000:80/0000:80:01.0/0000:81:00.0"}
    cards = fingerprint(str(machine(tmp_path, files, links)))["pci_network"]
    assert isinstance(cards, dict)
    found = cards["0000:81:00.0"]
    assert isinstance(found, dict)
    assert found["pcie"] == {
        "current_link_speed": 8.0,
        "max_link_speed": 16.0,
        "slot_max_link_speed": 8.0,
        "below_capability": True,
    }


def test_cards_that_dpdk_took_over_are_found_on_the_bus(tmp_path: Path) -> None:
    link = {"current_link_width": "8", "max_link_width": "16", "current_link_speed": "16.0 GT/s PCIe"}
    files = {
        **card(SLOT, **link, max_link_speed="16.0 GT/s PCIe", sriov_totalvfs="64", sriov_numvfs="2"),
        **card(SLOT.replace("00.0", "01.0")),
        **card(SLOT.replace("81", "82")),
        "/sys/bus/pci/devices/0000:00:1f.2/class": "0x010601",
        "/sys/bus/pci/devices/0000:82:00.0/net/eth4/address": "02:00:00:00:00:04",
    }
    links = {
        f"{SLOT}/driver": "../../../../bus/pci/drivers/vfio-pci",
        f"{SLOT}/iommu_group": "../../../../kernel/iommu_groups/41",
        f"{SLOT.replace('00.0', '01.0')}/physfn": "../0000:81:00.0",
        f"{SLOT.replace('81', '82')}/driver": "../../../../bus/pci/drivers/ice",
    }
    cards = fingerprint(str(machine(tmp_path, files, links)))["pci_network"]
    assert isinstance(cards, dict)
    assert cards["0000:81:00.0"] == {
        "vendor": "0x8086",
        "device": "0x1592",
        "driver": "vfio-pci",
        "numa_node": 1,
        "pcie": {
            "current_link_width": 8,
            "max_link_width": 16,
            "current_link_speed": 16.0,
            "max_link_speed": 16.0,
            "below_capability": True,
        },
        "iommu_group": "41",
        "vfs_max": 64,
        "vfs": 2,
    }
    assert cards["0000:81:01.0"] == {
        "vendor": "0x8086",
        "device": "0x1592",
        "driver": "none",
        "numa_node": 1,
        "vf_of": "0000:81:00.0",
    }
    bound = cards["0000:82:00.0"]
    assert isinstance(bound, dict)
    assert (bound["driver"], bound["interfaces"]) == ("ice", "eth4")
    assert "0000:00:1f.2" not in cards, "a disk controller is no network card"


def test_idle_states_numa_and_huge_pages(tmp_path: Path) -> None:
    files = {"/proc/cmdline": "BOOT_IMAGE=/vmlinuz rcu_nocbs=2-3 idle=halt password=secret"}
    for core in range(4):
        for state, (name, latency) in enumerate((("POLL", 0), ("C1E", 10), ("C6", 133))):
            folder = f"{CPU}/cpu{core}/cpuidle/state{state}"
            files |= {f"{folder}/name": name, f"{folder}/latency": str(latency)}
            files[f"{folder}/residency"] = str(2 * latency)
            files[f"{folder}/disable"] = "1" if name == "C6" and core >= 2 else "0"
        files[f"{CPU}/cpu{core}/cpufreq/scaling_governor"] = "powersave" if core == 3 else "performance"
        files[f"{CPU}/cpu{core}/cpufreq/energy_performance_preference"] = "balance_performance"
    for node in range(2):
        folder = f"/sys/devices/system/node/node{node}"
        files |= {f"{folder}/cpulist": f"{2 * node}-{2 * node + 1}", f"{folder}/distance": "10 21"}
        files[f"{folder}/meminfo"] = f"Node {node} MemTotal:       1024 kB"
        files[f"{folder}/hugepages/hugepages-1048576kB/nr_hugepages"] = str(8 * node)
        files[f"{folder}/hugepages/hugepages-1048576kB/free_hugepages"] = "0"
    files |= {
        f"{CPU}/intel_pstate/no_turbo": "1",
        "/sys/module/intel_idle/parameters/max_cstate": "9",
        "/sys/class/dmi/id/bios_version": "1.2",
        "/sys/class/dmi/id/bios_date": "03/04/2025",
        "/etc/tuned/active_profile": "network-latency",
        "/sys/fs/cgroup/cpu.max": "150000 100000",
        "/sys/fs/cgroup/memory.max": "max",
        "/proc/modules": "vfio_pci 1 0 - Live 0\nsnd 1 0 - Live 0\nopenvswitch 1 0 - Live 0",
        "/sys/module/openvswitch/srcversion": "ABC",
        "/lib/apk/db/installed": "P:frr\nV:9.1-r0\n\nP:cowsay\nV:3",
    }
    tree = json.loads(json.dumps(fingerprint(str(machine(tmp_path, files)))))
    assert tree["cstates"]["states"][2] == {"name": "C6", "latency_us": 133, "residency_us": 266, "disabled": "on 2-3"}
    assert (tree["cstates"]["deepest"], tree["cstates"]["deepest_latency_us"]) == ("C6", 133)
    assert tree["cstates"]["limits"] == {"intel_idle.max_cstate": 9, "idle": "halt"}
    assert tree["numa"]["node1"] == {
        "cores": "2-3",
        "number_of_cores": 2,
        "memory_bytes": 1048576,
        "distances": "10 21",
    }
    assert tree["memory"]["huge_pages"]["1 GiB"]["node1"] == {"total": 8, "free": 0}
    assert tree["cpu"]["governor"] == "performance (3 cores), powersave (1 cores)"
    assert tree["cpu"]["governor_cores"] == {"performance": "0-2", "powersave": "3"}
    assert (tree["cpu"]["energy_preference"], tree["cpu"]["rcu_nocbs"]) == ("balance_performance", "2-3")
    assert tree["cpu"]["turbo"] is False
    assert (tree["host"]["bios"], tree["host"]["bios_date"]) == ("1.2", "03/04/2025")
    assert tree["tuned"] == {"profile": "network-latency"}
    assert tree["cgroup"] == {"version": 2, "cpu_cores": 1.5, "memory_max_bytes": "unlimited"}
    assert tree["modules"] == {"openvswitch": "source ABC", "vfio_pci": "loaded"}
    assert tree["packages"] == {"frr": "9.1-r0"}
    assert any("DIMM" in note for note in tree["notes"])
    assert "secret" not in json.dumps(tree)


def test_interrupts_and_steering_of_a_card(tmp_path: Path) -> None:
    net = "/sys/class/net/eth0"
    files = {
        f"{net}/address": "02:00:00:00:00:01",
        f"{net}/queues/rx-0/rps_cpus": "00000000,0000000f",
        f"{net}/queues/rx-1/rps_cpus": "00000000,00000000",
        f"{net}/queues/tx-0/xps_cpus": "3",
        f"{net}/queues/tx-1/xps_cpus": "3",
        "/proc/interrupts": "    CPU0 CPU1\n 41: 1 2 PCI-MSI 0-edge ice-eth0-TxRx-0\n 42: 1 2 PCI-MSI 1-edge own\n"
        " 43: 0 0 PCI-MSI 2-edge eth01\nNMI: 0 0 Non-maskable interrupts",
        "/proc/irq/41/effective_affinity_list": "3",
        "/proc/irq/42/smp_affinity_list": "0-1",
        "/proc/irq/43/smp_affinity_list": "7",
        f"{SLOT}/msi_irqs/42": "msix",
        f"{SLOT}/numa_node": "1",
    }
    root = machine(tmp_path, files, {f"{net}/device": "../../../bus/pci/devices/0000:81:00.0"})
    facts = nics(Machine(str(root)), Notes())["eth0"]
    assert isinstance(facts, dict)
    assert facts["irqs"] == {"ice-eth0-TxRx-0": "3", "own": "0-1"}
    assert facts["irq_cores"] == "0-1,3"
    assert facts["rps"] == {"rx-0": "0-3"}
    assert facts["xps"] == "all queues on 0-1"
    assert (facts["pci_address"], facts["numa_node"]) == ("0000:81:00.0", 1)


def driver(name: str, question: bytes) -> bytes:
    """What a driver with four queues answers; it has no channels and refuses to tell its pause frames."""
    assert name == "eth0"
    (command,) = struct.unpack_from("=I", question)
    if command == 0x03:
        return struct.pack(
            "=I32s32s32s32s64x", command, b"ice", b"1.14.9", b"4.40 0x8001c967 1.3534.0", b"0000:81:00.0"
        )
    if command == 0x10:
        return struct.pack("=9I", command, 8160, 0, 0, 8160, 2048, 0, 0, 1024)
    if command == 0x0E:
        return struct.pack("=23I", command, 50, 0, 0, 0, 50, 0, 0, 0, 0, 1, 0, *[0] * 11)
    if command == 0x12:
        raise PermissionError(errno.EPERM, "not permitted")
    if command == 0x37:
        return struct.pack("=IIQI", command, 0, 16, 33)
    if command == 0x1B:
        names = [b"tx-checksum", b"rx-gro", *[b""] * 30, b"rx-hashing"]
        return struct.pack("=III", command, 4, 33) + b"".join(struct.pack("32s", text) for text in names)
    if command == 0x3A:
        return struct.pack("=II8I", command, 2, 0b11, 0, 0b01, 0, 0b1, 0, 0b1, 0)
    if command == 0x46:
        _, _, entries, key = struct.unpack_from("=IIII", question)
        head = struct.pack("=IIIIBBBBI", command, 0, 8, 4, 1, 0, 0, 0, 0)
        return head + (struct.pack("=8I4s", 0, 1, 2, 3, 0, 1, 2, 3, b"keyk") if (entries, key) == (8, 4) else b"")
    raise OSError(errno.EOPNOTSUPP, "not supported")


def test_a_driver_is_asked_for_what_no_file_says() -> None:
    facts, refused = ethtool("eth0", driver)
    assert facts == {
        "driver": "ice",
        "driver_version": "1.14.9",
        "firmware": "4.40 0x8001c967 1.3534.0",
        "bus": "0000:81:00.0",
        "rings": {"rx": 2048, "rx_max": 8160, "tx": 1024, "tx_max": 8160},
        "coalescing": {"rx_usecs": 50, "tx_usecs": 50, "adaptive_rx": True, "adaptive_tx": False},
        "offloads": {"tx-checksum": True, "rx-gro": False, "rx-hashing": True},
        "rss": {
            "entries": 8,
            "queues": "0-3",
            "spread": "0-3: 2 each",
            "key": "sha256 " + facts_key(),
            "hash": "toeplitz",
        },
    }
    assert refused == ["its pause frames"]
    assert query_drivers(driver, ["eth0"])[1] == ["eth0 does not tell this user its pause frames"]
    assert b"keyk".decode() not in json.dumps(facts)


def test_an_interface_of_another_namespace_is_noted() -> None:
    def elsewhere(_: str, __: bytes) -> bytes:
        raise OSError(errno.ENODEV, "No such device")

    sentence = "eth0 is in another network namespace: its driver was not asked for firmware, rings and RSS"
    assert query_drivers(elsewhere, ["eth0"]) == ({}, [sentence])


def facts_key() -> str:
    """The digest of the key, never the key."""
    return hashlib.sha256(b"keyk").hexdigest()[:16]


def module(locator: bytes, size: int, speed: int) -> bytes:
    """An SMBIOS structure of type 17."""
    body = bytearray(0x22)
    body[0], body[1] = 17, 0x22
    struct.pack_into("<H", body, 0x0C, size)
    body[0x10], body[0x12], body[0x17], body[0x1A], body[0x1B] = 1, 0x22, 2, 3, 2
    struct.pack_into("<H", body, 0x15, speed)
    struct.pack_into("<I", body, 0x1C, 65536)
    struct.pack_into("<H", body, 0x20, 4400)
    return bytes(body) + locator + b"\0Samsung\0M321R8GA0BB0 \0\0"


def test_memory_modules_of_the_firmwares_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "sys/firmware/dmi/tables/DMI"
    file.parent.mkdir(parents=True)
    bios = bytes([0, 4, 0, 0]) + b"\0\0"
    file.write_bytes(bios + module(b"DIMM A1", 0x7FFF, 4800) + module(b"DIMM A2", 0, 0) + bytes([127, 4, 0, 0, 0, 0]))
    found, _ = dimms(Machine(str(tmp_path)))
    expected: Tree = {
        "name": "DIMM A1",
        "size_bytes": 64 << 30,
        "type": "DDR5",
        "speed_mts": 4800,
        "configured_mts": 4400,
        "manufacturer": "Samsung",
        "part": "M321R8GA0BB0",
        "rank": 2,
    }
    assert found == [expected]
    monkeypatch.setattr(Machine, "why_not", lambda *_: "only root may read it")
    assert dimms(Machine(str(tmp_path))) == ([], "only root may read it")
