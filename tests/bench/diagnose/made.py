"""A made program in Python: made.py KIND SECONDS VARIANT. What leaks is in the lines that end with LEAK."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

TICK_S = 0.02


class Node:
    """A link of a list, with its load."""

    def __init__(self, behind: Node | None, load: bytes) -> None:
        self.behind, self.load = behind, load


cache: dict[int, bytes] = {}
kept: list[Any] = []
table: dict[str, bytes] = {}
chain: Node | None = None
handlers: list[object] = []


def busy(n: int) -> None:
    """A cache of 2 MiB that renews itself all the time."""
    for each in range(40):
        cache[(n * 40 + each) % 1000] = bytes(2000 + each)


def leak(n: int, variant: int) -> None:
    """Keeps 20 KiB for ever, in one of six ways."""
    global chain  # noqa: PLW0603 - as leaks are
    for each in range(20):
        match variant % 6:
            case 0:
                kept.append(bytes(1000))  # LEAK
            case 1:
                table[f"{n}-{each}"] = bytes(1000)  # LEAK
            case 2:
                chain = Node(chain, bytes(1000))  # LEAK
            case 3:
                handlers.append(bytearray(1000).append)  # LEAK
            case 4:
                kept.append({"n": n, "load": "x" * 900 + str(each)})  # LEAK
            case _:
                kept.append([float(n + each + k) for k in range(30)])  # LEAK


def level(at: float, now: float) -> None:
    """Holds as many MiB as it should at this time."""
    wanted = int(at * (1 << 20)) // 4000
    while len(kept) < wanted:
        kept.append(bytes(4000))
    del kept[wanted:]


def main(kind: str, seconds: float, variant: int) -> None:
    """Until it is killed, and for a while longer than it should."""
    begin, n = time.monotonic(), 0
    pins: list[Any] = []
    while (now := time.monotonic() - begin) < 2 * seconds:
        n += 1
        part = now / seconds
        if kind == "leak":
            busy(n)
            leak(n, variant)
        elif kind == "cache":
            busy(n)
            level(min(part / 0.5, 1) * 16, now)
        elif kind == "warm-up":
            busy(n)
            level(16 * (1 - math.exp(-part / 0.05)), now)
        elif kind == "load":
            level(4 + 16 * (0.5 + 0.5 * math.sin(2 * math.pi * time.time() / seconds * 1.3)), now)
        elif kind == "retention":
            if part < 0.35:
                kept.extend([bytes(400) for _ in range(400)])
            elif kept:
                pins = kept[-1:]
                kept.clear()
        elif kind == "fragmentation":
            # of each pool of small objects of a size one stays, and objects of the next size need other pools
            size = 48 + 16 * min(int(part * 28), 27)
            if kept and len(kept[0]) != size - 33:
                pins += kept[:: 16384 // size]
                kept.clear()
            wanted = int((part * 28 % 1) * (1 << 20)) // size  # by the time, for a busy machine has fewer ticks
            kept.extend([bytes(size - 33) for _ in range(wanted - len(kept))])
        time.sleep(TICK_S)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
