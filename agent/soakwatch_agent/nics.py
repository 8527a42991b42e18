"""Network interfaces for the fingerprint: driver, firmware, speed, queues, offloads, interrupts, and the PCIe link."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Dict, List, Optional

from soakwatch_agent.facts.cpu import numa_node
from soakwatch_agent.facts.ethtool import DriverQuery, Kernel, query_drivers
from soakwatch_agent.facts.machine import Machine, Notes, core_list, cores_of_mask
from soakwatch_agent.facts.pci import driver_of, pcie_link
from soakwatch_model.core_list import cores_of
from soakwatch_model.tree import Tree

_NET = "/sys/class/net"
_MAX_INTERFACES = 256
_MAX_IRQS = 512
_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def nics(
    machine: Machine, notes: Notes, globs: Optional[List[str]] = None, ask: Optional[DriverQuery] = None
) -> Dict[str, Tree]:
    """The facts of the host's network interfaces by name, without the loopback.

    ``ask`` queries their drivers; None is this machine's kernel, and no query for a machine under a folder.
    """
    names = [name for name in machine.names(_NET) if globs is None or any(fnmatchcase(name, g) for g in globs)]
    names = [name for name in names if _is_nic(machine, name)]
    if len(names) > _MAX_INTERFACES:
        notes.add(f"{len(names) - _MAX_INTERFACES} of {len(names)} network interfaces are left out")
        names = names[:_MAX_INTERFACES]
    answers = _ask_drivers(machine, notes, names, ask)
    interrupts = _interrupts(machine)
    facts: Dict[str, Tree] = {}
    for name in names:
        facts[name] = {**nic(machine, name), **answers.get(name, {}), **_irqs(machine, name, interrupts)}
    return facts


def _is_nic(machine: Machine, name: str) -> bool:
    return name not in ("lo", "bonding_masters") and os.path.isdir(machine.path(f"{_NET}/{name}"))  # noqa: PTH112


def _ask_drivers(
    machine: Machine, notes: Notes, names: List[str], ask: Optional[DriverQuery]
) -> Dict[str, Dict[str, Tree]]:
    if ask is None and not machine.real:
        if names:
            notes.add(
                "drivers of network cards were not asked for firmware, rings, offloads and RSS: only files were read"
            )
        return {}
    kernel = None
    try:
        if ask is None:
            ask = kernel = Kernel()
        answers, refused = query_drivers(ask, names)
    except OSError as error:
        notes.add(f"drivers of network cards cannot be asked: {(error.strerror or 'no reason given').lower()}")
        return {}
    finally:
        if kernel is not None:
            kernel.close()
    for sentence in refused:
        notes.add(sentence)
    return answers


def nic(machine: Machine, name: str) -> Dict[str, Tree]:
    """One interface: what /sys/class/net/NAME and its PCI device say; what they do not say is absent."""
    folder = f"{_NET}/{name}"
    facts: Dict[str, Tree] = {}
    for key, file in (("mac", "address"), ("state", "operstate"), ("duplex", "duplex"), ("alias", "ifalias")):
        text = machine.line(f"{folder}/{file}")
        if text is not None and text != "unknown":
            facts[key] = text
    for key, file in (("mtu", "mtu"), ("speed_mbps", "speed"), ("tx_queue_len", "tx_queue_len")):
        number = machine.whole(f"{folder}/{file}")
        if number is not None and number >= 0:  # a link that is down has speed -1
            facts[key] = number
    for file in ("gro_flush_timeout", "napi_defer_hard_irqs", "threaded"):
        number = machine.whole(f"{folder}/{file}")
        if number:
            facts[file] = number
    master = machine.link(f"{folder}/master")
    if master is not None:
        facts["master"] = master
    driver = driver_of(machine, f"{folder}/device")
    if driver is not None:
        facts["driver"] = driver
        version = machine.line(f"/sys/module/{driver}/version")
        if version is not None:
            facts["driver_version"] = version
    else:
        facts["virtual"] = not os.path.exists(machine.path(f"{folder}/device"))  # noqa: PTH110
    queues = machine.names(f"{folder}/queues")
    if queues:
        facts["rx_queues"] = sum(q.startswith("rx-") for q in queues)
        facts["tx_queues"] = sum(q.startswith("tx-") for q in queues)
    facts.update(_steering(machine, folder, queues))
    # A virtio interface hangs below its PCI function, which has the node and link that the device lacks.
    card = _card(machine, folder)
    address = card.rpartition("/")[2]
    if _ADDRESS.fullmatch(address):
        facts["pci_address"] = address
    node = numa_node(machine, f"{folder}/device")
    if node is None and card:
        node = numa_node(machine, card)
    if node is not None:
        facts["numa_node"] = node
    link = pcie_link(machine, f"{folder}/device") or (pcie_link(machine, card) if card else {})
    if link:
        facts["pcie"] = link
    return facts


def _steering(machine: Machine, folder: str, queues: List[str]) -> Dict[str, Tree]:
    """RPS and XPS: the cores of each queue that has a mask; one line if all queues have the same."""
    steering: Dict[str, Tree] = {}
    for key, start, file in (("rps", "rx-", "rps_cpus"), ("xps", "tx-", "xps_cpus")):
        masks: Dict[str, Tree] = {}
        for queue in queues:
            if queue.startswith(start):
                cores = core_list(cores_of_mask(machine.line(f"{folder}/queues/{queue}/{file}") or ""))
                if cores:
                    masks[queue] = cores
        number = sum(queue.startswith(start) for queue in queues)
        if masks:
            same = len(masks) == number and len(set(map(str, masks.values()))) == 1
            steering[key] = f"all queues on {next(iter(masks.values()))}" if same else masks
    return steering


def _card(machine: Machine, folder: str) -> str:
    """The folder of the PCI function behind an interface; for virtio that is the parent of its device."""
    device = os.path.realpath(machine.path(f"{folder}/device"))
    root = os.path.realpath(machine.path("/")) if not machine.real else "/"
    for _ in range(2):
        if _ADDRESS.fullmatch(os.path.basename(device)):  # noqa: PTH119
            return device[len(root.rstrip("/")) :]
        device = os.path.dirname(device)  # noqa: PTH120
    return ""


def _interrupts(machine: Machine) -> Dict[str, str]:
    """Names of interrupts by number."""
    names: Dict[str, str] = {}
    for line in machine.text("/proc/interrupts").splitlines():
        number, colon, rest = line.partition(":")
        if colon and number.strip().isdigit() and rest.split():
            names[number.strip()] = rest.split()[-1]
    return names


def _irqs(machine: Machine, name: str, interrupts: Dict[str, str]) -> Dict[str, Tree]:
    """The cores that take an interface's interrupts: by interrupt, and all together as ``irq_cores``."""
    card = _card(machine, f"{_NET}/{name}")
    own = set(machine.names(f"{_NET}/{name}/device/msi_irqs")) | set(machine.names(f"{card}/msi_irqs") if card else ())
    pattern = re.compile(rf"(^|[^\w]){re.escape(name)}([^\w]|$)")
    numbers = [n for n, text in interrupts.items() if n in own or pattern.search(text)][:_MAX_IRQS]
    irqs: Dict[str, Tree] = {}
    cores: List[int] = []
    for number in numbers:
        folder = f"/proc/irq/{number}"
        where = machine.line(f"{folder}/effective_affinity_list") or machine.line(f"{folder}/smp_affinity_list")
        if where is not None:
            irqs[interrupts[number]] = where
            cores += cores_of(where)
    return {"irq_cores": core_list(cores), "irqs": irqs} if irqs else {}
