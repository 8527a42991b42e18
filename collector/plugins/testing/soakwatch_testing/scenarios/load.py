"""Load and what returns of it: throughput, pauses, losses, overload, and faulty generators."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case, Ledger
from soakwatch_model.event import Event
from soakwatch_model.roles import GENERATOR
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import counter, readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, Shape, added, curve, phi, ramp, step, times, warm_up, wave, white

S = 10**9
_RATE = 1000.0
_PACKETS = 50_000.0


def _whole(hours: float) -> tuple[Window, tuple[Phase, ...]]:
    window = Window(0, round(hours * 3600 * S))
    return window, (Phase("soak", window),)


def _ledger(series: Series) -> Ledger:
    return Ledger("dut", "load", series.cadence_s or 1.0, len(series), len(series), {}, None)


def _answered(rate: Floats, offered: Floats, apart: float, hours: float) -> Case:
    """A device whose generator offers one rate and gets another answered."""
    window, phases = _whole(hours)
    load = (readings("load.request.rate", np.maximum(rate, 0.0), apart), readings("load.offered.rate", offered, apart))
    return Case("dut", "", window, phases=phases, load=load, ledgers=(_ledger(load[0]),))


def throughput(
    name: str, *shapes: Shape, offered: Shape | None = None, dips: int = 0, grows: float = 0.0, hours: float = 12.0
) -> Scenario:
    """Answered requests from shapes in percent of the level; ``grows`` is the loss at the end, per day."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        wanted = _RATE * (1 + (offered(rng, t / 3600) / 100 if offered else np.zeros(t.size)))
        rate = wanted * (1 + added(rng, t / 3600, shapes) / 100)
        pauses = []
        for _ in range(dips):
            index = int(rng.integers(t.size // 4, 3 * t.size // 4))
            rate[index : index + 6] = 0.0
            pauses.append((index * apart, (index + 6) * apart))
        truth = Truth(growth=-grows / 100 * _RATE / 86400, pauses=tuple(pauses))
        return Signal(_answered(rate, wanted, apart, hours), truth)

    return Scenario("throughput", name, make, hours)


def _dipped(rate: Floats, begins: Floats, lasts: float, apart: float) -> tuple[Floats, tuple[tuple[float, float], ...]]:
    """A rate that is 0 for ``lasts`` from each begin on; a reading across an edge is averaged."""
    left, edges = np.ones(rate.size), np.arange(rate.size + 1) * apart
    for begin in begins.tolist():
        first, last = int(begin // apart), min(int((begin + lasts) // apart), rate.size - 1)
        for index in range(first, last + 1):
            inside = min(edges[index + 1], begin + lasts) - max(edges[index], begin)
            left[index] -= max(0.0, inside) / apart
    return rate * np.clip(left, 0, 1), tuple((b, b + lasts) for b in begins.tolist())


def pauses(
    name: str, period: float, lasts: float, jitter: float | None, noise: Shape | None = None, cadence_s: float = 1.0
) -> Scenario:
    """Stops of a given length: every ``period`` seconds with a jitter, or at random (None) with that mean interval."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        rate = _RATE * (1 + added(rng, t / 3600, (noise or white(2),)) / 100)
        many = int(hours * 3600 / period)
        if jitter is None:
            between = rng.exponential(period, 4 * many + 8)
        else:
            between = period * np.maximum(0.2, 1 + jitter * rng.standard_normal(many + 1))
        begins = rng.uniform(0, period) + np.cumsum(between)
        begins = begins[begins < hours * 3600 - 2 * lasts] if lasts > 0 else begins[:0]
        rate, truth = _dipped(rate, begins, lasts, apart)
        known = Truth(pauses=truth, period_s=period if jitter is not None and lasts > 0 else None)
        return Signal(_answered(rate, np.full(t.size, _RATE), apart, hours), known)

    return Scenario("pauses", name, make, 2.0, cadence_s)


def drops(name: str, steps: str, bits: int = 64) -> Scenario:
    """A counter of dropped packets beside the packets sent; ``steps`` names its pattern."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        count, third = np.zeros(t.size, dtype=np.int64), t.size // 3
        ends = [0, t.size // 2, t.size // 2 + t.size // 8, t.size]
        if steps == "few":
            count[rng.integers(third // 2, third, 3)] = 1
        elif steps == "trickle":
            count = rng.poisson(1e-6 * _PACKETS * apart, t.size)
        elif steps == "stress":
            count[ends[1] : ends[2]] = rng.poisson(100, ends[2] - ends[1])
        start = 2**32 - 1000 if steps == "wrap" else 500
        if steps == "wrap":
            count[third] = 5000
        series = counter("system.network.packet.dropped", count[1:], apart, start=start, bits=bits)
        if steps == "reset":
            value = series.value.copy()
            value[2 * third :] = 0
            series = replace(series, value=value)
        sent = (_PACKETS * t).astype(np.uint64)
        window = Window(0, round(hours * 3600 * S))
        names = ("soak", "stress", "recovery")
        phases = tuple(Phase(names[i], Window(*(round(e * apart * S) for e in ends[i : i + 2]))) for i in range(3))
        lost = float(count.sum()) / (_PACKETS * hours * 3600)
        series = replace(series, object="interface=eth0")
        case = Case(
            "dut",
            series.object,
            window,
            (series,),
            phases=phases,
            load=(readings("load.tx.packets", sent, apart),),
            ledgers=(_ledger(series),),
        )
        return Signal(case, Truth(lost=lost))

    return Scenario("drops", name, make, 6.0)


def overload(name: str, factor: float, excess: float, *, known: bool = True) -> Scenario:
    """An hour below capacity without loss, a quarter above it; ``excess`` of the capacity is lost beyond what must be
    lost."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        capacity, end = _PACKETS, float(t[-1]) + apart
        edges = [0.0, 0.6 * end, 0.8 * end, end]
        above = (t >= edges[1]) & (t < edges[2])
        reported = np.where(above, factor * capacity, 0.98 * capacity if known else 1.02 * capacity)
        sent = reported * apart
        through = capacity * (1 + 0.002 * rng.standard_normal(t.size)) * (1 - excess * above)
        back = np.minimum(sent, np.maximum(through, 0) * apart)
        if known:
            back = np.where(above, back, sent)
        load = (
            readings("load.tx.packets", np.cumsum(np.round(sent)).astype(np.uint64), apart),
            readings("load.rx.packets", np.cumsum(np.round(back)).astype(np.uint64), apart),
            readings("load.offered.packet.rate", reported, apart),
        )
        names = ("soak", "stress", "recovery")
        phases = tuple(Phase(names[i], Window(round(edges[i] * S), round(edges[i + 1] * S))) for i in range(3))
        case = Case("dut", "", Window(0, round(end * S)), phases=phases, load=load, ledgers=(_ledger(load[0]),))
        return Signal(case, Truth(lost=excess))

    return Scenario("overload", name, make, 2.0)


def generator(name: str, fault: str = "") -> Scenario:
    """A generator's own counters, with at most one fault."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        reported = np.full(t.size, _PACKETS)
        sent = np.cumsum(np.round(_PACKETS * apart * (1 + 0.0005 * rng.standard_normal(t.size))))
        if fault == "low":
            sent = np.round(0.97 * sent)
        back = sent.copy()
        if fault == "undrained":  # the last minute's packets are still in transit
            back = np.minimum(back, back[-max(2, round(60 / apart))])
        full = np.zeros(t.size)
        if fault == "full":
            full[rng.integers(t.size // 4, 3 * t.size // 4) :] = 25
        cpu = np.clip((0.97 if fault == "busy" else 0.5) + 0.02 * rng.standard_normal(t.size), 0, 1)
        if fault == "restart":
            index = int(rng.integers(t.size // 4, 3 * t.size // 4))
            sent[index:] -= sent[index]
            back[index:] -= back[index]
        ceiling = np.full(t.size, (1.02 if fault == "headroom" else 1.5) * _PACKETS)
        series = (
            readings("load.tx.packets", sent.astype(np.uint64), apart),
            readings("load.rx.packets", back.astype(np.uint64), apart),
            readings("load.offered.packet.rate", reported, apart),
            readings("load.queue_full", full.astype(np.uint64), apart),
            readings("load.cpu.utilization", cpu, apart),
            readings("load.ceiling.packet.rate", ceiling, apart),
        )
        window, phases = _whole(hours)
        ledgers = (_ledger(series[0]),)
        case = Case("dut", "", window, series, phases=phases, ledgers=ledgers, load=series, role=GENERATOR)
        return Signal(case, Truth())

    return Scenario("generator", name, make, 2.0)


def _gc_events(name: str, jitter: float | None) -> Scenario:
    """Pauses known only from a log: events, without any throughput."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng = np.random.default_rng(seed)
        many = int(hours * 3600 / 300)
        between = rng.exponential(300, many) if jitter is None else 300 * (1 + jitter * rng.standard_normal(many))
        begins = np.cumsum(np.maximum(between, 5.0))
        begins = begins[begins < hours * 3600 - 5]
        events = tuple(Event("pause", "dut", "", round(b * S), round((b + 2) * S)) for b in begins.tolist())
        flat = np.full(times(hours, apart).size, _RATE)
        case = _answered(flat, flat, apart, hours)
        truth = Truth(pauses=tuple((b, b + 2) for b in begins.tolist()), period_s=None if jitter is None else 300.0)
        return Signal(replace(case, events=events), truth)

    return Scenario("pauses", name, make, 3.0, 1.0)


NOISE, WAVES = phi(0.9, 2.0), wave(6, 0.1)

SCENARIOS = (
    throughput("steady", NOISE),
    throughput("checkpoint waves", NOISE, WAVES),
    throughput("comes up", NOISE, warm_up(60, 0.3)),
    throughput("one stop of a minute", NOISE, dips=1),
    throughput("offered load halves", NOISE, offered=step(-50)),
    throughput("declines 15 % a day", NOISE, ramp(-15), grows=15),
    throughput("declines 40 % a day", NOISE, ramp(-40), grows=40),
    throughput("declines faster and faster", NOISE, curve(-30), grows=60),
    throughput("falls by half", NOISE, step(-50)),
    throughput("declines 40 % a day in waves", NOISE, WAVES, ramp(-40), grows=40),
    pauses("no pause", 60, 0, None),
    pauses("no pause, AR noise", 60, 0, None, phi(0.05, 5)),
    pauses("random 60 s", 60, 1.0, None),
    pauses("random 300 s", 300, 2.0, None),
    pauses("each 60 s, jitter 2 %", 60, 1.0, 0.02),
    pauses("each 60 s, jitter 10 %", 60, 1.0, 0.1),
    pauses("each 60 s, jitter 30 %", 60, 1.0, 0.3),
    pauses("each 300 s, jitter 2 %", 300, 2.0, 0.02),
    pauses("each 300 s, jitter 10 %", 300, 2.0, 0.1),
    pauses("each 300 s, read each 10 s", 300, 6.0, 0.1, cadence_s=10.0),
    pauses("each 900 s", 900, 2.0, 0.1),
    pauses("each 60 s of 50 ms", 60, 0.05, 0.1),
    _gc_events("told by a log, each 300 s", 0.1),
    _gc_events("told by a log, random", None),
    drops("no drop", "none"),
    drops("three drops", "few"),
    drops("a trickle of 1 ppm", "trickle"),
    drops("drops under stress only", "stress"),
    drops("counter of 32 bits wraps", "wrap", 32),
    drops("counter begins anew", "reset"),
    overload("healthy at 120 %", 1.2, 0.0),
    overload("healthy at 200 %", 2.0, 0.0),
    overload("excess of 2 %", 1.2, 0.02),
    overload("excess of 5 %", 1.2, 0.05),
    overload("excess of 20 %", 2.0, 0.2),
    overload("capacity unknown", 1.2, 0.0, known=False),
    generator("healthy generator"),
    generator("3 % below what was told", "low"),
    generator("queue full", "full"),
    generator("CPU at 97 %", "busy"),
    generator("counters fall", "restart"),
    generator("no headroom", "headroom"),
    generator("not drained", "undrained"),
)
