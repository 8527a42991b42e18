"""SR-IOV virtual functions: what each carried, as the card's driver tells the kernel.

The host has no interface for a function that a guest or packet driver uses, but ``ip -s link`` shows its counters. They
come by rtnetlink (RTM_GETLINK with RTEXT_FILTER_VF); numbers are those of linux/if_link.h.
"""

from __future__ import annotations

import glob
import socket
import struct
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

_GETLINK, _NEWLINK, _DONE, _ERROR = 18, 16, 3, 2
_REQUEST, _DUMP = 0x1, 0x300
_IFNAME, _EXT_MASK, _VFINFO_LIST, _FILTER_VF = 3, 29, 22, 1
_VF_INFO, _VF_MAC, _VF_STATS = 1, 1, 8
_RX_PACKETS, _TX_PACKETS, _RX_BYTES, _TX_BYTES, _RX_DROPPED, _TX_DROPPED = 0, 1, 2, 3, 7, 8
_HEAD, _LINK, _ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=BxHiII"), struct.Struct("=HH")
_TYPE = 0x3FFF  # without the flags for nesting and byte order
_WAIT_S = 1.0
_MOST = 64 * 2**20


@dataclass(frozen=True)
class VirtualFunction:
    """What one function carried: (bytes, packets, dropped) in each direction; dropped is None if the driver does not
    count it."""

    __slots__ = ("interface", "number", "received", "sent")
    interface: str
    number: int
    received: Tuple[int, int, Optional[int]]
    sent: Tuple[int, int, Optional[int]]


def present(folder: str = "/sys/class/net") -> bool:
    """True if a card of this machine has virtual functions enabled."""
    for path in glob.glob(f"{folder}/*/device/sriov_numvfs"):
        try:
            with open(path, encoding="ascii") as file:
                if int(file.read()) > 0:
                    return True
        except (OSError, ValueError):
            continue
    return False


def read() -> List[VirtualFunction]:
    """The functions of all cards of this machine. Raises OSError if the kernel does not answer."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as kernel:
        kernel.settimeout(_WAIT_S)
        kernel.bind((0, 0))
        body = _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0) + _ATTRIBUTE.pack(8, _EXT_MASK) + struct.pack("=I", _FILTER_VF)
        kernel.send(_HEAD.pack(_HEAD.size + len(body), _GETLINK, _REQUEST | _DUMP, 1, 0) + body)
        found: List[VirtualFunction] = []
        read_bytes = 0
        while read_bytes < _MOST:
            data = kernel.recv(2**20)
            read_bytes += len(data)
            functions, more = parse(data)
            found += functions
            if not more:
                return found
        raise OSError(f"the kernel's list of interfaces is longer than {_MOST} bytes")


def parse(data: bytes) -> Tuple[List[VirtualFunction], bool]:
    """The functions in one answer of the kernel, and whether more answers follow. Raises OSError if refused."""
    functions: List[VirtualFunction] = []
    at = 0
    while at + _HEAD.size <= len(data):
        length, kind, _, _, _ = _HEAD.unpack_from(data, at)
        if length < _HEAD.size:
            break
        if kind == _DONE:
            return functions, False
        if kind == _ERROR:
            raise OSError(-struct.unpack_from("=i", data, at + _HEAD.size)[0], "the kernel refused to list interfaces")
        if kind == _NEWLINK:
            functions += _of_link(data[at + _HEAD.size + _LINK.size : at + length])
        at += (length + 3) & ~3
    return functions, True


def _of_link(data: bytes) -> Iterator[VirtualFunction]:
    attributes = dict(_attributes(data))
    name = attributes.get(_IFNAME, b"").rstrip(b"\0").decode("utf-8", "replace")
    for kind, info in _attributes(attributes.get(_VFINFO_LIST, b"")):
        about = dict(_attributes(info))
        if kind != _VF_INFO or len(about.get(_VF_MAC, b"")) < 4 or _VF_STATS not in about:
            continue
        count: Dict[int, int] = {
            key: struct.unpack("=Q", value)[0] for key, value in _attributes(about[_VF_STATS]) if len(value) == 8
        }
        if not {_RX_BYTES, _RX_PACKETS, _TX_BYTES, _TX_PACKETS} <= count.keys():
            continue
        yield VirtualFunction(
            name,
            struct.unpack_from("=I", about[_VF_MAC])[0],
            (count[_RX_BYTES], count[_RX_PACKETS], count.get(_RX_DROPPED)),
            (count[_TX_BYTES], count[_TX_PACKETS], count.get(_TX_DROPPED)),
        )


def _attributes(data: bytes) -> Iterator[Tuple[int, bytes]]:
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < _ATTRIBUTE.size or at + length > len(data):
            return
        yield kind & _TYPE, data[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
