"""The catalogue's metrics of devices asked over the network: modules, pools, sessions, drops by reason, reach."""

from __future__ import annotations

from soakwatch_model.metric_entry import COUNTER, DOWN, GAUGE, STATE, UP, Metric, entry

_IF = "interface"
_POOL = ("pool",)
_REACH = ("peer", "protocol")
_SESSION = ("protocol", "peer", "context")

DEVICE: tuple[Metric, ...] = (
    # --- CPU and memory, as the device itself averages and divides them -------------------------------------
    entry(
        "system.cpu.module.utilization",
        "1",
        GAUGE,
        "busy share of one card, engine or processor, over the shortest window that the device averages",
        "module",
        high=1.0,
        quantum=0.01,
    ),
    entry(
        "system.cpu.module.average",
        "1",
        GAUGE,
        "busy share of one card, engine or processor over a longer window (1m, 5m), as the device averages it",
        "module",
        "window",
        high=1.0,
        quantum=0.01,
    ),
    entry("system.memory.utilization", "1", GAUGE, "share of memory in use", high=1.0, growth=UP, quantum=0.01),
    entry(
        "system.memory.pool.usage",
        "By",
        GAUGE,
        "memory in use of one pool, card or engine",
        *_POOL,
        growth=UP,
        quantum=1024,
        ceiling="system.memory.pool.limit",
    ),
    entry("system.memory.pool.limit", "By", STATE, "size of a memory pool", *_POOL),
    entry(
        "system.memory.pool.utilization",
        "1",
        GAUGE,
        "share of a memory pool in use",
        *_POOL,
        high=1.0,
        growth=UP,
        quantum=0.01,
    ),
    entry(
        "system.memory.cache.usage",
        "By",
        GAUGE,
        "what a pool holds that is page cache or buffers, or counts them in: it fills up and is no leak",
        *_POOL,
    ),
    entry("system.memory.cache.limit", "By", STATE, "size of the memory behind such a pool", *_POOL),
    entry("system.memory.pool.largest_free", "By", GAUGE, "largest free block of a pool", *_POOL, growth=DOWN),
    entry("system.memory.pool.failures", "{failure}", COUNTER, "allocations refused by a pool", *_POOL, growth=UP),
    # --- interfaces and drops -------------------------------------------------------------------------------
    entry("system.network.up", "1", STATE, "1 while an interface is up, 0 while it is not", _IF, high=1.0),
    entry("system.network.admin_up", "1", STATE, "1 while an interface is meant to be up", _IF, high=1.0),
    entry("system.network.speed", "bit/s", STATE, "speed of an interface", _IF, high=1e13),
    entry(
        "system.network.cast.packets",
        "{packet}",
        COUNTER,
        "packets through an interface by cast: unicast, multicast, broadcast, other",
        _IF,
        "direction",
        "cast",
    ),
    entry("system.network.unknown_protocols", "{packet}", COUNTER, "packets of an unknown protocol", _IF),
    entry("system.network.changed", "s", STATE, "uptime at which an interface last changed its state", _IF),
    entry("system.network.counters_since", "s", STATE, "uptime at which an interface's counters were reset", _IF),
    entry("system.ip.dropped", "{packet}", COUNTER, "IP packets dropped, by reason", "version", "reason", growth=UP),
    entry(
        "system.forwarding.dropped",
        "{packet}",
        COUNTER,
        "packets that the device dropped, by place (frame, flow, a processor) and reason",
        "place",
        "reason",
        growth=UP,
    ),
    entry(
        "system.forwarding.denied",
        "{packet}",
        COUNTER,
        "packets that the device refused on purpose (a rule, an access list, spoofing), by place and reason",
        "place",
        "reason",
    ),
    entry("queue.usage", "By", GAUGE, "bytes waiting in a queue", "queue", growth=UP),
    entry("queue.packets", "{packet}", COUNTER, "packets that went through a queue", "queue"),
    # --- sessions -------------------------------------------------------------------------------------------
    entry(
        "system.sessions",
        "{session}",
        GAUGE,
        "entries of a session, connection or translation table",
        "table",
        growth=UP,
        quantum=1,
        ceiling="system.sessions.limit",
    ),
    entry("system.sessions.limit", "{session}", STATE, "size of a session table", "table"),
    entry("system.sessions.utilization", "1", GAUGE, "share of a session table in use", "table", high=1.0, growth=UP),
    entry("system.sessions.rate", "{session}/s", GAUGE, "new sessions per second, as the device says", "table"),
    # --- state of the network -------------------------------------------------------------------------------
    # protocol: bgp ospf ospf3 isis bfd lacp vrrp hsrp stp tunnel; context: VRF, instance or interface, else "default"
    entry(
        "network.session.up",
        "1",
        STATE,
        "1 while a session with a peer stands (established, full, up, in the bundle), 0 while it does not",
        *_SESSION,
        high=1.0,
    ),
    entry("network.session.uptime", "s", GAUGE, "time since a session came up, as the device says", *_SESSION),
    entry(
        "network.session.flaps",
        "{change}",
        COUNTER,
        "how often a session came up, went down or changed its state, as the device counts it",
        *_SESSION,
    ),
    entry(
        "network.session.prefixes",
        "{prefix}",
        GAUGE,
        "prefixes accepted from a peer, by address family (ipv4 unicast)",
        *_SESSION,
        "family",
    ),
    entry(
        "network.session.role",
        "1",
        STATE,
        "2 while a device carries traffic (master, active, forwarding), 1 while it stands by (backup), 0 else",
        *_SESSION,
        high=2.0,
    ),
    entry(
        "network.topology.changes",
        "{change}",
        COUNTER,
        "changes of the topology that a protocol (stp) has seen",
        "protocol",
        "context",
    ),
    # --- life -----------------------------------------------------------------------------------------------
    entry("system.agent.uptime", "s", GAUGE, "time since the device's SNMP agent started"),
    entry("system.agent.boots", "{boot}", STATE, "how often the SNMP engine has started (snmpEngineBoots)"),
    entry("system.module.uptime", "s", GAUGE, "time since one card or module started", "module"),
    entry("system.service.restarts", "{restart}", COUNTER, "restarts that the service manager made", "service"),
    # --- reach ----------------------------------------------------------------------------------------------
    entry("reach.up", "1", STATE, "1 while a peer answers, 0 while it does not", *_REACH, high=1.0),
    entry("reach.round_trip", "s", GAUGE, "time to an answer of a peer", *_REACH, worse=UP),
    entry("reach.sent", "{packet}", COUNTER, "requests sent to a peer since the source started", *_REACH),
    entry("reach.lost", "{packet}", COUNTER, "requests that a peer did not answer in time", *_REACH, growth=UP),
    entry("reach.status", "1", STATE, "status code of the last answer over HTTP", *_REACH),
    # --- whatever an exporter reports -----------------------------------------------------------------------
    entry("exporter.gauge", "1", GAUGE, "a gauge of an exporter that no profile maps", "name", "labels", low=None),
    entry("exporter.counter", "1", COUNTER, "a counter of an exporter that no profile maps", "name", "labels"),
    # --- what the polls themselves cost and miss ------------------------------------------------------------
    entry("source.device.cpu.time", "s", COUNTER, "CPU time that the monitor's own polls cost the device", "source"),
    entry(
        "source.poll.duration", "s", GAUGE, "how long the device took to answer one poll over its management", "source"
    ),
    entry("source.clock.offset", "s", GAUGE, "the device's clock less the collector's", "source", low=None),
    entry("source.spool.usage", "By", GAUGE, "bytes that wait in the agent's spool", "source"),
    entry("source.spool.lost", "{look}", COUNTER, "polls that the agent's full spool dropped", "source", growth=UP),
    # --- the agent's flight recorder: apart from the polls' series, since its readings are finer -----------
    entry(
        "recorder.cpu.utilization",
        "1",
        GAUGE,
        "busy share of a core, or of all, over a tenth of a second",
        "core",
        high=1.0,
    ),
    entry("recorder.dropped", "{packet}", COUNTER, "packets dropped, by place, each tenth of a second", "place"),
    entry("recorder.queue.usage", "By", GAUGE, "memory of all socket queues of a protocol", "queue"),
    entry("source.messages", "{message}", COUNTER, "messages received, by fate", "source", "fate"),
    entry("source.log.lines", "{line}", COUNTER, "lines of a log received, by severity", "source", "severity"),
)
