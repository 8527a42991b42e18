"""The lab's network: namespaces, links, bridges, tunnels and queues, made with ip and tc."""

from __future__ import annotations

from swlab.places import (
    GENERATOR,
    GENERATOR_ADDRESS,
    MONITOR,
    MONITOR_ADDRESS,
    NORTH_GATEWAY,
    QUEUE_BIT_RATE,
    QUEUE_PACKETS,
    ROUTERS,
    SINK,
    SINK_ADDRESS,
    SOUTH_GATEWAY,
    SPACES,
    VNI,
    A,
    B,
    Router,
)
from swlab.trouble import LabError, call


def existing() -> tuple[str, ...]:
    """The lab's namespaces that exist."""
    names = {line.split()[0] for line in call("ip", "netns", "list").splitlines() if line.strip()}
    return tuple(space for space in SPACES if space in names)


def build() -> None:
    """Make all of it. Raises LabError."""
    for space in SPACES:
        call("ip", "netns", "add", space)
        call("ip", "-n", space, "link", "set", "lo", "up")
    _switch(MONITOR, "mgmt", f"{MONITOR_ADDRESS}/24")
    _switch(GENERATOR, "lan", f"{GENERATOR_ADDRESS}/24")
    _switch(SINK, "lan", f"{SINK_ADDRESS}/24")
    call("ip", "-n", GENERATOR, "route", "add", "198.18.2.0/24", "via", NORTH_GATEWAY)
    call("ip", "-n", SINK, "route", "add", "198.18.1.0/24", "via", SOUTH_GATEWAY)
    for each in ROUTERS:
        _plug(each, "mgmt", each.management, MONITOR, "mgmt")
        _plug(each, "north", each.north, GENERATOR, "lan")
        _plug(each, "south", each.south, SINK, "lan")
        _sysctl(each.space, "net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0")
        _queue(each)
    link = ("ip", "-n", A.space, "link", "add", "core", "type", "veth", "peer", "name", "core", "netns", B.space)
    call(*link)
    for each in ROUTERS:
        call("ip", "-n", each.space, "address", "add", f"{each.core}/24", "dev", "core")
        call("ip", "-n", each.space, "link", "set", "core", "up")
        _tunnel(each)


def remove() -> None:
    """Remove the namespaces, and with them the links."""
    for space in existing():
        call("ip", "netns", "delete", space)


def plug(node: Router, side: str, *, up: bool) -> None:
    """Plug a router's cable in at its switch, or pull it. ``side`` is mgmt, north or south."""
    space = {"mgmt": MONITOR, "north": GENERATOR, "south": SINK}[side]
    call("ip", "-n", space, "link", "set", node.name, "up" if up else "down")


def lacking() -> tuple[str, ...]:
    """Kernel features that a lab could use and that are missing, tried in a namespace of their own."""
    space, lacked = "swlab-try", []
    call("ip", "netns", "add", space)
    try:
        call("ip", "-n", space, "link", "add", "one", "type", "veth", "peer", "name", "two")
        tried = {
            "queue htb": ("tc", "-n", space, "qdisc", "replace", "dev", "one", "root", "htb"),
            "queue pfifo": ("tc", "-n", space, "qdisc", "replace", "dev", "one", "root", "pfifo", "limit", "9"),
            "queue fq_codel": ("tc", "-n", space, "qdisc", "replace", "dev", "one", "root", "fq_codel"),
            "queue netem": ("tc", "-n", space, "qdisc", "replace", "dev", "one", "root", "netem", "loss", "1%"),
            "link vxlan": ("ip", "-n", space, "link", "add", "vxlan9", "type", "vxlan", "id", "9", "dstport", "4789"),
            "link vrf": ("ip", "-n", space, "link", "add", "vrf9", "type", "vrf", "table", "9"),
            "link bridge": ("ip", "-n", space, "link", "add", "br9", "type", "bridge"),
        }
        for name, words in tried.items():
            try:
                call(*words)
            except LabError:
                lacked.append(name)
    finally:
        call("ip", "netns", "delete", space)
    return tuple(lacked)


def _switch(space: str, name: str, address: str) -> None:
    call("ip", "-n", space, "link", "add", name, "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
    call("ip", "-n", space, "address", "add", address, "dev", name)
    call("ip", "-n", space, "link", "set", name, "up")


def _plug(node: Router, side: str, address: str, space: str, switch: str) -> None:
    call("ip", "-n", node.space, "link", "add", side, "type", "veth", "peer", "name", node.name, "netns", space)
    call("ip", "-n", space, "link", "set", node.name, "master", switch, "up")
    call("ip", "-n", node.space, "address", "add", f"{address}/24", "dev", side)
    call("ip", "-n", node.space, "link", "set", side, "up")


def _queue(node: Router) -> None:
    """Towards the sink: a shaper with one queue for UDP, which drops what does not fit, and another for the rest, so
    that VRRP and control connections do not wait behind an overload."""
    device = ("tc", "-n", node.space, "qdisc", "replace", "dev", "south")
    call(*device, "root", "handle", "1:", "htb", "default", "20")
    rate = f"{QUEUE_BIT_RATE}bit"
    for name, priority, limit in (("10", "1", QUEUE_PACKETS), ("20", "0", 100)):
        shape = ("htb", "prio", priority, "rate", rate, "ceil", rate, "burst", "15k", "cburst", "15k")
        call("tc", "-n", node.space, "class", "replace", "dev", "south", "parent", "1:", "classid", f"1:{name}", *shape)
        call(*device, "parent", f"1:{name}", "handle", f"{name}:", "pfifo", "limit", str(limit))
    match = ("u32", "match", "ip", "protocol", "17", "0xff", "flowid", "1:10")
    call("tc", "-n", node.space, "filter", "add", "dev", "south", "parent", "1:", "protocol", "ip", *match)


def _tunnel(node: Router) -> None:
    """A VXLAN whose addresses are announced by BGP EVPN. Router solicitations are off: while the daemons restart it
    leads nowhere, and such a packet would count as a loss that no scenario intends."""
    name = f"vxlan{VNI}"
    ends = ("id", str(VNI), "local", node.core, "dstport", "4789", "nolearning")
    call("ip", "-n", node.space, "link", "add", "br0", "type", "bridge", "forward_delay", "0")
    call("ip", "-n", node.space, "link", "add", name, "type", "vxlan", *ends)
    call("ip", "-n", node.space, "link", "add", "host0", "type", "veth", "peer", "name", "host1")
    _sysctl(node.space, *(f"net.ipv6.conf.{each}.router_solicitations=0" for each in ("br0", name, "host0", "host1")))
    call("ip", "-n", node.space, "link", "set", name, "master", "br0", "up")
    call("ip", "-n", node.space, "link", "set", "host0", "master", "br0", "up")
    call("ip", "-n", node.space, "link", "set", "host1", "up")
    call("ip", "-n", node.space, "link", "set", "br0", "up")


def _sysctl(space: str, *settings: str) -> None:
    for setting in settings:
        call("ip", "netns", "exec", space, "sysctl", "-q", "-w", setting)
