"""Queues, sessions, sockets and interfaces of one device, with the load."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from soakwatch_dashboards.board import Row, Section
from soakwatch_dashboards.common import HERE, LIMITS, LOAD_LINES, ONE_PORT, dropped, load
from soakwatch_dashboards.influx import TIME, Query, increase, series, total
from soakwatch_dashboards.panels import bars, lines, of_unit, strip
from soakwatch_dashboards.style import PACKETS, PER_SECOND, UPNESS


def queues() -> Row:
    """Drops, queues and sessions, with the load."""
    drops = lines(
        "Drops a second, with the load",
        PACKETS,
        [*dropped(HERE), *load()],
        "Place by place, as the device counts; the left axis is logarithmic with a zero.",
        LOAD_LINES,
        small_and_large=True,
    )
    queues = lines(
        "Queues",
        "short",
        [
            series("queue.depth", HERE, ("queue",), alias="depth $tag_queue"),
            series("queue.limit", HERE, ("queue",), alias="limit of $tag_queue"),
            series("queue.dropped", HERE, ("queue",), alias="dropped $tag_queue"),
        ],
        "Packets waiting; red: how many a queue holds; on the right drops a second.",
        {"^dropped ": of_unit(PACKETS), **LIMITS},
    )
    sessions = lines(
        "Sessions, with the load",
        "short",
        [
            series("system.sessions", HERE, ("table",), alias="sessions $tag_table"),
            series("system.sessions.limit", HERE, ("table",), alias="limit of $tag_table"),
            *load(),
        ],
        "Connections that a firewall, a NAT or a balancer keeps; red: the size of the table.",
        {**LIMITS, **LOAD_LINES},
    )
    return Row(9, [(8, drops), (8, queues), (8, sessions)])


def sessions() -> Section:
    """Sessions of the device with neighbours: BGP, OSPF, tunnels."""
    up = Query(
        f'SELECT min("value") AS "up" FROM "network.session.up" WHERE {HERE} AND {TIME}'
        ' GROUP BY time($__interval), "protocol", "peer", "context" fill(null)',
        "$tag_protocol $tag_peer $tag_context",
    )
    by = ("protocol", "peer", "context")
    flaps = bars(
        "Changes of sessions",
        [increase("network.session.flaps", HERE, by, "$tag_protocol $tag_peer $tag_context")],
        "How many times each session changed in each interval.",
    )
    prefixes = lines(
        "Prefixes of sessions, with the load",
        "short",
        [
            series("network.session.prefixes", HERE, (*by, "family"), alias="$tag_protocol $tag_peer $tag_family"),
            *load(),
        ],
        "That each neighbour sent.",
        LOAD_LINES,
    )
    age = lines(
        "Age of sessions",
        "s",
        [series("network.session.uptime", HERE, by, of="min")],
        "Since each was established: a fall is a flap.",
    )
    return Section(
        "Sessions with neighbours: BGP, OSPF, tunnels, redundancy",
        [
            Row(8, [(12, strip("Sessions that are up", up, UPNESS, "Red: the session was down.")), (12, flaps)]),
            Row(8, [(12, prefixes), (12, age)]),
        ],
    )


def sockets_and_softirq() -> Section:
    """TCP, UDP, softirq, sockets and the connection table."""
    stack = lines(
        "TCP and UDP, a second",
        "cps",
        [
            series("system.tcp.retransmits", HERE, ("target",), alias="TCP segments sent again"),
            series("system.tcp.receive_errors", HERE, ("reason",), alias="TCP $tag_reason"),
            series("system.udp.receive_errors", HERE, ("reason",), alias="UDP $tag_reason"),
        ],
        "Segments sent again, and what was lost on receive.",
        small_and_large=True,
    )
    softnet = lines(
        "Receive softirq, a second",
        PER_SECOND,
        [
            total("system.softnet.processed", HERE, ("core",), "processed"),
            total("system.softnet.squeezed", HERE, ("core",), "ended with work left"),
            total("system.softnet.dropped", HERE, ("core",), "dropped"),
        ],
        "Of all cores.",
        small_and_large=True,
    )
    table = lines(
        "Connection table",
        "short",
        [
            series("system.conntrack.count", HERE, ("target",), alias="entries"),
            series("system.conntrack.limit", HERE, ("target",), alias="limit"),
        ],
        "Entries of the kernel's connection tracking; red: its size.",
        LIMITS,
    )
    sockets = lines(
        "Sockets, with the load",
        "short",
        [
            series("system.sockets.usage", HERE, ("protocol",), alias="in use: $tag_protocol"),
            series("system.sockets.allocated", HERE, ("target",), alias="of all kinds"),
            series("system.tcp.allocated", HERE, ("target",), alias="TCP that exist"),
            series("system.tcp.time_wait", HERE, ("target",), alias="TCP in TIME-WAIT"),
            series("system.tcp.orphans", HERE, ("target",), alias="TCP orphans"),
            *load(),
        ],
        "In use by protocol, all kinds together as well; connections that are closing.",
        LOAD_LINES,
    )
    orphans = lines(
        "TCP orphans",
        "short",
        [
            series("system.tcp.orphans", HERE, ("target",), alias="orphans"),
            series("system.tcp.orphans.limit", HERE, ("target",), alias="limit"),
        ],
        "Sockets that no process holds and whose connection is not closed yet; red: from here on connections are reset."
        " The axis is logarithmic with a zero.",
        LIMITS,
        small_and_large=True,
    )
    held = lines(
        "Memory of sockets, with the load",
        "bytes",
        [
            series("system.sockets.memory", HERE, ("protocol",), alias="$tag_protocol"),
            series("system.sockets.memory.limit", HERE, ("protocol",), alias="limit of $tag_protocol"),
            *load(),
        ],
        "Of the queues of all sockets; red: from here on packets are dropped. The axis is logarithmic with a zero.",
        {**LIMITS, **LOAD_LINES},
        small_and_large=True,
    )
    return Section(
        "TCP, softirq, sockets, connection table",
        [Row(9, [(8, stack), (8, softnet), (8, table)]), Row(9, [(8, sockets), (8, orphans), (8, held)])],
    )


def one_interface() -> Section:
    """Traffic, packets, drops and errors of each chosen interface."""
    by = ("direction",)
    bits = lines(
        "$interface: traffic, with the load",
        "bps",
        [
            series("system.network.io", ONE_PORT, by, times="8", alias="$tag_direction"),
            series("system.network.speed", ONE_PORT, ("interface",), alias="limit: its speed"),
            *load(),
        ],
        "From the byte counters; red: the speed of the interface; dashed: the load.",
        {**LIMITS, **LOAD_LINES},
    )
    packets = lines(
        "$interface: packets, with the load",
        PACKETS,
        [series("system.network.packets", ONE_PORT, by, alias="$tag_direction"), *load()],
        "From the packet counters, with the load.",
        LOAD_LINES,
    )
    lost = lines(
        "$interface: drops and errors a second",
        PACKETS,
        [
            series("system.network.packet.dropped", ONE_PORT, by, alias="dropped $tag_direction"),
            series("system.network.errors", ONE_PORT, by, alias="errors $tag_direction"),
            series("system.network.errors.by_kind", ONE_PORT, ("kind", *by), alias="errors $tag_kind $tag_direction"),
        ],
        "From the counters; on the right errors, all of them and by kind.",
        {"^errors ": of_unit("cps")},
    )
    return Section("Interface $interface", [Row(8, [(8, bits), (8, packets), (8, lost)])], repeat="interface")
