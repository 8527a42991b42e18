"""Two tenants of a router, each with a VXLAN tunnel from generator to sink, behind one queue or one queue each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from swlab.places import GENERATOR, GENERATOR_ADDRESS, SINK, SINK_ADDRESS, A
from swlab.trouble import LabError, call, wait_for

_QUEUE_PACKETS = 50
_PREFERENCE = "1"
"""Filters with this preference precede that of the router's own queue for UDP."""
_TC = ("tc", "-n", A.space)
_ON = ("dev", "south")


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A tenant's tunnel; ``bit_rate`` is its share of the link if each has a queue of its own."""

    name: str
    number: int
    port: int
    bit_rate: int

    def address(self, end: int) -> str:
        """The address of the generator (1) or of the sink (2) in it."""
        return f"198.18.{self.number}.{end}"


RED, BLUE = Tunnel("red", 11, 4811, 3_000_000), Tunnel("blue", 12, 4812, 1_000_000)
_BOTH = (RED, BLUE)


@contextmanager
def tenants(*, apart: bool) -> Iterator[None]:
    """Set up the tunnels and an echo for the blue one. Their packets share a queue of the first router or, with
    ``apart``, have one each: 4 Mbit/s in total."""
    try:
        for tunnel in _BOTH:
            _dig(tunnel)
        _queues(apart=apart)
        words = (sys.executable, "-m", "swlab.probe", "echo", "--peer", BLUE.address(2))
        environment = {"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
        echo = subprocess.Popen(["ip", "netns", "exec", SINK, *words], stdin=subprocess.DEVNULL, env=environment)
        try:
            ping = ("ip", "netns", "exec", GENERATOR, sys.executable, "-m", "swlab.probe", "try")
            wait_for(lambda: _succeeds(*ping, "--peer", BLUE.address(2), env=environment), "the blue tunnel", 30)
            yield
        finally:
            echo.terminate()
            echo.wait(10)
    finally:
        _level()


def _dig(tunnel: Tunnel) -> None:
    ends = ((GENERATOR, GENERATOR_ADDRESS, SINK_ADDRESS, 1), (SINK, SINK_ADDRESS, GENERATOR_ADDRESS, 2))
    for space, local, remote, end in ends:
        kind = ("type", "vxlan", "id", str(tunnel.number), "local", local, "remote", remote)
        call("ip", "-n", space, "link", "add", tunnel.name, *kind, "dstport", str(tunnel.port))
        call("ip", "-n", space, "address", "add", f"{tunnel.address(end)}/24", "dev", tunnel.name)
        call("ip", "-n", space, "link", "set", tunnel.name, "up")


def _queues(*, apart: bool) -> None:
    for place, tunnel in enumerate(_BOTH):
        number = f"{30 + place * apart}"
        if apart or not place:
            rate = f"{tunnel.bit_rate if apart else sum(each.bit_rate for each in _BOTH)}bit"
            shape = ("htb", "prio", "1", "rate", rate, "ceil", rate, "burst", "5k", "cburst", "5k")
            call(*_TC, "class", "replace", *_ON, "parent", "1:", "classid", f"1:{number}", *shape)
            below = ("parent", f"1:{number}", "handle", f"{number}:", "pfifo", "limit", str(_QUEUE_PACKETS))
            call(*_TC, "qdisc", "replace", *_ON, *below)
        match = ("u32", "match", "ip", "protocol", "17", "0xff", "match", "ip", "dport", str(tunnel.port), "0xffff")
        where = ("parent", "1:", "protocol", "ip", "pref", _PREFERENCE)
        call(*_TC, "filter", "add", *_ON, *where, *match, "flowid", f"1:{number}")


def _level() -> None:
    """Remove what exists of it."""
    wanted: list[tuple[str, ...]] = [(*_TC, "filter", "del", *_ON, "parent", "1:", "pref", _PREFERENCE)]
    for number in ("30", "31"):
        wanted.append((*_TC, "qdisc", "del", *_ON, "parent", f"1:{number}"))
        wanted.append((*_TC, "class", "del", *_ON, "classid", f"1:{number}"))
    wanted += [("ip", "-n", space, "link", "del", tunnel.name) for tunnel in _BOTH for space in (GENERATOR, SINK)]
    for words in wanted:
        try:
            call(*words)
        except LabError:
            continue  # it did not exist, or is gone with its namespace


def _succeeds(*words: str, env: dict[str, str]) -> bool:
    return subprocess.run(words, capture_output=True, env=env, timeout=10, check=False).returncode == 0
