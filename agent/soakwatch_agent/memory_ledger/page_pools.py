"""Page pools of network interfaces, which the kernel lists by generic netlink (6.8 on): pages of drivers, named."""

from __future__ import annotations

import socket
import struct
from typing import Dict, Iterator, List, Optional, Tuple

_GENERIC = 16  # NETLINK_GENERIC, and the id of its controller
_CONTROLLER, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_POOL_GET, _IFINDEX, _HELD = 5, 2, 5  # NETDEV_CMD_PAGE_POOL_GET, NETDEV_A_PAGE_POOL_IFINDEX and _INFLIGHT_MEM
_REQUEST, _DUMP = 0x1, 0x301
_ERROR, _DONE = 2, 3
_WAIT_S = 0.5
_MOST = 256  # answers of a dump

Message = Tuple[int, bytes]  # its type, and its body


def messages(data: bytes) -> Iterator[Message]:
    """The messages in an answer of netlink."""
    place = 0
    while place + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, place)
        if length < 16 or place + length > len(data):
            return
        yield kind, data[place + 16 : place + length]
        place += (length + 3) & ~3


def attributes(body: bytes) -> Dict[int, bytes]:
    """The attributes of a message of generic netlink, by number."""
    found: Dict[int, bytes] = {}
    place = 4
    while place + 4 <= len(body):
        length, number = struct.unpack_from("=HH", body, place)
        if length < 4:
            break
        found[number & 0x3FFF] = body[place + 4 : place + length]
        place += (length + 3) & ~3
    return found


def held_by_interface(pools: List[Dict[int, bytes]]) -> Dict[int, int]:
    """Bytes that the pools hold, by the number of their interface; 0 where it is gone.

    >>> held_by_interface([{2: b"\\x03\\x00\\x00\\x00", 5: b"\\x00\\x10\\x00\\x00"}, {5: b"\\x01" + bytes(7)}])
    {3: 4096, 0: 1}
    """
    held: Dict[int, int] = {}
    for pool in pools:
        if _HELD in pool:
            interface = _number(pool.get(_IFINDEX, b""))
            held[interface] = held.get(interface, 0) + _number(pool[_HELD])
    return held


def page_pools() -> Optional[Dict[str, int]]:
    """Bytes in page pools by interface of this network namespace; None where the kernel has no such list.

    Drivers that do not name the interface of a pool are not in it: their pages stay without an owner.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _GENERIC) as line:
            line.bind((0, 0))
            line.settimeout(_WAIT_S)
            name = b"netdev\0"
            asked = struct.pack("=HH", 4 + len(name), _FAMILY_NAME) + name
            line.send(_request(_CONTROLLER, _GET_FAMILY, _REQUEST, asked + bytes(-len(asked) % 4)))
            kind, body = next(messages(line.recv(1 << 16)), (_ERROR, b""))
            family = attributes(body).get(_FAMILY_ID) if kind == _CONTROLLER else None
            if family is None:
                return None
            number = _number(family)
            line.send(_request(number, _POOL_GET, _DUMP))
            pools: List[Dict[int, bytes]] = []
            for _ in range(_MOST):
                for kind, body in messages(line.recv(1 << 16)):
                    if kind == _ERROR:
                        return None
                    if kind == _DONE:
                        return {_name(each): size for each, size in held_by_interface(pools).items()}
                    if kind == number:
                        pools.append(attributes(body))
    except OSError:
        pass
    return None


def _request(family: int, command: int, flags: int, body: bytes = b"") -> bytes:
    return struct.pack("=IHHIIBBH", 20 + len(body), family, flags, 1, 0, command, 1, 0) + body


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little" if struct.pack("=H", 1)[0] else "big")


def _name(interface: int) -> str:
    try:
        return socket.if_indextoname(interface) if interface else "of interfaces that are gone"
    except OSError:
        return str(interface)
