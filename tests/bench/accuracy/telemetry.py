"""What healthy devices tell beside memory and load: temperatures, links, cards, services, retransmissions, jitter.

Drawn from a generator of its own, so that what a seed made before it still makes.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.signal import lfilter
from tests.bench.accuracy.night import Floats, Night, floats


def telemetry(night: Night, shape: Floats) -> None:
    """Series that the generic rules judge, with daily waves, warm-ups, what follows the load, and announced changes."""
    rng = np.random.default_rng([16, night.seed])
    if rng.random() < 0.3:
        return
    night.traits.add("telemetry")
    _temperatures(night, rng, shape)
    states(night, rng)
    _rates(night, rng, shape)


def host_counts(night: Night, shape: Floats) -> None:
    """What a Linux host counts: sockets with people who log in and jobs at their hours, connections that are closing,
    inodes of logs and of small files in memory. None of it leaks."""
    rng = np.random.default_rng([18, night.seed])
    if rng.random() < 0.4:
        return
    night.traits.add("sockets")
    n = night.at_s.size
    people = _visits(rng, night, int(rng.integers(0, 12)), (120.0, 14_400.0), (2, 9))
    jobs = _visits(rng, night, int(night.hours), (20.0, 1_800.0), (1, 25))
    conns = rng.uniform(0, 3_000) if rng.random() < 0.6 else 0.0
    tcp = rng.integers(2, 30) + rng.poisson(np.maximum(conns * shape, 0.0)) + np.round(people / 3 + jobs / 4)
    udp = rng.integers(2, 14) + rng.poisson(rng.uniform(0, 0.6), n)
    used = rng.integers(40, 500) + tcp + udp + people + jobs
    for protocol, value in (("tcp", tcp), ("udp", udp)):
        night.put("system.sockets.usage", floats(value), f"protocol={protocol}")
    night.put("system.sockets.allocated", floats(used))
    tails = np.exp(_wander(rng, night, 0.4, 60.0)) * (1 + 20 * (rng.random(n) < 0.002))
    night.put("system.sockets.memory", np.floor(tails * (3 + conns / 40)) * 4096, "protocol=tcp")
    night.put("system.sockets.memory.limit", np.full(n, 2.0**31), "protocol=tcp")
    night.put("system.tcp.orphans", floats(rng.poisson(0.01 * conns * np.maximum(shape, 0.0), n)))
    night.put("system.tcp.orphans.limit", np.full(n, 65536.0))
    turns = np.floor(night.at_s / 86400 * rng.integers(1, 24) + rng.uniform())
    of_logs = float(rng.integers(50_000, 900_000)) + (turns % 7) * rng.integers(1, 40) + np.round(jobs)
    of_run = rng.integers(200, 900) + 3 * people + np.round(jobs / 2)
    for mount, value, size in (("/", of_logs, 3.2e6), ("/run", of_run, 4e5)):
        night.put("system.filesystem.inodes.usage", floats(value), f"mountpoint={mount}")
        night.put("system.filesystem.inodes.limit", np.full(n, size), f"mountpoint={mount}")
        night.put("system.filesystem.writable", np.ones(n), f"mountpoint={mount}")


def _visits(
    rng: np.random.Generator, night: Night, count: int, lasts_s: tuple[float, float], size: tuple[int, int]
) -> Floats:
    """How much is held by what comes and goes: ``count`` visits at any time, each for a while."""
    held = np.zeros(night.at_s.size)
    for _ in range(count):
        begin, lasts = rng.uniform(0, night.length_s), math.exp(rng.uniform(math.log(lasts_s[0]), math.log(lasts_s[1])))
        held += int(rng.integers(*size)) * ((night.at_s >= begin) & (night.at_s < begin + lasts))
    return held


def _wander(rng: np.random.Generator, night: Night, sd: float, correlation_s: float) -> Floats:
    """Noise that remembers."""
    phi = math.exp(-night.cadence_s / correlation_s)
    fresh = rng.normal(0.0, 1.0, night.at_s.size)
    return np.asarray(sd * lfilter([math.sqrt(1 - phi * phi)], [1.0, -phi], fresh), dtype=np.float64)


def _daily(rng: np.random.Generator, night: Night, size: float) -> Floats:
    return floats(size * np.sin(2 * math.pi * (night.at_s / 86400 + rng.uniform())))


def _temperatures(night: Night, rng: np.random.Generator, shape: Floats) -> None:
    for sensor in ("cpu", "board", "psu")[: int(rng.integers(1, 4))]:
        level = rng.uniform(32, 60)
        warm = rng.uniform(0, 18) * (1 - np.exp(-night.at_s / rng.uniform(300.0, 7200.0)))
        room = _daily(rng, night, rng.uniform(0, 4))
        value = level + warm + room + rng.uniform(0, 20) * (shape - 1) + _wander(rng, night, 0.6, 900.0)
        night.put("system.temperature", np.round(value * 2) / 2, f"sensor={sensor}")


def states(night: Night, rng: np.random.Generator) -> None:
    """Links, one of them never used, one perhaps taken down by an announced failover; cards and services."""
    n = night.at_s.size
    ports = int(rng.integers(1, 5))
    for port in range(ports):
        up = np.full(n, float(port < ports - 1 or ports == 1))
        name = f"interface=ge{port}"
        if port == 0 and rng.random() < 0.15 and night.hours > 2:
            night.traits.add("announced failover")
            begin = rng.uniform(0.3, 0.8) * night.length_s
            lasts = rng.uniform(30.0, 900.0)
            up[(night.at_s >= begin) & (night.at_s < begin + lasts)] = 0.0
            night.announce("failover", begin - 20.0, begin + lasts + 2 * night.cadence_s, {})
        night.put("system.network.up", up, name)
        night.put("system.network.speed", np.full(n, 1e10), name)
    for card in range(int(rng.integers(0, 3))):
        age = rng.uniform(1e4, 2**32 / 100)  # one in many comes round at 497 days
        night.put("system.module.uptime", np.floor((age + night.at_s) % (2**32 / 100)), f"module={card}")
    for service in ("bgpd", "snmpd", "dhcpd")[: int(rng.integers(0, 4))]:
        count = float(rng.integers(0, 3)) + (night.at_s > rng.uniform(0.2, 0.9) * night.length_s) * (
            rng.random() < 0.03
        )
        night.put("system.service.restarts", floats(count), f"service={service}")


def _rates(night: Night, rng: np.random.Generator, shape: Floats) -> None:
    """What follows the load more than in proportion, in bursts and with heavy tails; the run queue."""
    pace = math.exp(rng.uniform(math.log(0.01), math.log(5.0)))
    daily = np.exp(_daily(rng, night, rng.uniform(0, 0.8)) + _wander(rng, night, rng.uniform(0.05, 0.4), 1200.0))
    bursts = np.where(rng.random(night.at_s.size) < 0.002, rng.uniform(5, 60), 1.0)
    each = pace * night.cadence_s * daily * np.maximum(shape, 0.0) ** rng.uniform(0, 3) * bursts
    again = np.cumsum(rng.poisson(each)).astype(float)
    if night.has("load.latency"):
        jitter = math.exp(rng.uniform(math.log(2e-5), math.log(3e-3))) * np.maximum(shape, 0.05) ** 2
        tails = np.exp(rng.uniform(0.1, 0.7) * rng.standard_normal(night.at_s.size) + _wander(rng, night, 0.1, 1800.0))
        night.put("load.jitter", jitter * tails)
        night.put("load.retransmits", np.round(again / 2))
    night.put("system.tcp.retransmits", again)
    queue = rng.uniform(0.2, 6.0) * shape * np.exp(_wander(rng, night, rng.uniform(0.05, 0.3), 300.0))
    night.put("system.cpu.load", np.round(queue, 2), "minutes=5")
    if rng.random() < 0.3:
        night.put("system.softnet.squeezed", np.cumsum(rng.poisson(0.2 * each)).astype(float), "core=0")
