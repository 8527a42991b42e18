"""Virtual functions: what the kernel says of each, in its own bytes, and how the network probe shows it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from soakwatch_agent import virtual_functions
from soakwatch_agent.context import HostContext
from soakwatch_agent.probes.network import open_probe
from soakwatch_agent.virtual_functions import VirtualFunction, parse, present, read


def attribute(kind: int, body: bytes, *, nested: bool = False) -> bytes:
    """One attribute as the kernel writes it, padded to four bytes."""
    head = struct.pack("=HH", 4 + len(body), kind | (0x8000 if nested else 0))
    return (head + body).ljust((4 + len(body) + 3) & ~3, b"\0")


def function(number: int, *counts: int) -> bytes:
    """One IFLA_VF_INFO: its MAC (which says its number) and its statistics."""
    mac = attribute(1, struct.pack("=I", number) + bytes(32))
    stats = b"".join(attribute(kind, struct.pack("=Q", value)) for kind, value in zip((0, 1, 2, 3, 7, 8), counts))  # noqa: B905
    return attribute(1, mac + attribute(8, stats, nested=True), nested=True)


def link(name: str, *functions: bytes) -> bytes:
    """One RTM_NEWLINK message."""
    body = bytes(16) + attribute(3, name.encode() + b"\0") + attribute(22, b"".join(functions), nested=True)
    return struct.pack("=IHHII", 16 + len(body), 16, 2, 1, 0) + body


DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def test_each_function_of_each_card_is_read() -> None:
    """Packets, bytes and drops by direction; a driver that counts no drops says None; other cards have none."""
    data = link("eth0", function(0, 10, 20, 1000, 2000, 1, 2), function(3, 2**40, 5, 6, 7)) + link("lo") + DONE
    assert parse(data) == (
        [
            VirtualFunction("eth0", 0, (1000, 10, 1), (2000, 20, 2)),
            VirtualFunction("eth0", 3, (6, 2**40, None), (7, 5, None)),
        ],
        False,
    )
    assert parse(link("eth0", function(0, 1))) == ([], True), "half of the counters are none"


@pytest.mark.parametrize("cut", range(0, 180, 7))
def test_cut_answers_are_no_trap(cut: int) -> None:
    """Whatever part of an answer comes, nothing is raised and nothing is made up."""
    whole = link("eth0", function(0, 10, 20, 1000, 2000, 1, 2))
    functions, _ = parse(whole[:cut])
    assert functions in ([], [VirtualFunction("eth0", 0, (1000, 10, 1), (2000, 20, 2))])


def test_a_refusal_is_an_error() -> None:
    """The kernel's own number."""
    with pytest.raises(PermissionError):
        parse(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1))


def test_this_kernel_answers(tmp_path: Path) -> None:
    """The question is one that a real kernel takes; only cards with functions switched on have any."""
    assert isinstance(read(), list)
    file = tmp_path / "eth0" / "device" / "sriov_numvfs"
    file.parent.mkdir(parents=True)
    file.write_text("0\n")
    assert not present(str(tmp_path))
    file.write_text("4\n")
    assert present(str(tmp_path))


def test_the_probe_shows_them_as_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """``eth0 vf 3`` can be a tenant's, and is left out where the plan watches other interfaces."""
    monkeypatch.setattr(virtual_functions, "present", lambda: True)
    monkeypatch.setattr(virtual_functions, "read", lambda: [VirtualFunction("eth0", 3, (100, 1, None), (200, 2, 7))])
    samples = {(s.metric, s.object): s.value for s in open_probe(HostContext()).read(1).samples}
    assert samples["system.network.io", "interface=eth0 vf 3,direction=receive"] == 100
    assert samples["system.network.packets", "interface=eth0 vf 3,direction=transmit"] == 2
    assert samples["system.network.packet.dropped", "interface=eth0 vf 3,direction=transmit"] == 7
    assert ("system.network.packet.dropped", "interface=eth0 vf 3,direction=receive") not in samples
    kept = open_probe(HostContext(interfaces=("lo",))).read(1).samples
    assert not [s for s in kept if "vf" in s.object]
