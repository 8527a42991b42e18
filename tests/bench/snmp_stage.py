"""A device for the benches of SNMP: real net-snmpds with 25 interfaces, in a network namespace of the bench's own.

The benches begin themselves anew within ``unshare --net`` (which needs root or user
namespaces), where all interfaces but lo are theirs and go with them. The counters of IF-MIB are the 200 objects.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.collector.sources.snmp.snmpd import AUTH, PRIV, Snmpd

_INSIDE = "SOAKWATCH_BENCH_INSIDE"
PAIRS = 12  # virtual cables: 24 interfaces, and lo
COLUMNS = {
    "in": "1.3.6.1.2.1.31.1.1.1.6",
    "out": "1.3.6.1.2.1.31.1.1.1.10",
    "in_packets": "1.3.6.1.2.1.31.1.1.1.7",
    "out_packets": "1.3.6.1.2.1.31.1.1.1.11",
    "in_drops": "1.3.6.1.2.1.2.2.1.13",
    "out_drops": "1.3.6.1.2.1.2.2.1.19",
    "in_errors": "1.3.6.1.2.1.2.2.1.14",
    "out_errors": "1.3.6.1.2.1.2.2.1.20",
}
"""Name and object of what is read of each interface: four 64-bit counters and four 32-bit ones."""
METRICS = ("system.network.io", "system.network.cast.packets", "system.network.packet.dropped", "system.network.errors")
PROFILE = "bench-interfaces"
USER = "common"  # SHA and AES-128, as all rivals know them


def inside() -> None:
    """Go on in a network namespace with the interfaces; returns there. Ends the program where that cannot be."""
    if os.environ.get(_INSIDE) != "yes":
        words = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), sys.executable, *sys.argv]
        try:
            os.execvpe(words[0], words, {**os.environ, _INSIDE: "yes"})
        except OSError as error:
            sys.exit(f"unshare: {error.strerror}: install util-linux")
    for number in range(PAIRS):
        words = ["ip", "link", "add", f"bench{number}a", "type", "veth", "peer", "name", f"bench{number}b"]
        subprocess.run(words, check=True)
    for name in ["lo", *(f"bench{number}{end}" for number in range(PAIRS) for end in "ab")]:
        subprocess.run(["ip", "link", "set", name, "up"], check=True)


def agents(stack: ExitStack, folder: Path, count: int) -> list[Snmpd]:
    """So many net-snmpds, killed at the end."""
    started = []
    for number in range(count):
        agent = Snmpd(folder / f"snmpd{number}")
        stack.callback(agent.kill)
        agent.start()
        started.append(agent)
    return started


def indexes(agent: Snmpd) -> list[int]:
    """The ifIndex of all interfaces."""
    words = ["snmpbulkwalk", "-v2c", "-c", "public", "-Onqv", "-m", "", agent.host_and_port, "1.3.6.1.2.1.2.2.1.1"]
    return [int(line) for line in subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()]


def asked(agent: Snmpd) -> tuple[int, int]:
    """Packets that came in and objects that were given out so far, as the agent itself counts them."""
    packets, objects = (int(agent.get(f"1.3.6.1.2.1.11.{number}.0") or 0) for number in (1, 13))
    return packets, objects


def profile(folder: Path) -> Path:
    """A folder with a profile that reads just those objects."""
    folder.mkdir(exist_ok=True)
    columns = "\n".join(f"        {name}: {oid}" for name, oid in COLUMNS.items())
    lines = []
    for number, name in enumerate(COLUMNS):
        metric, direction = METRICS[number // 2], ("receive", "transmit")[number % 2]
        cast = ", cast: unicast" if metric.endswith("cast.packets") else ""
        labels = f'{{interface: "{{index}}", direction: {direction}{cast}}}'
        lines.append(f"        - {{metric: {metric}, value: {name}, labels: {labels}}}")
    (folder / f"{PROFILE}.yaml").write_text(
        "title: The interfaces of a bench\nextends: [_clocks]\nsnmp:\n  groups:\n    interfaces:\n"
        f"      columns:\n{columns}\n"
        "      metrics:\n" + "\n".join(lines) + "\n"
    )
    return folder


def keys(agent: Snmpd, version: str, profiles: Path) -> dict[str, object]:
    """The keys of the source ``snmp``; the secrets are to be in the environment (``secrets``)."""
    how: dict[str, object] = {"version": version}
    if version == "3":
        how |= {"user": USER, "auth": "env:SOAK_AUTH", "priv": "env:SOAK_PRIV"}
    return {"host": "127.0.0.1", "port": agent.port, "profile": PROFILE, "profiles": str(profiles), **how}


def secrets() -> dict[str, str]:
    """The environment of a collector."""
    return {**os.environ, "SOAK_AUTH": AUTH, "SOAK_PRIV": PRIV}
