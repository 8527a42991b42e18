"""Ports of the loopback for servers that must be told theirs."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of 127.0.0.1 that is free over TCP and UDP now; somebody else may take it before its user does."""
    for _ in range(100):
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = int(tcp.getsockname()[1])
            try:
                udp.bind(("127.0.0.1", port))
            except OSError:
                continue  # free over TCP only
            return port
    raise AssertionError("no port of the loopback is free over TCP and UDP")
