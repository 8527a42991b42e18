"""What a network driver says by ioctl SIOCETHTOOL (linux/ethtool.h); nothing is set."""

from __future__ import annotations

import array
import errno
import fcntl
import hashlib
import socket
import struct
from collections import Counter
from typing import Callable, Dict, List, Optional, Tuple

from soakwatch_agent.facts.machine import core_list
from soakwatch_agent.procfs import clean
from soakwatch_model.tree import Tree

DriverQuery = Callable[[str, bytes], bytes]
"""Sends one ethtool struct to the driver of an interface, returns it as the driver filled it. Raises OSError."""

_SIOCETHTOOL = 0x8946
_GDRVINFO, _GCOALESCE, _GRINGPARAM, _GPAUSEPARAM, _GSTRINGS = 0x03, 0x0E, 0x10, 0x12, 0x1B
_GSSET_INFO, _GRXFHINDIR, _GFEATURES, _GCHANNELS, _GRSSH = 0x37, 0x38, 0x3A, 0x3C, 0x46
_FEATURES = 4  # ETH_SS_FEATURES
_MAX_STRINGS, _MAX_TABLE = 1024, 1 << 16
_HASHES = {1: "toeplitz", 2: "xor", 4: "crc32"}


class Kernel:
    """Sends ethtool requests to this kernel, in this process's network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __call__(self, name: str, question: bytes) -> bytes:
        """See DriverQuery."""
        buffer = array.array("B", question)
        request = struct.pack("16sP16x", name.encode("utf-8", "surrogateescape")[:15], buffer.buffer_info()[0])
        fcntl.ioctl(self._socket.fileno(), _SIOCETHTOOL, request)
        return buffer.tobytes()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()


def ethtool(name: str, ask: DriverQuery) -> Tuple[Dict[str, Tree], List[str]]:
    """Firmware, rings, channels, coalescing, pause, offloads and RSS of an interface, and which of them were refused.

    What a driver does not have (EOPNOTSUPP) is absent. Raises OSError if the interface is not in this network
    namespace: a container may see the files of another's interfaces.
    """
    facts: Dict[str, Tree] = {}
    refused: List[str] = []
    for what, read in (
        ("its driver", _driver),
        ("its rings", _rings),
        ("its channels", _channels),
        ("its interrupt coalescing", _coalescing),
        ("its pause frames", _pause),
        ("its offloads", _offloads),
        ("its RSS table", _rss),
    ):
        try:
            facts.update(read(name, ask))
        except OSError as error:
            if error.errno == errno.ENODEV:
                raise
            if error.errno in (errno.EPERM, errno.EACCES):
                refused.append(what)
        except struct.error:
            refused.append(what)
    return facts, refused


def _driver(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    answer = ask(name, struct.pack("=I192x", _GDRVINFO))
    texts = struct.unpack_from("=32s32s32s32s", answer, 4)
    keys = ("driver", "driver_version", "firmware", "bus")
    shown = [clean(text.partition(b"\0")[0].decode("utf-8", "surrogateescape")).strip() for text in texts]
    return {key: shown[at] for at, key in enumerate(keys) if shown[at] not in ("", "N/A")}


def _numbers(name: str, ask: DriverQuery, command: int, count: int) -> Tuple[int, ...]:
    return struct.unpack_from(f"={count}I", ask(name, struct.pack(f"=I{4 * count}x", command)), 4)


def _rings(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    most_rx, _, _, most_tx, rx, _, _, tx = _numbers(name, ask, _GRINGPARAM, 8)
    return {"rings": {"rx": rx, "rx_max": most_rx, "tx": tx, "tx_max": most_tx}}


def _channels(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    numbers = _numbers(name, ask, _GCHANNELS, 8)
    channels: Dict[str, Tree] = {}
    for at, kind in enumerate(("rx", "tx", "other", "combined")):
        if numbers[at]:
            channels[kind], channels[f"{kind}_max"] = numbers[at + 4], numbers[at]
    return {"channels": channels} if channels else {}


def _coalescing(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    numbers = _numbers(name, ask, _GCOALESCE, 22)
    keys = ("rx_usecs", "rx_frames", "rx_usecs_irq", "rx_frames_irq", "tx_usecs", "tx_frames")
    values: Dict[str, Tree] = {key: numbers[at] for at, key in enumerate(keys) if numbers[at] or key.endswith("usecs")}
    values["adaptive_rx"], values["adaptive_tx"] = bool(numbers[9]), bool(numbers[10])
    return {"coalescing": values}


def _pause(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    autoneg, rx, tx = _numbers(name, ask, _GPAUSEPARAM, 3)
    return {"pause": {"autoneg": bool(autoneg), "rx": bool(rx), "tx": bool(tx)}}


def _offloads(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    """The offloads that are on (True) or available (False), by the kernel's names."""
    mask, count = struct.unpack_from("=QI", ask(name, struct.pack("=IIQI", _GSSET_INFO, 0, 1 << _FEATURES, 0)), 8)
    if not mask or not 0 < count <= _MAX_STRINGS:
        return {}
    question = struct.pack(f"=III{32 * count}x", _GSTRINGS, _FEATURES, count)
    names = [
        clean(text.partition(b"\0")[0].decode("utf-8", "surrogateescape"))
        for (text,) in struct.iter_unpack("32s", ask(name, question)[12 : 12 + 32 * count])
    ]
    blocks = (count + 31) // 32
    answer = ask(name, struct.pack(f"=II{16 * blocks}x", _GFEATURES, blocks))
    offloads: Dict[str, Tree] = {}
    for at, feature in enumerate(names):
        available, _, active, _ = struct.unpack_from("=4I", answer, 8 + 16 * (at // 32))
        bit = 1 << at % 32
        if feature and (available | active) & bit:
            offloads[feature] = bool(active & bit)
    return {"offloads": offloads} if offloads else {}


def _rss(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    """RSS: how many entries of the table point to which queue, the hash function, and a digest of the key."""
    header = "=IIIIBBBBI"
    try:
        sizes = struct.unpack_from(header, ask(name, struct.pack(header, _GRSSH, 0, 0, 0, 0, 0, 0, 0, 0)))
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EACCES):
            raise
        return _rss_table_only(name, ask)
    entries, key_bytes, function = sizes[2], sizes[3], sizes[4]
    if not 0 < 4 * entries + key_bytes <= _MAX_TABLE:
        return {}
    question = struct.pack(header, _GRSSH, 0, entries, key_bytes, 0, 0, 0, 0, 0) + bytes(4 * entries + key_bytes)
    answer = ask(name, question)
    function = struct.unpack_from(header, answer)[4] or function
    start = struct.calcsize(header)
    rss = _spread(struct.unpack_from(f"={entries}I", answer, start))
    key = answer[start + 4 * entries : start + 4 * entries + key_bytes]
    if any(key):
        rss["key"] = "sha256 " + hashlib.sha256(key).hexdigest()[:16]
    if function:
        rss["hash"] = _HASHES.get(function, f"function {function}")
    return {"rss": rss}


def _rss_table_only(name: str, ask: DriverQuery) -> Dict[str, Tree]:
    (entries,) = struct.unpack_from("=I", ask(name, struct.pack("=II", _GRXFHINDIR, 0)), 4)
    if not 0 < 4 * entries <= _MAX_TABLE:
        return {}
    answer = ask(name, struct.pack(f"=II{4 * entries}x", _GRXFHINDIR, entries))
    return {"rss": _spread(struct.unpack_from(f"={entries}I", answer, 8))}


def _spread(table: Tuple[int, ...]) -> Dict[str, Tree]:
    """An indirection table in short: which queues have how many of its entries."""
    by_count: Dict[int, List[int]] = {}
    for queue, entries in Counter(table).items():
        by_count.setdefault(entries, []).append(queue)
    words = [f"{core_list(queues)}: {entries} each" for entries, queues in sorted(by_count.items(), reverse=True)]
    rss: Dict[str, Tree] = {"entries": len(table), "queues": core_list(table), "spread": "; ".join(words)}
    return rss


def query_drivers(ask: Optional[DriverQuery], names: List[str]) -> Tuple[Dict[str, Dict[str, Tree]], List[str]]:
    """The facts of several interfaces, and a note for each that refused; without ``ask`` there are none."""
    answers: Dict[str, Dict[str, Tree]] = {}
    notes: List[str] = []
    for name in names if ask is not None else ():
        assert ask is not None
        try:
            answers[name], refused = ethtool(name, ask)
        except OSError:
            notes.append(
                f"{name} is in another network namespace: its driver was not asked for firmware, rings and RSS"
            )
            continue
        if refused:
            notes.append(f"{name} does not tell this user {', '.join(refused)}")
    return answers, notes
