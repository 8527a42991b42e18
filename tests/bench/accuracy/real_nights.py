"""Healthy runs made of real series: quiet windows of real backgrounds as a device's memory, CPU, load and traffic.

Real are the courses of memory, CPU, throughput, latency, traffic, connections, queues and temperatures; memory has the
level that the seed draws, CPU its own. What only has to be there for a fault to be done to it (process ids, counts of
threads and files, links, cards, boot id, pings) is as ``lives.py`` draws it. The load is sent as the real traffic went,
and all comes back. Nights are drawn by their seed out of windows in the order of the SHA-256 of their names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.bench.accuracy.lives import (
    MIB,
    SOURCES,
    announced_restart,
    host_memory,
    ports,
    reach,
    uneventful,
    watched,
)
from tests.bench.accuracy.night import Floats, Night, floats
from tests.bench.accuracy.real_lines import Kind, Line, Stretch, lines, quiet
from tests.bench.accuracy.telemetry import states

REAL = "real"
"""The trait of a real night; those that begin with it and a colon name its sets."""
LENGTHS = ((2.5 * 3600, 10.0, 1), (12 * 3600.0, 60.0, 4), (24 * 3600.0, 60.0, 4), (48 * 3600.0, 60.0, 1))
"""Seconds, cadence, weight."""


def drawn(folder: Path, which: str, seed: int) -> Night:
    """The healthy night of a seed, of a half of the hosts of the real sets (see ``trials.half``)."""
    rng = np.random.default_rng([17, seed])
    real = lines(folder, which)
    weights = np.array([weight for _, _, weight in LENGTHS], dtype=float)
    length_s, cadence_s, _ = LENGTHS[int(rng.choice(len(LENGTHS), p=weights / weights.sum()))]
    at_s = floats(np.arange(0, round(length_s / cadence_s)) * cadence_s + 0.01 * cadence_s)
    night = Night(rng, seed, length_s, cadence_s, at_s, SOURCES)
    night.answered = {source.name: np.ones(at_s.size, np.bool_) for source in SOURCES}
    night.traits.add(REAL)
    night.phases += [("baseline", 0.0, 0.1 * length_s)] if rng.random() < 0.5 else []  # nobody stressed these devices
    night.phases.append(("soak", 0.1 * length_s if night.phases else 0.0, length_s))
    _memory(night, real)
    host = _cpu(night, real)
    if rng.random() < 0.8:
        _load(night, real, host)
    _network(night, real, host)
    _levels(night, real)
    uneventful(night)
    announced_restart(night)
    reach(night)
    if rng.random() < 0.7:
        states(night, rng)
    night.sources = tuple(source for source in SOURCES if any(source.brings(key) for key in night.value))
    return night


def _taken(night: Night, real: Sequence[Line], kind: Kind, beside: Stretch | None = None) -> Stretch | None:
    """A quiet window, noted in the night's traits."""
    found = quiet(night.rng, real, kind, night.at_s, beside)
    if found is not None:
        night.traits.add(f"{REAL}: {kind} of {found.line.data}")
    return found


def _origin(found: Stretch) -> str:
    """Where a series comes from, for who looks at a run."""
    return f"{found.line.data} {found.line.name} at {found.begin_s:.0f} s"


def _share(found: Stretch) -> Floats:
    return floats(found.value / float(np.median(found.value)))


def _level(night: Night, low: float, high: float) -> float:
    return math.exp(night.rng.uniform(math.log(low), math.log(high)))


def _memory(night: Night, real: Sequence[Line]) -> None:
    """Two to six watched processes, and the host that holds them and its own real memory beside them."""
    total = np.zeros(night.at_s.size)
    own, beside = total, total
    for number in range(int(night.rng.integers(2, 7)) + 1):
        found = _taken(night, real, "memory")
        if found is None:
            continue
        used = np.round(_level(night, 20, 3000) * MIB * _share(found) / 4096) * 4096
        if number == 0:  # the host's own
            own, beside = used, total
            continue
        name = f"process={('bgpd', 'snort', 'java', 'sshd', 'nginx')[number % 5]}{number // 5 or ''},instance=0"
        watched(night, number, name, used, _origin(found))
        beside = beside + used
    host_memory(night, own + beside)
    night.put("system.memory.committed", np.round((1.4 * beside + 0.7 * own) / 4096) * 4096, life="sum")


def _cpu(night: Night, real: Sequence[Line]) -> Stretch | None:
    """CPU in all, and of up to four cores, each a window of its own."""
    found = _taken(night, real, "cpu")
    if found is None:
        night.put("system.cpu.utilization", np.full(night.at_s.size, 0.2))
        return None
    night.put("system.cpu.utilization", found.value, life=_origin(found))
    for core in range(int(night.rng.integers(0, 5))):
        other = _taken(night, real, "cpu")
        if other is not None:
            night.put("system.cpu.core.utilization", other.value, f"core={core}", _origin(other))
    return found


def _each(night: Night, rate: Floats) -> Floats:
    """A counter of what came at a rate: whole numbers, a poll's worth at a time."""
    return floats(np.cumsum(np.round(rate * night.cadence_s)))


def _load(night: Night, real: Sequence[Line], host: Stretch | None) -> None:
    """Packets sent as a real network went, or requests as a real service was asked; all come back, with a latency."""
    if night.rng.random() < 0.5:
        found = _taken(night, real, "traffic", host)
        if found is None:
            return
        night.traits.add("packets")
        rate = _level(night, 2e4, 2e6) * _share(found)
        sent = _each(night, rate)
        night.put("load.tx.packets", sent, life=_origin(found))
        night.put("load.rx.packets", sent.copy())
        night.put("load.offered.packet.rate", rate)
        ports(night, sent, sent.copy())
    else:
        found = _taken(night, real, "requests", host)
        if found is None:
            return
        night.traits.add("requests")
        rate = _level(night, 200, 8000) * _share(found)
        night.put("load.requests", _each(night, rate), life=_origin(found))
        night.put("load.request.rate", rate.copy())
        night.put("load.failures", np.zeros(rate.size))
        night.put("load.offered.rate", rate.copy())
        night.put("load.connections.opened", _each(night, rate / 20))
        night.put("load.connections.failed", np.zeros(rate.size))
    if float(np.ptp(_thirds(rate))) > 0.05 * float(np.median(rate)):
        night.traits.add("daily load")
    usual, slow = _taken(night, real, "latency", found), _taken(night, real, "latency")
    if usual is not None and slow is not None:
        level = _level(night, 0.0008, 0.03)
        shown = level * _share(usual)
        night.put("load.latency", shown, "quantile=0.5", _origin(usual))
        worse = np.maximum(shown, 2.5 * level * _share(slow))
        night.put("load.latency", worse, "quantile=0.99", _origin(slow))


def _thirds(value: Floats) -> Floats:
    return floats([part.mean() for part in np.array_split(value, 3)])


def _network(night: Night, real: Sequence[Line], host: Stretch | None) -> None:
    """Counters of a management port that real traffic goes through."""
    whole = "packets" not in night.traits or "port counters" in night.traits  # else the load's ports are not read
    for direction in ("receive", "transmit"):
        found = _taken(night, real, "traffic", host if direction == "receive" else None)
        if found is not None:
            pace = _level(night, 200, 2e5) * _share(found)
            name = f"interface=eth0,direction={direction}"
            night.put("system.network.io", _each(night, pace), name, _origin(found))
            if whole:
                night.put("system.network.packets", _each(night, pace / 400), name)


def _levels(night: Night, real: Sequence[Line]) -> None:
    """Connections in a table, a queue, a sensor and the run queue: of one or two hosts each, so not in every night."""

    def perhaps(kind: Kind, share: float) -> Stretch | None:
        return _taken(night, real, kind) if night.rng.random() < share else None

    if (found := perhaps("connections", 0.3)) is not None:
        level = _level(night, 2_000, 200_000)
        night.put("system.conntrack.count", np.round(level * _share(found)), life=_origin(found))
        night.put("system.conntrack.limit", np.full(night.at_s.size, 2.0 ** math.ceil(math.log2(level * 2.2))))
    if (found := perhaps("queue", 0.4)) is not None:
        depth = np.round(night.rng.uniform(50, 1500) * found.value / float(found.value.max()))
        night.put("queue.depth", depth, "queue=0", _origin(found))
        night.put("queue.limit", np.full(depth.size, 4096.0), "queue=0")
        night.put("queue.dropped", np.zeros(depth.size), "queue=0")
    if (found := perhaps("temperature", 0.6)) is not None:
        value = night.rng.uniform(35, 55) * _share(found)
        night.put("system.temperature", np.round(value * 2) / 2, "sensor=cpu", _origin(found))
    if (found := perhaps("run queue", 0.6)) is not None:
        load = np.round(night.rng.uniform(0.5, 4) * _share(found), 2)
        night.put("system.cpu.load", load, "minutes=5", _origin(found))
