"""Flow: what a figure of the load tells of the traffic: which side of it, of what, and of how much of the generator."""

from __future__ import annotations

from dataclasses import dataclass

OFFERED = "offered"  # what the generator was configured to send
SENT = "sent"
BACK = "back"  # what came back to it: packets received, requests answered, connections opened
LOST = "lost"  # packets that it knows to be lost
FAILED = "failed"  # requests and connections that failed
CEILING = "ceiling"  # the most that it has reached
CAPACITY = "capacity"  # the most that came through the devices, as a search found it
DRIVE = "drive"  # how hard it works in what is no traffic: its share of the full load, users, open connections
QUALITY = "quality"  # how what came back did: late, out of order, sent again

PACKETS, BITS, BYTES, REQUESTS, CONNECTIONS = "packets", "bits", "bytes", "requests", "connections"
LEVEL, USERS, SENDING = "level", "users", "sending"
DELAY, JITTER, ORDER, REPEATS = "delay", "jitter", "order", "repeats"

WHOLE, PORT, STREAM = "generator", "port", "flow"
"""Of what: the whole generator, one of its ports, one flow that it sends."""


@dataclass(frozen=True)
class Flow:
    """The ``side`` of the traffic that a figure is about (see above), ``what`` is counted, and the ``scope``."""

    side: str
    what: str
    scope: str = WHOLE
