"""Runs under ``stop_when: decided``: how many healthy nights fail, how soon a leak is proved, what segments know.

    python tests/bench/accuracy/decided.py --plain 400 --lives 40 --leaks 40 --virtual 20 --jobs 2

Each night is a record of 24 h read each minute, with four processes, the host's memory and a connection table, given
to ``soakwatch decided``, which looks at it as the run would have while it went on, and to ``soakwatch judge``.

* **plain** nights are healthy: noise (white, or correlated for 5 min to 1 h), warm-ups with time constants of 20 min to
  2 h, daily waves of up to 2 %, steps in the first tenth.
* **lives** are processes as in the healthy runs of ``runs.py``: also caches that fill in a straight line for hours and
  then stop, sawteeth of up to 12 h, daily waves of 5 %, weeks. The default is tried on the same.
* **leaks** are plain nights with a leak of three times the smallest growth that their finding states, in one process;
  today's time is that of the whole night, for only its end fails growth.
* **segments**: the same leak nights as five runs of 4.8 h of a device that is not restarted, given to ``soakwatch
  decided`` together.

* **virtual** nights are lived by the engine itself in virtual time (``soakwatch_testing.night``: one device and its
  generator, white noise), healthy, and with a leak of 16 % a day.

Runs are called with ``--not-before 4.8h``, a fifth of the night; by default, 16 h, no leak is proved before. Asserts
nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np
from tests.bench.accuracy.lives import LIVES
from tests.bench.accuracy.night import BEGIN_NS, DUT, Key, Night, Source, write_run

from soakwatch.cli.main import run as command
from soakwatch_model.series import Floats
from soakwatch_testing.night.faults import Fault, Kind
from soakwatch_testing.night.faults import Night as LivedNight
from soakwatch_testing.night.lives import Lives

MIB = 2.0**20
DAY_S, STEP_S = 86400.0, 60.0
EARLY = "4.8h"
NAMES = tuple(f"process={name},instance=0" for name in ("bgpd", "snort", "java", "nginx"))
MEMORY = "process.memory.usage"


@dataclass(frozen=True, slots=True)
class Result:
    """What ``decided`` says of a night: the answer (empty: none before the end), after how many hours, and why."""

    seed: int
    answer: str
    hours: float
    text: str
    end: str = ""
    joined: bool = False
    whole: bool = False


def night_of(seed: int, *, lives: bool) -> Night:
    """A healthy night of 24 h."""
    rng = np.random.default_rng([626, seed])
    at_s: Floats = np.arange(1440, dtype=np.float64) * np.float64(STEP_S)
    source = Source("agent", DUT, ("process.", "system."))
    night = Night(rng, seed, DAY_S, STEP_S, at_s, (source,))
    night.answered = {"agent": np.ones(at_s.size, np.bool_)}
    total = np.zeros(at_s.size)
    for number, name in enumerate(NAMES):
        level = math.exp(rng.uniform(math.log(20), math.log(3000))) * MIB
        shape = LIVES[str(rng.choice(list(LIVES)))](night) if lives else _plain(rng, at_s)
        used = np.round(level * shape * (1 + rng.uniform(0.0005, 0.006) * rng.standard_normal(at_s.size)) / 4096) * 4096
        total += used
        night.put(MEMORY, used, name)
        night.put("process.up", np.ones(at_s.size), name)
        night.put("process.start_time", np.full(at_s.size, BEGIN_NS / 1e9 - 5000.0 - number), name)
        night.put("process.open_files", np.round(80 + rng.poisson(6, at_s.size)).astype(float), name)
    own = 1024 * MIB * (1 + 0.001 * rng.standard_normal(at_s.size))
    night.put("system.memory.usage", np.round((total + own) / 4096) * 4096)
    night.put("system.memory.limit", np.full(at_s.size, 2.0 ** math.ceil(math.log2(2 * float((total + own).max())))))
    night.put("system.conntrack.count", np.round(20_000 * (1 + 0.02 * rng.standard_normal(at_s.size))))
    night.put("system.conntrack.limit", np.full(at_s.size, 65_536.0))
    night.put("system.uptime", 900_000.0 + at_s)
    night.put("system.boot.id", np.full(at_s.size, 4242.0))
    return night


def _plain(rng: np.random.Generator, at_s: Floats) -> Floats:
    shape = np.ones(at_s.size)
    match int(rng.integers(5)):
        case 0:
            shape += _wander(rng, at_s.size)
        case 1:
            shape += rng.uniform(0.02, 0.3) * (1 - np.exp(-at_s / rng.uniform(1200, 7200)))
        case 2:
            shape += rng.uniform(0.002, 0.02) * np.sin(2 * np.pi * (at_s / DAY_S + rng.random()))
        case 3:
            shape += rng.uniform(0.03, 0.1) * (at_s > rng.uniform(0, 0.1) * DAY_S)
    return shape


def _wander(rng: np.random.Generator, n: int) -> Floats:
    keeps, tall = math.exp(-STEP_S / rng.uniform(300, 3600)), rng.uniform(0.002, 0.008)
    noise, last = np.empty(n), float(rng.standard_normal())
    for place, new in enumerate((math.sqrt(1 - keeps**2) * rng.standard_normal(n)).tolist()):
        last = keeps * last + new
        noise[place] = tall * last
    return noise


def healthy(seed: int, *, lives: bool, not_before: str = EARLY) -> Result:
    """A healthy night through ``decided``."""
    with tempfile.TemporaryDirectory() as folder:
        write_run(night_of(seed, lives=lives), Path(folder) / "record")
        options = [f"--not-before={not_before}"] if not_before else []
        document = json.loads(called(["decided", f"{folder}/record", "--json", *options]))
    return _result(seed, document)


def leaking(seed: int) -> Result | None:
    """A leak of three times the smallest stated in one process; None where the healthy night states none."""
    night = night_of(seed, lives=False)
    name = NAMES[seed % len(NAMES)]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_run(night, place / "healthy")
        stated = _smallest(place / "healthy", name)
        if stated is None:
            return None
        used = night.of(MEMORY, name)
        grown = np.round((used + 3 * stated * night.at_s / 3600) / 4096) * 4096
        night.value[Key(DUT, "system.memory.usage")] += grown - used
        night.value[Key(DUT, MEMORY, name)] = grown
        limit = night.value[Key(DUT, "system.memory.limit")]
        limit[:] = np.maximum(limit, 2 * float(night.of("system.memory.usage").max()))
        write_run(night, place / "leak")
        found = _result(seed, json.loads(called(["decided", f"{folder}/leak", "--json", f"--not-before={EARLY}"])))
        called(["judge", f"{folder}/leak", "--rule=growth", f"--json={folder}/end.json"])
        end = json.loads((place / "end.json").read_text(encoding="utf-8"))["verdict"]
        segments = []
        for part in range(5):
            write_run(_segment(night, part), place / f"part{part}")
            segments.append(f"{folder}/part{part}")
        joined = json.loads(called(["decided", *segments, "--json", f"--not-before={EARLY}"]))
        whole = json.loads(called(["decided", f"{folder}/leak", "--json", f"--not-before={EARLY}"]))
    return replace(found, end=end, joined=_proved(joined, name), whole=_proved(whole, name))


def virtual(seed: int, *, leak: bool) -> Result:
    """A night that the engine lives, with its timers, its live judge and its end."""
    faults = (Fault(0.0, DAY_S, Kind.LEAK, "dut-1", 0.16),) if leak else ()
    night = LivedNight(seed, 24.0, 2, faults, STEP_S, decided=True)
    with tempfile.TemporaryDirectory() as folder:
        lived = Lives(night, Path(folder), contradictions=0, reports=False).live()
    answer = lived.verdict.outcome.value if lived.verdict.decided else ""
    return Result(seed, answer, lived.verdict.window.seconds / 3600, lived.verdict.decided, str(lived.verdict.outcome))


def _segment(night: Night, part: int) -> Night:
    """A fifth of a night, as a run of its own that begins where the one before ended."""
    here = slice(part * 288, (part + 1) * 288)
    some = replace(night, length_s=DAY_S / 5, at_s=night.at_s[here], answered={}, value={})
    some.answered = {name: each[here] for name, each in night.answered.items()}
    some.value = {key: value[here] for key, value in night.value.items()}
    return some


def _proved(document: dict[str, object], name: str) -> bool:
    rows = document["series"]
    assert isinstance(rows, list)
    return any(row["object"] == name and row["metric"] == MEMORY and row["course"] == "leaks" for row in rows)


def _smallest(folder: Path, name: str) -> float | None:
    called(["judge", str(folder), "--rule=growth", f"--json={folder}/healthy.json"])
    for finding in json.loads((folder / "healthy.json").read_text(encoding="utf-8"))["findings"]:
        if finding["metric"] == MEMORY and finding["object"] == name and finding["smallest_detectable"]:
            return float(finding["smallest_detectable"])
    return None


def _result(seed: int, document: dict[str, object]) -> Result:
    decided = document["decided"]
    if not isinstance(decided, dict):
        return Result(seed, "", 24.0, "")
    return Result(seed, decided["outcome"], decided["after_seconds"] / 3600, decided["text"])


def called(words: list[str]) -> str:
    """What a command prints. Raises RuntimeError where it has no answer."""
    said, complained = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
        code = command(words)
    if code not in {0, 1, 3}:
        raise RuntimeError(f"soakwatch {' '.join(words)}: exit code {code}: {complained.getvalue()[-400:]}")
    return said.getvalue()


def healthy_table(name: str, rows: list[Result]) -> str:
    """One line."""
    answers = Counter(row.answer for row in rows)
    hours = [row.hours for row in rows if row.answer == "pass"]
    sooner = f"{np.median(hours):.1f} h" if hours else "–"
    share = 100 * answers["fail"] / len(rows)
    return (
        f"| {name} | {len(rows)} | {answers['fail']} ({share:.2g} %) | {answers['pass']} | {sooner} | {answers['']} |"
    )


def leak_table(rows: list[Result]) -> Iterator[str]:
    """How soon, and how often."""
    failed = [row.hours for row in rows if row.answer == "fail"]
    today = [row for row in rows if row.end == "fail"]
    yield "| leaks of 3 times the smallest | proved before the end | after (tenth, median, nine tenths) | at 24 h |"
    yield "|--:|--:|---|--:|"
    tenths = " ".join(f"{x:.1f} h" for x in np.quantile(failed, [0.1, 0.5, 0.9])) if failed else "–"
    yield f"| {len(rows)} | {len(failed)} | {tenths} | {len(today)} |"
    yield ""
    yield "| segments: five of 4.8 h, together | one night |"
    yield "|--:|--:|"
    known = [sum(getattr(row, which) for row in rows) for which in ("joined", "whole")]
    yield f"| {known[0]} of {len(rows)} proved | {known[1]} of {len(rows)} |"


def _map(pool: ProcessPoolExecutor | None, job: partial[Result] | partial[Result | None], seeds: range) -> list[Result]:
    results = pool.map(job, seeds) if pool is not None else map(job, seeds)
    return [result for result in results if result is not None]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, number in (("plain", 400), ("lives", 40), ("leaks", 40), ("virtual", 20), ("seed", 0), ("jobs", 1)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--each", action="store_true", help="name each healthy night that failed")
    given = parser.parse_args()
    wrong: list[tuple[str, Result]] = []
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ProcessPoolExecutor(given.jobs)) if given.jobs > 1 else None
        seeds = range(given.seed, given.seed + given.virtual)
        if given.plain or given.lives or given.virtual:
            print("| healthy nights | tried | FAIL | PASS before the end | after (median) | to the end |")
            print("|---|--:|--:|--:|--:|--:|")
        sets = [("plain", False, EARLY, given.plain), ("lives", True, EARLY, given.lives)]
        sets += [("lives, by default (16 h)", True, "", given.lives)]
        for name, lives, not_before, number in sets:
            if number:
                job = partial(healthy, lives=lives, not_before=not_before)
                rows = _map(pool, job, range(given.seed, given.seed + number))
                print(healthy_table(name, rows), flush=True)
                wrong += [(name, row) for row in rows if row.answer == "fail"]
        if given.virtual:
            rows = _map(pool, partial(virtual, leak=False), seeds)
            print(healthy_table("virtual, by the engine", rows), flush=True)
            wrong += [("virtual", row) for row in rows if row.answer == "fail"]
            failed = [row.hours for row in _map(pool, partial(virtual, leak=True), seeds) if row.answer == "fail"]
            tenths = " ".join(f"{x:.1f} h" for x in np.quantile(failed, [0.1, 0.5, 0.9])) if failed else "–"
            print(
                f"\nvirtual nights with a leak of 16 % a day: {len(failed)} of {given.virtual} proved, after {tenths}"
            )
        if given.leaks:
            print()
            print("\n".join(leak_table(_map(pool, partial(leaking), range(given.seed, given.seed + given.leaks)))))
    for name, row in wrong if given.each else ():
        print(f"{name}, seed {row.seed}: {row.text}")


if __name__ == "__main__":
    main()
