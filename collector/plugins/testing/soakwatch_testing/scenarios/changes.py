"""Changes of links, cards, services, ports and answers for the worse, and harmless ones that look alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from soakwatch_model.case import Case, TargetFacts
from soakwatch_model.event import Event
from soakwatch_model.window import Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.objects import object_of
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
Made = Callable[[np.random.Generator, Floats], Floats]
"""Readings, from the elapsed share of the run (0 to 1)."""

_WAVE = 0.25  # amplitude of the daily load


def changing(
    name: str,
    metric: str,
    make: Made,
    *,
    load: str = "steady",
    event: str = "",
    at: float = 0.0,
    shut: tuple[float, float] | None = None,
) -> Scenario:
    """One series of a device beside a load (``steady``, ``wave`` of a day, ``none``: unknown, ``stops`` from .5 to
    .75), with an event at the share ``at`` of the run, and the part of the run in which its port was shut."""

    def made(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        share = t / (hours * 3600)
        window = Window(0, round(hours * 3600 * S))
        offered = 1000 * (1 + (_WAVE * np.sin(2 * np.pi * (share + rng.uniform())) if load == "wave" else 0 * share))
        if load == "stops":
            offered = np.where((share > 0.5) & (share < 0.75), 0.0, offered)
        series = readings(metric, make(rng, share), apart, object=object_of(metric))
        known = () if load == "none" else (readings("load.offered.rate", offered, apart),)
        events = (Event(event, "dut", "", round(at * window.end_ns), None),) if event else ()
        stretch = () if shut is None else (Window(*(round(edge * window.end_ns) for edge in shut)),)
        facts = TargetFacts(shut={"eth3": stretch} if stretch else {})
        return Signal(Case("dut", series.object, window, (series,), events=events, load=known, facts=facts), Truth())

    return Scenario("change", name, made, cadence_s=60.0)


def _between(share: Floats, *edges: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether each time lies in one of the intervals whose edges are given in turn."""
    inside = np.zeros(share.size, dtype=bool)
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        inside |= (share >= begin) & (share < end)
    return inside


def _up(*downs: float) -> Made:
    return lambda _, share: np.where(_between(share, *downs), 0.0, 1.0)


def _age(*restarts: float, start: float = 1e6) -> Made:
    def make(_: np.random.Generator, share: Floats) -> Floats:
        seconds = 86400.0 * share
        since = np.full(share.size, -start)
        for restart in restarts:
            since = np.where(share >= restart, 86400.0 * restart, since)
        age: Floats = np.floor((seconds - since) % (2**32 / 100))
        return age

    return make


def _restarts(number: int, begin: float = 0.3) -> Made:
    places = np.linspace(begin, 0.95, max(number, 1))[:number]
    return lambda _, share: np.searchsorted(places, share, side="right").astype(np.float64)


def _counted(pace: float, *silent: float, bits: int = 0, few: float = 0.0, bursts: bool = False) -> Made:
    """A counter of ``pace`` a minute, except in silent intervals, in which it counts only a ``few``."""

    def make(rng: np.random.Generator, share: Floats) -> Floats:
        each: Floats = np.where(_between(share, *silent), few, pace)
        if bursts:
            each = np.where((rng.random(share.size // 60 + 1) < 0.4).repeat(60)[: share.size], each, 0.0)
        total: Floats = np.cumsum(rng.poisson(each)).astype(np.float64) + np.float64(2**31)
        return np.mod(total, 2.0**bits) if bits else total

    return make


def _surging(pace: float, factor: float, begin: float, end: float = 1.0, wave: float = 0.0, every: float = 0.0) -> Made:
    """A counter whose pace is multiplied by ``factor`` in a part of the run, or in two of three intervals of length
    ``every``; ``wave``: a daily wave with this exponent."""

    def make(rng: np.random.Generator, share: Floats) -> Floats:
        daily = np.exp(wave * np.sin(2 * np.pi * (share + rng.uniform())))
        surges = _between(share, begin, end)
        if every:
            surges &= (share - begin) % every < 2 / 3 * every
        each = pace * daily * np.where(surges, factor, 1.0)
        return np.cumsum(rng.poisson(each)).astype(np.float64)

    return make


def _jitter(factor: float = 1.0, begin: float = 1.0, end: float = 1.0, *, spikes: bool = False) -> Made:
    """A jitter of 0.5 ms with heavy tails."""

    def make(rng: np.random.Generator, share: Floats) -> Floats:
        value: Floats = 5e-4 * np.exp(0.5 * rng.standard_normal(share.size))
        value = value * np.where(rng.random(share.size) < (0.03 if spikes else 0.0), 80.0, 1.0)
        return np.where(_between(share, begin, end), factor * value, value)

    return make


_UP = "system.network.up"
_AGE = "system.module.uptime"
_RESTARTS = "system.service.restarts"
_PACKETS = "system.network.packets"
_AGAIN = "system.tcp.retransmits"
_JITTER = "load.jitter"

SCENARIOS: tuple[Scenario, ...] = (
    changing("link stands", _UP, _up()),
    changing("link never up", _UP, _up(0.0, 1.0)),
    changing("link comes up late", _UP, _up(0.0, 0.2)),
    changing("link down 40 min", _UP, _up(0.4, 0.43)),
    changing("link down to the end", _UP, _up(0.9, 1.0)),
    changing("link down for a poll", _UP, _up(0.4, 0.4006)),
    changing("link flaps 6 times", _UP, _up(*(x for i in range(6) for x in (0.1 + 0.1 * i, 0.1005 + 0.1 * i)))),
    changing("link down in a failover", _UP, _up(0.4, 0.43), event="failover", at=0.3995),
    changing("link shut", _UP, _up(0.4, 0.6), shut=(0.399, 0.6)),
    changing("card stays", _AGE, _age()),
    changing("card restarts twice", _AGE, _age(0.3, 0.8)),
    changing("card wraps at 497 days", _AGE, _age(start=2**32 / 100 - 40000.0)),
    changing("card restarts in an upgrade", _AGE, _age(0.5), event="upgrade", at=0.498),
    changing("service stays", _RESTARTS, _restarts(0)),
    changing("service restarts once", _RESTARTS, _restarts(1)),
    changing("service restarts 30 times", _RESTARTS, _restarts(30)),
    changing("port carries", _PACKETS, _counted(6e4)),
    changing("port carries, 32 bits", _PACKETS, _counted(6e7, bits=32)),
    changing("port under a wave", _PACKETS, _counted(6e4), load="wave"),
    changing("port in bursts", _PACKETS, _counted(6e4, bursts=True)),
    changing("port idle", _PACKETS, _counted(3.0, 0.5, 0.8)),
    changing("port deaf 3 h", _PACKETS, _counted(6e4, 0.6, 0.725)),
    changing("port deaf to the end", _PACKETS, _counted(6e4, 0.8, 1.0, few=6.0)),
    changing("port deaf 15 min", _PACKETS, _counted(6e4, 0.6, 0.6104)),
    changing("port deaf, load not known", _PACKETS, _counted(6e4, 0.6, 0.725), load="none"),
    changing("port silent with the load", _PACKETS, _counted(6e4, 0.5, 0.75), load="stops"),
    changing("port shut", _PACKETS, _counted(6e4, 0.5, 0.75), shut=(0.499, 0.75)),
    changing("flow deaf", "load.flow.rx.packets", _counted(6e4, 0.7, 1.0)),
    changing("retransmits", _AGAIN, _surging(12.0, 1.0, 1.0)),
    changing("retransmits wave fivefold", _AGAIN, _surging(12.0, 1.0, 1.0, wave=0.8), load="wave"),
    changing("retransmits x40 for 5 h", _AGAIN, _surging(12.0, 40.0, 0.5, 0.7)),
    changing("retransmits x40 for 1 h", _AGAIN, _surging(12.0, 40.0, 0.5, 0.542)),
    changing("retransmits x40 in 9 parts of 4.5 h", _AGAIN, _surging(12.0, 40.0, 0.5, 0.6875, every=1 / 48)),
    changing("retransmits x40 in 3 jobs of 40 min", _AGAIN, _surging(12.0, 40.0, 0.3, 0.4125, every=1 / 24)),
    changing("retransmits x4", _AGAIN, _surging(12.0, 4.0, 0.5)),
    changing("retransmits from none", _AGAIN, _surging(0.01, 9000.0, 0.6)),
    changing("retransmits x40, load not known", _AGAIN, _surging(12.0, 40.0, 0.5, 0.7), load="none"),
    changing("jitter", _JITTER, _jitter()),
    changing("jitter spikes", _JITTER, _jitter(spikes=True)),
    changing("jitter x25 to the end", _JITTER, _jitter(25.0, 0.93)),
    changing("jitter x25 in a change of configuration", _JITTER, _jitter(25.0, 0.6), event="config.change", at=0.5995),
)
