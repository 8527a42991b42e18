"""Ports on loopback for servers that need a port number."""

from __future__ import annotations

import random
import socket

_FIRST, _LAST = 10_000, 32_000
"""Below the ephemeral ports (Linux from 32768, others from 49152), which any connection may take before the server
listens."""


def free_port() -> int:
    """A random port of 127.0.0.1 that is free over TCP and UDP now. Another program could take it first, but hardly: no
    system assigns such ports itself."""
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
