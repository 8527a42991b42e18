"""How often the change points of `soakwatch trend` are wrong, on histories of one figure of independent runs: where
nothing changed, and where the last third of the runs is 7 % lower. Prints the table of docs/trend.md.

    .venv/bin/python tests/bench/accuracy/trend.py
"""

from __future__ import annotations

import argparse

import numpy as np

from soakwatch.runs.figure_trend import ALPHA, LEAST_RUNS, MARGIN
from soakwatch_rules.stats.changepoints import history

_RUNS = (LEAST_RUNS, 12, 24, 48)
_SPREADS = (0.01, 0.02, 0.05)
_FALL = 0.07


def main() -> None:
    """Prints, for each number of runs and spread, how many of 100 histories were wrong, and right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=1000)
    histories: int = parser.parse_args().histories
    chance = np.random.default_rng(1)
    print(
        f"| runs | runs differ by | a change point where nothing changed | a change of {100 * _FALL:.0f} % at its run |"
    )
    print("|--:|--:|--:|--:|")
    for runs in _RUNS:
        for spread in _SPREADS:
            wrong = right = 0
            first = runs - runs // 3
            for _ in range(histories):
                wrong += bool(history(chance.normal(1.0, spread, runs), alpha=ALPHA, least=MARGIN))
                value = chance.normal(1.0, spread, runs)
                value[first:] *= 1 - _FALL
                right += [point.index for point in history(value, alpha=ALPHA, least=MARGIN)] == [first]
            print(
                f"| {runs} | {100 * spread:.0f} % | {100 * wrong / histories:.1f} % | {100 * right / histories:.0f} % |"
            )


if __name__ == "__main__":
    main()
