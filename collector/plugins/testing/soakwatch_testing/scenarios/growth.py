"""Growth and its look-alikes: memory of a process with and without a leak, of known growth at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.event import Event
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import LEVEL, PROCESS, gappy, quantised, readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import (
    Floats,
    Shape,
    added,
    after,
    batches,
    bump,
    correlated,
    curve,
    daily_teeth,
    doubling,
    filled,
    flips,
    heavy,
    hump,
    intermittent,
    levels,
    logarithmic,
    outliers,
    phi,
    pink,
    ramp,
    shrinking_stairs,
    sigmoid,
    stairs,
    step,
    teeth,
    times,
    warm_up,
    wave,
    white,
)

METRIC = "process.memory.usage"
DAY_S = 86400.0
CEILING = 2 * LEVEL
_PERCENT = LEVEL / 100
_LOAD = 1000.0  # requests a second
_FREE = 40 * LEVEL
AR9, AR99, AR999 = phi(0.9), phi(0.99), phi(0.999)
SAW_HOUR = (white(0.5), teeth(20, 1.0))

Finish = Callable[[Series, np.random.Generator], Series]


def leaking(rate: float) -> float:
    """Convert percent of the level a day to bytes a second."""
    return rate * _PERCENT / DAY_S


def soak(series: Series, hours: float, **more: tuple[Series, ...] | tuple[Event, ...]) -> Case:
    """One series in a run with only a soak phase."""
    window = Window(0, round(hours * 3600e9))
    return Case("dut", series.object, window, (series,), phases=(Phase("soak", window),), **more)  # type: ignore[arg-type]


def memory(percent: Floats, cadence_s: float) -> Series:
    """Memory readings from percent of the level; at least one page."""
    series = readings(METRIC, np.maximum(LEVEL + _PERCENT * percent, 4096.0), cadence_s, object=PROCESS)
    return replace(series, trait=replace(series.trait, ceiling=CEILING))


def growth(
    name: str, *shapes: Shape, grows: float = 0.0, finish: Finish | None = None, steady: bool = False
) -> Scenario:
    """A scenario of added shapes; ``grows`` is the growth at the end of 24 h in percent of the level a day.

    A ``steady`` leak grows from begin to end, so that the time when it reaches the ceiling is known.
    """

    def make(seed: int, hours: float, cadence_s: float) -> Signal:
        rng = np.random.default_rng(seed)
        series = memory(added(rng, times(hours, cadence_s) / 3600, shapes), cadence_s)
        rate = leaking(grows)
        full = (CEILING - LEVEL) / rate - hours * 3600 if steady else None
        return Signal(soak(finish(series, rng) if finish else series, hours), Truth(growth=rate, full_s=full))

    return Scenario("growth", name, make)


def _reborn(name: str, *shapes: Shape, grows: float = 0.0) -> Scenario:
    """A process that restarts, with an event; ``shapes`` start again with each life."""

    def make(seed: int, hours: float, cadence_s: float) -> Signal:
        rng = np.random.default_rng(seed)
        t = times(hours, cadence_s) / 3600
        died = float(rng.uniform(0.3, 0.7))
        percent = added(rng, t, (AR9,)) + np.where(
            t < died * hours, added(rng, t, shapes), after(died, *shapes)(rng, t)
        )
        at_ns = round(died * hours * 3600e9)
        events = (Event("process.restart", "dut", PROCESS, at_ns, at_ns),)
        case = soak(memory(percent, cadence_s), hours, events=events)
        return Signal(case, Truth(growth=leaking(grows), deaths=(died * hours * 3600,)))

    return Scenario("growth", name, make)


def _loaded(name: str, load: Shape, *shapes: Shape, share: float = 1.0, grows: float = 0.0) -> Scenario:
    """Memory that follows its load (``load`` in percent of it) by a share of those percents."""

    def make(seed: int, hours: float, cadence_s: float) -> Signal:
        rng = np.random.default_rng(seed)
        t = times(hours, cadence_s) / 3600
        busy = load(rng, t)
        asked = readings("load.request.rate", _LOAD * (1 + (busy + 0.2 * rng.standard_normal(t.size)) / 100), cadence_s)
        series = memory(share * busy + added(rng, t, shapes), cadence_s)
        return Signal(soak(series, hours, load=(asked,)), Truth(growth=leaking(grows)))

    return Scenario("growth", name, make)


def _moved(name: str, height: float) -> Scenario:
    """A step at the time of an event."""

    def make(seed: int, hours: float, cadence_s: float) -> Signal:
        rng = np.random.default_rng(seed)
        t = times(hours, cadence_s) / 3600
        at_h = float(t[int(t.size * rng.uniform(0.3, 0.7))])
        percent = AR9(rng, t) + height * (t >= at_h)
        event = Event("failover", "dut", "", round(at_h * 3600e9), round(at_h * 3600e9))
        case = soak(memory(percent, cadence_s), hours, events=(event,))
        return Signal(case, Truth(steps=((at_h * 3600, height * _PERCENT),)))

    return Scenario("growth", name, make)


def _coarse(percent: float) -> Finish:
    return lambda series, _: quantised(series, percent * _PERCENT)


def _holes(series: Series, rng: np.random.Generator) -> Series:
    begin = 0.875 * rng.random()
    return gappy(series, 0.2, (begin, begin + 0.125), int(rng.integers(2**31)))


def _half_gone(series: Series, rng: np.random.Generator) -> Series:
    return gappy(series, 0.0, (0.2, 0.2 + 0.55 + 0.1 * rng.random()))


def _few(series: Series, _: np.random.Generator) -> Series:
    few = slice(0, None, max(1, len(series) // 12))
    return replace(series, time_ns=series.time_ns[few], value=series.value[few], cadence_s=None)


def _wider(rng: np.random.Generator, t: Floats) -> Floats:
    return AR9(rng, t) * np.where(t > t[-1] / 2, 2.0, 1.0)


HEALTHY = (
    growth("constant"),
    growth("white", white()),
    growth("AR .9", AR9),
    growth("AR .99", AR99),
    growth("AR .999", AR999),
    growth("pink .4", pink(0.4)),
    growth("pink .45, sd 2", pink(0.45, 2.0)),
    growth("heavy tails", heavy(3.0)),
    growth("slow noise 3 h", correlated(180, 1.5)),
    growth("outliers 1 %", AR9, outliers(0.01, 50)),
    growth("variance doubles", _wider),
    growth("quantised 4 %", white(), finish=_coarse(4)),
    growth("quantised 4 %, quiet", phi(0.9, 0.3), finish=_coarse(4)),
    growth("quantised 1 %", AR9, finish=_coarse(1)),
    growth("gaps 20 % and 3 h", AR9, finish=_holes),
    growth("over half missing", AR9, finish=_half_gone),
    growth("twelve readings", AR9, finish=_few),
    growth("level flips 2 h", AR9, flips(3, 2.0)),
    growth("level flips 30 min", AR9, flips(3, 0.5)),
    growth("bump 10 % for 2 h", AR9, bump(10, 2.0)),
    growth("bump back at .9", AR9, bump(10, 2.4, share=0.89)),
    growth("dip 15 % for 3 h", AR9, bump(-15, 3.0)),
    growth("five bumps", AR9, *(bump(h, 1.0) for h in (5, 8, 10, 12, 15))),
    growth("batch job each 6 h", AR9, batches(8, 6.0, 1.0)),
    growth("batch job each 3 h", AR9, batches(15, 3.0, 0.5)),
    growth("sawtooth 20 min", white(0.5), teeth(15, 1 / 3)),
    growth("sawtooth 1 h", *SAW_HOUR),
    growth("sawtooth 3 h", white(0.5), teeth(15, 3.0)),
    growth("sawtooth 6 h", white(0.5), teeth(20, 6.0)),
    growth("sawtooth 8 h", AR9, teeth(6, 8.0, 0.02)),
    growth("wave 4 h", AR9, wave(4, 4.0)),
    growth("wave of a day", AR9, wave(5)),
    growth("half a wave", AR9, wave(5, 48.0, phase=-0.25)),
    growth("sawtooth of a day", AR9, daily_teeth(5)),
    growth("warm-up 30 min", AR9, warm_up(40, 0.5)),
    growth("warm-up 1 h", AR9, warm_up(30, 1.0)),
    growth("warm-up 4 h", AR9, warm_up(30, 4.0)),
    growth("warm-up in two stages", AR9, warm_up(15, 0.5), warm_up(10, 5.0)),
    growth("warm-up stretched", AR9, warm_up(20, 1.0, power=0.5)),
    growth("warm-up, then a step", AR9, warm_up(30, 1.0), step(6)),
    growth("warm-up with bumps", AR9, warm_up(50, 2.0), bump(8, 1.0), bump(8, 1.0)),
    growth("warm-up at .2, untold", AR9, after(0.2, warm_up(30, 1.0))),
    growth("overshoot, then settled", AR9, warm_up(-15, 2.0)),
    growth("cache full at .4", AR9, filled(20, 0.4)),
    growth("cache full at .65", AR9, filled(20, 0.65)),
    growth("cache stairs", AR9, shrinking_stairs(8, 0.6, 2.0, 2.5)),
    growth("plateau by a sigmoid", AR9, sigmoid(15, 0.4, 0.05)),
    growth("step +10 %", AR9, step(10)),
    growth("step +10 % late", AR9, step(10, 0.8, 0.9)),
    growth("step +20 %", AR9, step(20)),
    growth("step +25 % at .9", AR9, step(25, 0.88, 0.92)),
    growth("step -10 %", AR9, step(-10)),
    growth("two steps +4 %", AR9, step(4, 0.2, 0.4), step(4, 0.5, 0.7)),
    growth("three steps +4 %", AR9, step(4, 0.15, 0.3), step(4, 0.4, 0.55), step(4, 0.65, 0.8)),
    growth("falls 5 % a day", AR9, ramp(-5)),
    growth("falls, then flat", AR9, ramp(-20, 0.0, 0.5)),
    _moved("step at an event", 10),
    _reborn("restart, warm-up again", warm_up(30, 1.0)),
    _loaded("load in steps of 3 %", levels(3), AR9),
    _loaded("load hump 6 %", hump(6), AR9),
)

UNTOLD = (
    growth("logarithmic 3 %", AR9, logarithmic(3), grows=3.0),
    growth("cache stairs, slow", AR9, shrinking_stairs(8, 0.6, 2.0, 4.0)),
    growth("leak at tolerance", AR9, ramp(5), grows=5),
    growth("leak 5, daily wave", AR9, wave(5), ramp(5), grows=5),
    growth("leak 6 after a release", AR9, ramp(6), step(-10, 0.28, 0.32), grows=6),
    growth("leak 5, sawtooth 8 h", AR9, teeth(6, 8.0, 0.02), ramp(5), grows=5),
)

LEAKS = (
    growth("leak 10", white(), ramp(10), grows=10, steady=True),
    growth("leak 10, AR .9", AR9, ramp(10), grows=10, steady=True),
    growth("leak 20, AR .99", AR99, ramp(20), grows=20, steady=True),
    growth("leak 15, pink .4", pink(0.4), ramp(15), grows=15, steady=True),
    growth("leak 15, heavy tails", heavy(3.0), ramp(15), grows=15, steady=True),
    growth("leak 15, sd 3", correlated(33, 3.0), ramp(15), grows=15, steady=True),
    growth("leak 15, outliers", AR9, ramp(15), outliers(0.01, 50), grows=15),
    growth("leak 15, gaps", AR9, ramp(15), grows=15, steady=True, finish=_holes),
    growth("leak 20, quantised 4 %", phi(0.9, 0.3), ramp(20), grows=20, finish=_coarse(4)),
    growth("leak 15, sawtooth 20 min", white(0.5), teeth(15, 1 / 3), ramp(15), grows=15),
    growth("leak 15, sawtooth 1 h", *SAW_HOUR, ramp(15), grows=15),
    growth("leak 15, sawtooth 3 h", white(0.5), teeth(15, 3.0), ramp(15), grows=15),
    growth("leak 15 after warm-up", AR9, warm_up(30, 1.0), ramp(15), grows=15),
    growth("leak 15 with a step", AR9, step(10), ramp(15), grows=15),
    growth("leak 15 with batch jobs", AR9, batches(8, 6.0, 1.0), ramp(15), grows=15),
    growth("leak 20 after a release", AR9, ramp(20), step(-5, 0.28, 0.32), grows=20),
    growth("leak 8 now and then", AR9, intermittent(8), grows=8),
    growth("leak 12 in steps", AR9, stairs(12, 1.0), grows=12),
    growth("leak 10 in big steps", AR9, stairs(10, 4.0), grows=10),
    growth("leak doubling each 8 h", AR9, doubling(4, 8.0), grows=66.5),
    growth("leak accelerating", AR9, curve(10), grows=20),
    growth("leak 20 from .6", AR9, ramp(20, 0.6), grows=20),
    growth("leak 40 from .8", AR9, ramp(40, 0.8), grows=40),
    _reborn("leak 20 over a restart", ramp(20), grows=20),
    _loaded("leak 15 under a load hump", hump(6), AR9, ramp(15), grows=15),
)


def _counts(name: str, metric: str, level: float, *shapes: Shape, grows: float = 0.0, whole: bool = True) -> Scenario:
    """Another metric: shapes in percent of a level, counts as integers; ``grows`` as above, in the bad direction."""

    def make(seed: int, hours: float, cadence_s: float) -> Signal:
        rng = np.random.default_rng(seed)
        value = level * (1 + added(rng, times(hours, cadence_s) / 3600, shapes) / 100)
        object_name = PROCESS if metric.startswith("process.") else ""
        series = readings(metric, np.round(value) if whole else value, cadence_s, object=object_name)
        return Signal(soak(series, hours), Truth(growth=grows / 100 * level / DAY_S))

    return Scenario("counts", name, make)


COUNTS = (
    _counts("descriptors stand", "process.open_files", 64),
    _counts("descriptors come and go", "process.open_files", 200, correlated(5, 7.0)),
    _counts("one descriptor more, late", "process.open_files", 64, step(1.6, 0.8, 0.9)),
    _counts("pool of threads grows to its size", "process.threads", 40, filled(50, 0.3)),
    _counts("descriptors leak one an hour", "process.open_files", 200, ramp(12), grows=12),
    _counts("descriptors leak ten an hour", "process.open_files", 200, ramp(120), correlated(5, 7.0), grows=120),
    _counts("table of connections fills", "system.conntrack.count", 20_000, ramp(30), correlated(5, 3.0), grows=30),
    _counts("free memory stands", "system.memory.available", _FREE, AR9, whole=False),
    _counts(
        "free memory falls 10 % a day", "system.memory.available", 40 * LEVEL, AR9, ramp(-10), grows=10, whole=False
    ),
)
"""Counts, and metrics for which falling is bad."""

SCENARIOS = (*HEALTHY, *UNTOLD, *LEAKS, *COUNTS)
"""All; names in HEALTHY, UNTOLD (which cannot be decided from the readings alone) and LEAKS are unique."""
