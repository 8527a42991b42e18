"""The dashboard of one device: cores, memory, processes, interfaces, queues, power, hardware, kernel."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import DynamicConfigValue, Panel

from soakwatch_dashboards.board import (
    DEVICE_UID,
    INTERFACE,
    PROCESS,
    RUN,
    Board,
    Row,
    Section,
    marks,
    targets,
    variable,
)
from soakwatch_dashboards.common import (
    LOAD_LINES,
    MEMORY_LINES,
    coverage,
    coverage_share,
    dropped,
    findings,
    load,
    memory_of_all,
    memory_of_parts,
    phases,
    rule_states,
)
from soakwatch_dashboards.hardware import hardware
from soakwatch_dashboards.influx import TIME, Query, by_labels, increase, largest, one_of, series, spread, tag_is, total
from soakwatch_dashboards.panels import (
    Column,
    band,
    bars,
    figure,
    heat,
    limit_line,
    lines,
    of_unit,
    rows,
    strip,
)
from soakwatch_dashboards.style import GREEN, GREY, ORANGE, PACKETS, PER_SECOND, RED, UPNESS, WRITABLE, in_colour

_HERE = one_of("run", "target")
_PROCESS = one_of("run", "target", "process")
_PORT = one_of("run", "target", "interface")
LIMITS = {"^limit": limit_line()}
STRIP_ROWS = 12
"""Number of rows in a strip whose names fit."""
WORST_UP = variable(
    "worst_process",
    "Processes that were down most",
    largest(
        STRIP_ROWS,
        "process",
        f'SELECT 1 - mean("value") AS "size" FROM "process.up" WHERE {_HERE} AND {TIME} GROUP BY "process", "instance"',
    ),
    hidden=True,
    all_value="",
)
"""The processes in the strip: those that were down longest."""


WORST_PORT = variable(
    "worst_interface",
    "Interfaces that were down most",
    largest(
        STRIP_ROWS,
        "interface",
        f'SELECT 2 * max("value") - mean("value") AS "size" FROM "system.network.up" WHERE {_PORT} AND {TIME}'
        ' GROUP BY "interface"',
        where='"size" > 0',
    ),
    hidden=True,
    all_value="",
)
"""The interfaces in the strip: those that were up at some time and down longest. A port that nobody uses is down all
the time, which is no news."""


def _processes() -> Panel:
    # Three queries, since an outer select of one query with two aggregates does not join them but doubles the rows.
    levels = [
        by_labels(
            (word,),
            f'SELECT {aggregate}("value") AS "{word}" FROM "process.memory.usage" WHERE {_PROCESS} AND {TIME}',
            ("process", "instance"),
        )
        for word, aggregate in (("now", "last"), ("most", "max"))
    ]
    an_hour = by_labels(
        ("an hour",),
        'SELECT mean("rate") AS "an hour" FROM (SELECT derivative(mean("value"), 1h) AS "rate"'
        f' FROM "process.memory.usage" WHERE {_PROCESS} AND {TIME}'
        ' GROUP BY time($__interval), "process", "instance" fill(none))',
        ("process", "instance"),
    )
    columns = {
        "Time": Column(hidden=True),
        "process": Column("Process"),
        "instance": Column("Instance", width=90),
        "now": Column("Memory now", "bytes"),
        "most": Column("At most", "bytes"),
        "an hour": Column("Growth per hour", "bytes"),
    }
    return rows(
        "Processes",
        [*levels, an_hour],
        columns,
        "Resident memory; growth is the mean of the view.",
        sorted_by=("Growth per hour",),
    )


def _exhaustion() -> Panel:
    query = Query(
        'SELECT "forecast_after_s", "forecast_low_s", "metric", "object", "forecast_what", "begin_ms", "end_ms"'
        f' FROM "soakwatch_finding" WHERE {_HERE} AND "forecast_after_s" >= 0',
        table=True,
    )
    columns = {
        "Time": Column(hidden=True),
        "forecast_after_s": Column("Exhausted in", "dtdurations", width=150, decimals=1),
        "forecast_low_s": Column("At the earliest in", "dtdurations", width=150, decimals=1),
        "metric": Column("Metric", width=180),
        "object": Column("Object"),
        "forecast_what": Column("Limit"),
        "begin_ms": Column(hidden=True),
        "end_ms": Column(hidden=True),
    }
    return rows(
        "Time to exhaustion", [query], columns, "From the rules of growth, counted from the end of their window."
    )


def _top() -> Row:
    busy = [
        Query(f'SELECT max("value") AS "busiest" FROM "system.cpu.{part}utilization" WHERE {_HERE} AND {TIME}', word)
        for part, word in (("core.", "core"), ("module.", "module"), ("", "total"))
    ]
    used = [
        Query(f'SELECT last("value") AS "{word}" FROM "system.memory.{part}" WHERE {_HERE} AND {TIME}', word)
        for part, word in (("usage", "in use"), ("utilization", "share"))
    ]
    since = Query(f'SELECT last("value") AS "uptime" FROM "system.uptime" WHERE {_HERE} AND {TIME}')
    answered = Query(f'SELECT mean("ok") AS "answered" FROM "soakwatch_poll" WHERE {_HERE} AND {TIME}')
    hot = ((None, GREEN), (0.8, ORANGE), (0.95, RED))
    short = ((None, RED), (0.95, ORANGE), (0.99, GREEN))
    in_bytes = {"^share$": [DynamicConfigValue("unit", "percentunit")]}
    return Row(
        4,
        [
            (
                8,
                figure(
                    "CPU, at most",
                    busy,
                    "The busiest poll of the view, of a core, a module, and all of it.",
                    "percentunit",
                    limits=hot,
                    decimals=0,
                ),
            ),
            (
                6,
                figure(
                    "Memory in use",
                    used,
                    "The last sample, in bytes or as a share.",
                    "bytes",
                    overrides=in_bytes,
                ),
            ),
            (5, figure("Uptime", since, "Since the last boot.", "dtdurations", decimals=1)),
            (5, figure("Polls answered", answered, "Share of the due polls.", "percentunit", limits=short)),
        ],
    )


def _cores() -> list[Query]:
    # The database sorts names as text, 10 before 2; grouped by length they are in numeric order.
    return [
        *(
            series("system.cpu.core.utilization", f'{_HERE} AND "core" =~ {length}', ("core",), alias="core $tag_core")
            for length in ("/^.$/", "/^..$/", "/^...+$/")
        ),
        series("system.cpu.module.utilization", _HERE, ("module",), alias="module $tag_module"),
        series("system.cpu.utilization", _HERE, ("target",), alias="total"),
    ]


def _cpu() -> Panel:
    return lines(
        "CPU, with the load",
        "percentunit",
        [
            series("system.cpu.utilization", _HERE, ("target",), alias="total"),
            spread("system.cpu.core.utilization", _HERE, ("core",), "core"),
            total("process.cpu.utilization", _HERE, ("process", "instance"), "busiest process", of="max"),
            *load(),
        ],
        "All cores; the busiest, the median and the idlest as a band; the busiest process, of which 100 % is one core.",
        {
            "^highest core$": [in_colour(ORANGE), *band("lowest core")],
            "^(median|lowest) core$": [in_colour(GREY)],
            **LOAD_LINES,
        },
        1.0,
    )


def _memory() -> Row:
    used = lines(
        "Memory of processes and pools, with the load",
        "bytes",
        [*memory_of_parts(_HERE, _PROCESS), *load()],
        "Resident memory of processes, and pools; on the right shares and the load. All of the memory and its limits"
        " stand beside it: a leak is flat under a limit of 16 GiB.",
        {**MEMORY_LINES, **LOAD_LINES},
    )
    every = lines(
        "All memory and its limits, swap and cache",
        "bytes",
        [
            *memory_of_all(_HERE),
            series("system.memory.limit", _HERE, ("target",), alias="limit of all memory"),
            series("system.memory.pool.limit", _HERE, ("pool",), alias="limit of pool $tag_pool"),
            series(
                "system.memory.pool.largest_free", _HERE, ("pool",), of="min", alias="largest free block of $tag_pool"
            ),
            series("system.memory.swap.usage", _HERE, ("target",), alias="swap"),
            series("system.memory.swap.limit", _HERE, ("target",), alias="limit of swap"),
            series("system.memory.cached", _HERE, ("target",), alias="page cache"),
            series("system.memory.slab", _HERE, ("target",), alias="slab"),
            series("system.memory.cache.usage", _HERE, ("pool",), alias="cache of pool $tag_pool"),
        ],
        "All of it; memory that moves to the disk, and memory that the kernel gives back; red: limits; on the right"
        " shares.",
        {**MEMORY_LINES, **LIMITS},
    )
    return Row(9, [(14, used), (10, every)])


def _modes() -> Section:
    modes = lines(
        "CPU time by mode",
        "percentunit",
        [series("system.cpu.time", _HERE, ("mode",), alias="$tag_mode")],
        "100 % is one core: softirq, steal, iowait and the others.",
    )
    waiting = lines(
        "Load average and processes",
        "short",
        [
            series("system.cpu.load", _HERE, ("minutes",), alias="load $tag_minutes min"),
            series("system.cpu.logical.count", _HERE, ("target",), alias="limit: cores online"),
            series("system.processes", _HERE, ("target",), alias="processes"),
        ],
        "Processes that run or wait; on the right all that there are.",
        {"^processes$": of_unit("short"), **LIMITS},
    )
    switches = lines(
        "Context switches, interrupts, processes started, a second",
        "cps",
        [
            series("system.context_switches", _HERE, ("target",), alias="context switches"),
            total("system.interrupts", _HERE, ("core",), "interrupts of all cores"),
            series("system.processes.created", _HERE, ("target",), alias="processes started"),
        ],
        "Per second; threads count as processes. The axis is logarithmic with a zero.",
        small_and_large=True,
    )
    return Section("CPU by mode, load average", [Row(9, [(8, modes), (8, waiting), (8, switches)])])


def _pressure() -> Section:
    """Linux's pressure stall information: what tasks wait for."""
    by = ("resource",)

    def stalled(extent: str) -> Query:
        where = f"{_HERE} AND \"extent\" = '{extent}'"
        return series("system.pressure.time", where, by, alias="$tag_resource")

    some = lines(
        "Time in which some work waited, with the load",
        "percentunit",
        [stalled("some"), *load()],
        "Share of the time in which at least one task waited for CPU, memory or io. Empty: this kernel does not say.",
        LOAD_LINES,
    )
    full = lines(
        "Time in which all work waited, with the load",
        "percentunit",
        [stalled("full"), *load()],
        "Share of the time in which nothing went on because of memory, io or interrupts: lost time.",
        LOAD_LINES,
    )
    return Section("Pressure stalls: waiting for CPU, memory, io", [Row(9, [(12, some), (12, full)])])


def _trouble() -> Section:
    happened = bars(
        "OOM kills, kernel alarms, restarts, core files",
        [
            increase("system.memory.oom_kills", _HERE, ("target",), "OOM kill"),
            increase("system.kernel.alarms", _HERE, ("kind",), "kernel: $tag_kind"),
            increase("system.service.restarts", _HERE, ("service",), "restart of $tag_service"),
            increase("system.memory.pool.failures", _HERE, ("pool",), "memory refused by pool $tag_pool"),
            increase("system.core.files", _HERE, ("folder",), "core file in $tag_folder"),
            increase("system.agent.boots", _HERE, ("target",), "restart of the SNMP engine"),
        ],
        "How many in each interval.",
    )
    uptime = lines(
        "Uptime",
        "s",
        [
            series("system.uptime", _HERE, ("target",), alias="device"),
            series("system.module.uptime", _HERE, ("module",), alias="module $tag_module"),
            series("system.agent.uptime", _HERE, ("target",), alias="SNMP agent"),
        ],
        "A fall is a reboot.",
    )
    return Section("Crashes and reboots", [Row(9, [(16, happened), (8, uptime)])], collapsed=False)


def _states() -> tuple[Row, ...]:
    processes = Query(
        f'SELECT min("value") AS "up" FROM "process.up" WHERE {_HERE} AND {TIME}'
        f" AND {tag_is('process', 'worst_process')}"
        ' GROUP BY time($__interval), "process", "instance" fill(null)',
        "$tag_process $tag_instance",
    )
    interfaces = Query(
        f'SELECT min("value") AS "up" FROM "system.network.up" WHERE {_HERE} AND {TIME}'
        f" AND {tag_is('interface', 'worst_interface')}"
        ' GROUP BY time($__interval), "interface" fill(null)',
        "$tag_interface",
    )
    peers = Query(
        f'SELECT min("value") AS "up" FROM "reach.up" WHERE {_HERE} AND {TIME}'
        ' GROUP BY time($__interval), "peer", "protocol" fill(null)',
        "$tag_peer $tag_protocol",
    )
    return (
        Row(
            8,
            [
                (
                    12,
                    strip(
                        "Processes that run",
                        processes,
                        UPNESS,
                        f"Red: the watched process was not there. The {STRIP_ROWS} that were down longest.",
                    ),
                ),
                (
                    12,
                    strip(
                        "Interfaces that are up",
                        interfaces,
                        UPNESS,
                        f"Red: the interface was down. Of those that were up at some time the {STRIP_ROWS} that were"
                        " down longest.",
                    ),
                ),
            ],
        ),
        Row(
            6,
            [
                (12, strip("Peers that answer", peers, UPNESS, "Red: a peer did not answer.")),
                (
                    12,
                    lines(
                        "Round trip to the peers, and what they did not answer",
                        "s",
                        [
                            series("reach.round_trip", _HERE, ("peer", "protocol")),
                            series("reach.lost", _HERE, ("peer", "protocol"), alias="lost of $tag_peer $tag_protocol"),
                        ],
                        "Time to an answer; on the right the probes a second that had none.",
                        {"^lost of ": of_unit(PACKETS)},
                    ),
                ),
            ],
        ),
    )


def _sessions() -> Section:
    """Sessions of the device with neighbours: BGP, OSPF, tunnels."""
    up = Query(
        f'SELECT min("value") AS "up" FROM "network.session.up" WHERE {_HERE} AND {TIME}'
        ' GROUP BY time($__interval), "protocol", "peer", "context" fill(null)',
        "$tag_protocol $tag_peer $tag_context",
    )
    by = ("protocol", "peer", "context")
    flaps = bars(
        "Changes of sessions",
        [increase("network.session.flaps", _HERE, by, "$tag_protocol $tag_peer $tag_context")],
        "How many times each session changed in each interval.",
    )
    prefixes = lines(
        "Prefixes of sessions, with the load",
        "short",
        [
            series("network.session.prefixes", _HERE, (*by, "family"), alias="$tag_protocol $tag_peer $tag_family"),
            *load(),
        ],
        "That each neighbour sent.",
        LOAD_LINES,
    )
    age = lines(
        "Age of sessions",
        "s",
        [series("network.session.uptime", _HERE, by, of="min")],
        "Since each was established: a fall is a flap.",
    )
    return Section(
        "Sessions with neighbours: BGP, OSPF, tunnels, redundancy",
        [
            Row(8, [(12, strip("Sessions that are up", up, UPNESS, "Red: the session was down.")), (12, flaps)]),
            Row(8, [(12, prefixes), (12, age)]),
        ],
    )


def _network() -> Section:
    stack = lines(
        "TCP and UDP, a second",
        "cps",
        [
            series("system.tcp.retransmits", _HERE, ("target",), alias="TCP segments sent again"),
            series("system.tcp.receive_errors", _HERE, ("reason",), alias="TCP $tag_reason"),
            series("system.udp.receive_errors", _HERE, ("reason",), alias="UDP $tag_reason"),
        ],
        "Segments sent again, and what was lost on receive.",
        small_and_large=True,
    )
    softnet = lines(
        "Receive softirq, a second",
        PER_SECOND,
        [
            total("system.softnet.processed", _HERE, ("core",), "processed"),
            total("system.softnet.squeezed", _HERE, ("core",), "ended with work left"),
            total("system.softnet.dropped", _HERE, ("core",), "dropped"),
        ],
        "Of all cores.",
        small_and_large=True,
    )
    table = lines(
        "Connection table",
        "short",
        [
            series("system.conntrack.count", _HERE, ("target",), alias="entries"),
            series("system.conntrack.limit", _HERE, ("target",), alias="limit"),
        ],
        "Entries of the kernel's connection tracking; red: its size.",
        LIMITS,
    )
    sockets = lines(
        "Sockets, with the load",
        "short",
        [
            series("system.sockets.usage", _HERE, ("protocol",), alias="in use: $tag_protocol"),
            series("system.sockets.allocated", _HERE, ("target",), alias="of all kinds"),
            series("system.tcp.allocated", _HERE, ("target",), alias="TCP that exist"),
            series("system.tcp.time_wait", _HERE, ("target",), alias="TCP in TIME-WAIT"),
            series("system.tcp.orphans", _HERE, ("target",), alias="TCP orphans"),
            *load(),
        ],
        "In use by protocol, all kinds together as well; connections that are closing.",
        LOAD_LINES,
    )
    orphans = lines(
        "TCP orphans",
        "short",
        [
            series("system.tcp.orphans", _HERE, ("target",), alias="orphans"),
            series("system.tcp.orphans.limit", _HERE, ("target",), alias="limit"),
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
            series("system.sockets.memory", _HERE, ("protocol",), alias="$tag_protocol"),
            series("system.sockets.memory.limit", _HERE, ("protocol",), alias="limit of $tag_protocol"),
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


def _disks() -> Section:
    filled = lines(
        "File systems",
        "bytes",
        [
            series("system.filesystem.usage", _HERE, ("mountpoint",), alias="$tag_mountpoint"),
            series("system.filesystem.limit", _HERE, ("mountpoint",), alias="limit of $tag_mountpoint"),
        ],
        "Space in use; red: the size.",
        LIMITS,
    )
    through = lines(
        "Disks: bytes a second",
        "binBps",
        [series("system.disk.io", _HERE, ("device", "direction"))],
        "Read and written.",
    )
    busy = lines(
        "Disks: busy",
        "percentunit",
        [
            series("system.disk.io_time", _HERE, ("device",), alias="busy $tag_device"),
            series(
                "system.disk.operations", _HERE, ("device", "direction"), alias="operations $tag_device $tag_direction"
            ),
        ],
        "Share of the time; on the right operations a second.",
        {"^operations ": of_unit("cps")},
        1.0,
    )
    inodes = lines(
        "Inodes",
        "short",
        [
            series("system.filesystem.inodes.usage", _HERE, ("mountpoint",), alias="$tag_mountpoint"),
            series("system.filesystem.inodes.limit", _HERE, ("mountpoint",), alias="limit of $tag_mountpoint"),
        ],
        "Files and folders of each file system; red: how many there may be, whatever space is free. The axis is"
        " logarithmic with a zero.",
        LIMITS,
        small_and_large=True,
    )
    writable = strip(
        "File systems that can be written",
        Query(
            f'SELECT min("value") AS "writable" FROM "system.filesystem.writable" WHERE {_HERE} AND {TIME}'
            ' GROUP BY time($__interval), "mountpoint" fill(null)',
            "$tag_mountpoint",
        ),
        WRITABLE,
        "Red: read-only, as the kernel makes it after an error of the disk.",
    )
    return Section(
        "Disks and file systems",
        [Row(9, [(8, filled), (8, inodes), (8, writable)]), Row(9, [(12, through), (12, busy)])],
    )


def _queues() -> Row:
    drops = lines(
        "Drops a second, with the load",
        PACKETS,
        [*dropped(_HERE), *load()],
        "Place by place, as the device counts; the left axis is logarithmic with a zero.",
        LOAD_LINES,
        small_and_large=True,
    )
    queues = lines(
        "Queues",
        "short",
        [
            series("queue.depth", _HERE, ("queue",), alias="depth $tag_queue"),
            series("queue.limit", _HERE, ("queue",), alias="limit of $tag_queue"),
            series("queue.dropped", _HERE, ("queue",), alias="dropped $tag_queue"),
        ],
        "Packets waiting; red: how many a queue holds; on the right drops a second.",
        {"^dropped ": of_unit(PACKETS), **LIMITS},
    )
    sessions = lines(
        "Sessions, with the load",
        "short",
        [
            series("system.sessions", _HERE, ("table",), alias="sessions $tag_table"),
            series("system.sessions.limit", _HERE, ("table",), alias="limit of $tag_table"),
            *load(),
        ],
        "Connections that a firewall, a NAT or a balancer keeps; red: the size of the table.",
        {**LIMITS, **LOAD_LINES},
    )
    return Row(9, [(8, drops), (8, queues), (8, sessions)])


def _one_process() -> Section:
    by = ("instance",)
    used = lines(
        "$process: memory, with the load",
        "bytes",
        [
            series("process.memory.usage", _PROCESS, by, alias="resident $tag_instance"),
            series("process.memory.pss", _PROCESS, by, alias="proportional $tag_instance"),
            series("process.memory.uss", _PROCESS, by, alias="its own $tag_instance"),
            *load(),
        ],
        "Resident memory; proportional: shared pages divided by their users; its own: shared with nobody.",
        LOAD_LINES,
    )
    busy = lines(
        "$process: CPU, with the load",
        "percentunit",
        [series("process.cpu.utilization", _PROCESS, by, alias="instance $tag_instance"), *load()],
        "100 % is one core.",
        LOAD_LINES,
    )
    files = lines(
        "$process: open files and threads",
        "short",
        [
            series("process.open_files", _PROCESS, by, alias="files $tag_instance"),
            series("process.open_files.limit", _PROCESS, by, alias="limit of files $tag_instance"),
            series("process.threads", _PROCESS, by, alias="threads $tag_instance"),
        ],
        "Red: how many files it may open; on the right threads.",
        {"^threads ": of_unit("short"), **LIMITS},
    )
    return Section("Process $process", [Row(8, [(8, used), (8, busy), (8, files)])], repeat="process")


def _one_interface() -> Section:
    by = ("direction",)
    bits = lines(
        "$interface: traffic, with the load",
        "bps",
        [
            series("system.network.io", _PORT, by, times="8", alias="$tag_direction"),
            series("system.network.speed", _PORT, ("interface",), alias="limit: its speed"),
            *load(),
        ],
        "From the byte counters; red: the speed of the interface; dashed: the load.",
        {**LIMITS, **LOAD_LINES},
    )
    packets = lines(
        "$interface: packets, with the load",
        PACKETS,
        [series("system.network.packets", _PORT, by, alias="$tag_direction"), *load()],
        "From the packet counters, with the load.",
        LOAD_LINES,
    )
    lost = lines(
        "$interface: drops and errors a second",
        PACKETS,
        [
            series("system.network.packet.dropped", _PORT, by, alias="dropped $tag_direction"),
            series("system.network.errors", _PORT, by, alias="errors $tag_direction"),
            series("system.network.errors.by_kind", _PORT, ("kind", *by), alias="errors $tag_kind $tag_direction"),
        ],
        "From the counters; on the right errors, all of them and by kind.",
        {"^errors ": of_unit("cps")},
    )
    return Section("Interface $interface", [Row(8, [(8, bits), (8, packets), (8, lost)])], repeat="interface")


def board() -> Board:
    """The dashboard *Device*."""
    heat_map = heat(
        "Busy share per core", _cores(), "percentunit", "A row a core: the more colour, the busier. Empty: no samples."
    )
    latency = lines(
        "Latency, with the load",
        "s",
        [series("load.latency", one_of("run"), ("target", "quantile"), alias="$tag_quantile $tag_target"), *load()],
        "Percentiles that the generators measured.",
        LOAD_LINES,
    )
    return Board(
        DEVICE_UID,
        "Soakwatch · Device",
        "One device in depth: cores, memory, processes, interfaces, queues, power, hardware. Sections open by a click.",
        [
            _top(),
            Row(3, [(12, phases()), (12, coverage_share(_HERE))]),
            Row(6, [(24, rule_states(_HERE))]),
            Row(
                7,
                [
                    (
                        24,
                        findings(
                            _HERE, "What failed and warned on this device; the name of a rule leads to its window."
                        ),
                    )
                ],
            ),
            Row(9, [(12, _cpu()), (12, heat_map)]),
            _memory(),
            Row(8, [(12, _processes()), (12, _exhaustion())]),
            _queues(),
            Row(8, [(24, latency)]),
            _trouble(),
            *_states(),
            _sessions(),
            hardware(),
            _modes(),
            _pressure(),
            _network(),
            _disks(),
            Section("Coverage by source", [Row(8, [(24, coverage(_HERE))])]),
            _one_process(),
            _one_interface(),
        ],
        [RUN, targets(many=False), PROCESS, INTERFACE, WORST_UP, WORST_PORT],
        marks(),
    )
