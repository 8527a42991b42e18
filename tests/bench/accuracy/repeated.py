"""How often the statistics of repeated runs are wrong: intervals, comparisons, numbers of runs, claims.

    python tests/bench/accuracy/repeated.py --seeds 2000

Runs are drawn from distributions of known median, each scaled to a standard deviation of 2 % (of 1): normal, lognormal
(skewed), bimodal (seven of ten runs in the upper mode), and outliers (each tenth run has five times the spread).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.bench.accuracy.tables import percent, table

from soakwatch_rules.stats.difference import by_ranks
from soakwatch_rules.stats.repetitions import median_interval, repetitions_needed, tolerance_proven

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]
CV: Final = 0.02
MARGIN: Final = 0.03


def _normal(rng: np.random.Generator, n: int) -> Floats:
    return rng.normal(size=n)


def _lognormal(rng: np.random.Generator, n: int) -> Floats:
    return rng.lognormal(0.0, 0.7, n)


def _bimodal(rng: np.random.Generator, n: int) -> Floats:
    return np.where(rng.random(n) < 0.7, 1.0, -1.0) + rng.normal(0.0, 0.25, n)


def _outliers(rng: np.random.Generator, n: int) -> Floats:
    return rng.normal(size=n) * np.where(rng.random(n) < 0.1, 5.0, 1.0)


def _scaled(draw: Draw) -> Draw:
    """The same with median 1 and a standard deviation of 2 %."""
    many = draw(np.random.default_rng(0), 2_000_000)
    middle, spread = float(np.median(many)), float(many.std())

    def runs(rng: np.random.Generator, n: int) -> Floats:
        return 1 + CV * (draw(rng, n) - middle) / spread

    return runs


def distributions() -> Mapping[str, Draw]:
    """What runs are drawn from, by name."""
    kinds = {"normal": _normal, "lognormal": _lognormal, "bimodal": _bimodal, "outliers": _outliers}
    return {name: _scaled(draw) for name, draw in kinds.items()}


def held(draw: Draw, n: int, seeds: int) -> int:
    """How many of so many intervals of the median of n runs hold it."""
    rng = np.random.default_rng(n)
    intervals = (median_interval(draw(rng, n)) for _ in range(seeds))
    return sum(i.low is not None and i.high is not None and i.low <= 1.0 <= i.high for i in intervals)


def outcomes(draw: Draw, n: int, ratio: float, seeds: int) -> Counter[str]:
    """What is said of n new runs against n earlier ones whose true ratio is this; ``held``: its interval holds it."""
    rng = np.random.default_rng(1000 + n)
    said: Counter[str] = Counter()
    for _ in range(seeds):
        answer = by_ranks(ratio * draw(rng, n), draw(rng, n), MARGIN)
        said[answer.judged("higher")] += 1
        said["significant"] += answer.p <= answer.alpha
        said["held"] += answer.low is not None and answer.high is not None and answer.low <= ratio - 1 <= answer.high
    return said


def claims(draw: Draw, n: int, off: float, seeds: int) -> Counter[str]:
    """What is said of a claim of 1 ± 5 % where the median is off by so much."""
    rng = np.random.default_rng(2000 + n)
    return Counter(tolerance_proven((1 + off) * draw(rng, n), 1.0, 0.05).verdict for _ in range(seeds))


def needed(draw: Draw, pilot: int, width: float, seeds: int) -> tuple[str, str]:
    """Runs needed by so many at hand: the middle answer with the middle half; and the number that is needed indeed,
    with which half of the intervals are within the width."""
    rng = np.random.default_rng(3000 + pilot)
    answers = [repetitions_needed(draw(rng, pilot), width, at_most=100_000) for _ in range(max(seeds // 10, 20))]
    told = np.array([100_000 if answer is None else answer for answer in answers])
    low, middle, high = np.quantile(told, [0.25, 0.5, 0.75])
    return f"{middle:.0f} ({low:.0f} to {high:.0f})", f"{_indeed(draw, width, seeds)}"


def _indeed(draw: Draw, width: float, seeds: int) -> int:
    rng = np.random.default_rng(4000)
    for n in range(6, 2000):
        halves = [median_interval(draw(rng, n)).half_width or 0.0 for _ in range(max(seeds // 10, 50))]
        if float(np.mean(halves)) <= width:
            return n
    return 2000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000, help="how often each is drawn (default 2000)")
    seeds = parser.parse_args(arguments).seeds
    kinds = distributions()
    names = list(kinds)

    print(f"Intervals of 95 % that hold the true median, per cent of {seeds}:\n")
    rows = [[f"{n} runs", *(percent(held(kinds[name], n, seeds), seeds) for name in names)] for n in (6, 8, 10, 20, 30)]
    print(table(["", *names], rows))

    print(f"\nThe ratio of two builds: intervals of 95 % that hold it where it is 1, per cent of {seeds}:\n")
    said = {
        (name, n, ratio): outcomes(kinds[name], n, ratio, seeds)
        for name in names
        for n in (3, 4, 5, 8, 12, 20, 30)
        for ratio in (1.0, 0.97, 0.95, 0.9)
    }
    rows = [
        [f"{n} + {n} runs", *(percent(said[name, n, 1.0]["held"], seeds) for name in names)] for n in (4, 5, 8, 12, 20)
    ]
    print(table(["", *names], rows))

    print(f"\nWhat is said of a new build, margin ± {100 * MARGIN:g} %, per cent (normal / the worst of the others):\n")

    def cell(n: int, ratio: float, word: str, worst: Callable[[Sequence[int]], int]) -> str:
        others = worst([said[name, n, ratio][word] for name in names[1:]])
        return f"{percent(said['normal', n, ratio][word], seeds)} / {percent(others, seeds)}"

    rows = [
        [
            f"{n} + {n}",
            cell(n, 1.0, "significant", max),
            cell(n, 1.0, "equivalent", min),
            cell(n, 0.97, "equivalent", max),
            cell(n, 0.95, "worse", min),
            cell(n, 0.9, "worse", min),
            cell(n, 0.9, "equivalent", max),
        ]
        for n in (3, 4, 5, 8, 12, 20, 30)
    ]
    head = ["same: p < 5 %", "same: equivalent", "3 % less: equivalent (wrong)", "5 % less: worse", "10 % less: worse"]
    print(table(["runs", *head, "10 % less: equivalent (wrong)"], rows))

    print(f"\nA claim of ± 5 %, per cent of {seeds} (normal / the worst of the others):\n")
    rows = []
    for n in (6, 10, 20):
        at_limit = [claims(kinds[name], n, 0.05, seeds)["proven"] for name in names]
        true = [claims(kinds[name], n, 0.02, seeds)["proven"] for name in names]
        false = [claims(kinds[name], n, 0.1, seeds)["refuted"] for name in names]
        rows.append(
            [
                f"{n} runs",
                f"{percent(at_limit[0], seeds)} / {percent(max(at_limit[1:]), seeds)}",
                f"{percent(true[0], seeds)} / {percent(min(true[1:]), seeds)}",
                f"{percent(false[0], seeds)} / {percent(min(false[1:]), seeds)}",
            ]
        )
    print(table(["", "median at the limit: proven (wrong)", "off by 2 %: proven", "off by 10 %: refuted"], rows))

    print("\nRuns needed for the median ± 0.5 %, as so many at hand say (the middle answer and the middle half):\n")
    rows = []
    for name in names:
        told = [needed(kinds[name], pilot, 0.005, seeds) for pilot in (5, 10, 20, 50)]
        rows.append([name, *(answer for answer, _ in told), told[0][1]])
    print(table(["", "of 5", "of 10", "of 20", "of 50", "needed indeed"], rows))


if __name__ == "__main__":
    main()
