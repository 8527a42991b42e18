"""Flow: what a load metric says of the traffic: its side, what is counted, and of which part of the generator."""

from __future__ import annotations

from dataclasses import dataclass

OFFERED = "offered"  # what the generator was configured to send
SENT = "sent"
BACK = "back"  # came back to the generator: packets received, requests answered, connections opened
LOST = "lost"  # packets that it knows to be lost
FAILED = "failed"  # failed requests and connections
CEILING = "ceiling"  # the highest that it reached
CAPACITY = "capacity"  # the highest that came through the devices, found by a search
DRIVE = "drive"  # how hard it works, not traffic: share of full load, users, open connections
QUALITY = "quality"  # of what came back: late, out of order, retransmitted

PACKETS, BITS, BYTES, REQUESTS, CONNECTIONS = "packets", "bits", "bytes", "requests", "connections"
LEVEL, USERS, SENDING = "level", "users", "sending"
DELAY, JITTER, ORDER, REPEATS = "delay", "jitter", "order", "repeats"

WHOLE, PORT, STREAM = "generator", "port", "flow"
"""The scope: the whole generator, one of its ports, or one flow that it sends."""


@dataclass(frozen=True)
class Flow:
    """The ``side`` of the traffic (see above), ``what`` is counted, and its ``scope``."""

    side: str
    what: str
    scope: str = WHOLE
