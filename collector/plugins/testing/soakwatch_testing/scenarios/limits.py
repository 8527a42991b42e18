"""Answers that become slow, and tables that fill up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
_P99, _PING = ("load.latency", "quantile=p99"), ("reach.round_trip", "peer=gw,protocol=icmp")


def slow(
    name: str,
    factor: float = 1.0,
    begin: float = 0.8,
    end: float = 1.0,
    *,
    usual: float = 0.02,
    ping: bool = False,
    load: float | None = 0.0,
    follows: float = 1.0,
    wave: float = 0.0,
    cold: float = 1.0,
    phases: tuple[tuple[str, float], ...] = (),
) -> Scenario:
    """Latencies with heavy tails, ``factor`` times as high in a part of the run. ``load`` is the daily amplitude of the
    load (None: unknown), which the latency ``follows`` with an exponent; ``wave`` is a wave of its own."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        indices, turn = t / (hours * 3600), 2 * np.pi * t / 86400
        offered = 1000 * (1 + (load or 0.0) * np.sin(turn + rng.uniform(0, 6)))
        value = usual * np.exp(0.3 * rng.standard_normal(t.size)) * (offered / 1000) ** follows
        value *= 1 + wave * np.sin(turn + rng.uniform(0, 6)) + (cold - 1) * np.exp(-t / 600)
        value *= np.where(rng.random(t.size) < 0.01, 1 + 5 * rng.pareto(1.5, t.size), 1.0)
        value *= np.where((indices >= begin) & (indices < end), factor, 1.0)
        window = Window(0, round(hours * 3600 * S))
        edges = [0.0, *np.cumsum([share for _, share in phases])]
        cut = tuple(
            Phase(phases[i][0], Window(round(edges[i] * window.end_ns), round(edges[i + 1] * window.end_ns)))
            for i in range(len(phases))
        )
        metric, object_name = _PING if ping else _P99
        known = () if load is None else (readings("load.offered.rate", offered, apart),)
        series = readings(metric, value, apart, object=object_name)
        case = Case("dut", "", window, (series,), phases=cut, load=known)
        return Signal(case, Truth(change=factor - 1))

    return Scenario("latency", name, make, cadence_s=60.0)


def _table(rng: np.random.Generator, indices: Floats) -> Floats:
    """The used share of a table that follows a wave of its load."""
    wave = 0.1 * np.sin(2 * np.pi * indices + rng.uniform(0, 6))
    used: Floats = np.clip(0.5 + wave + 0.01 * rng.standard_normal(indices.size), 0, 1)
    return used


def limit(
    name: str,
    metric: str,
    full: float = 1.0,
    begin: float = 1.0,
    end: float = 1.0,
    *,
    climbs: float = 0.0,
    stands: float | None = None,
    size: float | None = 1e6,
    burst: bool = False,
    phase: str = "soak",
) -> Scenario:
    """A quantity that is at the share ``full`` of its limit in a part of the run (``burst``: for one reading an
    hour)."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        indices = t / (hours * 3600)
        used = _table(rng, indices) if stands is None else np.full(t.size, stands)
        used = np.minimum(used + climbs * indices, 1.0)
        inside = (indices >= begin) & (indices < end)
        if burst:
            inside = (np.arange(t.size) % round(3600 / apart)) == 7
        used[inside] = full
        window = Window(0, round(hours * 3600 * S))
        edges = (0, round(begin * window.end_ns), round(end * window.end_ns), window.end_ns)
        names = ("soak", phase, "soak")
        phases = tuple(Phase(names[i], Window(edges[i], edges[i + 1])) for i in range(3) if edges[i] < edges[i + 1])
        share = metric.endswith("utilization")
        series: Series = readings(metric, used if share or size is None else np.floor(used * size), apart)
        series = replace(series, trait=replace(series.trait, ceiling=None if share else size))
        return Signal(Case("dut", "", window, (series,), phases=phases), Truth())

    return Scenario("limits", name, make, cadence_s=60.0)


_STRESS = (("baseline", 0.2), ("soak", 0.3), ("stress", 0.1), ("recovery", 0.4))

SCENARIOS = (
    slow("heavy tails"),
    slow("follows a load that halves and doubles", load=0.33),
    slow("follows the square of the load", load=0.3, follows=2.0),
    slow("a wave of its own, load unknown", load=None, wave=0.2),
    slow("cold caches", cold=4.0),
    slow("a job doubles it for an hour", 2.0, 0.6, 0.64),
    slow("twenty times under stress", 20.0, 0.5, 0.6, phases=_STRESS),
    slow("ping of 0.3 ms, doubled", 2.0, 0.5, usual=0.0003, ping=True),
    slow("doubled to the end", 2.0),
    slow("doubled from .3 on", 2.0, 0.3),
    slow("doubled to the end, load wave", 2.0, load=0.33),
    slow("doubled for 5 h", 2.0, 0.5, 0.71),
    slow("doubled after the baseline", 2.0, 0.2, 0.5, phases=_STRESS),
    slow("twenty times to the end", 20.0),
    slow("twenty times for 15 min", 20.0, 0.5, 0.511),
    slow("ping twenty times to the end", 20.0, usual=0.0003, ping=True, load=None),
    limit("half full", "system.sessions"),
    limit("bursts of one reading", "queue.depth", burst=True),
    limit("full under stress", "queue.depth", begin=0.5, end=0.52, phase="stress"),
    limit("no limit stated", "system.sessions", size=None),
    limit("read-only image", "system.filesystem.usage", stands=1.0),
    limit("stands at 97 %", "system.filesystem.usage", stands=0.97),
    limit("sessions full for 5 min", "system.sessions", begin=0.5, end=0.5035),
    limit("connections full for 1 h", "system.conntrack.count", begin=0.5, end=0.542),
    limit("queue full to the end", "queue.depth", begin=0.9),
    limit("queue at 97 % for 30 min", "queue.depth", 0.97, begin=0.5, end=0.521),
    limit("file system fills", "system.filesystem.usage", climbs=0.7),
    limit("sessions climb to 80 %", "system.sessions.utilization", stands=0.2, climbs=0.6),
)
