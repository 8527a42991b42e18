"""Numbered datagrams at a known rate, sent through the routers and sent back by the sink.

``send`` prints one line a tick for the load ``command``: packets sent and received so far, and the round trip. With
``--log`` each packet's number and times go to a file, which shows an outage to one packet. ``echo`` returns packets;
``try`` exits with 0 if any packet comes back.
"""

from __future__ import annotations

import argparse
import contextlib
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from swlab.places import ECHO_PORT, SINK_ADDRESS

_HEAD = struct.Struct("!QQ")  # number, monotonic time when it was sent


def main(words: Sequence[str]) -> None:
    """Run until told to end."""
    parser = argparse.ArgumentParser(prog="lab probe", description=__doc__, allow_abbrev=False)
    parser.add_argument("what", choices=("send", "echo", "try"))
    parser.add_argument("--rate", type=float, default=200.0, help="packets a second")
    parser.add_argument("--size", type=int, default=200, help="bytes of a datagram")
    parser.add_argument("--tick", type=float, default=0.1, help="seconds between lines")
    parser.add_argument("--seconds", type=float, default=600.0, help="it ends by itself after this")
    parser.add_argument("--peer", default=SINK_ADDRESS, help="address in the sink that sends back")
    parser.add_argument("--log", type=Path, help="file for the time of each packet")
    options = parser.parse_args(words)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    if options.what == "echo":
        echo(options.peer)
    elif options.what == "try":
        sys.exit(not comes_back(options.peer))
    else:
        with contextlib.ExitStack() as stack:
            log = None if options.log is None else stack.enter_context(options.log.open("w"))
            send(options.peer, options.rate, max(options.size, _HEAD.size), options.tick, options.seconds, log)


def comes_back(peer: str) -> bool:
    """Whether one of five packets comes back at once."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.1)
        for number in range(5):
            with contextlib.suppress(OSError):
                sock.sendto(_HEAD.pack(number, 0), (peer, ECHO_PORT))
                return bool(sock.recv(2048))
    return False


def echo(peer: str) -> None:
    """Return every packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((peer, ECHO_PORT))
        while True:
            data, sender = sock.recvfrom(2048)
            with contextlib.suppress(OSError):  # no route back at the moment: the packet is lost
                sock.sendto(data, sender)


def send(peer: str, rate: float, size: int, tick_s: float, seconds: float, log: TextIO | None) -> None:
    """Send at a fixed rate, on a grid: late packets are sent at once, so the number sent follows the time."""
    fill, sent, back, trips = bytes(size - _HEAD.size), 0, 0, list[int]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, selectors.DefaultSelector() as waiting:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.setblocking(False)  # noqa: FBT003
        waiting.register(sock, selectors.EVENT_READ)
        begin_ns = time.monotonic_ns()
        end_ns, next_line_ns = begin_ns + round(seconds * 1e9), begin_ns + round(tick_s * 1e9)
        while (now_ns := time.monotonic_ns()) < end_ns:
            while (due_ns := begin_ns + round(sent / rate * 1e9)) <= now_ns:
                with contextlib.suppress(OSError):  # a packet refused by this machine counts as lost
                    sock.sendto(_HEAD.pack(sent, now_ns) + fill, (peer, ECHO_PORT))
                sent += 1
            waiting.select(max(0.0, (min(due_ns, next_line_ns) - now_ns) * 1e-9))
            back += _received(sock, trips, log)
            if time.monotonic_ns() >= next_line_ns:
                _print(sent, back, trips, rate, size)
                trips.clear()
                next_line_ns += round(tick_s * 1e9)


def _received(sock: socket.socket, trips: list[int], log: TextIO | None) -> int:
    number = 0
    while True:
        try:
            data = sock.recv(2048)
        except OSError:
            return number
        now_ns = time.monotonic_ns()
        if len(data) >= _HEAD.size:
            packet, sent_ns = _HEAD.unpack_from(data)
            trips.append(now_ns - sent_ns)
            number += 1
            if log is not None:
                log.write(f"{packet} {sent_ns} {now_ns}\n")


def _print(sent: int, back: int, trips: Sequence[int], rate: float, size: int) -> None:
    words = [
        f"load.tx.packets {sent}",
        f"load.rx.packets {back}",
        f"load.tx.bytes {sent * size}",
        f"load.rx.bytes {back * size}",
        f"load.offered.packet.rate {rate:g}",
        "load.sending 1",
    ]
    if trips:
        ordered = sorted(trips)
        words += [
            f"load.latency{{quantile=p50}} {ordered[len(ordered) // 2] * 1e-9:.6f}",
            f"load.latency{{quantile=max}} {ordered[-1] * 1e-9:.6f}",
        ]
    print(" ".join(words), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
