"""Two runs of one thing, compared: how often does `soakwatch compare` call them different, and does it see 10 %?

    python tests/bench/accuracy/compared.py --pairs 100

Each run is a device whose CPU scatters by 10 % of its level around 20 %, 600 readings; ``alike over`` is the time
over which its readings stay alike (AR(1)), as a share of the run. The pairs go through the command, with ``--json``.
Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np
from numpy.typing import NDArray
from tests.collector.runs.compared_runs import written_run

from soakwatch.cli.main import run as command

READINGS, LEVEL, SCATTER = 600, 20.0, 2.0
SHARES = (0.0, 0.01, 0.03, 0.1, 0.3)
PROVEN = ("better", "worse", "different")


def scattered(rng: np.random.Generator, share: float) -> NDArray[np.float64]:
    """Readings around 0 that stay alike over a share of the run."""
    keeps = np.exp(-1 / (share * READINGS)) if share else 0.0
    steps = rng.normal(0, SCATTER * np.sqrt(1 - keeps**2), READINGS)
    steps[0] = rng.normal(0, SCATTER)
    for place in range(1, READINGS):
        steps[place] += keeps * steps[place - 1]
    return steps


def result_of(folder: Path, share: float, change: float, rng: np.random.Generator) -> str:
    """What the command says of the CPU of two runs, of which the second has so much more."""
    for name, level in (("one", LEVEL), ("other", LEVEL * (1 + change))):
        written_run(folder, name, level=level, noise=scattered(rng, share).tolist(), seconds=READINGS)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        command(["compare", "one", "other", "--json", "--runs", str(folder)])
    (row,) = [row for row in json.loads(said.getvalue())["figures"] if row["figure"] == "CPU, mean"]
    return str(row["changes"][1]["result"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print("| readings alike over | equal runs called different | equal runs called the same | 10 % more called worse |")
    print("|---|--:|--:|--:|")
    for share in SHARES:
        results: dict[float, list[str]] = {0.0: [], 0.1: []}
        for change, told in results.items():
            for _ in range(given.pairs):
                with tempfile.TemporaryDirectory() as folder:
                    told.append(result_of(Path(folder), share, change, rng))
        different = sum(result in PROVEN for result in results[0.0]) / given.pairs
        same, worse = results[0.0].count("the same") / given.pairs, results[0.1].count("worse") / given.pairs
        print(
            f"| {share * 100:g} % of the run | {different * 100:.0f} % | {same * 100:.0f} % | {worse * 100:.0f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
