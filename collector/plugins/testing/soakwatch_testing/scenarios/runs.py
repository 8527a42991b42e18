"""Queues, recoveries and families of runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from soakwatch_model.case import Before, Case, Ledger
from soakwatch_model.series import Series
from soakwatch_model.window import Phase, Window
from soakwatch_rules.signals import LEVEL, readings
from soakwatch_testing.scenarios.scenario import Scenario, Signal, Truth
from soakwatch_testing.scenarios.shapes import Floats, Shape, phi, times, white

S = 10**9
LIMIT = 1000.0
_SERVED = 200.0  # packets that a queue can serve per reading interval


def _queue(rng: np.random.Generator, n: int, used: Floats) -> Floats:
    """Depths of a queue of utilisation ``used``, by Lindley's recursion."""
    net = rng.poisson(_SERVED * np.clip(used, 0, 2)) - rng.poisson(_SERVED, n)
    total = np.cumsum(net)
    depth: Floats = (total - np.minimum(np.minimum.accumulate(total), 0)).astype(np.float64)
    return depth


def queue(name: str, used: float, to: float | None = None, leaked: float = 0.0, stands: float = 0.0) -> Scenario:
    """A queue whose utilisation may rise; ``leaked`` slots a day of its limit are never freed."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, n = np.random.default_rng(seed), round(hours * 3600 / apart)
        indices = np.linspace(0, 1, n)
        depth = _queue(rng, n, used + ((used if to is None else to) - used) * indices)
        depth = np.floor(np.minimum(depth + stands + leaked * LIMIT * indices * hours / 24, LIMIT))
        series = readings("queue.depth", depth, apart, object="queue=0")
        series = replace(series, trait=replace(series.trait, ceiling=LIMIT))
        window = Window(0, round(hours * 3600 * S))
        case = Case("dut", series.object, window, (series,), phases=(Phase("soak", window),))
        return Signal(case, Truth(growth=leaked * LIMIT / 86400))

    return Scenario("queue", name, make)


def recovery(
    name: str, form: str, noise: Shape | None = None, *, high: float = 0.4, residue: float = 0.0, after_h: float = 1.6
) -> Scenario:
    """Memory before, during and after ten minutes of stress; ``form`` is how it recovers (truth: to within 5 %)."""

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, t = np.random.default_rng(seed), times(hours, apart)
        before, under = 1800.0, 600.0
        since = t - before - under
        value = 1 + np.where((since < 0) & (t >= before), high, 0.0)
        late = since >= 0
        back: float | None = 0.0
        if form == "step":
            value[late & (since < 600)] += high
            back = 600.0
        elif form == "slowly":
            value[late] += high * np.exp(-since[late] / 360)
            back = 360 * float(np.log(high / 0.05))
        elif form.startswith("swinging"):
            turn = 240 if form.endswith("fast") else 600
            swing = high * np.exp(-since[late] / 480) * np.cos(2 * np.pi * since[late] / turn)
            value[late] += swing
            back = float(since[late][np.abs(swing) > 0.05][-1]) + apart
        elif form == "relapse":
            value[late & ((since < 600) | ((since >= 1200) & (since < 1500)))] += high
            back = 1500.0
        elif form == "never":
            value[late] += high
            back = float("inf")
        value[late] += residue
        value = value + (noise or white(3))(rng, t / 3600) / 100
        edges = [round(x * S) for x in (0.0, before, before + under, hours * 3600)]
        names = ("baseline", "stress", "recovery")
        phases = tuple(Phase(names[i], Window(edges[i], edges[i + 1])) for i in range(3))
        series = readings("system.memory.usage", LEVEL * value, apart)
        case = Case(
            "dut",
            "",
            Window(0, edges[-1]),
            (series,),
            phases=phases,
            ledgers=(Ledger("dut", "local", apart, t.size, t.size, {}, None),),
        )
        return Signal(case, Truth(back_s=back, residue=residue))

    return Scenario("recovery", name, make, after_h + 2400 / 3600)


def runs(name: str, earlier: int, spread: float, change: float) -> Scenario:
    """A run and earlier ones that differ by ``spread``; this one deviates by ``change``."""

    def run_series(rng: np.random.Generator, hours: float, apart: float, shift: float, begin_ns: int) -> Series:
        t = times(hours, apart) / 3600
        level = LEVEL * (1 + shift + spread * rng.standard_normal())
        return readings("system.memory.usage", level * (1 + phi(0.9, 3)(rng, t) / 100), apart, begin_ns=begin_ns)

    def make(seed: int, hours: float, apart: float) -> Signal:
        rng, length = np.random.default_rng(seed), round(hours * 3600 * S)
        series = run_series(rng, hours, apart, change, 0)
        before = tuple(run_series(rng, hours, apart, 0.0, -2 * (k + 1) * length) for k in range(earlier))
        window = Window(0, length)
        case = Case("dut", "", window, (series,), phases=(Phase("soak", window),), before=Before(earlier=before))
        return Signal(case, Truth(change=change))

    return Scenario("runs", name, make, 2.0)


AR = phi(0.5, 3)  # per minute: neighbouring readings at 10 s have a correlation of .9

SCENARIOS = (
    queue("idle", 0.0),
    queue("utilisation .8", 0.8),
    queue("utilisation .95", 0.95),
    queue("stands at 30", 0.5, stands=30),
    queue("slots leak 50 % of the limit a day", 0.8, leaked=0.5),
    queue("slots leak 20 % of the limit a day", 0.8, leaked=0.2),
    queue("utilisation creeps .7 to .97", 0.7, to=0.97),
    queue("full at the end", 0.8, to=1.05),
    recovery("back after a step", "step"),
    recovery("back slowly", "slowly"),
    recovery("back swinging", "swinging"),
    recovery("back swinging fast", "swinging fast"),
    recovery("back, relapse, back", "relapse"),
    recovery("back after a step, AR noise", "step", AR),
    recovery("residue 5 %", "step", residue=0.05),
    recovery("residue 10 %", "step", residue=0.10),
    recovery("residue 20 %", "step", residue=0.20),
    recovery("never back", "never"),
    recovery("seen for 2 min after", "step", after_h=2 / 60),
    runs("no earlier run", 0, 0.02, 0.0),
    runs("one earlier run", 1, 0.02, 0.0),
    runs("five earlier, spread 2 %, same", 5, 0.02, 0.0),
    runs("five earlier, spread 2 %, +10 %", 5, 0.02, 0.10),
    runs("five earlier, spread 2 %, -10 %", 5, 0.02, -0.10),
    runs("five earlier, spread 5 %, same", 5, 0.05, 0.0),
    runs("five earlier, spread 5 %, +10 %", 5, 0.05, 0.10),
    runs("five earlier, spread 5 %, +30 %", 5, 0.05, 0.30),
    runs("ten earlier, spread 2 %, same", 10, 0.02, 0.0),
    runs("ten earlier, spread 2 %, +10 %", 10, 0.02, 0.10),
)
