"""How often the rules are wrong: seeded signals of known truth, a Markdown table of % fail / pass / inconclusive.

``python tests/bench/rules_error_rates.py [SEEDS]`` (default 100). Then the time of one cpu_spike finding on three
days of readings a second, beside the time to copy them.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable

import numpy as np

from soakwatch_rules.detectors.cpu_spike import CpuSpike
from soakwatch_rules.detectors.memory_growth import MemoryGrowth
from soakwatch_rules.rule import Case, Outcome, Rule, Window
from soakwatch_rules.series import Series
from soakwatch_rules.synthetic import LEVEL, busy, gappy, leak, noise, quantised, raised, sawtooth, step, warm_up, wave

DAY = 86400.0
Make = Callable[[int], Series]

MEMORY: dict[str, tuple[str, Make]] = {
    "white noise": ("P", noise),
    "AR(1) .9": ("P", lambda s: noise(s, phi=0.9)),
    "AR(1) .99": ("P", lambda s: noise(s, phi=0.99)),
    "AR(1) .999": ("P", lambda s: noise(s, phi=0.999)),
    "sawtooth 1 h 20 %": ("P", lambda s: sawtooth(noise(s, sd=0.005), 0.2 * LEVEL, 3600, s)),
    "daily wave 5 %": ("P", lambda s: wave(noise(s, phi=0.9), 0.05 * LEVEL, seed=s)),
    "warm-up tau 1 h 30 %": ("P", lambda s: warm_up(noise(s, phi=0.9), 0.3 * LEVEL, 3600)),
    "warm-up tau 4 h 30 %": ("P", lambda s: warm_up(noise(s, phi=0.9), 0.3 * LEVEL, 4 * 3600)),
    "step +10 %": ("P", lambda s: step(noise(s, phi=0.9), 0.1 * LEVEL)),
    "steps of reading 4 %": ("P", lambda s: quantised(noise(s), 0.04 * LEVEL)),
    "gaps 20 % + 3 h": ("P", lambda s: gappy(noise(s, phi=0.9), 0.2, (0.5, 0.625), s)),
    "leak 2 %/day": ("F", lambda s: leak(noise(s), 0.02 * LEVEL / DAY)),
    "leak 5 %/day": ("F", lambda s: leak(noise(s), 0.05 * LEVEL / DAY)),
    "leak 10 %/day": ("F", lambda s: leak(noise(s), 0.1 * LEVEL / DAY)),
    "leak 10 %/day AR .99": ("F", lambda s: leak(noise(s, phi=0.99), 0.1 * LEVEL / DAY)),
    "leak 10 %/day sawtooth": ("F", lambda s: leak(sawtooth(noise(s), 0.2 * LEVEL, 3600, s), 0.1 * LEVEL / DAY)),
    "leak 20 %/day from 60 %": ("F", lambda s: leak(noise(s, phi=0.9), 0.2 * LEVEL / DAY, 0.6)),
    "leak 50 %/day from 60 %": ("F", lambda s: leak(noise(s, phi=0.9), 0.5 * LEVEL / DAY, 0.6)),
}


def _bursts(seed: int) -> Series:
    """Two-second bursts, 12 an hour, on 30 %."""
    made = busy(seed, seconds=DAY)
    for at in np.random.default_rng(seed + 1000).uniform(0, DAY, 288):
        made = raised(made, float(at), 2.0)
    return made


def _spiked(seed: int, lasting_s: float, cadence_s: float) -> Series:
    at = float(np.random.default_rng(seed + 1000).uniform(3 * 3600, 5 * 3600))
    return raised(busy(seed, seconds=6 * 3600, cadence_s=cadence_s), at, lasting_s)


CPU: dict[str, tuple[str, Make]] = {
    "30 % quiet": ("P", busy),
    "30 % with 2 s bursts": ("P", _bursts),
    "60 % sd 12": ("P/NA", lambda s: busy(s, 0.6, 0.12)),
    "daily ±25 points": ("P", lambda s: wave(busy(s, 0.4), 0.25, seed=s)),
    "85 % sd 8": ("NA", lambda s: busy(s, 0.85, 0.08)),
    "poll-mode 99 %": ("NA", lambda s: busy(s, 0.99, 0.01)),
    "spike 5 s at 1 s": ("P", lambda s: _spiked(s, 5, 1.0)),
    "spike 11 s at 1 s": ("F", lambda s: _spiked(s, 11, 1.0)),
    "spike 10 s at 5 s": ("F", lambda s: _spiked(s, 10, 5.0)),
    "spike 15 s at 5 s": ("F", lambda s: _spiked(s, 15, 5.0)),
    "spike 60 s at 60 s": ("F", lambda s: _spiked(s, 60, 60.0)),
    "spike 120 s at 60 s": ("F", lambda s: _spiked(s, 120, 60.0)),
}


def table(rule: Rule, signals: dict[str, tuple[str, Make]], seeds: int) -> None:
    """Prints one rule's table."""
    print(f"\n### {rule.name}: {rule.definition()}\n\n| signal | truth | fail | pass | inconclusive | n/a |")
    print("|---|---|---|---|---|---|")
    for name, (truth, make) in signals.items():
        seen: Counter[Outcome] = Counter()
        for seed in range(seeds):
            series = make(seed)
            seconds = len(series.time_ns) and float(series.time_ns[-1]) * 1e-9 + (series.cadence_s or 0)
            case = Case("dut", series.object, Window(0, round(seconds * 1e9)), (series,))
            seen[rule.judge(case)[0].outcome] += 1
        order = (Outcome.FAIL, Outcome.PASS, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE)
        print(f"| {name} | {truth} | " + " | ".join(f"{100 * seen[o] / seeds:.0f}" for o in order) + " |", flush=True)


def speed() -> None:
    """Prints the CPU time of one finding on 259,200 readings."""
    print("\n| 259,200 readings | ms CPU | times a copy |\n|---|---|---|")
    calm = busy(1, seconds=3 * DAY)
    signals = {
        "quiet": calm,
        "near the top all day": busy(2, 0.7, 0.15, 3 * DAY),
        "spike of 60 s": raised(calm, 9e4, 60),
    }
    for name, series in signals.items():
        case = Case("dut", "", Window(0, round(3 * DAY * 1e9)), (series,))
        copies, runs = 20, 5
        begin = time.process_time()
        for _ in range(copies):
            series.value.copy()
        copied = (time.process_time() - begin) / copies
        begin = time.process_time()
        for _ in range(runs):
            CpuSpike().judge(case)
        took = (time.process_time() - begin) / runs
        print(f"| {name} | {1000 * took:.1f} | {took / max(copied, 1e-6):.0f} |", flush=True)


if __name__ == "__main__":
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    speed()
    table(MemoryGrowth(), MEMORY, many)
    table(CpuSpike(), CPU, max(1, many // 5))
