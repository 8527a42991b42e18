"""Known forecasts: how often is something full before the time that was said with 95 %, and how near was that time?

    python tests/bench/accuracy/forecasts.py --runs 200 --jobs 2

Each run is one night of 24 to 72 h with one finite resource, read each minute: a table, given to ``soakwatch import``
and ``soakwatch judge``, with a plan that asks for a time. The process that made it goes on, in virtual time, until a
reading reaches the limit; that is the truth. Half of the times asked for are earlier than that, half are later. What
is read is the verdict.json of the commands. ``bound`` is "not before", and ``point`` "full in", as shares of the truth:
lowest tenth, median, highest tenth. Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import math
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np
from numpy.typing import NDArray

from soakwatch.cli.main import run as command

Floats = NDArray[np.float64]
DAY_S, STEP_S = 86400.0, 60.0
BEGIN_S = 1_764_000_000
SIZE = 100.0  # of the limit, before it has a unit
FAMILIES = {
    "linear": "white noise",
    "correlated": "AR(1), 5 min to 2 h",
    "daily wave": "swings by 1 to 6 % of the limit",
    "wave and AR(1)": "both",
    "stairs": "a step each 1 to 5 h",
    "sawtooth": "cycles of 30 min to 3 h",
    "saturating": "never full",
    "warm-up, then linear": "white noise",
    "none": "AR(1), never full",
}
ENDLESS = frozenset({"saturating", "none"})
RESOURCES = (
    ("system.memory.usage", "system.memory.limit", "", 160 * 2**20, "By"),
    ("system.filesystem.usage", "system.filesystem.limit", "mountpoint=/var", 2**30, "By"),
    ("system.conntrack.count", "system.conntrack.limit", "", 10_000.0, "{connection}"),
    ("process.open_files", "process.open_files.limit", "process=web,instance=0", 655.36, "{descriptor}"),
    ("system.memory.pool.utilization", "", "pool=io", 0.01, "1"),
)
PLAN = """name: forecasts
duration: 24h
targets:
  fw:
    sources:
      - local
rules:
  forecast: {not_before: %ds}
"""


@dataclass(frozen=True, slots=True)
class Known:
    """One run: readings from its begin on, of which the first ``read`` are of the run; inf where it is never full."""

    seed: int
    family: str
    value: Floats
    read: int
    truth_s: float
    asked_s: float


@dataclass(frozen=True, slots=True)
class Said:
    """What the commands said of it, in seconds; None where no time was given."""

    known: Known
    not_before_s: float
    after_s: float | None
    outcome: str


def drawn(seed: int) -> Known:
    """A run of the family whose turn it is, and what comes after it."""
    family = tuple(FAMILIES)[seed % len(FAMILIES)]
    rng = np.random.default_rng([38, seed])
    hours = int(rng.choice([24, 24, 48, 72]))
    a_day = math.exp(rng.uniform(math.log(0.3), math.log(8.0)))
    beyond = 1.3 * 60 / a_day + 1 if family not in ENDLESS else 0.0
    n = round((hours / 24 + beyond) * DAY_S / STEP_S)
    t: Floats = np.arange(n, dtype=np.float64) * np.float64(STEP_S)
    value = 40 + _noise(rng, family, n) + _moves(rng, family, t, a_day)
    read = hours * 60
    hit = np.flatnonzero(value[read:] >= SIZE)
    truth_s = math.inf if family in ENDLESS or not hit.size else float(hit[0] * STEP_S)
    about = 90 * DAY_S if math.isinf(truth_s) else truth_s
    asked_s = about * math.exp(rng.uniform(math.log(1.3), math.log(4.0)) * (1 if seed % 2 else -1))
    return Known(seed, family, value[:read], read, truth_s, round(asked_s))


def _noise(rng: np.random.Generator, family: str, n: int) -> Floats:
    tall, white = rng.uniform(0.1, 1.0), rng.standard_normal(n)
    if family not in {"correlated", "wave and AR(1)", "none"}:
        return np.asarray(tall * white)
    keeps = math.exp(-STEP_S / rng.choice([300.0, 1200.0, 3600.0, 7200.0]))
    noise, last = np.empty(n), float(rng.standard_normal())
    fresh = (math.sqrt(1 - keeps**2) * white).tolist()
    for place, new in enumerate(fresh):
        last = keeps * last + new
        noise[place] = tall * last
    return noise


def _moves(rng: np.random.Generator, family: str, t: Floats, a_day: float) -> Floats:
    line = np.zeros(t.size) if family in ENDLESS | {"stairs"} else a_day * t / DAY_S
    if "wave" in family:
        line += rng.uniform(0.5, 3.0) * np.sin(2 * np.pi * (t / DAY_S + rng.random()))
    if family == "stairs":
        tread = rng.uniform(1, 5) * 3600
        line += a_day * tread / DAY_S * np.floor(t / tread + rng.random())
    if family == "sawtooth":
        line += rng.uniform(1, 5) * ((t / (rng.uniform(0.5, 3) * 3600) + rng.random()) % 1)
    if family in {"saturating", "warm-up, then linear"}:
        line += rng.uniform(3, 10) * (1 - np.exp(-t / (rng.uniform(1, 6) * 3600)))
    return line


def said_of(known: Known) -> Said:
    """The run through the commands."""
    metric, limit, thing, size, unit = RESOURCES[known.seed // len(FAMILIES) % len(RESOURCES)]
    value = known.value * size
    if unit != "1":
        value = np.round(value)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "night.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(("time", "target", "metric", "object", "value", "unit"))
            for place, number in enumerate(value.tolist()):
                writer.writerow((BEGIN_S + place * int(STEP_S), "fw", metric, thing, number, unit))
                if limit and not place % 60:
                    writer.writerow((BEGIN_S + place * int(STEP_S), "fw", limit, thing, round(SIZE * size), unit))
        (folder / "plan.yaml").write_text(PLAN % known.asked_s, encoding="utf-8")
        runs, out = f"--runs={folder / 'runs'}", folder / "verdict.json"
        _called(["import", str(folder / "night.csv"), runs])
        _called(["judge", "last", runs, f"--plan={folder / 'plan.yaml'}", "--rule=forecast", f"--json={out}"])
        document = json.loads(out.read_text(encoding="utf-8"))
    (forecast,) = [row for row in document["forecasts"] if row["metric"] == metric]
    (finding,) = [finding for finding in document["findings"] if finding["rule"] == "forecast"]
    return Said(known, forecast["not_before_seconds"], forecast["after_seconds"], finding["outcome"])


def _called(words: list[str]) -> None:
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = command(words)
    if code not in {0, 1, 3}:
        raise RuntimeError(f"soakwatch {' '.join(words)}: exit code {code}: {heard.getvalue()[-400:]}")


def _job(seed: int) -> Said:
    return said_of(drawn(seed))


def table(rows: list[Said]) -> Iterator[str]:
    """A line a family, and all of them."""
    yield (
        "| resource | runs | not full before | bound / truth | full in given | point / truth | FAIL too early "
        "| PASS too late | open |"
    )
    yield "|---|--:|--:|---|--:|---|--:|--:|--:|"
    for family in (*FAMILIES, ""):
        own = [row for row in rows if family in {"", row.known.family}]
        if not own:
            continue
        held = sum(row.not_before_s <= row.known.truth_s for row in own)
        name = f"{family}: {FAMILIES[family]}" if family else "**all**"
        bound = [row.not_before_s / row.known.truth_s for row in own if math.isfinite(row.known.truth_s)]
        given = [row for row in own if row.after_s is not None]
        point = [row.after_s / row.known.truth_s for row in given if row.after_s and math.isfinite(row.known.truth_s)]
        wide = _tenths(bound) if bound else f"not before {_days(own)} d (median)"
        early = sum(row.outcome == "fail" and row.known.asked_s < row.known.truth_s for row in own)
        late = sum(row.outcome == "pass" and row.known.asked_s > row.known.truth_s for row in own)
        left = sum(row.outcome == "inconclusive" for row in own)
        yield (
            f"| {name} | {len(own)} | {100 * held / len(own):.1f} % | {wide} | {len(given)} | {_tenths(point)} | "
            f"{early} | {late} | {left} |"
        )


def _tenths(values: list[float]) -> str:
    return " ".join(f"{x:.2f}" for x in np.quantile(values, [0.1, 0.5, 0.9])) if values else "–"


def _days(rows: list[Said]) -> str:
    return f"{float(np.median([row.not_before_s for row in rows])) / DAY_S:,.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first run")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--each", action="store_true", help="name each run that was full before its bound")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.runs)
    if given.jobs > 1:
        with ProcessPoolExecutor(given.jobs) as pool:
            rows = list(pool.map(_job, seeds))
    else:
        rows = [_job(seed) for seed in seeds]
    print("\n".join(table(rows)))
    for row in rows if given.each else ():
        if row.not_before_s > row.known.truth_s:
            days = row.not_before_s / DAY_S, row.known.truth_s / DAY_S
            print(f"seed {row.known.seed} ({row.known.family}): not before {days[0]:.1f} d, full in {days[1]:.1f} d")


if __name__ == "__main__":
    main()
