"""Network cards for the fingerprint: driver, speed, queues, and the PCIe link compared with what the card can do."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Dict, List, Optional, Union

from soakwatch_agent.context import HostContext
from soakwatch_agent.procfs import read_line

Tree = Union[str, int, float, bool, List["Tree"], Dict[str, "Tree"]]

_SPEED = re.compile(r"(\d+(?:\.\d+)?) GT/s")


def nics(context: HostContext, globs: Optional[List[str]] = None) -> Dict[str, Tree]:
    """The network interfaces of a host by name, without the loopback."""
    folder = context.path("/sys/class/net")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return {}
    wanted = [n for n in names if globs is None or any(fnmatchcase(n, g) for g in globs)]
    return {name: nic(f"{folder}/{name}", context) for name in wanted if _is_nic(f"{folder}/{name}", name)}


def _is_nic(folder: str, name: str) -> bool:
    return name not in ("lo", "bonding_masters") and os.path.isdir(folder)  # noqa: PTH112


def nic(folder: str, context: HostContext) -> Dict[str, Tree]:
    """One interface: what /sys/class/net/NAME says of it; what it does not say is absent."""
    facts: Dict[str, Tree] = {}
    for key, name in (("mac", "address"), ("state", "operstate"), ("duplex", "duplex"), ("alias", "ifalias")):
        text = read_line(f"{folder}/{name}")
        if text is not None and text != "unknown":
            facts[key] = text
    for key, name in (("mtu", "mtu"), ("speed_mbps", "speed"), ("tx_queue_len", "tx_queue_len")):
        number = _whole(read_line(f"{folder}/{name}"))
        if number is not None and number >= 0:  # a link that is down has speed -1
            facts[key] = number
    driver = _driver(folder)
    if driver is not None:
        facts["driver"] = driver
        version = read_line(context.path(f"/sys/module/{driver}/version"))
        if version is not None:
            facts["driver_version"] = version
    else:
        facts["virtual"] = not os.path.exists(f"{folder}/device")  # noqa: PTH110
    queues = _names(f"{folder}/queues")
    if queues:
        facts["rx_queues"] = sum(q.startswith("rx-") for q in queues)
        facts["tx_queues"] = sum(q.startswith("tx-") for q in queues)
    numa = _whole(read_line(f"{folder}/device/numa_node"))
    if numa is not None and numa >= 0:
        facts["numa_node"] = numa
    link = pcie_link(f"{folder}/device")
    if link:
        facts["pcie"] = link
    return facts


def pcie_link(folder: str) -> Dict[str, Tree]:
    """The PCIe link of a device: width in lanes and speed in GT/s, now and at most.

    ``below_capability`` is True where either is less than the card could do: a card in the wrong slot, or a link that
    trained down, which halves throughput silently. (Some cards lower the speed at idle to save power.)
    """
    link: Dict[str, Tree] = {}
    for key in ("current_link_width", "max_link_width"):
        width = _whole(read_line(f"{folder}/{key}"))
        if width is not None and 0 < width < 255:  # 255 is what a device without a link says
            link[key] = width
    for key in ("current_link_speed", "max_link_speed"):
        match = _SPEED.match(read_line(f"{folder}/{key}") or "")
        if match is not None:
            link[key] = float(match[1])
    below = [
        link[f"current_link_{what}"] != link[f"max_link_{what}"]
        for what in ("width", "speed")
        if f"current_link_{what}" in link and f"max_link_{what}" in link
    ]
    if below:
        link["below_capability"] = any(below)
    return link


def _driver(folder: str) -> Optional[str]:
    try:
        return os.readlink(f"{folder}/device/driver").rpartition("/")[2]
    except OSError:
        pass
    try:
        with open(f"{folder}/device/uevent", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if line.startswith("DRIVER="):
                    return line[7:].strip()
    except OSError:
        pass
    return None


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _whole(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and text.lstrip("-").isdigit() else None
