"""Flow: what a figure of the load tells of the traffic: which side of it, of what, and of how much of the generator."""

from __future__ import annotations

from dataclasses import dataclass

OFFERED = "offered"  # what the generator was configured to send
SENT = "sent"
BACK = "back"  # what came back to it: packets received, requests answered, connections opened
LOST = "lost"  # packets that it knows to be lost
FAILED = "failed"  # requests and connections that failed
CEILING = "ceiling"  # the most that it has reached

PACKETS, BITS, BYTES, REQUESTS, CONNECTIONS = "packets", "bits", "bytes", "requests", "connections"

WHOLE, PORT, STREAM = "generator", "port", "flow"
"""Of what: the whole generator, one of its ports, one flow that it sends."""


@dataclass(frozen=True)
class Flow:
    """``side`` of the traffic (offered, sent, back, lost, failed, ceiling), ``what`` is counted, and the ``scope``."""

    side: str
    what: str
    scope: str = WHOLE
