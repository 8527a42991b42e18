"""Events under load, and management under stress: outages of known length, and probes that are late or lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from soakwatch_model.case import Case, Ledger, Silence
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, times

S = 10**9
_RATE = 1000.0
_PEER = "peer=192.0.2.1,protocol=icmp"
_EDGES = (("soak", 0.0, 0.6), ("stress", 0.6, 0.85), ("recovery", 0.85, 1.0))


def _down(t: Floats, apart: float, begins: Sequence[float], lasts: Sequence[float]) -> Floats:
    """The share of each reading's interval in which nothing comes through."""
    result = np.zeros(t.size)
    for begin, seconds in zip(begins, lasts, strict=True):
        result += np.clip(np.minimum(t, begin + seconds) - np.maximum(t - apart, begin), 0, apart) / apart
    return np.minimum(result, 1.0)


def _carried(t: Floats, apart: float, down: Floats, rng: np.random.Generator) -> tuple[Series, Series]:
    """Packets sent and returned, with one or two in transit."""
    sent = np.round(_RATE * t)
    back = np.maximum.accumulate(np.round(np.cumsum(_RATE * apart * (1 - down))) - rng.integers(0, 2, t.size))
    back = np.maximum(back - back[0], 0.0)
    return readings("load.tx.packets", sent.astype(np.uint64), apart), readings(
        "load.rx.packets", back.astype(np.uint64), apart
    )


def _probes(t: Floats, apart: float, down: Floats, late: Floats) -> tuple[Series, ...]:
    """A peer probed at each reading: no answer if it is down for more than half of the interval."""
    gone = down > 0.5
    answered = np.flatnonzero(~gone)
    trips = readings("reach.round_trip", late, apart, object=_PEER)
    return (
        replace(trips, time_ns=trips.time_ns[answered], value=trips.value[answered]),
        readings("reach.up", np.where(gone, 0.0, 1.0), apart, object=_PEER),
        readings("reach.sent", np.arange(1.0, t.size + 1), apart, object=_PEER),
        readings("reach.lost", np.cumsum(gone).astype(np.float64), apart, object=_PEER),
    )


def event(
    name: str,
    lasts: Sequence[float],
    *,
    share: float = 1.0,
    source: str = "load",
    within: float | None = None,
    planned: bool = True,
) -> Scenario:
    """An hour with one failover for each of ``lasts``: the seconds for which a share of the traffic stops."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        end = float(t[-1]) + apart
        begins = [end * (i + 1 + 0.3 * float(rng.random())) / (len(lasts) + 2) for i in range(len(lasts))]
        down = _down(t, apart, begins, lasts)
        cpu = np.clip(0.3 + 0.03 * rng.standard_normal(t.size), 0, 1)
        series: tuple[Series, ...] = (readings("system.cpu.utilization", cpu, apart),)
        if source in {"probes", "both"}:
            series = (*_probes(t, apart, down, np.full(t.size, 0.001)), *series)
        load = _carried(t, apart, share * down, rng) if source in {"load", "both"} else ()
        events = tuple(
            Event(
                "failover",
                "dut",
                "",
                round((b - 0.5) * S),
                None,
                deadline_ns=None if within is None else round((b + within) * S),
            )
            for b in begins
        )
        window = Window(0, round(end * S))
        case = Case(
            "dut", "", window, series, phases=(Phase("soak", window),), events=events if planned else (), load=load
        )
        pauses = tuple((b, b + s) for b, s in zip(begins, lasts, strict=True))
        return Signal(case, Truth(pauses=pauses, lost=share * sum(lasts) / end))

    return Scenario("events", name, make, 1.0, 1.0)


def isolation(
    name: str,
    *,
    late: float = 1.0,
    lost: float = 0.0,
    silent: str = "",
    cpu: float = 0.4,
    how: str = "timeout",
    pressed: bool = True,
) -> Scenario:
    """Two hours with a stress phase, in which round trips take ``late`` times as long, requests are lost, and sources
    silent."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        end = float(t[-1]) + apart
        edges = [(phase, round(a * end * S), round(b * end * S)) for phase, a, b in _EDGES]
        above = (t >= edges[1][1] / S) & (t < edges[1][2] / S)
        trips = 0.001 * (1 + 0.1 * np.abs(rng.standard_normal(t.size))) * np.where(above, late, 1.0)
        gone = np.where(above, rng.random(t.size) < lost, rng.random(t.size) < 0.001).astype(np.float64)
        load = np.clip(0.3 + 0.03 * rng.standard_normal(t.size), 0, 1)
        load[above] = np.clip(cpu + 0.02 * rng.standard_normal(int(above.sum())), 0, 1)
        window = Window(0, round(end * S))
        silent_ns = edges[1][1] + round(60 * S + 30 * S * float(rng.random()))
        silence = Silence(Window(silent_ns, silent_ns + 600 * S), {how: 60})
        rebooted = "reboot" in silent
        up = 90_000.0 + t
        if rebooted:
            up[t * S > silent_ns] = t[t * S > silent_ns] - silent_ns / S
        quiet = {"all": ("snmp", "ssh"), "one": ("snmp",), "reboot": ("snmp", "ssh")}.get(silent, ())
        kept = ~((t * S > silent_ns) & (t * S < silent_ns + 600 * S)) if "ssh" in quiet and how != "missed" else t >= 0
        heard = [readings("system.cpu.utilization", load, apart), readings("system.uptime", up, apart)]
        series = (
            *_probes(t, apart, gone, trips),
            *(replace(s, time_ns=s.time_ns[kept], value=s.value[kept]) for s in heard),
        )
        ledgers = tuple(
            Ledger(
                "dut",
                f"dut/{source}",
                10.0,
                int(end / 10),
                int(end / 10) - 60 * (source in quiet),
                {how: 60} if source in quiet else {},
                silence.window if source in quiet else None,
                silences=(silence,) if source in quiet else (),
            )
            for source in ("snmp", "ssh")
        )
        phases = tuple(Phase(phase, Window(a, b)) for phase, a, b in edges) if pressed else (Phase("soak", window),)
        carried = _carried(t, apart, np.zeros(t.size), rng) if pressed else ()
        case = Case("dut", "", window, series, phases=phases, ledgers=ledgers, load=carried)
        return Signal(case, Truth(lost=lost))

    return Scenario("isolation", name, make, 2.0, 1.0)


def polled(
    name: str, *, took: float = 0.05, slow: float = 1.0, lost: float = 0.0, surveys: int = 6, wanders: bool = False
) -> Scenario:
    """Two hours of polls every ten seconds with a stress phase, in which they take ``slow`` times as long, and a share
    is lost at random.

    Every sixth poll is a survey that takes eight times as long, under stress every ``surveys``-th.
    """

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        end = float(t[-1]) + apart
        edges = [(phase, round(a * end * S), round(b * end * S)) for phase, a, b in _EDGES]
        above = (t >= edges[1][1] / S) & (t < edges[1][2] / S)
        drift = np.exp(0.5 * np.sin(t / 600 + rng.uniform(0, 6))) if wanders else np.ones(t.size)
        value = took * drift * np.exp(0.3 * rng.standard_normal(t.size)) * np.where(above, slow, 1.0)
        value *= np.where((np.arange(t.size) + int(rng.integers(6))) % np.where(above, surveys, 6) == 0, 8.0, 1.0)
        gone = rng.random(t.size) < np.where(above, lost, 0.002)
        series = readings("source.poll.duration", value, apart, object="source=snmp")
        series = replace(series, time_ns=series.time_ns[~gone], value=series.value[~gone])
        heard = series.time_ns.tolist()
        silences = tuple(
            Silence(Window(a, b), {"timeout": round((b - a) / (apart * S)) - 1})
            for a, b in pairwise(heard)
            if b - a >= 3 * apart * S
        )
        ledger = Ledger(
            "dut", "dut/snmp", apart, t.size, len(heard), {"timeout": int(gone.sum())}, None, silences=silences
        )
        load = np.clip(0.4 + 0.03 * rng.standard_normal(len(heard)), 0, 1)
        cpu = replace(series, metric="system.cpu.utilization", object="", value=load)
        phases = tuple(Phase(phase, Window(a, b)) for phase, a, b in edges)
        case = Case("dut", "", Window(0, round(end * S)), (series, cpu), phases=phases, ledgers=(ledger,))
        return Signal(case, Truth(lost=lost))

    return Scenario("isolation", name, make, 2.0, 10.0)


_TEN = (1.0, 1.5, 2.0, 2.5, 3.0, 1.2, 1.7, 2.2, 2.7, 3.2)

SCENARIOS = (
    event("no event", (3.0,), planned=False),
    event("failover without loss", (0.0,)),
    event("failover of 300 ms", (0.3,)),
    event("failover of 3 s", (3.0,)),
    event("failover of 10 s", (10.0,)),
    event("half of the flows for 6 s", (6.0,), share=0.5),
    event("probed failover of 3 s", (3.0,), source="probes"),
    event("probed failover of 10 s", (10.0,), source="probes"),
    event("load and probes, 3 s", (3.0,), source="both"),
    event("ten failovers of 1 to 3.2 s", _TEN),
    event("one of ten lasts 8 s", (*_TEN[:6], 8.0, *_TEN[7:])),
    event("not back by its deadline", (4.0,), within=2.0),
    event("nothing tells of traffic", (3.0,), source="nothing"),
    isolation("answers as before"),
    isolation("three times as late", late=3.0),
    isolation("round trip of 20 ms", late=20.0),
    isolation("round trip of 2 s", late=2000.0),
    isolation("20 % of requests lost", lost=0.2),
    isolation("2 % of requests lost", lost=0.02),
    isolation("starved at 100 % CPU", silent="all", cpu=1.0),
    isolation("path cut while data flows", silent="all"),
    isolation("one source silent", silent="one"),
    isolation("late monitor under stress", silent="all", how="missed"),
    isolation("reboot under stress", silent="reboot", cpu=1.0),
    isolation("no pressure told", pressed=False),
    polled("looks as long as before"),
    polled("looks as long, but wandering", wanders=True),
    polled("looks four times as long", slow=4.0),
    polled("twice as many surveys", surveys=3),
    polled("looks 14 times as long, 0.7 s", slow=14.0),
    polled("looks 60 times as long, 3 s", slow=60.0),
    polled("looks of 3 s, twice as long", took=3.0, slow=2.0),
    polled("20 % of looks lost", lost=0.2),
    polled("2 % of looks lost", lost=0.02),
)
