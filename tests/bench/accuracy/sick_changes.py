"""Sick lives that only the generic rules know: creeps, links, cards and services, a deaf port, surging rates."""

from __future__ import annotations

import numpy as np
from tests.bench.accuracy.night import Night
from tests.bench.accuracy.truth import Fault, Size, Stated, Truth

_LONG_H, _FAST_S = 11.0, 60.0


def _fits(night: Night, metric: str, hours: float = _LONG_H) -> bool:
    return night.has(metric) and night.hours >= hours and night.cadence_s <= _FAST_S


def _part(night: Night, hours: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    """A stretch of so many hours in the later two thirds of the run's soak."""
    soaks = [(begin, end) for name, begin, end in night.phases if name == "soak"] or [(0.0, night.length_s)]
    begin, end = soaks[-1]
    first, room = begin + 0.35 * (end - begin), 0.65 * (end - begin) - 3600 * hours
    if room <= 0:
        return None
    since = first + night.rng.uniform(0, room)
    return (night.at_s >= since) & (night.at_s < since + 3600 * hours)


def cpu_creep(points: float) -> Fault:
    """CPU rises by so many points in 24 h."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if not _fits(night, "system.cpu.utilization", 20) or "poll-mode cores" in night.traits:
            return None
        busy = night.of("system.cpu.utilization")
        busy[:] = np.clip(busy + points * night.at_s / 86400, 0, 0.94)
        size = Size("CPU creeps", 100 * points, "points a day")
        kind = f"change: CPU creeps {points:g} a day"
        return Truth(kind, gross=False, rules=("trend",), metrics=("system.cpu.",), size=size)

    return make


def hotter(kelvin: float) -> Fault:
    """A sensor rises by so many kelvins in 24 h."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if not _fits(night, "system.temperature", 20):
            return None
        name = str(night.rng.choice(night.objects("system.temperature")))
        night.of("system.temperature", name)[:] += kelvin * night.at_s / 86400
        rules, size = ("trend", "hardware_limit"), Size("temperature", kelvin, "K a day")
        return Truth(f"change: {kelvin:g} K a day", gross=False, rules=rules, objects=(name,), size=size)

    return make


def slower_each_hour(share: float) -> Fault:
    """The p99 rises by a share in 24 h."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if not _fits(night, "load.latency", 20):
            return None
        night.of("load.latency", "quantile=0.99")[:] *= 1 + share * night.at_s / 86400
        rules = ("trend", "latency")
        kind, size = f"change: p99 +{100 * share:g} % a day", Size("p99", 100 * share, "% a day")
        return Truth(kind, gross=False, rules=rules, metrics=("load.latency",), size=size)

    return make


def link_down(hours: float) -> Fault:
    """A link is down once."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        inside = _part(night, hours)
        if not _fits(night, "system.network.up", 4) or inside is None or "announced failover" in night.traits:
            return None
        night.of("system.network.up", "interface=ge0")[inside] = 0.0
        kind, size = f"change: link down {hours:g} h", Size("link down", hours, "h")
        return Truth(kind, gross=True, rules=("change",), metrics=("system.network.up",), size=size)

    return make


def deaf_port(hours: float) -> Fault:
    """A port receives nothing, with its link up and the load going on."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        inside = _part(night, hours)
        if not _fits(night, "system.network.packets") or not night.has("load.tx.packets") or inside is None:
            return None
        name = "interface=eth1,direction=receive"
        if name not in night.objects("system.network.packets"):
            return None
        packets = night.of("system.network.packets", name)
        steps = np.diff(packets, prepend=packets[0])
        steps[steps < 0] += 2.0**32
        packets[:] = packets[0] + np.cumsum(np.where(inside, 0.0, steps))
        rules = ("change", "loss", "drops")
        return Truth(f"change: port deaf {hours:g} h", gross=False, rules=rules, size=Size("port deaf", hours, "h"))

    return make


def again_and_again(metric: str, number: int) -> Fault:
    """A card starts anew, or a service is restarted, so often."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        if not _fits(night, metric, 4):
            return None
        name = str(night.rng.choice(night.objects(metric)))
        value = night.of(metric, name)
        for index in sorted(night.index_at(share) for share in night.rng.uniform(0.15, 0.95, number)):
            if metric == "system.module.uptime":
                value[index:] = night.at_s[index:] - night.at_s[index]
            else:
                value[index:] += 1
        size = Size(metric, number, "starts")
        return Truth(f"change: {metric} x{number}", gross=True, rules=("change",), objects=(name,), size=size)

    return make


def surge(metric: str, times: float, hours: float) -> Fault:
    """A rate or level is so many times as high for hours."""

    def make(night: Night, stated: Stated) -> Truth | None:
        del stated
        inside = _part(night, hours)
        if not _fits(night, metric) or not night.has("load.latency") or inside is None:
            return None
        if hours < 0.12 * night.hours or "daily load" in night.traits:
            return None
        value = night.of(metric)
        if metric == "load.jitter":
            value[inside] *= times
            small = float(np.median(value)) < 2e-4
        else:
            steps = np.diff(value, prepend=value[0])
            value[:] = value[0] + np.cumsum(np.where(inside, times, 1.0) * steps)
            small = float(steps.sum()) / night.length_s < 0.02
        kind, size = f"change: {metric} x{times:g}", Size(metric, times, "times as much")
        return Truth(kind, gross=False, rules=("change",), metrics=(metric,), small=small, size=size)

    return make


CHANGES: tuple[Fault, ...] = (
    cpu_creep(0.24),
    cpu_creep(0.48),
    hotter(30.0),
    slower_each_hour(1.0),
    link_down(2.0),
    deaf_port(6.0),
    again_and_again("system.module.uptime", 3),
    again_and_again("system.service.restarts", 24),
    surge("system.tcp.retransmits", 100.0, 4.0),
    surge("load.jitter", 50.0, 4.0),
)
