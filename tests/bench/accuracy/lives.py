"""Healthy lives: what ordinary devices do through a night that is no fault. Every one is seeded and composable."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from tests.bench.accuracy.night import BEGIN_NS, DUT, TG, Floats, Night, Source, floats
from tests.bench.accuracy.telemetry import host_counts, telemetry

MIB = 2.0**20
ALL = ("system.", "process.", "queue.", "recorder.", "monitor.")
SOURCES = (Source("local", DUT, ALL), Source("icmp", DUT, ("reach.",)), Source("command", TG, ("load.",)))
LENGTHS = (  # seconds, cadence, weight, most series
    (30.0, 0.2, 1, 40),
    (300.0, 1.0, 1, 60),
    (600.0, 1.0, 1, 60),
    (7200.0, 1.0, 2, 40),
    (4 * 3600.0, 10.0, 2, 80),
    (12 * 3600.0, 10.0, 4, 100),
    (24 * 3600.0, 60.0, 10, 300),
    (24 * 3600.0, 10.0, 4, 80),
    (48 * 3600.0, 60.0, 3, 200),
    (72 * 3600.0, 60.0, 3, 120),
    (24 * 3600.0, 3600.0, 1, 100),
    (48 * 3600.0, 3600.0, 2, 200),
)


def noise(night: Night, sd: float, correlation_s: float = 0.0) -> Floats:
    """Noise of this sd; with a correlation time an AR(1) process."""
    fresh = night.rng.normal(0.0, 1.0, night.at_s.size)
    if correlation_s <= 0:
        return sd * fresh
    from scipy.signal import lfilter

    phi = math.exp(-night.cadence_s / correlation_s)
    filtered = lfilter([math.sqrt(1 - phi * phi)], [1.0, -phi], fresh)
    return np.asarray(sd * filtered, dtype=np.float64)


def warm_up(night: Night) -> Floats:
    """Saturating growth of 10 to 40 % with a time constant of minutes to hours, at most a sixth of the run."""
    most = min(4 * 3600.0, night.length_s / 6)
    tau = math.exp(night.rng.uniform(math.log(min(300.0, most / 2)), math.log(most)))
    return 1 + night.rng.uniform(0.1, 0.4) * (1 - np.exp(-night.at_s / tau))


def two_warm_ups(night: Night) -> Floats:
    """A quick warm-up and a slow one behind it."""
    slow = min(3 * 3600.0, night.length_s / 7) * night.rng.uniform(0.5, 1.0)
    first = night.rng.uniform(0.1, 0.3) * (1 - np.exp(-night.at_s / (slow / night.rng.uniform(8, 30))))
    return 1 + first + night.rng.uniform(0.05, 0.15) * (1 - np.exp(-night.at_s / slow))


def cache(night: Night) -> Floats:
    """A cache that fills until .15 to .6 of the run, and stays."""
    full = night.rng.uniform(0.15, 0.6) * night.length_s
    return 1 + night.rng.uniform(0.2, 0.8) * np.minimum(night.at_s / full, 1.0)


def sawtooth(night: Night) -> Floats:
    """Grows and is emptied at once, every 20 min to 12 h (heap, log rotation)."""
    most = min(12 * 3600.0, night.length_s / 2)
    period = math.exp(night.rng.uniform(math.log(min(1200.0, most / 4)), math.log(most)))
    turn = (night.at_s / period + night.rng.uniform(0, 1)) % 1.0
    return 1 + night.rng.uniform(0.1, 0.5) * turn


def warm_sawtooth(night: Night) -> Floats:
    """A heap that warms up under its sawteeth."""
    return warm_up(night) + 0.7 * (sawtooth(night) - 1)


def fragmentation(night: Night) -> Floats:
    """Steps that become smaller and rarer, and have died out before two thirds of the run."""
    factor = np.ones(night.at_s.size)
    share, height = night.rng.uniform(0.02, 0.08), night.rng.uniform(0.03, 0.08)
    while share < 0.62 and height > 0.002:
        factor[night.index_at(share) :] += height
        share, height = share * night.rng.uniform(1.5, 2.2), height * night.rng.uniform(0.4, 0.7)
    return factor


def one_step(night: Night) -> Floats:
    """One lasting step of 3 to 10 % at any time."""
    factor = np.ones(night.at_s.size)
    factor[night.index_at(night.rng.uniform(0.05, 0.9)) :] += night.rng.uniform(0.03, 0.1)
    return factor


def daily(night: Night) -> Floats:
    """A daily wave of 1 to 5 %; a shorter run sees a part of it."""
    turn = 2 * math.pi * (night.at_s / 86400.0 + night.rng.uniform(0, 1))
    return 1 + night.rng.uniform(0.01, 0.05) * np.sin(turn)


def weekly(night: Night) -> Floats:
    """A weekly wave of up to 4 % under a daily one of up to 2 %."""
    week = 2 * math.pi * (night.at_s / 604800.0 + night.rng.uniform(0, 1))
    day = 2 * math.pi * (night.at_s / 86400.0 + night.rng.uniform(0, 1))
    return 1 + night.rng.uniform(0.01, 0.04) * np.sin(week) + night.rng.uniform(0.005, 0.02) * np.sin(day)


def wander(night: Night) -> Floats:
    """Slow noise: .3 to 1 % with a correlation time of 10 to 100 min."""
    return 1 + noise(night, night.rng.uniform(0.003, 0.01), night.rng.uniform(600.0, 6000.0))


def batches(night: Night) -> Floats:
    """Batch jobs: 10 to 40 min of 10 to 30 % more, every few hours, from the begin on."""
    every = night.rng.uniform(2.5, 7.0) * 3600.0 if night.hours > 6 else night.length_s / 4
    lasts = min(night.rng.uniform(600.0, 2400.0), every / 3)
    inside = (night.at_s + night.rng.uniform(0, every)) % every < lasts
    return floats(1 + night.rng.uniform(0.1, 0.3) * inside)


def flat(night: Night) -> Floats:
    """Nothing happens."""
    return np.ones(night.at_s.size)


def coarse(night: Night) -> Floats:
    """Small noise that a coarse reading shows as steps (the reading is rounded where it is made)."""
    return 1 + noise(night, 0.004)


LIVES: dict[str, Callable[[Night], Floats]] = {
    "flat": flat,
    "warm-up": warm_up,
    "two warm-ups": two_warm_ups,
    "cache": cache,
    "sawtooth": sawtooth,
    "warm sawtooth": warm_sawtooth,
    "fragmentation": fragmentation,
    "one step": one_step,
    "daily": daily,
    "weekly": weekly,
    "slow noise": wander,
    "batches": batches,
    "quantised": coarse,
}


def process(night: Night, number: int) -> Floats:
    """Memory of a watched process, bytes, with its other needs beside it."""
    name = f"process={('bgpd', 'snort', 'java', 'sshd', 'nginx')[number % 5]}{number // 5 or ''},instance=0"
    life = night.rng.choice(list(LIVES))
    level = math.exp(night.rng.uniform(math.log(20), math.log(3000))) * MIB
    used = level * LIVES[life](night) * (1 + noise(night, night.rng.uniform(0.0005, 0.006)))
    step = 4096.0 if life != "quantised" else max(4096.0, 2.0 ** math.floor(math.log2(level / 100)))
    used = np.round(used / step) * step
    watched(night, number, name, used, life)
    return used


def watched(night: Night, number: int, name: str, used: Floats, life: str) -> None:
    """A watched process that uses so much memory, with its identity, its threads and its open files."""
    night.put("process.memory.usage", used, name, life)
    night.put("process.up", np.ones(used.size), name)
    night.put("process.pid", np.full(used.size, 1000.0 + number), name)
    night.put("process.start_time", np.full(used.size, BEGIN_NS // 10**9 - 5000.0 - number), name)
    threads = float(night.rng.integers(4, 60))
    night.put("process.threads", floats(threads + night.rng.poisson(0.2, used.size)), name)
    night.put("process.open_files", np.round(60 + 5 * threads + night.rng.poisson(6, used.size)).astype(float), name)


def memory(night: Night, parts: list[Floats]) -> None:
    """The host's memory: the sum of its processes, the system's own, and perhaps other tenants."""
    rng = night.rng
    total = sum(parts, np.zeros(night.at_s.size))
    own = rng.uniform(0.4, 3.0) * 1024 * MIB * (1 + noise(night, 0.001) + noise(night, 0.002, 1800.0))
    used = total + own
    if rng.random() < 0.3:
        night.traits.add("other tenants")
        tenant = rng.choice(["sawtooth", "batches", "warm-up", "daily"])
        used = used + rng.uniform(100, 600) * MIB * LIVES[tenant](night)
    host_memory(night, used)
    committed = np.round(1.4 * (total * (1 + noise(night, 0.001)) + 0.5 * own) / 4096) * 4096
    night.put("system.memory.committed", committed, life="sum")


def host_memory(night: Night, used: Floats) -> None:
    """The host's memory in use and available, with a limit that leaves room."""
    limit = 2.0 ** math.ceil(math.log2(float(used.max()) * night.rng.uniform(1.3, 2.5)))
    used = np.round(used / 4096) * 4096
    night.put("system.memory.limit", np.full(used.size, limit))
    night.put("system.memory.usage", used, life="sum")
    night.put("system.memory.available", limit - used, life="sum")
    night.put("system.memory.commit_limit", np.full(used.size, 2 * limit))


def cpu(night: Night, level: Floats, most_cores: int) -> None:
    """CPU in all and by core: follows the load, batch jobs, duty cycles, poll-mode cores, readings a little over 1."""
    rng, n = night.rng, night.at_s.size
    busy = rng.uniform(0.1, 0.5) * level + noise(night, rng.uniform(0.005, 0.03)) + noise(night, 0.02, 300.0)
    if rng.random() < 0.2:
        night.traits.add("batch jobs")
        busy = busy + 1.2 * (batches(night) - 1)
    cores = int(rng.integers(2, most_cores + 1)) if most_cores >= 2 else 0
    poll = int(rng.integers(1, cores)) if cores >= 4 and rng.random() < 0.25 else 0
    if poll:
        night.traits.add("poll-mode cores")
        busy = (poll + (cores - poll) * np.clip(busy, 0, 1)) / cores
    elif cores and rng.random() < 0.15 and night.cadence_s <= 10:
        night.traits.add("duty cycle")
        duty = ((night.at_s + rng.uniform(0, 60)) % 60.0 < rng.uniform(5, 15)).astype(float)
        night.put("system.cpu.core.utilization", np.clip(0.2 + 0.8 * duty, 0, 1), "core=0")
    busy = np.clip(busy, 0.005, 0.93 if not poll else 1.0)
    over = rng.random() < 0.1 and poll > 0
    if over:
        night.traits.add("a little over 100 %")
    night.put("system.cpu.utilization", busy)
    for core in range(cores):
        name = f"core={core}"
        if night.has("system.cpu.core.utilization") and name in night.objects("system.cpu.core.utilization"):
            continue
        if core >= cores - poll:
            value = np.clip(1.0 - np.abs(noise(night, 0.0005)), 0, 1)
            if over:
                value = np.where(rng.random(n) < 0.3, rng.uniform(1.0006, 1.012, n), value)
        else:
            value = np.clip(busy * rng.uniform(0.6, 1.2) + noise(night, 0.03), 0.0, 0.92)
        night.put("system.cpu.core.utilization", value, name)


def counter(night: Night, each: Floats, start: float = 0.0, bits: int = 64) -> Floats:
    """A counter of so many a poll, drawn around it; wraps at 2**bits."""
    drawn = np.round(np.maximum(each + night.rng.normal(0, 1, each.size) * np.sqrt(np.maximum(each, 0)), 0))
    total = np.cumsum(drawn) + start
    return floats(total % 2.0**bits if bits < 53 else total)


def load(night: Night) -> Floats:
    """The generator: its figures of packets or of requests; returns the load's course around 1."""
    rng = night.rng
    shape = np.ones(night.at_s.size)
    kind = rng.choice(["steady", "steady", "daily", "ramp"])
    if kind == "daily" and night.hours >= 12:
        night.traits.add("daily load")
        shape = 1 + rng.uniform(0.05, 0.25) * np.sin(2 * math.pi * (night.at_s / 86400 + rng.uniform(0, 1)))
    elif kind == "ramp":
        shape = np.minimum(1.0, night.at_s / (0.03 * night.length_s) + 0.2)
    for name, begin, end in night.phases:
        if name in {"stress", "spike"}:
            shape[(night.at_s >= begin) & (night.at_s < end)] *= 1.15
    each = shape * night.cadence_s
    latency = math.exp(rng.uniform(math.log(0.0008), math.log(0.03))) * (0.7 + 0.3 * shape)
    night.put("load.latency", latency * np.exp(noise(night, 0.08)), "quantile=0.5")
    night.put("load.latency", 2.5 * latency * np.exp(noise(night, 0.15)), "quantile=0.99")
    if rng.random() < 0.5:
        night.traits.add("packets")
        rate = math.exp(rng.uniform(math.log(2e4), math.log(5e6)))
        sent = counter(night, rate * each)
        lost = np.cumsum(rng.poisson(rate * each * (rng.uniform(0, 2e-5) if rng.random() < 0.3 else 0.0)))
        night.put("load.tx.packets", sent)
        night.put("load.rx.packets", sent - lost)
        night.put("load.offered.packet.rate", rate * shape)
        ports(night, sent, sent - lost)
    else:
        night.traits.add("requests")
        rate = math.exp(rng.uniform(math.log(200), math.log(8000)))
        night.put("load.requests", counter(night, rate * each))
        night.put("load.request.rate", np.maximum(rate * shape * (1 + noise(night, 0.01)), 0))
        failed = np.cumsum(rng.poisson(rate * each * (rng.uniform(0, 5e-5) if rng.random() < 0.3 else 0.0)))
        night.put("load.failures", failed.astype(float))
        if rng.random() < 0.5:
            night.put("load.offered.rate", rate * shape)
        night.put("load.connections.opened", counter(night, rate * each / 20))
        night.put("load.connections.failed", np.zeros(night.at_s.size))
    return shape


def ports(night: Night, sent: Floats, back: Floats) -> None:
    """The device's two ports as its own counters see them, one of them perhaps of 32 bits, in half of the nights."""
    if night.rng.random() < 0.5:
        return
    night.traits.add("port counters")
    bits = 32 if night.rng.random() < 0.4 and float(np.diff(sent).max(initial=0)) < 2**30 else 64
    few = counter(night, np.full(night.at_s.size, 0.2 * night.cadence_s))  # the other way: routing and keepalives
    for interface, direction, of in (
        ("eth1", "receive", sent),
        ("eth1", "transmit", few),
        ("eth2", "receive", few),
        ("eth2", "transmit", back),
    ):
        counted = of + float(night.rng.integers(0, 2**31))
        name = f"interface={interface},direction={direction}"
        night.put("system.network.packets", counted % 2.0**bits if bits == 32 else counted, name)


def tables(night: Night, shape: Floats) -> None:
    """Tables, queues, file systems, drops: what has a limit, and what counts faults that do not happen."""
    rng, n = night.rng, night.at_s.size
    if rng.random() < 0.7:
        level = float(rng.integers(2_000, 400_000))
        night.put("system.conntrack.count", np.round(level * shape * (1 + noise(night, 0.03, 120.0))))
        night.put("system.conntrack.limit", np.full(n, 2.0 ** math.ceil(math.log2(level * 2.2))))
    for queue in range(int(rng.integers(0, 4))):
        night.put("queue.depth", rng.poisson(rng.uniform(0.5, 40), n).astype(float), f"queue={queue}")
        night.put("queue.limit", np.full(n, 4096.0), f"queue={queue}")
        night.put("queue.dropped", np.zeros(n), f"queue={queue}")
    for mount in ("/", "/var/log")[: int(rng.integers(0, 3))]:
        size = 40 * 1024 * MIB
        used = size * rng.uniform(0.2, 0.6) * (sawtooth(night) if mount != "/" else 1 + noise(night, 0.0002, 600.0))
        night.put(
            "system.filesystem.usage", np.round(np.minimum(used, 0.9 * size) / 4096) * 4096, f"mountpoint={mount}"
        )
        night.put("system.filesystem.limit", np.full(n, size), f"mountpoint={mount}")
    uneventful(night)


def uneventful(night: Night) -> None:
    """What counts faults that do not happen: drops, reboots, kills for want of memory."""
    n = night.at_s.size
    for interface in ("eth0", "eth1"):
        night.put("system.network.packet.dropped", np.zeros(n), f"interface={interface},direction=receive")
    night.put("system.uptime", 90_000.0 + night.at_s)
    night.put("system.boot.id", np.full(n, float(night.rng.integers(2**40, 2**48))))
    night.put("system.memory.oom_kills", np.zeros(n))


def comers_and_goers(night: Night) -> None:
    """Interfaces and workers that appear and vanish in mid-run."""
    if night.rng.random() > 0.25:
        return
    night.traits.add("comes and goes")
    for number in range(int(night.rng.integers(1, 5))):
        begin, lasts = night.rng.uniform(0, 0.9), night.rng.uniform(0.02, 0.5)
        there = (night.at_s >= begin * night.length_s) & (night.at_s < (begin + lasts) * night.length_s)
        packets = np.where(there, np.cumsum(there * 10.0), np.nan)
        for direction in ("receive", "transmit"):
            name = f"interface=veth{number:x}a{night.seed % 97},direction={direction}"
            night.put("system.network.packets", packets * 3, name)
            night.put("system.network.packet.dropped", np.where(there, 0.0, np.nan), name)


def announced_restart(night: Night) -> None:
    """An upgrade of one process, announced: a new pid, and its memory begins anew."""
    names = night.objects("process.memory.usage")
    if night.rng.random() > 0.15 or not names or night.length_s < 600:
        return
    night.traits.add("announced restart")
    name, index = str(night.rng.choice(names)), night.index_at(night.rng.uniform(0.3, 0.7))
    restart(night, name, index)
    night.announce(
        "upgrade",
        night.at_s[index] - 2 * night.cadence_s,
        night.at_s[index] + 5 * night.cadence_s,
        {"process.restart": 1},
    )


def restart(night: Night, name: str, index: int) -> None:
    """A process is replaced by a new one of its kind."""
    night.of("process.pid", name)[index:] += 7000
    begun = BEGIN_NS * 1e-9 + night.at_s[index]
    night.of("process.start_time", name)[index:] = round(begun - 0.3 * night.cadence_s, 2)


def reach(night: Night) -> None:
    """Pings: round trips of a LAN; a few are lost in a night."""
    if night.rng.random() > 0.5:
        return
    n = night.at_s.size
    name = "peer=198.18.0.1,protocol=icmp"
    lost = night.rng.random(n) < (0.0002 if night.rng.random() < 0.4 else 0.0)
    night.put("reach.up", floats(1.0 - lost), name)
    night.put("reach.sent", np.arange(1.0, n + 1), name)
    night.put("reach.lost", np.cumsum(lost).astype(float), name)
    night.put("reach.round_trip", np.where(lost, np.nan, 0.0004 * np.exp(noise(night, 0.25))), name)


def phases(night: Night) -> None:
    """No phases (a plain soak), or a baseline, a soak, perhaps stress and recovery."""
    kind = night.rng.choice(["plain", "baseline", "stress"])
    ends = {
        "plain": (("soak", 1.0),),
        "baseline": (("baseline", 0.1), ("soak", 1.0)),
        "stress": (("baseline", 0.08), ("soak", 0.8), ("stress", 0.86), ("recovery", 1.0)),
    }[str(kind)]
    begin = 0.0
    for name, end in ends:
        night.phases.append((name, begin * night.length_s, end * night.length_s))
        begin = end


def healthy(seed: int, length: tuple[float, float, int] | None = None) -> Night:
    """One healthy run: its length, cadence, size and lives are drawn from the seed."""
    rng = np.random.default_rng([14, seed])
    weights = np.array([length[2] for length in LENGTHS], dtype=float)
    drawn = LENGTHS[int(rng.choice(len(LENGTHS), p=weights / weights.sum()))]
    length_s, cadence_s, most = length or (drawn[0], drawn[1], drawn[3])
    at_s = floats(np.arange(0, round(length_s / cadence_s)) * cadence_s + 0.01 * cadence_s)
    night = Night(rng, seed, length_s, cadence_s, at_s, SOURCES)
    night.answered = {source.name: np.ones(at_s.size, np.bool_) for source in SOURCES}
    phases(night)
    shape = load(night) if rng.random() < 0.7 else np.ones(at_s.size)
    size = int(math.exp(rng.uniform(math.log(5), math.log(most))))
    count = max(1, min(40, size // 8))
    parts = [process(night, number) for number in range(count)]
    memory(night, parts)
    cpu(night, shape, min(32, size // 5))
    if size > 8:
        tables(night, shape)
        comers_and_goers(night)
        announced_restart(night)
        reach(night)
        telemetry(night, shape)
        host_counts(night, shape)
    missed = rng.random(at_s.size) < (0.002 if rng.random() < 0.3 and at_s.size > 500 else 0.0)
    night.answered["local"] &= ~missed
    night.sources = tuple(source for source in SOURCES if any(source.brings(key) for key in night.value))
    return night
