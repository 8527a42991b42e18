"""Network cards by PCI address, whatever driver they are bound to: also those that DPDK or VPP uses."""

from __future__ import annotations

import re
from typing import Dict, Optional

from soakwatch_agent.facts.cpu import numa_node
from soakwatch_agent.facts.machine import Machine, Notes, whole
from soakwatch_model.tree import Tree

_DEVICES = "/sys/bus/pci/devices"
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s")
_NETWORK = "0x02"
_MAX_FUNCTIONS = 256


def pci_network(machine: Machine, notes: Notes) -> Dict[str, Tree]:
    """Every PCI function of class 02 (network controller), by address."""
    cards: Dict[str, Tree] = {}
    left_out = 0
    for address in machine.names(_DEVICES):
        folder = f"{_DEVICES}/{address}"
        if not _ADDRESS.fullmatch(address) or not _is_network(machine, folder):
            continue
        if len(cards) == _MAX_FUNCTIONS:
            left_out += 1
            continue
        cards[address] = _card(machine, folder)
    if left_out:
        notes.add(f"{left_out} more network functions of the PCI bus are left out: {_MAX_FUNCTIONS} are listed")
    return cards


def _is_network(machine: Machine, folder: str) -> bool:
    """True for class 02; a virtio card that is an interface has it too."""
    return (machine.line(f"{folder}/class") or "").startswith(_NETWORK)


def _card(machine: Machine, folder: str) -> Dict[str, Tree]:
    card: Dict[str, Tree] = {}
    for key, name in (
        ("vendor", "vendor"),
        ("device", "device"),
        ("subsystem_vendor", "subsystem_vendor"),
        ("subsystem_device", "subsystem_device"),
        ("revision", "revision"),
    ):
        text = machine.line(f"{folder}/{name}")
        if text is not None:
            card[key] = text
    card["driver"] = driver_of(machine, folder) or "none"
    interfaces = interfaces_of(machine, folder)
    if interfaces:
        card["interfaces"] = ", ".join(interfaces)
    node = numa_node(machine, folder)
    if node is not None:
        card["numa_node"] = node
    link = pcie_link(machine, folder)
    if link:
        card["pcie"] = link
    group = machine.link(f"{folder}/iommu_group")
    if group is not None:
        card["iommu_group"] = group
    total = machine.whole(f"{folder}/sriov_totalvfs")
    if total:
        card["vfs_max"] = total
        card["vfs"] = machine.whole(f"{folder}/sriov_numvfs") or 0
    physical = machine.link(f"{folder}/physfn")
    if physical is not None:
        card["vf_of"] = physical
    return card


def interfaces_of(machine: Machine, folder: str) -> list[str]:
    """The interfaces of a PCI function; those of a virtio card are one folder deeper."""
    names = machine.names(f"{folder}/net")
    for inner in machine.names(folder):
        if inner.startswith("virtio"):
            names += machine.names(f"{folder}/{inner}/net")
    return names


def driver_of(machine: Machine, folder: str) -> Optional[str]:
    """The driver that a device is bound to."""
    driver = machine.link(f"{folder}/driver")
    if driver is not None:
        return driver
    for line in machine.text(f"{folder}/uevent").splitlines():
        if line.startswith("DRIVER="):
            return line[7:].strip() or None
    return None


def pcie_link(machine: Machine, folder: str) -> Dict[str, Tree]:
    """The PCIe link of a device: width in lanes and speed in GT/s, now and at most.

    ``below_capability`` is True if either is less than the card's maximum: the card is in a slower slot, or the link
    trained down, which can halve throughput silently. (Some cards also lower the speed at idle to save power.)
    ``slot_max_link_speed`` is the maximum of the bridge above it.
    """
    link: Dict[str, Tree] = {}
    for key in ("current_link_width", "max_link_width"):
        width = whole(machine.line(f"{folder}/{key}"))
        if width is not None and 0 < width < 255:  # 255: the device has no link
            link[key] = width
    for key in ("current_link_speed", "max_link_speed"):
        match = _SPEED.match(machine.line(f"{folder}/{key}") or "")
        if match is not None:
            link[key] = float(match[1])
    match = _SPEED.match(machine.line(f"{folder}/../max_link_speed") or "") if link else None
    if match is not None:
        link["slot_max_link_speed"] = float(match[1])
    below = [
        link[f"current_link_{what}"] != link[f"max_link_{what}"]
        for what in ("width", "speed")
        if f"current_link_{what}" in link and f"max_link_{what}" in link
    ]
    if below:
        link["below_capability"] = any(below)
    return link
