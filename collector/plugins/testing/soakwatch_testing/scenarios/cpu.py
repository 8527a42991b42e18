"""Utilisation with and without spikes, at backgrounds from idle to poll mode: daily sines, pegs and plateaus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import busy, raised, readings, wave
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats

METRIC, CORE = "system.cpu.utilization", "system.cpu.core.utilization"
_DROPS = "system.network.packet.dropped"
Back = Callable[[int, float, float], Series]


def _case(series: Series, hours: float, *others: Series, phases: tuple[Phase, ...] = ()) -> Case:
    window = Window(0, round(hours * 3600e9))
    return Case("dut", "", window, (series, *others), phases=phases or (Phase("soak", window),))


def _level(level: float, sd: float, tau_s: float = 30.0) -> Back:
    return lambda seed, hours, apart: busy(seed, level, sd, hours * 3600, apart, METRIC, tau_s)


def _daily(seed: int, hours: float, apart: float) -> Series:
    series = wave(busy(seed, 0.4, 0.06, hours * 3600, apart, METRIC), 0.25, seed=seed)
    return replace(series, value=np.clip(series.values, 0, 1))


def _bursty(seed: int, hours: float, apart: float) -> Series:
    """Bursts of two seconds, 12 an hour: none is a spike."""
    series = busy(seed, 0.3, 0.06, hours * 3600, apart, METRIC)
    value, rng = series.values.copy(), np.random.default_rng(seed + 1000)
    for index in rng.integers(0, len(series), int(12 * hours)):
        wide = max(1, round(2 / apart))
        value[index : index + wide] += (1 - value[index : index + wide]) * min(1.0, 2 / apart)
    return replace(series, value=np.clip(value, 0, 1))


def _polling(level: float, sd: float) -> Back:
    """A core in poll mode: always near the top, with a one-second dip now and then."""

    def polled(seed: int, hours: float, apart: float) -> Series:
        series, rng = busy(seed, level, sd, hours * 3600, apart, METRIC), np.random.default_rng(seed + 1)
        aside = rng.random(len(series)) < 1 / 3600 * apart
        return replace(series, value=np.where(aside, 0.7, series.values))

    return polled


def _core(seed: int, hours: float, apart: float) -> Series:
    """A single core in poll mode."""
    return replace(_polling(1.0, 0.001)(seed, hours, apart), metric=CORE, object="core=3")


def _in_bursts(seed: int, hours: float, apart: float) -> Series:
    """At the top for 20 s of each minute throughout."""
    series = busy(seed, 0.2, 0.03, hours * 3600, apart, METRIC)
    since = (series.seconds + seed % 60) % 60
    return replace(series, value=np.where(since < 20, 1.0, series.values))


def _climb(seed: int, hours: float, apart: float) -> Series:
    """Climbs from 30 % to the top in the second half of the run and stays there."""
    series = busy(seed, 0.3, 0.03, hours * 3600, apart, METRIC)
    indices = np.linspace(0, 1, len(series))
    return replace(series, value=np.clip(series.values + np.clip((indices - 0.5) * 1.75, 0, 0.7), 0, 1))


def quiet(name: str, back: Back, cadence_s: float = 10.0) -> Scenario:
    """A background only."""
    return Scenario(
        "cpu",
        name,
        lambda seed, hours, apart: Signal(_case(back(seed, hours, apart), hours), Truth()),
        cadence_s=cadence_s,
    )


def spike(name: str, seconds: float, cadence_s: float, back: Back | None = None, to: float = 1.0) -> Scenario:
    """One spike of a given length in the middle half of the run."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        at_s = float(np.random.default_rng(seed + 1000).uniform(0.25, 0.75)) * hours * 3600
        series = raised((back or _level(0.3, 0.06))(seed, hours, apart), at_s, seconds, to)
        return Signal(_case(series, hours), Truth(spikes=((at_s, at_s + seconds),)))

    return Scenario("cpu", name, make, cadence_s=cadence_s)


def _peg(name: str, cadence_s: float) -> Scenario:
    """Three consecutive readings at 100 %, whatever their interval."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        series = _level(0.3, 0.06)(seed, hours, apart)
        index = int(np.random.default_rng(seed + 1000).integers(len(series) // 4, 3 * len(series) // 4))
        value = series.values.copy()
        value[index : index + 3] = 1.0
        begin = (index - 1) * apart
        return Signal(_case(replace(series, value=value), hours), Truth(spikes=((begin, begin + 3 * apart),)))

    return Scenario("cpu", name, make, cadence_s=cadence_s)


def _plateau(name: str, sd: float, seconds: float, cadence_s: float) -> Scenario:
    """A period at 95 % with noise: one spike, not thirty."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng = np.random.default_rng(seed + 1000)
        series, many = _level(0.3, 0.06)(seed, hours, apart), round(seconds / apart)
        index = int(rng.integers(len(series) // 4, 3 * len(series) // 4))
        value = series.values.copy()
        value[index : index + many] = np.clip(0.95 + sd * rng.standard_normal(many), 0, 1)
        return Signal(
            _case(replace(series, value=value), hours), Truth(spikes=((index * apart, (index + many) * apart),))
        )

    return Scenario("cpu", name, make, cadence_s=cadence_s)


def _asked(name: str, seconds: float) -> Scenario:
    """A spike inside a phase that causes it on purpose."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        at_s = hours * 3600 / 2
        series = raised(_level(0.3, 0.06)(seed, hours, apart), at_s + 10, seconds)
        edges = [round(x * 1e9) for x in (0, at_s, at_s + seconds + 20, hours * 3600)]
        names = ("soak", "spike", "recovery")
        phases = tuple(Phase(names[i], Window(edges[i], edges[i + 1])) for i in range(3))
        return Signal(_case(series, hours, phases=phases), Truth(spikes=((at_s + 10, at_s + 10 + seconds),)))

    return Scenario("cpu", name, make)


def _dropped(rng: np.random.Generator, t: Floats, often: float, begin: float, end: float) -> Series:
    """A counter of dropped packets: ``often`` a second between two times in seconds."""
    apart = float(t[1] - t[0])
    steps = rng.poisson(often * apart, t.size) * ((t >= begin) & (t < end))
    return readings(_DROPS, (1000 + np.cumsum(steps)).astype(np.uint64), apart, object="interface=eth0")


def _saturated(name: str, minutes: float, drops: float) -> Scenario:
    """Minutes at the top, with or without drops."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng = np.random.default_rng(seed + 1000)
        at_s = float(rng.uniform(0.25, 0.75)) * hours * 3600
        series = raised(_level(0.5, 0.05)(seed, hours, apart), at_s, 60 * minutes)
        counter = _dropped(rng, series.seconds, drops, at_s, at_s + 60 * minutes)
        return Signal(
            _case(series, hours, counter), Truth(spikes=((at_s, at_s + 60 * minutes),), lost=float(drops > 0))
        )

    return Scenario("cpu", name, make)


SCENARIOS = (
    quiet("quiet 30 %", _level(0.3, 0.06)),
    quiet("quiet 30 %, each second", _level(0.3, 0.06), 1.0),
    quiet("bursts of 2 s", _bursty, 1.0),
    quiet("60 % bursty", _level(0.6, 0.12, 10.0)),
    quiet("wave of a day 40 ± 25 %", _daily),
    quiet("busy 85 ± 8 %", _level(0.85, 0.08)),
    quiet("poll mode 100 %", _polling(1.0, 0.0)),
    quiet("poll mode 99 %", _polling(0.99, 0.01)),
    quiet("half polling 97 %", _polling(0.97, 0.03)),
    quiet("core in poll mode", _core),
    quiet("20 s of each minute at the top", _in_bursts, 5.0),
    quiet("climbs to the top", _climb),
    spike("spike 5 s each second", 5, 1.0),
    spike("spike 11 s each second", 11, 1.0),
    spike("spike 15 s each 5 s", 15, 5.0),
    spike("spike 10 s each 10 s", 10, 10.0),
    spike("spike 20 s each 10 s", 20, 10.0),
    spike("spike 120 s each 60 s", 120, 60.0),
    spike("spike 10 min", 600, 10.0),
    spike("spike 2 h", 7200, 10.0),
    spike("spike to 90 %", 60, 10.0, to=0.9),
    _peg("peg of 3 readings, 10 s", 10.0),
    _peg("peg of 3 readings, 60 s", 60.0),
    _plateau("plateau 95 ± 2 %", 0.02, 120, 1.0),
    _asked("spike that was asked for", 60),
    _saturated("20 min at the top", 20, 0.0),
    _saturated("20 min at the top, drops", 20, 50.0),
)
