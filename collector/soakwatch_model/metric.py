"""The one catalogue of metrics: name, unit, kind, range, quantum, and whether growth is bad.

Names follow the OpenTelemetry semantic conventions where they have the metric, and their style where they do not;
units are UCUM (``By``, ``s``, ``1`` = a ratio, ``{packet}``). Rules, reports, dashboards and the record take unit,
kind and direction from here and from nowhere else. A value outside its range is refused; a
utilisation that is beyond either end by at most ``SLACK`` is read as that end, never dropped: a container that is
saturated reads 100.06 to 101.2 %, for its CPU time and its clock are not read at the same moment.
"""

from __future__ import annotations

import math
from functools import cache

from soakwatch_model.flow import WHOLE
from soakwatch_model.metric_device import DEVICE
from soakwatch_model.metric_entry import (
    BOOT,
    COUNTER,
    DOWN,
    GAUGE,
    HELD_MEMORY,
    HOST_MEMORY,
    STATE,
    UP,
    Drops,
    Metric,
    entry,
)
from soakwatch_model.metric_hardware import HARDWARE
from soakwatch_model.metric_load import LOAD
from soakwatch_model.shown import (
    CPU,
    MEMORY,
    MONITOR_CPU,
    MONITOR_LAG,
    MONITOR_MEMORY,
    PROCESS_CPU,
    PROCESS_MEMORY,
    QUEUES,
    SESSIONS,
    THROUGHPUT,
    Figures,
    Shown,
)

__all__ = [
    "BY_NAME",
    "CATALOGUE",
    "COUNTER",
    "DOWN",
    "GAUGE",
    "SLACK",
    "STATE",
    "UP",
    "Metric",
    "clipped",
    "fault_of",
    "flows",
    "slack_of",
]

SLACK = 0.05
"""How far beyond its range a utilisation may be read: 105 % is read as 100 %, 106 % is a fault."""
ROUNDED = 0.001
"""The same of other shares, such as a loss: what rounding makes of 100 %."""

_PROCESS = ("process", "instance")

CATALOGUE: tuple[Metric, ...] = (
    # --- CPU -----------------------------------------------------------------------------------------------
    entry("system.cpu.time", "s", COUNTER, "CPU time of all cores by mode, since boot", "mode", quantum=0.01),
    entry(
        "system.cpu.core.time",
        "s",
        COUNTER,
        "CPU time of one core by mode, since boot",
        "core",
        "mode",
        quantum=0.01,
        every=10,
    ),
    entry(
        "system.cpu.utilization",
        "1",
        GAUGE,
        "busy share of all cores since the poll before",
        high=1.0,
        worse=UP,
        words="CPU",
        shown=Shown(CPU, usual=True),
        figures=Figures(180, ("system.cpu.utilization", "max(system.cpu.utilization)")),
        aligned=True,
    ),
    entry(
        "system.cpu.core.utilization",
        "1",
        GAUGE,
        "busy share of one core since the poll before",
        "core",
        high=1.0,
        worse=UP,
        words="CPU core",
        shown=Shown(CPU, usual=True),
    ),
    entry("system.cpu.frequency", "Hz", GAUGE, "current clock of one core", "core", every=10),
    entry(
        "system.cpu.load", "{process}", GAUGE, "run queue length averaged over 1, 5 or 15 minutes", "minutes", worse=UP
    ),
    entry("system.cpu.logical.count", "{cpu}", STATE, "cores online"),
    entry("system.context_switches", "{switch}", COUNTER, "context switches since boot"),
    entry("system.interrupts", "{interrupt}", COUNTER, "interrupts served by one core since boot", "core", every=10),
    entry(
        "system.processes",
        "{process}",
        GAUGE,
        "processes on the machine",
        growth=UP,
        quantum=1,
        words="number of processes",
    ),
    # --- memory --------------------------------------------------------------------------------------------
    entry("system.memory.limit", "By", STATE, "physical memory"),
    entry(
        "system.memory.usage",
        "By",
        GAUGE,
        "memory in use: total less available",
        growth=UP,
        quantum=4096,
        ceiling="system.memory.limit",
        words="memory in use",
        shown=Shown(MEMORY, usual=True),
        figures=Figures(190, ("slope(system.memory.usage)", "last(system.memory.usage)")),
        aligned=True,
        tells=HOST_MEMORY,
    ),
    entry(
        "system.memory.available",
        "By",
        GAUGE,
        "memory that can be had without swapping",
        growth=DOWN,
        quantum=4096,
        words="available memory",
        tells=HOST_MEMORY,
    ),
    entry("system.memory.cached", "By", GAUGE, "page cache and reclaimable slab", quantum=4096),
    entry("system.memory.slab", "By", GAUGE, "kernel slab, reclaimable or not", quantum=4096),
    entry(
        "system.memory.committed",
        "By",
        GAUGE,
        "address space promised to processes",
        growth=UP,
        quantum=4096,
        ceiling="system.memory.commit_limit",
        words="committed memory",
        tells=HOST_MEMORY,
    ),
    entry("system.memory.commit_limit", "By", GAUGE, "address space that may be promised", quantum=4096),
    entry(
        "system.memory.swap.usage",
        "By",
        GAUGE,
        "swap in use",
        growth=UP,
        quantum=4096,
        ceiling="system.memory.swap.limit",
        words="swap in use",
    ),
    entry("system.memory.swap.limit", "By", STATE, "swap space"),
    entry(
        "system.memory.oom_kills",
        "{kill}",
        COUNTER,
        "processes that the kernel killed because memory ran out",
        quantum=1,
        every=10,
        worse=UP,
        urgent=True,
    ),
    # --- network -------------------------------------------------------------------------------------------
    entry(
        "system.network.io",
        "By",
        COUNTER,
        "bytes through an interface",
        "interface",
        "direction",
        words="traffic",
        shown=Shown(THROUGHPUT, 6, usual=True),
    ),
    entry(
        "system.network.packets",
        "{packet}",
        COUNTER,
        "packets through an interface",
        "interface",
        "direction",
        words="packets",
        shown=Shown(THROUGHPUT, 7),
    ),
    entry("system.network.errors", "{error}", COUNTER, "interface errors", "interface", "direction", growth=UP),
    entry(
        "system.network.packet.dropped",
        "{packet}",
        COUNTER,
        "packets dropped at an interface",
        "interface",
        "direction",
        growth=UP,
        words="dropped packets",
        figures=Figures(230),
        aligned=True,
        drops=Drops("interfaces"),
    ),
    entry("system.softnet.processed", "{packet}", COUNTER, "packets handled by a core's receive softirq", "core"),
    entry(
        "system.softnet.dropped",
        "{packet}",
        COUNTER,
        "packets dropped because a core's backlog was full",
        "core",
        growth=UP,
        words="packets dropped before the stack",
        drops=Drops("softnet"),
    ),
    entry(
        "system.softnet.squeezed",
        "{event}",
        COUNTER,
        "receive softirq ended with work left",
        "core",
        worse=UP,
        usual="rate",
    ),
    entry(
        "system.udp.receive_errors",
        "{datagram}",
        COUNTER,
        "UDP datagrams lost on receive, by reason",
        "reason",
        growth=UP,
        drops=Drops("UDP"),
    ),
    entry(
        "system.tcp.receive_errors",
        "{segment}",
        COUNTER,
        "TCP segments or connections lost on receive, by reason",
        "reason",
        growth=UP,
        drops=Drops("TCP"),
    ),
    entry("system.tcp.retransmits", "{segment}", COUNTER, "TCP segments sent again", worse=UP, usual="rate"),
    entry(
        "system.conntrack.count",
        "{connection}",
        GAUGE,
        "entries in the connection table",
        growth=UP,
        quantum=1,
        ceiling="system.conntrack.limit",
        words="number of tracked connections",
        by_load=True,
        shown=Shown(SESSIONS, 2),
    ),
    entry("system.conntrack.limit", "{connection}", STATE, "size of the connection table", every=10),
    # --- queues ------------------------------------------------------------------------------------------------
    entry(
        "queue.depth",
        "{packet}",
        GAUGE,
        "packets waiting in a queue",
        "queue",
        growth=UP,
        quantum=1,
        ceiling="queue.limit",
        words="queue depth",
        by_load=True,
        shown=Shown(QUEUES),
        aligned=True,
    ),
    entry("queue.limit", "{packet}", STATE, "packets that a queue holds at most", "queue"),
    entry(
        "queue.dropped",
        "{packet}",
        COUNTER,
        "packets that a queue dropped",
        "queue",
        growth=UP,
        words="queue drops",
        figures=Figures(250),
        aligned=True,
        drops=Drops("queues"),
    ),
    # --- disk ----------------------------------------------------------------------------------------------
    entry("system.disk.io", "By", COUNTER, "bytes through a disk", "device", "direction"),
    entry("system.disk.operations", "{operation}", COUNTER, "operations of a disk", "device", "direction"),
    entry("system.disk.io_time", "s", COUNTER, "time a disk was busy", "device"),
    entry(
        "system.filesystem.usage",
        "By",
        GAUGE,
        "space in use on a mounted filesystem",
        "mountpoint",
        growth=UP,
        quantum=4096,
        every=10,
        ceiling="system.filesystem.limit",
        words="file system",
    ),
    entry("system.filesystem.limit", "By", STATE, "size of a mounted filesystem", "mountpoint", every=10),
    # --- sensors -------------------------------------------------------------------------------------------
    entry(
        "system.temperature",
        "Cel",
        GAUGE,
        "temperature of a sensor",
        "sensor",
        low=-100.0,
        high=250.0,
        every=10,
        worse=UP,
        words="temperature",
    ),
    # --- life and crashes ----------------------------------------------------------------------------------
    entry(
        "system.boot.id", "1", STATE, "first 48 bits of the kernel's random boot id", every=60, tells=BOOT, urgent=True
    ),
    entry("system.boot.time", "s", STATE, "time of boot, seconds since 1970", every=60, tells=BOOT),
    entry("system.uptime", "s", GAUGE, "time since boot", words="uptime", tells=BOOT),
    entry(
        "system.core.files",
        "{file}",
        GAUGE,
        "core files in the core folder",
        "folder",
        quantum=1,
        every=2,
        worse=UP,
        urgent=True,
    ),
    entry(
        "system.kernel.alarms",
        "{line}",
        COUNTER,
        "kernel log lines that mean OOM, segfault, panic, lockup, hardware error …, since the agent started to read",
        "kind",
        worse=UP,
        urgent=True,
    ),
    # --- processes -----------------------------------------------------------------------------------------
    entry(
        "process.up",
        "1",
        STATE,
        "1 while the watched process runs, 0 while it does not",
        *_PROCESS,
        high=1.0,
        worse=DOWN,
        urgent=True,
    ),
    entry(
        "process.child",
        "1",
        STATE,
        "1 where the process that started it is watched by the same watch (a worker, a session), else 0",
        *_PROCESS,
        high=1.0,
    ),
    entry("process.count", "{process}", GAUGE, "processes that match a watch", "process", quantum=1),
    entry("process.start_time", "s", STATE, "start of the watched process, seconds since 1970", *_PROCESS, urgent=True),
    entry("process.pid", "1", STATE, "pid of the watched process", *_PROCESS),
    entry("process.state", "1", STATE, "state letter of the process as its character code (82 = R, 90 = Z)", *_PROCESS),
    entry(
        "process.cpu.time",
        "s",
        COUNTER,
        "CPU time of the process by mode",
        *_PROCESS,
        "mode",
        quantum=0.01,
        worse=UP,
        usual="rate",
    ),
    entry(
        "process.cpu.utilization",
        "1",
        GAUGE,
        "CPU of the process since the poll before; 1 = one core",
        *_PROCESS,
        worse=UP,
        words="CPU",
        shown=Shown(PROCESS_CPU, usual=True),
        figures=Figures(210),
        aligned=True,
    ),
    entry(
        "process.memory.usage",
        "By",
        GAUGE,
        "resident memory (RSS)",
        *_PROCESS,
        growth=UP,
        quantum=4096,
        ceiling="system.memory.limit",
        words="memory",
        shown=Shown(PROCESS_MEMORY, usual=True),
        figures=Figures(200, ("slope(process.memory.usage)", "last(process.memory.usage)")),
        aligned=True,
        tells=HELD_MEMORY,
    ),
    entry(
        "process.memory.pss",
        "By",
        GAUGE,
        "resident memory, shared pages divided by their users",
        *_PROCESS,
        growth=UP,
        quantum=1024,
        every=30,
        ceiling="system.memory.limit",
        words="memory (PSS)",
        shown=Shown(PROCESS_MEMORY, 2, usual=True),
        tells=HELD_MEMORY,
    ),
    entry(
        "process.memory.uss",
        "By",
        GAUGE,
        "memory that only this process has",
        *_PROCESS,
        growth=UP,
        quantum=1024,
        every=30,
        ceiling="system.memory.limit",
        words="memory (USS)",
        tells=HELD_MEMORY,
    ),
    entry("process.memory.virtual", "By", GAUGE, "address space", *_PROCESS, quantum=4096),
    entry("process.threads", "{thread}", GAUGE, "threads", *_PROCESS, growth=UP, quantum=1, words="number of threads"),
    entry(
        "process.open_files",
        "{descriptor}",
        GAUGE,
        "open file descriptors",
        *_PROCESS,
        growth=UP,
        quantum=1,
        ceiling="process.open_files.limit",
        words="number of open files",
    ),
    entry(
        "process.open_files.limit",
        "{descriptor}",
        STATE,
        "descriptors it may open (RLIMIT_NOFILE)",
        *_PROCESS,
        every=30,
    ),
    *LOAD,
    *DEVICE,
    *HARDWARE,
    # --- the monitor itself --------------------------------------------------------------------------------
    entry("monitor.cpu.time", "s", COUNTER, "CPU time of the collector", shown=Shown(MONITOR_CPU)),
    entry(
        "monitor.memory.usage",
        "By",
        GAUGE,
        "resident memory of the collector",
        growth=UP,
        quantum=4096,
        words="memory of the monitor",
        shown=Shown(MONITOR_MEMORY),
    ),
    entry(
        "monitor.open_files",
        "{descriptor}",
        GAUGE,
        "open descriptors of the collector",
        growth=UP,
        quantum=1,
        words="number of open files of the monitor",
    ),
    entry(
        "monitor.threads",
        "{thread}",
        GAUGE,
        "threads of the collector",
        growth=UP,
        quantum=1,
        words="number of threads of the monitor",
    ),
    entry(
        "monitor.loop.lag",
        "s",
        GAUGE,
        "how late the collector's event loop ran at worst since the poll before",
        shown=Shown(MONITOR_LAG),
    ),
    entry("monitor.record.size", "By", GAUGE, "bytes of the record on disk"),
    entry("monitor.disk.free", "By", GAUGE, "free space where the record lies", growth=None),
    entry("monitor.polls", "{poll}", COUNTER, "polls by how they ended", "outcome"),
    entry(
        "monitor.sink.lag",
        "s",
        GAUGE,
        "age of the oldest sample that a sink has not written yet",
        "sink",
        shown=Shown(MONITOR_LAG),
    ),
    entry("monitor.sink.backlog", "{poll}", GAUGE, "recorded polls that a sink has not written yet", "sink"),
    entry("monitor.sink.written", "{line}", COUNTER, "lines that a sink has written", "sink"),
    entry("monitor.sink.rejected", "{line}", COUNTER, "lines that a sink's database refused for good", "sink"),
    entry("monitor.clock.offset", "s", GAUGE, "wall clock less steady clock: a step is a jump here", low=None),
)

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in CATALOGUE}


@cache
def flows(side: str, *what: str, kind: str | None = None, scope: str = WHOLE) -> tuple[str, ...]:
    """The names of the metrics that tell one side of the traffic, counters before rates; of some ``what``, or of all.

    >>> from soakwatch_model.flow import BACK, LOST, SENT
    >>> flows(SENT, "packets"), flows(BACK, "requests", kind=COUNTER)
    (('load.tx.packets', 'load.tx.packet.rate'), ('load.requests',))
    >>> flows(LOST)
    ('load.lost.packets', 'load.loss')
    """
    found = [
        metric
        for metric in CATALOGUE
        if metric.flow is not None and metric.flow.side == side and metric.flow.scope == scope
        if (not what or metric.flow.what in what) and kind in {None, metric.kind}
    ]
    return tuple(metric.name for metric in sorted(found, key=lambda metric: metric.kind != COUNTER))


_SLACKS = {
    metric.name: SLACK if metric.name.endswith("utilization") else ROUNDED
    for metric in CATALOGUE
    if metric.unit == "1" and metric.kind == GAUGE and metric.high == 1.0
}


def slack_of(name: str) -> float:
    """How far beyond its range a reading may be to be read as the end of the range: 0 for all but shares.

    >>> slack_of("system.cpu.utilization"), slack_of("load.loss"), slack_of("system.memory.usage")
    (0.05, 0.001, 0.0)
    """
    return _SLACKS.get(name, 0.0)


def clipped(name: str, value: float) -> float:
    """A reading, or the end of its range where it is a share a little beyond it.

    >>> clipped("system.cpu.utilization", 1.012), clipped("system.cpu.utilization", 1.2)
    (1.0, 1.2)
    >>> clipped("system.cpu.utilization", -0.0002), clipped("process.cpu.utilization", 1.012)
    (0.0, 1.012)
    """
    if 0.0 <= value <= 1.0 or name not in _SLACKS:
        return value
    slack = _SLACKS[name]
    if 1.0 < value <= 1.0 + slack:
        return 1.0
    return 0.0 if -slack <= value < 0.0 else value


def fault_of(name: str, value: float) -> str | None:
    """Why a reading cannot be, in one sentence; None if it can.

    >>> fault_of("system.cpu.utilization", 1.2)
    'system.cpu.utilization cannot be 1.2: the catalogue allows 0.0 to 1.0'
    >>> fault_of("system.cpu.utilization", 0.2) is None
    True
    """
    metric = BY_NAME.get(name)
    if metric is None:
        return f"{name} is not in the catalogue"
    if not math.isfinite(value):
        return f"{name} cannot be {value}: a reading is a finite number"
    low, high, slack = metric.low, metric.high, slack_of(name)
    if (low is not None and value < low - slack) or (high is not None and value > high + slack):
        bounds = f"{'no bound' if low is None else low} to {'no bound' if high is None else high}"
        return f"{name} cannot be {value}: the catalogue allows {bounds}"
    return None
