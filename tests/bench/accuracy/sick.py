"""Sick lives: what is done to a healthy night; its memory, processes, tables and CPU, and the death of the device."""

from __future__ import annotations

import math

import numpy as np
from tests.bench.accuracy.lives import restart
from tests.bench.accuracy.night import DUT, TG, Floats, Key, Night, Source, rewired
from tests.bench.accuracy.sick_changes import CHANGES
from tests.bench.accuracy.sick_traffic import (
    back_stops,
    dropping,
    latency,
    lost,
    lying_generator,
    pings_lost,
    slower,
    stops,
)
from tests.bench.accuracy.truth import DEAD, LOST, Fault, Size, Stated, Truth

MEMORY = ("growth", "memory_growth")


def grown(night: Night, name: str, more: Floats, *, own: bool = True) -> None:
    """Memory that one process, or only the host, holds in addition; the sums follow."""
    more = np.round(more / 4096) * 4096
    if own:
        night.of("process.memory.usage", name)[:] += more
    night.of("system.memory.usage")[:] += more
    night.of("system.memory.available")[:] -= more
    night.of("system.memory.committed")[:] += 1.2 * more
    high = float(night.of("system.memory.usage").max())
    limit = night.of("system.memory.limit")
    if high > 0.9 * limit[0]:  # the machine has room for what it is about to lose
        added = 2.0 ** math.ceil(math.log2(1.3 * high)) - limit[0]
        limit += added
        night.of("system.memory.available")[:] += added
        night.of("system.memory.commit_limit")[:] += 2 * added


def leak(times: float, course: str = "steady") -> Fault:
    """Growth of so many times the smallest that the finding states."""

    def make(night: Night, stated: Stated) -> Truth | None:
        names = [
            name
            for metric, name in stated
            if metric == "process.memory.usage" and (course != "sawtooth" or "sawtooth" in night.life[_process(name)])
        ]
        if course == "host":
            key = ("system.memory.usage", "")
            name, slope = "", stated.get(key, 0.0)
        elif names:
            name = str(night.rng.choice(sorted(names)))
            slope = stated["process.memory.usage", name]
        else:
            return None
        if slope <= 0 or night.hours < 11 or night.cadence_s > 60:
            return None
        hours = night.at_s / 3600
        slope *= times
        if course == "late":
            begin = night.rng.uniform(0.4, 0.6) * night.hours
            more = slope * 2.5 * np.maximum(hours - begin, 0)
        elif course == "accelerating":
            more = slope * hours**2 / night.hours
        else:
            more = slope * hours
        if course == "beside a release":
            others = [other for other in night.objects("process.memory.usage") if other != name]
            if not others:
                return None
            freed = np.where(hours < 0.6 * night.hours, slope * 1.5 * hours, 0.0)
            grown(night, str(night.rng.choice(others)), freed)
        grown(night, name, more, own=course != "host")
        named = f"leak x{times:g} {course}".replace(" steady", "")
        level = night.of("system.memory.usage" if course == "host" else "process.memory.usage", name)
        allowed = (
            0.05 / 24 * float(np.median(level))
        )  # the default tolerance; what a leak of its size does is at the limit
        small = slope < 1.2 * allowed
        size = Size(f"leak, {course}", times, "times the smallest stated")
        if course == "host":
            return Truth(named, gross=False, rules=MEMORY, metrics=("system.memory.",), small=small, size=size)
        return Truth(
            named, gross=False, rules=MEMORY, metrics=("process.memory.",), objects=(name,), small=small, size=size
        )

    return make


def grows(share: float) -> Fault:
    """A process's memory grows by a share of its level in 24 h, over the whole run."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        names = night.objects("process.memory.usage")
        if not names or night.hours < 11 or night.cadence_s > 60:
            return None
        name = str(night.rng.choice(names))
        level = float(np.median(night.of("process.memory.usage", name)))
        grown(night, name, share * level * night.at_s / 86400)
        return Truth(
            f"memory +{100 * share:g} % a day",
            gross=False,
            rules=MEMORY,
            metrics=("process.memory.",),
            objects=(name,),
            small=share < 0.2,
            size=Size("memory of a process", 100 * share, "% a day"),
        )

    return make


def _process(name: str) -> Key:
    return Key(DUT, "process.memory.usage", name)


def table_full(what: str) -> Fault:
    """A table, a queue or a file system climbs to its limit in the middle of the run, and stays there."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        metric, limit = {
            "conntrack": ("system.conntrack.count", "system.conntrack.limit"),
            "sessions": ("system.sessions", "system.sessions.limit"),
            "queue": ("queue.depth", "queue.limit"),
            "file system": ("system.filesystem.usage", "system.filesystem.limit"),
        }[what]
        n = night.at_s.size
        if what == "sessions":
            name = "table=nat"
            night.put(metric, np.round(2e5 + 4000 * night.rng.normal(0, 1, n)), name)
            night.put(limit, np.full(n, 6e5), name)
        elif not night.has(metric):
            return None
        else:
            name = str(night.rng.choice(night.objects(metric)))
        begin, full = sorted(night.rng.uniform(0.3, 0.8, 2))
        if (1 - full) * night.length_s < max(70.0, 3 * night.cadence_s):
            return None
        top = night.of(limit, name)[0]
        share = np.clip((night.at_s / night.length_s - begin) / max(full - begin, 1e-6), 0, 1)
        level = night.of(metric, name)
        level[:] = np.round(np.where(share > 0, level + share * (top - level), level))
        dropped = f"{name}"
        if what == "queue" and dropped in night.objects("queue.dropped"):
            night.of("queue.dropped", dropped)[:] = np.cumsum((share >= 1) * 20.0)
        rules = ("saturation", "queue_growth", "growth", "drops", "step_change", "level", "loss")
        return Truth(f"{what} full", gross=True, rules=rules, metrics=(metric, "queue."), objects=(name,))

    return make


def restarted(night: Night, stated: Stated) -> Truth | None:
    """A watched process is replaced, unannounced and without a core file."""
    del stated
    names = night.objects("process.pid")
    if not names or night.at_s.size < 8:
        return None
    name = str(night.rng.choice(names))
    restart(night, name, night.index_at(night.rng.uniform(0.2, 0.9)))
    return Truth("crash without core", gross=True, rules=("process_restart", "core_dump"), objects=(name,))


def vanished(night: Night, stated: Stated) -> Truth | None:
    """A watched process ends and does not come back."""
    del stated
    names = night.objects("process.pid")
    if not names or night.at_s.size < 8:
        return None
    name = str(night.rng.choice(names))
    index = night.index_at(night.rng.uniform(0.2, 0.9))
    for metric in (
        "process.memory.usage",
        "process.pid",
        "process.start_time",
        "process.threads",
        "process.open_files",
    ):
        night.of(metric, name)[index:] = np.nan
    night.of("process.up", name)[index:] = 0
    return Truth("process gone", gross=True, rules=("process_restart", "core_dump"), objects=(name,))


def rebooted(night: Night, stated: Stated) -> Truth | None:
    """The device reboots, unannounced: a minute of silence, another boot id, uptime from 0."""
    del stated
    if not night.has("system.uptime") or night.length_s < 600:
        return None
    index = night.index_at(night.rng.uniform(0.2, 0.8))
    quiet = max(1, round(60 / night.cadence_s))
    since = night.at_s[index]
    night.of("system.uptime")[index:] = night.at_s[index:] - since + 1
    night.of("system.boot.id")[index:] += 12345
    for source in ("local", "icmp"):
        if source in night.answered:
            night.answered[source][index : index + quiet] = source == "icmp"
    if night.has("reach.up"):
        gone = np.zeros(night.at_s.size, np.bool_)
        gone[index : index + quiet] = True
        pings_lost(night, gone)
    for name in night.objects("process.pid"):
        restart(night, name, min(index + quiet, night.at_s.size - 1))
    return Truth("reboot untold", gross=True, rules=("reboot", "process_restart", "hang", "loss", "gap"))


def out_of_memory(night: Night, stated: Stated) -> Truth | None:
    """The kernel kills a process for want of memory."""
    del stated
    if not night.has("system.memory.oom_kills"):
        return None
    index = night.index_at(night.rng.uniform(0.2, 0.9))
    night.of("system.memory.oom_kills")[index:] += 1
    return Truth("OOM kill", gross=True, rules=("oom_kill", "process_restart", "core_dump"))


def two_faults(night: Night, stated: Stated) -> Truth | None:
    """A watched process crashes; half a minute to three minutes later the kernel kills another for want of memory."""
    del stated
    names = night.objects("process.pid")
    if not names or not night.has("system.memory.oom_kills") or night.length_s < 1800 or night.cadence_s > 60:
        return None
    name, index = str(night.rng.choice(names)), night.index_at(night.rng.uniform(0.2, 0.8))
    restart(night, name, index)
    later = index + max(1, math.ceil(night.rng.uniform(30, 180) / night.cadence_s))
    night.of("system.memory.oom_kills")[later:] += 1
    return Truth("crash, then OOM of another", gross=True, rules=("process_restart", "core_dump"), objects=(name,))


SEEN_BY = {
    "snmp": (Source("snmp", DUT, ("system.", "queue.")),),
    "agent": (Source("agent", DUT, ("system.", "process.", "queue.")),),
    "ssh": (Source("ssh", DUT, ("system.", "process.", "queue.")),),
    "icmp": (Source("icmp", DUT, ("reach.",)),),
}


def dead(seen_by: str) -> Fault:
    """The device is dead from some time to the end, seen by one kind of source alone, or by all together."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        index = night.index_at(night.rng.uniform(0.3, 0.8))
        gone = np.arange(night.at_s.size) >= index
        if (1 - index / night.at_s.size) * night.length_s < max(330.0, 6 * night.cadence_s):
            return None
        if seen_by == "all":
            if not night.has("reach.up") or not back_stops(night, gone):
                return None
        else:
            sources = SEEN_BY[seen_by]
            if not any(source.brings(key) for source in sources for key in night.value):
                return None
            rewired(night, sources)
        if night.has("reach.up"):
            pings_lost(night, gone)
        for source in night.sources:
            if source.target == DUT and source.name != "icmp":
                night.answered[source.name][index:] = False
                night.traits.add("polls")  # that were sent and not answered: a table only has fewer lines
        return Truth(f"device dead, seen by {seen_by}", gross=True, rules=DEAD)

    return make


def forwarding_dead(night: Night, stated: Stated) -> Truth | None:
    """Nothing is forwarded any more; management answers."""
    del stated
    gone = np.arange(night.at_s.size) >= night.index_at(night.rng.uniform(0.3, 0.7))
    if not back_stops(night, gone):
        return None
    return Truth("forwarding dead, management alive", gross=True, rules=LOST)


def management_dead(night: Night, stated: Stated) -> Truth | None:
    """Management answers no more; the load goes on."""
    del stated
    if not any(source.target == TG for source in night.sources):
        return None
    index = night.index_at(night.rng.uniform(0.3, 0.7))
    for source in night.sources:
        if source.target == DUT and source.name != "icmp":
            night.answered[source.name][index:] = False
    return Truth("management dead, forwarding alive", gross=False, rules=(*DEAD, "coverage", "gap"))


def cpu_at_the_top(seconds: float) -> Fault:
    """CPU at 100 % for so long, once."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if "poll-mode cores" in night.traits or seconds < 2 * night.cadence_s or seconds > 0.2 * night.length_s:
            return None
        since = night.rng.uniform(0.3, 0.8) * night.length_s
        inside = (night.at_s >= since) & (night.at_s < since + seconds)
        night.of("system.cpu.utilization")[inside] = 1.0 - 0.002 * night.rng.random(int(inside.sum()))
        for name in night.objects("system.cpu.core.utilization"):
            night.of("system.cpu.core.utilization", name)[inside] = 1.0
        return Truth(
            f"CPU at 100 % for {seconds:g} s",
            gross=False,
            rules=("cpu_spike", "cpu_saturation"),
            size=Size("CPU at 100 %", seconds, "s"),
        )

    return make


FAULTS: dict[str, tuple[Fault, ...]] = {
    "leaks": (
        *(leak(times) for times in (1, 2, 2, 3, 3, 5)),
        *(leak(3, course) for course in ("host", "sawtooth", "late", "accelerating", "beside a release")),
        leak(2, "host"),
        leak(2, "sawtooth"),
    ),
    "losses": (
        *(
            lost(ratio, what)
            for what in ("packets", "requests", "connections", "pings")
            for ratio in (0.002, 0.01, 0.1, 0.99)
        ),
        *(stops(seconds) for seconds in (5.0, 30.0, 600.0, math.inf, math.inf)),
        *(slower(share, course) for share in (0.03, 0.08, 0.15, 0.3) for course in ("step", "decline")),
        latency(2),
        latency(20),
        dropping,
        lying_generator,
    ),
    "deaths": (
        *(dead(source) for source in ("snmp", "agent", "ssh", "icmp", "all")),
        forwarding_dead,
        management_dead,
        restarted,
        vanished,
        rebooted,
        out_of_memory,
        two_faults,
        *(table_full(what) for what in ("conntrack", "sessions", "queue", "file system")),
        cpu_at_the_top(30.0),
        cpu_at_the_top(180.0),
        cpu_at_the_top(900.0),
    ),
    "changes": CHANGES,
}
