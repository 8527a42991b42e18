"""The catalogue's part on the load: what traffic generators report.

Figures of the whole generator carry no labels, so that they can be added up over several generators; those of its
ports and flows have names of their own (``load.port.*``, ``load.flow.*``) and are never added to them.
"""

from __future__ import annotations

from soakwatch_model.flow import (
    BACK,
    BITS,
    BYTES,
    CEILING,
    CONNECTIONS,
    DRIVE,
    FAILED,
    JITTER,
    LATENCY,
    LEVEL,
    LOST,
    OFFERED,
    ORDER,
    PACKETS,
    PORT,
    QUALITY,
    REPEATS,
    REQUESTS,
    SENDING,
    SENT,
    STREAM,
    USERS,
    WHOLE,
    Flow,
)
from soakwatch_model.metric_entry import COUNTER, DOWN, GAUGE, STATE, UP, Metric, entry

LOAD: tuple[Metric, ...] = (
    # --- requests (a transaction is a request) -------------------------------------------------------------
    entry(
        "load.requests",
        "{request}",
        COUNTER,
        "requests answered since the generator started",
        worse=DOWN,
        flow=Flow(BACK, REQUESTS),
    ),
    entry(
        "load.failures",
        "{request}",
        COUNTER,
        "requests that failed since the generator started",
        worse=UP,
        flow=Flow(FAILED, REQUESTS),
    ),
    entry(
        "load.request.rate", "{request}/s", GAUGE, "requests answered per second", worse=DOWN, flow=Flow(BACK, REQUESTS)
    ),
    entry(
        "load.failure.rate", "{request}/s", GAUGE, "requests failed per second", worse=UP, flow=Flow(FAILED, REQUESTS)
    ),
    entry(
        "load.offered.rate",
        "{request}/s",
        GAUGE,
        "requests per second that the generator was configured to send",
        flow=Flow(OFFERED, REQUESTS),
    ),
    entry(
        "load.ceiling.rate",
        "{request}/s",
        STATE,
        "highest rate of requests that the generator has reached",
        flow=Flow(CEILING, REQUESTS),
    ),
    entry(
        "load.users",
        "{user}",
        GAUGE,
        "users that the generator simulates at the moment",
        flow=Flow(DRIVE, USERS),
    ),
    # --- connections ---------------------------------------------------------------------------------------
    entry(
        "load.connections",
        "{connection}",
        GAUGE,
        "connections open at the generator",
        flow=Flow(DRIVE, CONNECTIONS),
    ),
    entry(
        "load.connections.opened",
        "{connection}",
        COUNTER,
        "connections opened since the generator started",
        flow=Flow(BACK, CONNECTIONS),
    ),
    entry(
        "load.connections.failed",
        "{connection}",
        COUNTER,
        "connections that failed since the generator started",
        worse=UP,
        flow=Flow(FAILED, CONNECTIONS),
    ),
    entry(
        "load.connection.rate",
        "{connection}/s",
        GAUGE,
        "connections opened per second",
        worse=DOWN,
        flow=Flow(BACK, CONNECTIONS),
    ),
    # --- packets -------------------------------------------------------------------------------------------
    entry(
        "load.tx.packets",
        "{packet}",
        COUNTER,
        "packets sent by the generator since it started",
        flow=Flow(SENT, PACKETS),
    ),
    entry(
        "load.rx.packets",
        "{packet}",
        COUNTER,
        "packets that came back to the generator since it started",
        worse=DOWN,
        flow=Flow(BACK, PACKETS),
    ),
    entry("load.tx.bytes", "By", COUNTER, "bytes sent by the generator since it started", flow=Flow(SENT, BYTES)),
    entry(
        "load.rx.bytes",
        "By",
        COUNTER,
        "bytes that came back to the generator since it started",
        worse=DOWN,
        flow=Flow(BACK, BYTES),
    ),
    entry(
        "load.tx.packet.rate",
        "{packet}/s",
        GAUGE,
        "packets sent per second, as the generator says",
        flow=Flow(SENT, PACKETS),
    ),
    entry(
        "load.rx.packet.rate",
        "{packet}/s",
        GAUGE,
        "packets received per second, as the generator says",
        worse=DOWN,
        flow=Flow(BACK, PACKETS),
    ),
    entry("load.tx.bit.rate", "bit/s", GAUGE, "bits sent per second, as the generator says", flow=Flow(SENT, BITS)),
    entry(
        "load.rx.bit.rate",
        "bit/s",
        GAUGE,
        "bits received per second, as the generator says",
        worse=DOWN,
        flow=Flow(BACK, BITS),
    ),
    entry(
        "load.offered.packet.rate",
        "{packet}/s",
        GAUGE,
        "packets per second that the generator was configured to send",
        flow=Flow(OFFERED, PACKETS),
    ),
    entry(
        "load.offered.bit.rate",
        "bit/s",
        GAUGE,
        "bits per second that the generator was configured to send",
        flow=Flow(OFFERED, BITS),
    ),
    entry(
        "load.ceiling.packet.rate",
        "{packet}/s",
        STATE,
        "highest rate of packets that the generator has reached",
        flow=Flow(CEILING, PACKETS),
    ),
    entry(
        "load.ceiling.bit.rate",
        "bit/s",
        STATE,
        "highest rate of bits that the generator has reached",
        flow=Flow(CEILING, BITS),
    ),
    entry(
        "load.ceiling.loss",
        "1",
        STATE,
        "share that the generator itself loses at its ceiling, looped back",
        high=1.0,
    ),
    entry(
        "load.capacity.packet.rate",
        "{packet}/s",
        STATE,
        "packets per second that a search for the capacity found; bound: found, or at least",
        "loss",
        "bound",
    ),
    entry(
        "load.capacity.rate",
        "{request}/s",
        STATE,
        "requests per second that a search for the capacity found; bound: found, or at least",
        "loss",
        "bound",
    ),
    entry(
        "load.capacity.level",
        "1",
        STATE,
        "the capacity found, as a share of the full load; bound: found, or at least",
        "loss",
        "bound",
    ),
    entry(
        "load.lost.packets",
        "{packet}",
        COUNTER,
        "packets that the generator knows to be lost, since it started",
        worse=UP,
        flow=Flow(LOST, PACKETS),
    ),
    entry(
        "load.disordered.packets",
        "{packet}",
        COUNTER,
        "packets that came out of order, since the generator started",
        worse=UP,
        flow=Flow(QUALITY, ORDER),
    ),
    entry(
        "load.loss",
        "1",
        GAUGE,
        "lost share of the packets, as the generator says",
        high=1.0,
        worse=UP,
        flow=Flow(LOST, PACKETS),
    ),
    entry(
        "load.drop.estimate",
        "{packet}",
        GAUGE,
        "packets sent less received so far, those under way included: may go down again",
        low=None,
    ),
    entry(
        "load.retransmits",
        "{segment}",
        COUNTER,
        "TCP segments sent again since the generator started",
        worse=UP,
        flow=Flow(QUALITY, REPEATS),
    ),
    # --- time ----------------------------------------------------------------------------------------------
    entry(
        "load.latency",
        "s",
        GAUGE,
        "time to answer a request, or of a packet on its way",
        "quantile",
        worse=UP,
        flow=Flow(QUALITY, LATENCY),
    ),
    entry(
        "load.jitter",
        "s",
        GAUGE,
        "variation of the latency, as the generator says",
        worse=UP,
        flow=Flow(QUALITY, JITTER),
    ),
    # --- the generator's own health ------------------------------------------------------------------------
    entry("load.queue_full", "{event}", COUNTER, "times that the generator could not send because its queue was full"),
    entry("load.cpu.utilization", "1", GAUGE, "busy share of the generator's cores", high=1.0),
    entry(
        "load.sending",
        "1",
        STATE,
        "1 while the generator sends, 0 while it is idle",
        high=1.0,
        flow=Flow(DRIVE, SENDING),
    ),
    entry(
        "load.level",
        "1",
        GAUGE,
        "share of its full load that the generator was configured to send by the plan",
        flow=Flow(DRIVE, LEVEL),
    ),
    entry("load.lines.unread", "{line}", COUNTER, "lines of the generator's output that could not be read"),
    # --- its ports and flows -------------------------------------------------------------------------------
    entry(
        "load.port.tx.packets", "{packet}", COUNTER, "packets sent by one port", "port", flow=Flow(SENT, PACKETS, PORT)
    ),
    entry(
        "load.port.rx.packets",
        "{packet}",
        COUNTER,
        "packets received by one port",
        "port",
        flow=Flow(BACK, PACKETS, PORT),
    ),
    entry("load.port.tx.bytes", "By", COUNTER, "bytes sent by one port", "port", flow=Flow(SENT, BYTES, PORT)),
    entry("load.port.rx.bytes", "By", COUNTER, "bytes received by one port", "port", flow=Flow(BACK, BYTES, PORT)),
    entry(
        "load.port.tx.packet.rate",
        "{packet}/s",
        GAUGE,
        "packets sent per second by one port",
        "port",
        flow=Flow(SENT, PACKETS, PORT),
    ),
    entry(
        "load.port.rx.packet.rate",
        "{packet}/s",
        GAUGE,
        "packets received per second by one port",
        "port",
        flow=Flow(BACK, PACKETS, PORT),
    ),
    entry("load.port.errors", "{error}", COUNTER, "packets in error at one port", "port", "direction"),
    entry("load.port.up", "1", STATE, "1 if the link of one port is up", "port", high=1.0),
    entry(
        "load.flow.tx.packets",
        "{packet}",
        COUNTER,
        "packets sent of one flow",
        "flow",
        flow=Flow(SENT, PACKETS, STREAM),
    ),
    entry(
        "load.flow.rx.packets",
        "{packet}",
        COUNTER,
        "packets received of one flow",
        "flow",
        worse=DOWN,
        flow=Flow(BACK, PACKETS, STREAM),
    ),
    entry(
        "load.flow.loss",
        "1",
        GAUGE,
        "lost share of one flow, as the generator says",
        "flow",
        high=1.0,
        worse=UP,
        flow=Flow(LOST, PACKETS, STREAM),
    ),
    entry(
        "load.flow.latency",
        "s",
        GAUGE,
        "latency of one flow",
        "flow",
        "quantile",
        worse=UP,
        flow=Flow(QUALITY, LATENCY, STREAM),
    ),
    entry(
        "load.flow.jitter",
        "s",
        GAUGE,
        "variation of the latency of one flow",
        "flow",
        worse=UP,
        flow=Flow(QUALITY, JITTER, STREAM),
    ),
)

_WORKS = frozenset({SENT, BACK, LOST, FAILED})
HEARD = tuple(
    metric.name
    for metric in LOAD
    if metric.flow is not None
    and (
        metric.flow.side in _WORKS
        or (metric.flow.side == DRIVE and metric.flow.what in {USERS, CONNECTIONS})
        or (metric.flow.side == QUALITY and metric.flow.what == LATENCY)
    )
)
"""Figures that a generator at work reports at least one of; what it was configured to send it may report at rest."""
RETURNED = frozenset(
    metric.name
    for metric in LOAD
    if metric.flow is not None
    and metric.flow.side in {BACK, LOST, FAILED, QUALITY}
    and metric.flow.scope in {WHOLE, STREAM}
)
"""Where the generator is healthy, these tell of what lies between it and itself: they are the device's performance."""
WHOLE_LOAD = frozenset(
    metric.name for metric in LOAD if not metric.name.startswith(("load.port.", "load.flow.", "load.capacity."))
)
"""Names of the figures of the load on a device: those of the whole generator."""
