"""Ports of the loopback for servers that need a number given."""

from __future__ import annotations

import random
import socket

_FIRST, _LAST = 10_000, 32_000
"""Below the ports that systems give to those who ask for any (Linux from 32768, others from 49152): one of those is
taken again by whatever connects next, before the server that was given it listens."""


def free_port() -> int:
    """A port of 127.0.0.1 that is free over TCP and UDP now; another program may take it before its user does, though
    hardly: it is a random one of those that nobody is given unasked."""
    for _ in range(100):
        port = random.SystemRandom().randint(_FIRST, _LAST)
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port of the loopback is free over TCP and UDP")
