"""A process's memory over a day, real and drawn, as it is and with leaks of known size: what does the verdict say?

    python tests/bench/accuracy/windows.py --each-kind 40 --jobs 2
    python tests/bench/accuracy/windows.py DATA_DIR --each-kind 40 --jobs 2      real windows too
    python tests/bench/accuracy/windows.py --kind jobs --each                    one kind, with each miss

Backgrounds: quiet windows of real series (sets of DATA_DIR, whose thirds differ by less than 1.5 %; shorter ones are
stretched to a day), and drawn ones: a few dips, sawteeth, sawteeth on a wave of a day, over two days, behind a warm-up,
and jobs. Onto each a straight leak of 10, 20 and 40 % a day is laid, and one of 30 and 60 % a day from 60 % of the run
on; each is a record with that one series, judged by ``soakwatch judge``. Right is a failure by ``growth`` of what
leaks, and no failure of what does not. Asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[3]))

import numpy as np  # noqa: E402
from tests.bench.accuracy.lives import SOURCES  # noqa: E402
from tests.bench.accuracy.night import Floats, Night, floats, write_run  # noqa: E402
from tests.bench.accuracy.tables import table  # noqa: E402
from tests.bench.accuracy.trials import columns, epoch, number, opened, rows  # noqa: E402

from soakwatch.cli.main import run as command  # noqa: E402

_DAY_S: Final = 86400.0
_HOUR_S: Final = 3600.0
_MINUTE_S: Final = 60.0
_LEVEL: Final = 64 * 2.0**20
_QUIET: Final = 0.015
_FEW: Final = 300  # readings of a real window


def _line(share: float) -> Callable[[Floats], Floats]:
    return lambda days: share * days


def _late(share: float) -> Callable[[Floats], Floats]:
    return lambda days: share * np.maximum(days - 0.6 * days[-1], 0)


LEAKS: Final[Mapping[str, Callable[[Floats], Floats]]] = {
    "none": _line(0.0),
    "10 %/day": _line(0.1),
    "20 %/day": _line(0.2),
    "40 %/day": _line(0.4),
    "30 %/day from .6 on": _late(0.3),
    "60 %/day from .6 on": _late(0.6),
}
"""What is laid onto a background: a share of the level, by the days since the begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """Memory as shares of its level, at seconds since the begin."""

    kind: str
    name: str
    at_s: Floats
    value: Floats


# --- drawn -----------------------------------------------------------------------------------------------------------


def _teeth(rng: np.random.Generator, at_s: Floats, period_s: float, height: float) -> Floats:
    """Climbs that fall at their end; lengths and heights differ by 15 %."""
    result, begin = np.zeros(at_s.size), -float(rng.uniform(0, 1)) * period_s
    while begin < at_s[-1]:
        length = max(period_s * (1 + 0.15 * float(rng.standard_normal())), 0.3 * period_s)
        part = (at_s >= begin) & (at_s < begin + length)
        result[part] = height * (1 + 0.15 * float(rng.standard_normal())) * (at_s[part] - begin) / length
        begin += length
    return result


def _between(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _dips(rng: np.random.Generator, at_s: Floats) -> Floats:
    value = np.ones(at_s.size)
    height = _between(rng, 0.002, 0.05)
    for begin in rng.uniform(0.02, 0.75, int(rng.integers(2, 6))) * at_s[-1]:
        since = (at_s - begin) / (float(rng.uniform(0.3, 3)) * _HOUR_S)
        value -= height * float(rng.uniform(0.5, 1.5)) * np.where(since >= 0, np.maximum(1 - since, 0), 0)
    return floats(value)


def _sawtooth(rng: np.random.Generator, at_s: Floats) -> Floats:
    return floats(1 + _teeth(rng, at_s, _between(rng, 0.5, 14) * _HOUR_S, _between(rng, 0.01, 0.3)))


def _sawtooth_on_a_wave(rng: np.random.Generator, at_s: Floats) -> Floats:
    wave = rng.uniform(0.005, 0.03) * np.sin(2 * np.pi * (at_s / _DAY_S + rng.uniform(0, 1)))
    return floats(1 + wave + _teeth(rng, at_s, float(rng.uniform(3, 9)) * _HOUR_S, float(rng.uniform(0.01, 0.06))))


def _sawtooth_after_a_warm_up(rng: np.random.Generator, at_s: Floats) -> Floats:
    warm = rng.uniform(0.05, 0.3) * np.exp(-at_s / (rng.uniform(0.2, 2) * _HOUR_S))
    return floats(1 - warm + _teeth(rng, at_s, _between(rng, 0.5, 8) * _HOUR_S, float(rng.uniform(0.01, 0.15))))


def _jobs(rng: np.random.Generator, at_s: Floats) -> Floats:
    value = np.ones(at_s.size)
    for _ in range(int(rng.integers(1, 5))):
        since, length_s = at_s - rng.uniform(0.02, 0.9) * at_s[-1], rng.uniform(0.3, 4) * _HOUR_S
        ramp = np.minimum(1, since / (rng.uniform(0.05, 1) * length_s))
        value += rng.uniform(0.02, 0.2) * np.where((since >= 0) & (since < length_s), ramp, 0)
    return floats(value)


_DRAWN: Final[Mapping[str, tuple[float, Callable[[np.random.Generator, Floats], Floats]]]] = {
    "a few dips": (_DAY_S, _dips),
    "sawtooth": (_DAY_S, _sawtooth),
    "sawtooth over 48 h": (2 * _DAY_S, _sawtooth),
    "sawtooth on a wave of a day": (_DAY_S, _sawtooth_on_a_wave),
    "sawtooth after a warm-up": (_DAY_S, _sawtooth_after_a_warm_up),
    "jobs": (_DAY_S, _jobs),
}


def drawn(seed: int, each: int) -> Iterator[Background]:
    """So many backgrounds of each kind, a reading a minute, with .1 to .5 % of noise that remembers."""
    for index, (kind, (length_s, shape)) in enumerate(_DRAWN.items()):
        for i in range(each):
            rng = np.random.default_rng([97, seed, index, i])
            at_s = floats(np.arange(0, length_s, _MINUTE_S))
            steps, memory = rng.standard_normal(at_s.size), float(rng.choice([0.0, 0.5, 0.9]))
            noise = np.zeros(at_s.size)
            for j in range(1, at_s.size):
                noise[j] = memory * noise[j - 1] + steps[j]
            noise *= rng.uniform(0.001, 0.005) * np.sqrt(1 - memory**2)
            yield Background(kind, f"{kind} {seed}.{i}", at_s, floats(shape(rng, at_s) + noise))


# --- real ------------------------------------------------------------------------------------------------------------


def memory_series(folder: Path) -> Iterator[tuple[str, str, Floats, Floats]]:
    """(set, name, seconds, readings) of series that may be a memory's."""
    for path in sorted((folder / "alibaba_mem").glob("m_*.csv*")):
        read = [
            (epoch(r.get("Timestamp") or r[""]), number(r.get("Value") or r.get("mem_util_percent")))
            for r in rows(path)
        ]
        time_s, value = np.array(read, dtype=np.float64).T
        yield "alibaba_mem", path.name, time_s, value
    for path in sorted((folder / "asd_smd").glob("*.npz")):
        with np.load(path) as arrays:
            for part in ("train", "test"):
                every = arrays[part]
                apart = 300.0 if path.name.startswith("omi") else _MINUTE_S
                for i in range(every.shape[1]):
                    yield (
                        "asd_smd",
                        f"{path.stem} {part} {i}",
                        floats(np.arange(len(every)) * apart),
                        floats(every[:, i]),
                    )
    for path in sorted((folder / "jumpstarter_d2").glob("t*_service*.csv.gz")):
        if "label" not in path.name:
            with opened(path) as file:
                every = np.loadtxt(file, delimiter=",", ndmin=2)
            for i in range(every.shape[1]):
                yield "jumpstarter_d2", f"{path.name} {i}", floats(np.arange(len(every)) * 300.0), floats(every[:, i])
    for path in sorted((folder / "nezha").glob("20*/*_metric.csv.gz")):
        time_s, value = columns(path, "TimeStamp", "MemoryUsage(Mi)")
        yield "nezha", f"{path.parent.name} {path.name}", time_s, value
    for path in sorted((folder / "llm_aging").glob("*.csv.gz")):
        both = [(epoch(r["currentTime"]), number(r["cachedMemory"]), number(r["usedMemory"])) for r in rows(path)]
        time_s, *values = np.array(both, dtype=np.float64).T
        for name, value in zip(("cached", "used"), values, strict=True):
            yield "llm_aging", f"{path.name} {name}", time_s, value


def real(folder: Path, each: int) -> Iterator[Background]:
    """Quiet windows: up to so many of each set, in the order of the SHA-256 of their names."""
    found: dict[str, list[Background]] = {}
    for kind, name, time_s, value in memory_series(folder):
        there = np.isfinite(time_s) & np.isfinite(value)
        order = np.unique(time_s[there], return_index=True)
        at_s, read = floats(order[0]), floats(value[there][order[1]])
        if at_s.size < _FEW:
            continue
        length_s = _DAY_S if at_s[-1] - at_s[0] >= _DAY_S - 600 else _DAY_S / 2
        for i in range(int((at_s[-1] - at_s[0] + 600) // length_s)):
            part = (at_s - at_s[0] >= i * length_s) & (at_s - at_s[0] < (i + 1) * length_s)
            if part.sum() >= _FEW // 2 and is_quiet(read[part]):
                at = (at_s[part] - at_s[0] - i * length_s) * _DAY_S / length_s
                own = Background(kind, f"{name} {i}", at, read[part] / float(np.median(read[part])))
                found.setdefault(kind, []).append(own)
    for of_kind in found.values():
        yield from sorted(of_kind, key=lambda own: hashlib.sha256(own.name.encode()).digest())[:each]


def is_quiet(value: Floats, bound: float = _QUIET) -> bool:
    """Whether the thirds agree, and their halves, to a share of the median, in a series that moves at all."""
    middle = float(np.median(value))
    if not middle > 0 or float(np.ptp(value)) <= 1e-4 * middle:
        return False
    parts = [float(np.mean(part)) for part in np.array_split(value, 3)]
    medians = [float(np.median(part)) for part in np.array_split(value, 6)]
    return max(parts) - min(parts) < bound * middle and max(medians) - min(medians) < bound * middle


# --- judged ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What the verdict said of one run; ``seconds`` are of CPU."""

    kind: str
    name: str
    leak: str
    verdict: str
    named: bool
    reason: str
    seconds: float


def answered(own: Background, leak: str) -> Answer:
    """One background with one leak, judged by the command."""
    began = time.process_time()
    cadence_s = max(float(np.median(np.diff(own.at_s))), 1.0)
    length_s = float(own.at_s[-1]) + cadence_s
    night = Night(np.random.default_rng(0), 0, length_s, cadence_s, own.at_s, SOURCES)
    value = _LEVEL * (own.value + LEAKS[leak](own.at_s / _DAY_S))
    night.put("process.memory.usage", floats(np.round(value / 4096) * 4096), "process=daemon,instance=0", "a")
    night.sources = tuple(source for source in SOURCES if any(source.brings(key) for key in night.value))
    night.answered = {source.name: np.ones(own.at_s.size, np.bool_) for source in night.sources}
    night.phases.append(("soak", 0.0, length_s))
    with tempfile.TemporaryDirectory(prefix="soakwatch-bench-") as name:
        folder, heard = Path(name), io.StringIO()
        write_run(night, folder / "record")
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            code = command(["judge", str(folder / "record"), "--json", str(folder / "verdict.json")])
        if code not in {0, 1, 3}:
            raise RuntimeError(f"{own.name}: exit code {code}: {heard.getvalue()[-400:]}")
        document = json.loads((folder / "verdict.json").read_text(encoding="utf-8"))
    said = next((f for f in document["findings"] if f["rule"] == "growth"), None)
    named = said is not None and said["outcome"] == "fail"
    reason = str(document["reason"] if said is None else said["reason"])
    return Answer(own.kind, own.name, leak, str(document["verdict"]), named, reason, time.process_time() - began)


def _rows(answers: list[Answer]) -> Iterator[list[str]]:
    kinds = [*dict.fromkeys(answer.kind for answer in answers), "all"]
    for kind in kinds:
        of_kind = [answer for answer in answers if kind in {answer.kind, "all"}]
        cells = [kind, str(sum(answer.leak == "none" for answer in of_kind))]
        for leak in LEAKS:
            of_leak = [answer for answer in of_kind if answer.leak == leak]
            failed = sum(answer.verdict == "fail" if leak == "none" else answer.named for answer in of_leak)
            passed = sum(answer.verdict == "pass" for answer in of_leak)
            cells.append(f"{failed} / {len(of_leak) - failed - passed} / {passed}")
        yield cells


def main() -> None:
    """Draw, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, help="folder of the real sets")
    parser.add_argument("--each-kind", type=int, default=40, help="backgrounds of each kind at most")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn ones")
    parser.add_argument("--kind", default="", help="only kinds whose name holds this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="a line for each answer that is not right")
    options = parser.parse_args()
    backgrounds = [*(real(options.data, options.each_kind) if options.data else ())]
    backgrounds += drawn(options.seed, options.each_kind)
    tried = [(own, leak) for own in backgrounds if options.kind in own.kind for leak in LEAKS]
    answers: list[Answer] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for number, answer in enumerate(pool.map(answered, *zip(*tried, strict=True), chunksize=4), 1):
            answers.append(answer)
            if number % 250 == 0:
                print(f"{number} of {len(tried)}", file=sys.stderr, flush=True)
    print("Runs that fail (what leaks: by `growth`) / are neither / pass, by the leak:\n")
    print(table(("background", "runs", *LEAKS), _rows(answers)))
    print(f"\n{sum(answer.seconds for answer in answers):.0f} s CPU for {len(answers)} runs")
    if options.each:
        wrong = [a for a in answers if (a.verdict == "fail" if a.leak == "none" else not a.named)]
        for answer in islice(wrong, 500):
            print(f"{answer.name}, {answer.leak}: {answer.verdict}: {answer.reason[:300]}")


if __name__ == "__main__":
    main()
