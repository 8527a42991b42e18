"""CPU, memory and processes of one device, with the load."""

# ruff: noqa: S608 - InfluxQL of our own names; what people choose is escaped by Grafana (${name:regex})

from __future__ import annotations

from grafana_foundation_sdk.models.dashboard import Panel

from soakwatch_dashboards.board import Row, Section
from soakwatch_dashboards.common import (
    HERE,
    LIMITS,
    LOAD_LINES,
    MEMORY_LINES,
    ONE_PROCESS,
    load,
    memory_of_all,
    memory_of_parts,
)
from soakwatch_dashboards.influx import TIME, Query, by_labels, series, spread, total
from soakwatch_dashboards.panels import Column, band, heat, lines, of_unit, rows
from soakwatch_dashboards.style import GREY, ORANGE, in_colour


def processes() -> Panel:
    """A table of the processes: memory now, at most, and its growth."""
    # Three queries, since an outer select of one query with two aggregates does not join them but doubles the rows.
    levels = [
        by_labels(
            (word,),
            f'SELECT {aggregate}("value") AS "{word}" FROM "process.memory.usage" WHERE {ONE_PROCESS} AND {TIME}',
            ("process", "instance"),
        )
        for word, aggregate in (("now", "last"), ("most", "max"))
    ]
    an_hour = by_labels(
        ("an hour",),
        'SELECT mean("rate") AS "an hour" FROM (SELECT derivative(mean("value"), 1h) AS "rate"'
        f' FROM "process.memory.usage" WHERE {ONE_PROCESS} AND {TIME}'
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


def cpu() -> Row:
    """CPU with the load, and a heat map of the cores."""
    levels = lines(
        "CPU, with the load",
        "percentunit",
        [
            series("system.cpu.utilization", HERE, ("target",), alias="total"),
            spread("system.cpu.core.utilization", HERE, ("core",), "core"),
            total("process.cpu.utilization", HERE, ("process", "instance"), "busiest process", of="max"),
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
    heat_map = heat(
        "Busy share per core", _cores(), "percentunit", "A row a core: the more colour, the busier. Empty: no samples."
    )
    return Row(9, [(12, levels), (12, heat_map)])


def _cores() -> list[Query]:
    # The database sorts names as text, 10 before 2; grouped by length they are in numeric order.
    return [
        *(
            series("system.cpu.core.utilization", f'{HERE} AND "core" =~ {length}', ("core",), alias="core $tag_core")
            for length in ("/^.$/", "/^..$/", "/^...+$/")
        ),
        series("system.cpu.module.utilization", HERE, ("module",), alias="module $tag_module"),
        series("system.cpu.utilization", HERE, ("target",), alias="total"),
    ]


def memory() -> Row:
    """Memory of processes and pools with the load, and all of it with its limits."""
    used = lines(
        "Memory of processes and pools, with the load",
        "bytes",
        [*memory_of_parts(HERE, ONE_PROCESS), *load()],
        "Resident memory of processes, and pools; on the right shares and the load. All of the memory and its limits"
        " stand beside it: a leak is flat under a limit of 16 GiB.",
        {**MEMORY_LINES, **LOAD_LINES},
    )
    every = lines(
        "All memory and its limits, swap and cache",
        "bytes",
        [
            *memory_of_all(HERE),
            series("system.memory.limit", HERE, ("target",), alias="limit of all memory"),
            series("system.memory.pool.limit", HERE, ("pool",), alias="limit of pool $tag_pool"),
            series(
                "system.memory.pool.largest_free", HERE, ("pool",), of="min", alias="largest free block of $tag_pool"
            ),
            series("system.memory.swap.usage", HERE, ("target",), alias="swap"),
            series("system.memory.swap.limit", HERE, ("target",), alias="limit of swap"),
            series("system.memory.cached", HERE, ("target",), alias="page cache"),
            series("system.memory.slab", HERE, ("target",), alias="slab"),
            series("system.memory.cache.usage", HERE, ("pool",), alias="cache of pool $tag_pool"),
        ],
        "All of it; memory that moves to the disk, and memory that the kernel gives back; red: limits; on the right"
        " shares.",
        {**MEMORY_LINES, **LIMITS},
    )
    return Row(9, [(14, used), (10, every)])


def modes() -> Section:
    """CPU time by mode, load average, context switches and interrupts."""
    modes = lines(
        "CPU time by mode",
        "percentunit",
        [series("system.cpu.time", HERE, ("mode",), alias="$tag_mode")],
        "100 % is one core: softirq, steal, iowait and the others.",
    )
    waiting = lines(
        "Load average and processes",
        "short",
        [
            series("system.cpu.load", HERE, ("minutes",), alias="load $tag_minutes min"),
            series("system.cpu.logical.count", HERE, ("target",), alias="limit: cores online"),
            series("system.processes", HERE, ("target",), alias="processes"),
        ],
        "Processes that run or wait; on the right all that there are.",
        {"^processes$": of_unit("short"), **LIMITS},
    )
    switches = lines(
        "Context switches, interrupts, processes started, a second",
        "cps",
        [
            series("system.context_switches", HERE, ("target",), alias="context switches"),
            total("system.interrupts", HERE, ("core",), "interrupts of all cores"),
            series("system.processes.created", HERE, ("target",), alias="processes started"),
        ],
        "Per second; threads count as processes. The axis is logarithmic with a zero.",
        small_and_large=True,
    )
    return Section("CPU by mode, load average", [Row(9, [(8, modes), (8, waiting), (8, switches)])])


def pressure() -> Section:
    """Linux's pressure stall information: what tasks wait for."""
    by = ("resource",)

    def stalled(extent: str) -> Query:
        where = f"{HERE} AND \"extent\" = '{extent}'"
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


def one_process() -> Section:
    """Memory, CPU, files and threads of each chosen process."""
    by = ("instance",)
    used = lines(
        "$process: memory, with the load",
        "bytes",
        [
            series("process.memory.usage", ONE_PROCESS, by, alias="resident $tag_instance"),
            series("process.memory.pss", ONE_PROCESS, by, alias="proportional $tag_instance"),
            series("process.memory.uss", ONE_PROCESS, by, alias="its own $tag_instance"),
            *load(),
        ],
        "Resident memory; proportional: shared pages divided by their users; its own: shared with nobody.",
        LOAD_LINES,
    )
    busy = lines(
        "$process: CPU, with the load",
        "percentunit",
        [series("process.cpu.utilization", ONE_PROCESS, by, alias="instance $tag_instance"), *load()],
        "100 % is one core.",
        LOAD_LINES,
    )
    files = lines(
        "$process: open files and threads",
        "short",
        [
            series("process.open_files", ONE_PROCESS, by, alias="files $tag_instance"),
            series("process.open_files.limit", ONE_PROCESS, by, alias="limit of files $tag_instance"),
            series("process.threads", ONE_PROCESS, by, alias="threads $tag_instance"),
        ],
        "Red: how many files it may open; on the right threads.",
        {"^threads ": of_unit("short"), **LIMITS},
    )
    return Section("Process $process", [Row(8, [(8, used), (8, busy), (8, files)])], repeat="process")
