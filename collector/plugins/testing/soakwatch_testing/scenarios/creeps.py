"""Levels that creep the wrong way through a run, and waves, warm-ups, steps and loads that look alike."""

from __future__ import annotations

import numpy as np

from soakwatch_model.case import Case
from soakwatch_model.window import Window
from soakwatch_rules.signals import readings
from soakwatch_testing.scenarios.objects import object_of
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, Shape, correlated, times

S = 10**9
_CPU = "system.cpu.utilization"
_CORE = "system.cpu.core.utilization"
_QUEUE = "system.cpu.load"
_TEMPERATURE = "system.temperature"
_LATENCY = "load.latency"
_SESSIONS = "system.sessions.rate"


def creeping(
    name: str,
    metric: str,
    level: float,
    *shapes: Shape,
    noise: float = 0.03,
    load: str = "steady",
    follows: float = 0.0,
    hours: float = 24.0,
) -> Scenario:
    """A level moved by shapes (in shares of it), with noise correlated over ten minutes. It follows a load with the
    exponent ``follows``: ``steady``, ``wave`` of a day, ``ramp`` up by a quarter, ``climb`` to three times as much
    until .6 of the run, ``step`` to twice as much in the middle, or ``none`` (unknown)."""

    def made(seed: int, length: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(length, apart)
        share = t / (length * 3600)
        turn = 2 * np.pi * (t / 86400 + rng.uniform())
        course = {
            "wave": 1 + 0.25 * np.sin(turn),
            "ramp": 1 + 0.25 * share,
            "climb": 1 + 2 * np.minimum(share / 0.6, 1.0),
            "step": np.where(share < 0.5, 1.0, 2.0),
        }.get(load, np.ones(t.size))
        value = level * course**follows * (1 + sum((shape(rng, t / 3600) for shape in shapes), np.zeros(t.size)))
        tails = 0.3 if metric == _LATENCY else 0.0
        value = value * (1 + correlated(10.0, noise)(rng, t / 3600)) * np.exp(tails * rng.standard_normal(t.size))
        value = np.clip(value, 0.0, 1.0) if ".utilization" in metric else value
        window = Window(0, round(length * 3600 * S))
        series = readings(metric, value, apart, object=object_of(metric))
        known = () if load == "none" else (readings("load.offered.rate", 1000 * course, apart),)
        return Signal(Case("dut", series.object, window, (series,), load=known), Truth())

    return Scenario("creep", name, made, hours=hours, cadence_s=60.0)


def line(height: float, begin: float = 0.0, power: float = 1.0) -> Shape:
    """A rise by ``height`` of the level, from the share ``begin`` of the run on."""

    def shape(_: np.random.Generator, t: Floats) -> Floats:
        rise: Floats = height * np.clip((t / t[-1] - begin) / (1 - begin), 0.0, 1.0) ** power
        return rise

    return shape


def climb(height: float, until: float) -> Shape:
    """A rise by ``height`` of the level until a share of the run, which then stays."""
    return lambda _, t: height * np.minimum(t / (until * t[-1]), 1.0)


def warming(height: float, hours: float) -> Shape:
    """A warm-up with a time constant."""

    def shape(_: np.random.Generator, t: Floats) -> Floats:
        warm: Floats = height * (1 - np.exp(-t / hours))
        return warm

    return shape


def daily(height: float) -> Shape:
    """A daily wave with a random phase."""
    return lambda rng, t: height * np.sin(2 * np.pi * (t / 24 + rng.uniform()))


def jump(height: float, at: float) -> Shape:
    """A step at a share of the run."""
    return lambda _, t: np.where(t >= at * t[-1], height, 0.0)


def jobs(height: float) -> Shape:
    """A job of 40 min every five hours."""
    return lambda rng, t: np.where((t + 5 * rng.uniform()) % 5.0 < 2 / 3, height, 0.0)


SCENARIOS: tuple[Scenario, ...] = (
    creeping("CPU flat", _CPU, 0.2),
    creeping("CPU flat, wanders", _CPU, 0.2, correlated(90.0, 0.15)),
    creeping("CPU under a wave of the load", _CPU, 0.3, load="wave", follows=1.0),
    creeping("CPU under a ramp of the load", _CPU, 0.5, load="ramp", follows=1.0),
    creeping("CPU of a day, load not known", _CPU, 0.2, daily(0.6), load="none"),
    creeping("CPU warm-up of 2 h", _CPU, 0.2, warming(1.0, 2.0)),
    creeping("CPU warm-up of 5 h", _CPU, 0.2, warming(1.0, 5.0)),
    creeping("CPU step", _CPU, 0.2, jump(1.0, 0.6)),
    creeping("CPU step under the load", _CPU, 0.45, load="step", follows=1.0),
    creeping("CPU climb under the load to its top", _CPU, 0.32, load="climb", follows=1.0),
    creeping("CPU at its top for the last 8 h", _CPU, 0.2, jump(4.0, 0.667)),
    creeping("CPU warm-up of 5 h to its top", _CPU, 0.3, warming(2.2, 5.0)),
    creeping("CPU climb of 6 h, then flat", _CPU, 0.3, climb(1.0, 0.25)),
    creeping("CPU with jobs", _CPU, 0.2, jobs(1.5)),
    creeping("CPU half a wave in 12 h", _CPU, 0.2, lambda _, t: -0.5 * np.cos(np.pi * t / 12), load="none", hours=12.0),
    creeping("CPU creeps by 4 points", _CPU, 0.2, line(0.2)),
    creeping("board warms up", _TEMPERATURE, 45.0, warming(0.4, 1.5), noise=0.005),
    creeping("board, room of a day", _TEMPERATURE, 45.0, daily(0.09), noise=0.005),
    creeping("board, morning of 10 h", _TEMPERATURE, 45.0, line(0.3), noise=0.005, hours=10.0),
    creeping("p99 flat", _LATENCY, 0.004),
    creeping("p99 under a wave of the load", _LATENCY, 0.004, load="wave", follows=2.0),
    creeping("p99 cold at first", _LATENCY, 0.004, warming(-0.5, 0.5)),
    creeping("run queue flat", _QUEUE, 3.0, noise=0.2),
    creeping("CPU creeps by 14 points", _CPU, 0.2, line(0.7)),
    creeping("CPU creeps by 30 points", _CPU, 0.1, line(3.0)),
    creeping("CPU creeps ever faster", _CPU, 0.1, line(3.0, power=2.0)),
    creeping("CPU creeps under a wave of the load", _CPU, 0.2, line(1.5), load="wave", follows=1.0),
    creeping("CPU creeps, load not known", _CPU, 0.2, line(0.9), load="none"),
    creeping("CPU creeps under jobs", _CPU, 0.2, line(1.2), jobs(1.5)),
    creeping("CPU creeps to its top", _CPU, 0.2, climb(4.5, 0.6)),
    creeping("CPU creeps to its top, load not known", _CPU, 0.2, climb(4.5, 0.6), load="none", hours=48.0),
    creeping("CPU creeps to its top in 8 h, load not known", _CPU, 0.2, climb(4.5, 0.6), load="none", hours=14.0),
    creeping("CPU creeps in 8 h", _CPU, 0.2, line(0.8), hours=8.0),
    creeping("CPU creeps in 8 h, load not known", _CPU, 0.2, line(0.8), load="none", hours=8.0),
    creeping("board creeps by 16 K", _TEMPERATURE, 45.0, line(0.36), noise=0.005),
    creeping("board creeps under a room of a day", _TEMPERATURE, 45.0, line(0.5), daily(0.04), noise=0.005),
    creeping("board creeps by 34 K under a room of a day", _TEMPERATURE, 45.0, line(0.75), daily(0.08), noise=0.01),
    creeping("p99 creeps by 75 %", _LATENCY, 0.004, line(0.75)),
    creeping("p99 creeps by 150 %", _LATENCY, 0.004, line(1.5)),
    creeping("core creeps by 30 points", _CORE, 0.2, line(1.5)),
    creeping("run queue doubles", _QUEUE, 3.0, line(1.2), noise=0.1),
    creeping("sessions a second fall", _SESSIONS, 400.0, line(-0.7)),
)
