"""Names and addresses of the lab, which exist only in its network namespaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

STATE = Path("/run/swlab")
"""Keys, configurations and PIDs of the running lab."""
LOCK = Path("/run/swlab.lock")

MONITOR, GENERATOR, SINK = "swlab-mon", "swlab-gen", "swlab-sink"
MONITOR_ADDRESS, GENERATOR_ADDRESS, SINK_ADDRESS = "192.0.2.1", "198.18.1.10", "198.18.2.10"
NORTH_GATEWAY, SOUTH_GATEWAY = "198.18.1.1", "198.18.2.1"
"""The virtual addresses that VRRP moves: the gateways of generator and sink."""
SYSLOG_PORT, ECHO_PORT = 5514, 7007
VNI = 10

QUEUE_BIT_RATE, QUEUE_PACKETS = 20_000_000, 200
"""The queue of each router towards the sink: rate in bit/s, and size in packets."""


@dataclass(frozen=True, slots=True)
class Router:
    """One of the two routers; ``number`` is the last part of its addresses."""

    name: str
    number: int
    priority: int

    @property
    def space(self) -> str:
        """Its network namespace."""
        return f"swlab-{self.name}"

    @property
    def management(self) -> str:
        """Its address for SSH, SNMP and echo."""
        return f"192.0.2.{self.number}"

    @property
    def north(self) -> str:
        """Its own address towards the generator."""
        return f"198.18.1.{self.number}"

    @property
    def south(self) -> str:
        """Its own address towards the sink."""
        return f"198.18.2.{self.number}"

    @property
    def core(self) -> str:
        """Its address on the link between the routers, for BGP."""
        return f"198.18.3.{self.number}"

    @property
    def folder(self) -> Path:
        """Folder of its configurations and PIDs."""
        return STATE / self.name


A, B = Router("ra", 11, 150), Router("rb", 12, 100)
ROUTERS = (A, B)
SPACES = (MONITOR, GENERATOR, SINK, A.space, B.space)


def router(name: str) -> Router:
    """The router with this name."""
    return next(each for each in ROUTERS if each.name == name)


def other(node: Router) -> Router:
    """The other router."""
    return B if node is A else A
